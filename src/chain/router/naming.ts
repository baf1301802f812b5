// The options of a gateway that say how the names of tools and prompts are shown, and their checks.

import type { Caller, Handler } from "../../core/handler.ts";
import { choice, documented, field, func, mapOf, refine, string, type OptionsOf } from "../../core/fields.ts";
import { checkOptions, kindOf, type OptionPlace } from "../../core/options.ts";
import { MAX_NAME_LENGTH, SEPARATOR, type Naming, type NamesOption } from "./names.ts";
import { createLabels, MAX_LABEL_LENGTH, type Label } from "./labels.ts";
import { ShownNames } from "./shown-names.ts";

const NAMES_OPTIONS: readonly NamesOption[] = ["when-needed", "always"];

const PREFIX = `^[A-Za-z0-9_-]{1,${MAX_LABEL_LENGTH}}$`;
const PREFIX_CHARACTERS = `1 to ${MAX_LABEL_LENGTH} letters, digits, _ and -`;

export const UPSTREAM_NAMING = {
  names: choice("When to put the server in front of its names. Default: as for all servers.", NAMES_OPTIONS),
  prefix: documented("What to put in front of its names. Default: the name of the server.", {
    ...refine(string(""), checkPrefix, { pattern: PREFIX }),
    problem: ["not a valid prefix", `write ${PREFIX_CHARACTERS}`],
  }),
};

function checkPrefix(prefix: string, place: OptionPlace): void {
  if (!new RegExp(PREFIX).test(prefix)) throw place.error(`must have ${PREFIX_CHARACTERS}`);
}

/** How the names of one upstream are shown. */
export type UpstreamNaming = OptionsOf<typeof UPSTREAM_NAMING>;

export const NAMING = {
  names: choice(
    "When to put the server in front of the names of tools, resources and prompts (notes_search). when-needed: only for a name that several servers have. always: for every name.",
    NAMES_OPTIONS,
  ),
  upstreams: mapOf("How the names of single upstreams are shown, by the names of the upstreams.", UPSTREAM_NAMING),
  rememberNames: field(
    "A key, such as the path of a config. The names that are shown are kept on disk under it, so that they stay the same after a restart. Default: they are remembered until the process ends.",
    undefined,
    "a string",
    (value): value is string => typeof value === "string",
    (value) => `, not ${kindOf(value)}`,
  ),
  onWarning: documented(
    "Called with names of an upstream that model APIs would refuse. Default: process.emitWarning.",
    func<(upstream: string, message: string) => void>(),
  ),
};

/** The options of a gateway that say how names are shown. */
export type NamingOptions = OptionsOf<typeof NAMING>;

/** The part of a gateway that some callers see. */
export interface GatewayPart {
  /** The same for the same part. */
  readonly key: string;
  /**
   * The handler for an upstream; undefined if it is not in the part. `labelled` returns the name of a tool or prompt
   * with the prefix of the upstream.
   */
  readonly handlerOf: (name: string, handler: Handler, labelled: (ownName: string) => string) => Handler | undefined;
}

/** The part that a caller sees; undefined for everything. */
export type SelectPart = (caller: Caller) => GatewayPart | undefined;

/** `names`: the names of the upstreams. */
export function createNaming(
  names: readonly string[],
  options: NamingOptions & { readonly shownNames?: ShownNames | undefined },
): Naming {
  const warn: Naming["onWarning"] = (upstream, message) => process.emitWarning(`${upstream}: ${message}`);
  const { onWarning = warn, shownNames = new ShownNames() } = options;
  const optionsByName = new Map(Object.entries(options.upstreams ?? {}));
  for (const name of names) {
    const { names: when = options.names ?? "when-needed", prefix } = optionsByName.get(name) ?? {};
    // If one of these changes, names that were shown before are made anew.
    shownNames.use(name, JSON.stringify([when, SEPARATOR, MAX_NAME_LENGTH, prefix]));
  }
  const labels = createLabels(names, (name) => optionsByName.get(name)?.prefix);
  return { shownNames, onWarning, labels: new Map(names.map((name, index) => [name, labels[index] as Label])) };
}

/** Throws a TypeError if an upstream does not exist, or two have the same prefix. `known`: the names of the upstreams. */
export function checkPrefixes({ upstreams = {} }: NamingOptions, known: readonly string[]): void {
  checkOptions("to()", upstreams, Object.fromEntries(known.map((name) => [name, true])), "upstreams.");
  const prefixes = new Map<string, string>();
  for (const [name, { prefix }] of Object.entries(upstreams)) {
    if (prefix === undefined) continue;
    const other = prefixes.get(prefix);
    if (other !== undefined) throw new TypeError(`to(): the upstreams ${other} and ${name} have the same \`prefix\``);
    prefixes.set(prefix, name);
  }
}
