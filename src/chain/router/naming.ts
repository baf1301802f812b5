// The options of a gateway that say how the names of tools and prompts are shown, and their checks.

import type { Caller, Handler } from "../../core/handler.ts";
import { checkOptions, kindOf } from "../../core/options.ts";
import {
  createLabels,
  DEFAULT_SEPARATOR,
  MAX_LABEL_LENGTH,
  MAX_NAME_LENGTH,
  type Naming,
  type NamesOption,
} from "./names.ts";
import { ShownNames } from "./shown-names.ts";

/** How the names of one upstream are shown. */
export interface UpstreamNaming {
  /** When its names get a prefix. Default: the option `names` of the gateway. */
  readonly names?: NamesOption | undefined;
  /** Its prefix, without the separator. Default: its name. */
  readonly prefix?: string | undefined;
}

export interface NamingOptions {
  /**
   * When the name of a tool, prompt or resource gets the prefix of its upstream: only if another upstream uses the same
   * name (the default), or always.
   */
  readonly names?: NamesOption | undefined;
  /** What stands between the prefix and the name of a tool or prompt: one to four of `_` and `-`. Default: `_`. */
  readonly separator?: string | undefined;
  /** The most characters of the name of a tool or prompt, 32 to 64. Default: 48, since clients add prefixes too. */
  readonly maxNameLength?: number | undefined;
  /** How the names of single upstreams are shown, by the names of the upstreams. */
  readonly upstreams?: Readonly<Record<string, UpstreamNaming>> | undefined;
  /**
   * A key, such as the path of a config. The names that are shown are kept on disk under it, so that they stay the same
   * after a restart. Default: they are remembered until the process ends.
   */
  readonly rememberNames?: string | undefined;
  /** Called with names of an upstream that model APIs would refuse. Default: `process.emitWarning`. */
  readonly onWarning?: ((upstream: string, message: string) => void) | undefined;
}

/** The part of a gateway that some callers see. */
export interface GatewayPart {
  /** The same for the same part. */
  readonly key: string;
  /**
   * The handler for an upstream; undefined if it is not in the part. `labelled` returns the name of a tool or prompt
   * with the prefix of the upstream.
   */
  readonly handlerOf: (name: string, handler: Handler, labelled: (own: string) => string) => Handler | undefined;
}

/** The part that a caller sees; undefined for everything. */
export type SelectPart = (caller: Caller) => GatewayPart | undefined;

export const NAMES_OPTIONS: readonly NamesOption[] = ["when-needed", "always"];
export const SEPARATOR: RegExp = /^[_-]{1,4}$/;
export const PREFIX: RegExp = new RegExp(`^[A-Za-z0-9_-]{1,${MAX_LABEL_LENGTH}}$`);
export const NAME_LENGTHS: readonly [min: number, max: number] = [32, 64];

/** The options of `prefix`, by the names of the upstreams. */
function prefixesIn(
  names: readonly string[],
  { upstreams = {} }: NamingOptions,
): Readonly<Record<string, string | undefined>> {
  const own = new Map(Object.entries(upstreams));
  return Object.fromEntries(names.map((name) => [name, own.get(name)?.prefix]));
}

/** `names`: the names of the upstreams. */
export function createNaming(
  names: readonly string[],
  options: NamingOptions & { readonly shownNames?: ShownNames | undefined },
): Naming {
  const { separator = DEFAULT_SEPARATOR, maxNameLength: maxLength = MAX_NAME_LENGTH, onWarning = warn } = options;
  const { shownNames = new ShownNames() } = options;
  const own = new Map(Object.entries(options.upstreams ?? {}));
  for (const name of names) {
    const { names: when = options.names ?? "when-needed", prefix } = own.get(name) ?? {};
    // If one of these changes, names that were shown before are made anew.
    shownNames.use(name, JSON.stringify([when, separator, maxLength, prefix]));
  }
  const labels = createLabels(names, prefixesIn(names, options));
  const byName = names.map((name, index) => [name, labels[index] ?? { name: "", scheme: "" }] as const);
  return { separator, maxLength, shownNames, onWarning, labels: new Map(byName) };
}

function warn(upstream: string, message: string): void {
  process.emitWarning(`${upstream}: ${message}`);
}

// Typed against the options, so that a new option must be added here too.
const UPSTREAM_OPTIONS = { names: true, prefix: true } as const satisfies Record<keyof UpstreamNaming, true>;

/** Throws a TypeError that names the option. `known`: the names of the upstreams. */
export function checkNamingOptions(options: NamingOptions, known: readonly string[]): void {
  const { separator, maxNameLength, upstreams = {}, rememberNames, onWarning } = options;
  checkNames("names", options.names);
  if (separator !== undefined && !(typeof separator === "string" && SEPARATOR.test(separator))) {
    throw new TypeError("to(): `separator` must be one to four of the characters _ and -");
  }
  const [min, max] = NAME_LENGTHS;
  if (
    maxNameLength !== undefined &&
    !(Number.isInteger(maxNameLength) && maxNameLength >= min && maxNameLength <= max)
  ) {
    throw new TypeError(`to(): \`maxNameLength\` must be a whole number from ${min} to ${max}`);
  }
  if (rememberNames !== undefined && typeof rememberNames !== "string") {
    throw new TypeError(`to(): \`rememberNames\` must be a string, not ${kindOf(rememberNames)}`);
  }
  if (onWarning !== undefined && typeof onWarning !== "function") {
    throw new TypeError(`to(): \`onWarning\` must be a function, not ${kindOf(onWarning)}`);
  }
  checkOptions("to()", upstreams, Object.fromEntries(known.map((name) => [name, true])), "upstreams.");
  const prefixes = new Map<string, string>();
  for (const [name, own] of Object.entries(upstreams)) {
    checkOptions("to()", own, UPSTREAM_OPTIONS, `upstreams.${name}.`);
    checkNames(`upstreams.${name}.names`, own.names);
    if (own.prefix === undefined) continue;
    if (typeof own.prefix !== "string" || !PREFIX.test(own.prefix)) {
      const what = `1 to ${MAX_LABEL_LENGTH} letters, digits, _ and -`;
      throw new TypeError(`to(): \`upstreams.${name}.prefix\` must have ${what}`);
    }
    const other = prefixes.get(own.prefix);
    if (other !== undefined) throw new TypeError(`to(): the upstreams ${other} and ${name} have the same \`prefix\``);
    prefixes.set(own.prefix, name);
  }
}

function checkNames(option: string, names: unknown): void {
  if (names === undefined || NAMES_OPTIONS.some((known) => known === names)) return;
  throw new TypeError(`to(): \`${option}\` must be "when-needed" or "always", not ${JSON.stringify(names)}`);
}
