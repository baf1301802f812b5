// Gives tools, prompts and resources other names and descriptions. A new name belongs to the renamed item, even if that
// is not there. Another tool or prompt with this name is shown with the name of its upstream and a checksum; another
// resource is hidden.

import { object, ofTools, stringMap, type OptionsOf } from "../../core/fields.ts";
import { type ListCapability, LIST_CAPABILITIES } from "../../protocol/lists.ts";
import { checksum } from "../../protocol/pages.ts";
import type { Item } from "../item.ts";
import { define, type DefinedMiddleware, type DefinitionPlace } from "../define.ts";
import { kindsOf, type Transform } from "../layer.ts";
import { capabilityOf } from "../named-items.ts";
import { withChecksum } from "../router/names.ts";
import { VALID_NAME } from "../router/shown-names.ts";

const OPTIONS = {
  tools: ofTools(stringMap("Maps names that callers would see without it to new names."), "names"),
  prompts: stringMap("Maps names that callers would see without it to new names."),
  resources: stringMap("Maps URIs that callers would see without it to new URIs. Both may end with `*`."),
  descriptions: object("Maps the names that callers see to new descriptions.", {
    tools: stringMap("The descriptions of tools, by name."),
    prompts: stringMap("The descriptions of prompts, by name."),
    resources: stringMap("The descriptions of resources, by URI."),
  }),
};

/** Options of `rename()`. */
export type RenameOptions = OptionsOf<typeof OPTIONS>;

interface Renames {
  readonly names: NameMap;
  readonly descriptions: ReadonlyMap<string, string>;
}

/**
 * Gives tools, prompts and resources other names and descriptions.
 *
 * @example
 * rename({ tools: { read_graph: "memories" }, descriptions: { tools: { memories: "Reads all memories" } } })
 */
export const rename: DefinedMiddleware<[options: RenameOptions]> = define({
  name: "rename",
  summary: "Gives tools, prompts and resources other names and descriptions.",
  options: OPTIONS,
  transform: createRename,
});

function createRename(options: RenameOptions, { error }: DefinitionPlace): Transform {
  const of = (capability: ListCapability): Renames => ({
    names: new NameMap(options[capability], capability, capability === "resources", error),
    descriptions: new Map(Object.entries(options.descriptions?.[capability] ?? {})),
  });
  const renames = { tools: of("tools"), prompts: of("prompts"), resources: of("resources") };
  const uris = renames.resources.names;
  return {
    kinds: kindsOf(
      LIST_CAPABILITIES.filter(
        (capability) => !renames[capability].names.isEmpty || renames[capability].descriptions.size > 0,
      ),
    ),
    item: (item) => renamed(item, renames[capabilityOf(item.kind)]),
    innerName: (kind, name) => renames[capabilityOf(kind)].names.ownName(name),
    ...(!uris.isEmpty && { outerUri: (uri) => uris.shownName(uri) }),
  };
}

function renamed(item: Item, { names, descriptions }: Renames): Item | undefined {
  const inner = item.name;
  const isTaken = names.isTaken(inner);
  if (isTaken && (capabilityOf(item.kind) === "resources" || names.displaced(inner) !== undefined)) return undefined;
  const name = isTaken ? displacedName(inner, item.upstream) : names.shownName(inner);
  const description = descriptions.get(name);
  if (name === inner && description === undefined) return item;
  const isDescribed = description !== undefined && item.definition !== undefined;
  return item.change({ name, definition: isDescribed ? { ...item.definition, description } : item.definition });
}

/** What the checksum of a displaced item is made of. It depends only on the name, so that it leads back to it. */
const summed = (name: string): string => `rename ${name}`;

/** The name of an item whose own name was given to another. */
function displacedName(name: string, upstream: string | undefined): string {
  return withChecksum(upstream === undefined ? name : `${upstream}_${name}`, summed(name));
}

/**
 * Maps the upstream's own names to the names shown to callers, and back. Callers cannot use the upstream's name
 * of a renamed item, but another item may get that name. URIs can be renamed by prefix: `file:///*` to `notes:///*`.
 */
class NameMap {
  readonly #shownNames: ReadonlyMap<string, string>;
  readonly #ownNames = new Map<string, string>();
  readonly #prefixes: readonly (readonly [own: string, shown: string])[];
  /** New names by the checksum with which another item of this name is shown. */
  readonly #displaced = new Map<string, string>();

  constructor(
    names: Readonly<Record<string, string>> = {},
    option: string,
    allowsPrefixes: boolean,
    error: DefinitionPlace["error"],
  ) {
    const pairs = Object.entries(names);
    const isPrefix = ([ownName, shownName]: readonly [string, string]): boolean => {
      const stars = [ownName, shownName].filter((name) => name.endsWith("*")).length;
      if (allowsPrefixes && stars === 1) {
        throw error(`${option}.${ownName}`, "must end with `*` on both sides, or on neither");
      }
      return allowsPrefixes && stars === 2;
    };
    const prefixes = pairs.filter(isPrefix);
    this.#prefixes = prefixes.map(([ownPrefix, shownPrefix]) => [ownPrefix.slice(0, -1), shownPrefix.slice(0, -1)]);
    this.#shownNames = new Map(pairs.filter((pair) => !prefixes.includes(pair)));
    for (const [ownName, shownName] of pairs) {
      const other = pairs.find((pair) => pair[0] !== ownName && pair[1] === shownName)?.[0];
      if (other !== undefined) {
        throw error(`${option}.${ownName}`, `and \`${other}\` cannot both become ${JSON.stringify(shownName)}`);
      }
    }
    for (const [ownName, shownName] of this.#shownNames) {
      this.#ownNames.set(shownName, ownName);
      if (allowsPrefixes) continue;
      if (!VALID_NAME.test(shownName)) {
        throw error(`${option}.${ownName}`, "must become 1 to 64 letters, digits, _ and -: model APIs refuse others");
      }
      if (!this.#shownNames.has(shownName)) this.#displaced.set(checksum(summed(shownName)), shownName);
    }
  }

  get isEmpty(): boolean {
    return this.#shownNames.size === 0 && this.#prefixes.length === 0;
  }

  shownName(ownName: string): string {
    const name = this.#shownNames.get(ownName);
    if (name !== undefined) return name;
    const prefixes = this.#prefixes.find(([prefix]) => ownName.startsWith(prefix));
    return prefixes === undefined ? ownName : prefixes[1] + ownName.slice(prefixes[0].length);
  }

  /** The upstream's own name; undefined if no item is shown under this name. */
  ownName(shownName: string): string | undefined {
    const name = this.#ownNames.get(shownName) ?? this.displaced(shownName);
    if (name !== undefined) return name;
    const prefixes = this.#prefixes.find(([, prefix]) => shownName.startsWith(prefix));
    const ownName = prefixes === undefined ? shownName : prefixes[0] + shownName.slice(prefixes[1].length);
    return this.shownName(ownName) === shownName ? ownName : undefined;
  }

  /** The own name of an item that is shown under this name because another item was renamed to its own. */
  displaced(shownName: string): string | undefined {
    return shownName.at(-8) === "-" ? this.#displaced.get(shownName.slice(-7)) : undefined;
  }

  /** Whether this item keeps its name, but another item is renamed to the same name. */
  isTaken(ownName: string): boolean {
    return this.shownName(ownName) === ownName && this.ownName(ownName) !== ownName;
  }
}
