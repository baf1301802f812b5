// Finds the patterns of a config that match no tool, for `catenary doctor`, which lists the tools anyway: what the entries
// of servers include, exclude and rename, options of middleware that name tools, and profiles. A typing error in one would
// show a tool that should be hidden. Only tools are looked at, since most servers have nothing else.

import { SEPARATOR } from "../../chain/router/names.ts";
import { nameMatcher } from "../../chain/transforms/name-rules.ts";
import type { Config, UpstreamEntry } from "../../config/index.ts";
import { MIDDLEWARE } from "../../config/built-in.ts";
import type { Field } from "../../core/options.ts";
import { matchesGlob } from "../../core/text.ts";
import { isObject } from "../../core/values.ts";
import { plural } from "../show/problems.ts";
import { oneLine } from "../terminal/text.ts";
import { ok, type Result, warning } from "./check-server.ts";

type Use = UpstreamEntry["use"][number];

/** A tool, by all names that it may have at some place. */
type Forms = ReadonlySet<string>;

const HINT = "correct the pattern, or remove it; `catenary tools` lists the names, and only * is a wildcard";

/** Checks what the entry of a server says of its tools, which are listed by their own names. */
export function checkEntryPatterns(entry: UpstreamEntry, tools: readonly string[]): Result[] {
  const { line, column } = entry.position;
  const isEntryFilter = ({ position }: Use): boolean => position.line === line && position.column === column;
  const unmatched = walk(entry.use, asForms(tools), (use, option) =>
    isEntryFilter(use) ? option.replace("tools.", "") : `use: ${use.name}: ${option}`,
  ).problems.map((problem) => unmatchedWarning(problem, ` of ${entry.name}`));
  return [...unmatched, ...countHidden(entry, tools)];
}

/** Checks the profiles and the middleware for all servers. `tools`: the tools of all servers, by server. */
export function checkSharedPatterns(config: Config, tools: ReadonlyMap<string, readonly string[]>): Result[] {
  // A pattern may be for a server that is disabled, or cannot be listed now.
  const isComplete = [...config.upstreams.keys()].every((name) => tools.has(name)) && config.disabled.length === 0;
  const shownTools = new Map(
    [...config.upstreams.values()].map((entry) => {
      const { forms, isKnown } = walk(entry.use, asForms(tools.get(entry.name) ?? []), () => "");
      const label = (name: string): string => `${entry.naming.prefix ?? entry.name}${SEPARATOR}${name}`;
      const labelled = forms.map((names) => new Set([...names].flatMap((name) => [name, label(name)])));
      return [entry.name, isKnown && tools.has(entry.name) ? labelled : undefined];
    }),
  );
  const problems: Unmatched[] = [];
  for (const [name, profile] of config.profiles) {
    const servers = profile.servers ?? (isComplete ? [...shownTools.keys()] : undefined);
    const forms = servers?.map((server) => shownTools.get(server));
    if (forms === undefined || forms.includes(undefined)) continue;
    const all = forms.flatMap((some) => some ?? []);
    for (const key of ["include", "exclude"] as const) {
      problems.push(...unmatchedIn(profile.tools?.[key] ?? [], all, `profiles.${name}.tools.${key}`));
    }
  }
  const all = [...shownTools.values()];
  if (isComplete && !all.includes(undefined)) {
    const toolNames = all.flatMap((some) => some ?? []);
    const chain = walk(config.chain, toolNames, ({ name }, option) => `chain: ${name}: ${option}`);
    problems.push(...chain.problems);
    if (chain.isKnown) problems.push(...unmatchedIn(config.code?.include ?? [], chain.forms, "code.include"));
  }
  return problems.map((problem) => unmatchedWarning(problem));
}

function unmatchedWarning({ place, pattern }: Unmatched, where = ""): Result {
  return warning("patterns", oneLine(`${place}: "${pattern}" matches no tool${where}`), HINT);
}

interface Unmatched {
  readonly place: string;
  readonly pattern: string;
}

function asForms(tools: readonly string[]): Forms[] {
  return tools.map((name) => new Set([name]));
}

function unmatchedIn(
  patterns: readonly string[],
  tools: readonly Forms[],
  place: string,
  kind: Field["tools"] = "patterns",
): Unmatched[] {
  const isMatched = (pattern: string): boolean =>
    tools.some(
      (forms) => forms.has(pattern) || (kind === "patterns" && [...forms].some((name) => matchesGlob(pattern, name))),
    );
  return patterns.filter((pattern) => !isMatched(pattern)).map((pattern) => ({ place, pattern }));
}

/** The names and patterns of tools in the value of an option, by the path of the option that has them. */
function patternsIn({ tools, fields }: Field, value: unknown, path: string): [path: string, patterns: string[]][] {
  if (fields !== undefined) {
    const parts = Array.isArray(value) ? value.map((item: unknown, at) => [item, `${path}.${at}`]) : [[value, path]];
    return parts.flatMap(([part, at]) =>
      Object.entries(fields).flatMap(([name, field]) =>
        patternsIn(
          { ...field, tools: tools ?? field.tools },
          isObject(part) ? part[name] : [],
          `${String(at)}.${name}`,
        ),
      ),
    );
  }
  return tools === undefined
    ? []
    : [[path, Array.isArray(value) ? stringsIn(value) : isObject(value) ? Object.keys(value) : []]];
}

/** Goes through middleware from the inside out, and adds the new names of tools that are renamed. */
function walk(
  uses: readonly Use[],
  tools: readonly Forms[],
  placeOf: (use: Use, option: string) => string,
): { readonly problems: readonly Unmatched[]; readonly forms: readonly Forms[]; readonly isKnown: boolean } {
  const problems: Unmatched[] = [];
  let forms = tools;
  for (const use of uses.toReversed()) {
    // What is outside of these sees other tools.
    if (use.kind === "module") return { problems, forms, isKnown: false };
    const { options: fields = {} } = MIDDLEWARE.get(use.name)?.definition ?? {};
    const options = isObject(use.options) ? use.options : {};
    for (const [name, field] of Object.entries(fields)) {
      for (const [option, patterns] of patternsIn(field, options[name], name)) {
        problems.push(...unmatchedIn(patterns, forms, placeOf(use, option), field.tools));
      }
    }
    if (use.name === "search") return { problems, forms, isKnown: false };
    if (use.name === "rename") {
      const names = new Map(Object.entries(isObject(options["tools"]) ? options["tools"] : {}));
      forms = forms.map((form) => new Set([...form, ...stringsIn([...form].map((name) => names.get(name)))]));
    }
  }
  return { problems, forms, isKnown: true };
}

function stringsIn(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((item) => typeof item === "string") : [];
}

/** Says how many tools the innermost filter hides, which is that of `include` and `exclude` of the entry, if there is one. */
function countHidden({ use }: UpstreamEntry, tools: readonly string[]): Result[] {
  const last = use.at(-1);
  if (last?.kind !== "named" || last.name !== "filter" || !isObject(last.options)) return [];
  const { include, exclude } = isObject(last.options["tools"]) ? last.options["tools"] : {};
  const isShown = nameMatcher("tools", include === undefined ? undefined : stringsIn(include), stringsIn(exclude));
  const hidden = tools.filter((name) => !isShown(name)).length;
  return hidden === 0 ? [] : [ok("hidden", `${plural(hidden, "tool")}, by the config`)];
}
