// Finds the patterns of a config that match no tool, for `catenary doctor`, which lists the tools anyway: what the entries
// of servers include, exclude and rename, middleware with rules for tools, and profiles. A typing error in one would show
// a tool that should be hidden. Only tools are looked at, since most servers have nothing else.

import { nameMatcher } from "../../chain/middleware/filter.ts";
import { DEFAULT_SEPARATOR } from "../../chain/router/names.ts";
import type { Config, UpstreamEntry } from "../../config/index.ts";
import { matchesGlob } from "../../core/text.ts";
import { isObject } from "../../core/values.ts";
import { plural } from "../show/problems.ts";
import { oneLine } from "../terminal/text.ts";
import type { Check } from "./check-server.ts";

type Use = UpstreamEntry["use"][number];

/** A tool, by all names that it may have at some place. */
type Forms = ReadonlySet<string>;

const HINT = "correct the pattern, or remove it; `catenary tools` lists the names, and only * is a wildcard";

/** Checks what the entry of a server says of its tools, which are listed by their own names. */
export function checkEntryPatterns(entry: UpstreamEntry, tools: readonly string[]): Check[] {
  const subject = entry.name;
  const { line, column } = entry.position;
  const isEntryFilter = ({ position }: Use): boolean => position.line === line && position.column === column;
  const unmatched = walk(entry.use, asForms(tools), (use, key) =>
    isEntryFilter(use) ? (key === "only" ? "includeTools" : "excludeTools") : `use: filter: tools.${key}`,
  ).problems.map(({ place, pattern }) => warning(subject, `${place}: "${pattern}" matches no tool of ${subject}`));
  return [...unmatched, ...countHidden(entry, tools)];
}

/** Checks the profiles and the middleware for all servers. `tools`: the tools of all servers, by server. */
export function checkSharedPatterns(
  config: Config,
  path: string,
  tools: ReadonlyMap<string, readonly string[]>,
): Check[] {
  // A pattern may be for a server that is disabled, or cannot be listed now.
  const isComplete = [...config.upstreams.keys()].every((name) => tools.has(name)) && config.disabled.length === 0;
  const separator = config.naming.separator ?? DEFAULT_SEPARATOR;
  const shown = new Map(
    [...config.upstreams.values()].map((entry) => {
      const { forms, isKnown } = walk(entry.use, asForms(tools.get(entry.name) ?? []), () => "");
      const label = (name: string): string => `${entry.naming.prefix ?? entry.name}${separator}${name}`;
      const labelled = forms.map((names) => new Set([...names].flatMap((name) => [name, label(name)])));
      return [entry.name, isKnown && tools.has(entry.name) ? labelled : undefined];
    }),
  );
  const problems: Unmatched[] = [];
  for (const [name, profile] of config.profiles) {
    const servers = profile.servers ?? (isComplete ? [...shown.keys()] : undefined);
    const forms = servers?.map((server) => shown.get(server));
    if (forms === undefined || forms.includes(undefined)) continue;
    const all = forms.flatMap((some) => some ?? []);
    for (const key of ["only", "not"] as const) {
      problems.push(...unmatchedIn(profile.tools?.[key] ?? [], all, `profiles.${name}.tools.${key}`));
    }
  }
  const all = [...shown.values()];
  if (isComplete && !all.includes(undefined)) {
    const forms = all.flatMap((some) => some ?? []);
    problems.push(...walk(config.chain, forms, (_use, key) => `chain: filter: tools.${key}`, "chain").problems);
  }
  return problems.map(({ place, pattern }) => warning(path, `${place}: "${pattern}" matches no tool`));
}

function warning(subject: string, message: string): Check {
  return { subject, check: "patterns", status: "warning", message: oneLine(message), hint: HINT };
}

interface Unmatched {
  readonly place: string;
  readonly pattern: string;
}

function asForms(tools: readonly string[]): Forms[] {
  return tools.map((name) => new Set([name]));
}

function unmatchedIn(patterns: readonly string[], tools: readonly Forms[], place: string): Unmatched[] {
  const isMatched = (pattern: string): boolean =>
    tools.some((forms) => [...forms].some((name) => matchesGlob(pattern, name)));
  return patterns.filter((pattern) => !isMatched(pattern)).map((pattern) => ({ place, pattern }));
}

type Options = { readonly [name: string]: unknown };

const byTool = ({ tools }: Options): [string, string[]][] => [["tools", isObject(tools) ? Object.keys(tools) : []]];

/** Where other middleware has names and patterns of tools. */
const RULES: Readonly<Record<string, (options: Options) => [string, string[]][]>> = {
  authorize: ({ rules }) =>
    (Array.isArray(rules) ? (rules as readonly unknown[]) : []).map((rule, at) => [
      `rules.${at}.tools`,
      stringsIn(isObject(rule) ? rule["tools"] : []),
    ]),
  cache: byTool,
  confirm: ({ tools }) => [["tools", stringsIn(tools)]],
  describe: byTool,
  inject: byTool,
  "read-only": ({ allow }) => [["allow", stringsIn(allow)]],
  search: ({ include }) => [["include", stringsIn(include)]],
};

/** Goes through middleware from the inside out, and adds the new names of tools that are renamed. */
function walk(
  uses: readonly Use[],
  tools: readonly Forms[],
  placeOf: (use: Use, key: "only" | "not") => string,
  where = "use",
): { readonly problems: readonly Unmatched[]; readonly forms: readonly Forms[]; readonly isKnown: boolean } {
  const problems: Unmatched[] = [];
  let forms = tools;
  for (const use of uses.toReversed()) {
    // What is outside of these sees other tools.
    if (use.kind === "module") return { problems, forms, isKnown: false };
    for (const [option, patterns] of RULES[use.name]?.(isObject(use.options) ? use.options : {}) ?? []) {
      problems.push(...unmatchedIn(patterns, forms, `${where}: ${use.name}: ${option}`));
    }
    if (use.name === "search") return { problems, forms, isKnown: false };
    const rules = isObject(use.options) && isObject(use.options["tools"]) ? use.options["tools"] : {};
    if (use.name === "filter") {
      for (const key of ["only", "not"] as const) {
        problems.push(...unmatchedIn(stringsIn(rules[key]), forms, placeOf(use, key)));
      }
    } else if (use.name === "rename") {
      const names = new Map(Object.entries(rules));
      const isThere = (own: string): boolean => forms.some((one) => one.has(own));
      const missing = [...names.keys()].filter((own) => !isThere(own));
      problems.push(...missing.map((pattern) => ({ place: `${where}: rename: tools`, pattern })));
      forms = forms.map((one) => new Set([...one, ...stringsIn([...one].map((name) => names.get(name)))]));
    }
  }
  return { problems, forms, isKnown: true };
}

function stringsIn(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((one) => typeof one === "string") : [];
}

/** Says how many tools the innermost filter hides, which is that of includeTools and excludeTools, if there is one. */
function countHidden({ name: subject, use }: UpstreamEntry, tools: readonly string[]): Check[] {
  const last = use.at(-1);
  if (last?.kind !== "named" || last.name !== "filter" || !isObject(last.options)) return [];
  const { only, not } = isObject(last.options["tools"]) ? last.options["tools"] : {};
  const isShown = nameMatcher("tools", only === undefined ? undefined : stringsIn(only), stringsIn(not));
  const hidden = tools.filter((name) => !isShown(name)).length;
  if (hidden === 0) return [];
  return [{ subject, check: "hidden", status: "ok", message: `${plural(hidden, "tool")}, by the config` }];
}
