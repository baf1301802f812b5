// Addresses of resources in many ends. Those in lists are told apart as names are. Addresses that are in no list come
// out of results (links, embedded resources, updates) and out of templates: one that an end has shown is remembered as
// that end's; one that could be taken for another end's is shown with the label of its own, which always leads back.

import { parseTemplate, type UriTemplate } from "../../protocol/uri-template.ts";
import type { Directory } from "./directory.ts";
import type { RoutedUpstream } from "./member.ts";
import type { NamesOption, Target } from "./names.ts";
import { Recent } from "./recent.ts";

/** Addresses that are in no list, remembered for each view. */
const MOST_ROUTES = 1_000;
/** Templates whose reading is remembered. */
const MOST_TEMPLATES = 10_000;

/** Where an address may be read. */
export interface Places {
  /** The likeliest first. */
  readonly targets: readonly Target[];
  /** Whether it is nowhere else. */
  readonly isSure: boolean;
}

const templates = new Recent<string, UriTemplate | false>(MOST_TEMPLATES);

export class Addresses {
  readonly #ends: readonly RoutedUpstream[];
  readonly #option: NamesOption;
  readonly #resources: Directory;
  readonly #templates: Directory;
  readonly #routes = new Recent<string, Target>(MOST_ROUTES);

  constructor(ends: readonly RoutedUpstream[], option: NamesOption, resources: Directory, listed: Directory) {
    this.#ends = ends;
    this.#option = option;
    this.#resources = resources;
    this.#templates = listed;
  }

  /** Whether addresses of this end are ever shown otherwise than it says them. */
  get arePlain(): boolean {
    return this.#ends.length === 1 && this.#option === "when-needed";
  }

  /** What an address that an end has named is shown as; it is found again by that. */
  shown(end: number, uri: string): string {
    if (this.arePlain) return uri;
    const labelled = `${this.#ends[end]?.label.scheme ?? ""}.${uri}`;
    if (this.#option === "always") return labelled;
    if (this.#resources.names.owners(uri).includes(end)) return this.#resources.names.shown(end, uri);
    if (this.#isLabelled({ end, name: uri })) return labelled;
    this.remember(uri, { end, name: uri });
    return uri;
  }

  /** What a label says, where the address is one that would be shown with it. */
  #labelled(uri: string): Target | undefined {
    const said = this.#resources.explicit(uri);
    return said !== undefined && this.#isLabelled(said) ? said : undefined;
  }

  #isLabelled({ end, name }: Target): boolean {
    const { names } = this.#resources;
    const owners = names.owners(name);
    if (owners.length > 0) return !owners.includes(end) || names.shown(end, name) !== name;
    const route = this.#routes.get(name);
    if (route !== undefined) return route.end !== end;
    if (names.isChanged(end) || this.#templates.names.isChanged(end)) return true;
    return this.#option === "always" || this.#resources.explicit(name) !== undefined;
  }

  /** An address in no list was found there. */
  remember(uri: string, target: Target): void {
    this.#routes.set(uri, target);
  }

  /** The ends that list this very address, where they are several; it is shown otherwise then. */
  candidates(uri: string): readonly string[] {
    const { names } = this.#resources;
    if (names.target(uri) !== undefined) return [];
    return names.owners(uri).map((end) => names.shown(end, uri));
  }

  /** Where the address is, as far as it is known. */
  places(uri: string): Places {
    const sure = this.#resources.find(uri) ?? this.#labelled(uri);
    if (sure !== undefined) return { targets: [sure], isSure: true };
    const route = this.#routes.get(uri);
    const matching = this.#ends.flatMap(({ index }) =>
      this.#templates.listOf(index).some((template) => matches(template, uri)) ? [{ end: index, name: uri }] : [],
    );
    return { targets: route === undefined ? matching : [route, ...matching], isSure: false };
  }
}

function matches(text: string, uri: string): boolean {
  let template = templates.get(text);
  if (template === undefined) {
    template = read(text);
    templates.set(text, template);
  }
  return template !== false && template.match(uri) !== undefined;
}

/** False where it cannot be read. */
function read(text: string): UriTemplate | false {
  try {
    return parseTemplate(text);
  } catch {
    return false;
  }
}
