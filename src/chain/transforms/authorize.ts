// Decides which caller may use which tools, prompts and resources: by rules, or by a function of the program. One
// decision counts for lists, calls, completions and subscriptions.

import { permits, scopesProblem } from "../../protocol/scopes.ts";
import { boolean, choice, documented, func, listOf, ofTools, refine, strings } from "../../core/fields.ts";
import type { OptionsOf, ValuesOf } from "../../core/options.ts";
import { McpError } from "../../protocol/errors.ts";
import type { Caller } from "../../core/handler.ts";
import { matchesGlob } from "../../core/text.ts";
import { LIST_CAPABILITIES, type ListCapability } from "../../protocol/lists.ts";
import { define, type DefinedMiddleware, type DefinitionPlace } from "../define.ts";
import { kindsOf, type Transform } from "../layer.ts";
import { capabilityOf } from "../named-items.ts";
import { nameMatcher, type NameMatcher } from "./name-rules.ts";

const RULE = {
  allow: boolean("What a match means.").or(true),
  callers: strings("The identities of callers; `*` matches any characters."),
  scopes: refine(strings("The caller must have all of these scopes."), (scopes, place) => {
    const problem = scopesProblem(scopes);
    if (problem !== undefined) throw place.error(problem);
  }),
  tools: ofTools(strings("Names of tools; `*` matches any characters.")),
  prompts: strings("Names of prompts; `*` matches any characters."),
  resources: strings("URIs of resources, and URI templates; `*` matches any characters."),
};

/** A rule of `authorize()`. It matches if all its conditions do; without conditions, it matches everything. */
export type AuthorizeRule = OptionsOf<typeof RULE>;

/** What a caller wants to use. */
export interface AuthorizedItem {
  readonly kind: "tool" | "prompt" | "resource";
  /** The name, the URI or the URI template, as callers see it. */
  readonly name: string;
}

const OPTIONS = {
  rules: listOf("The first rule that matches decides. Required without `decide`.", RULE),
  default: choice("What no rule matches. Default: deny.", ["allow", "deny"]),
  decide: documented(
    "`(caller, item)` decides about what no rule matches, instead of `default`.",
    func<(caller: Caller, item: AuthorizedItem) => boolean | Promise<boolean>>(),
  ),
  tell: boolean("Whether a refused call says so, and which scopes it needs.").or(false),
};

/** Options of `authorize()`. */
export type AuthorizeOptions = OptionsOf<typeof OPTIONS>;

interface Rule {
  readonly allow: boolean;
  readonly scopes: readonly string[] | undefined;
  readonly isFor: (caller: Caller) => boolean;
  /** Undefined if the rule does not match this kind of item. */
  readonly matches: Readonly<Record<ListCapability, NameMatcher | undefined>>;
}

const KINDS = { tools: "tool", prompts: "prompt", resources: "resource" } as const;

/**
 * Decides which caller may use which tools, prompts and resources. What a caller may not use is in none of its lists.
 *
 * @example
 * authorize({ rules: [{ callers: ["ada"] }, { tools: ["read_*"] }] })
 */
export const authorize: DefinedMiddleware<[options: AuthorizeOptions]> = define({
  name: "authorize",
  summary: "Decides which caller may use which tools, prompts and resources.",
  options: OPTIONS,
  transform: createAuthorize,
});

function createAuthorize(options: ValuesOf<typeof OPTIONS>, { error }: DefinitionPlace): Transform {
  const { decide, default: byDefault, tell } = options;
  if (options.rules === undefined && decide === undefined) throw error("rules", "is required");
  if (decide !== undefined && byDefault !== undefined) throw error("default", "and `decide` exclude each other");
  const rules = (options.rules ?? []).map(readRule);
  const isOpen = decide !== undefined || byDefault === "allow";
  return {
    kinds: kindsOf(LIST_CAPABILITIES),
    dependsOnCaller:
      decide !== undefined || options.rules?.some(({ callers, scopes }) => (callers ?? scopes) !== undefined) === true,
    hides: true,
    isLive: decide !== undefined,
    item: (item, { caller }) => {
      const { kind, name, otherNames } = item;
      const capability = capabilityOf(kind);
      const isVisible = rulingOf(rules, caller, capability, name, otherNames) ?? isOpen;
      if (!isVisible) return undefined;
      if (decide === undefined || rulingOf(rules, caller, capability, name) === true) return item;
      const decided = decide(caller, { kind: KINDS[capability], name });
      return decided instanceof Promise ? decided.then((is) => (is ? item : undefined)) : decided ? item : undefined;
    },
    ...(tell && { refuse: ({ kind, name }, { caller }) => refusal(rules, caller, capabilityOf(kind), name) }),
  };
}

/** What the first rule that matches says. */
function rulingOf(
  rules: readonly Rule[],
  caller: Caller,
  capability: ListCapability,
  name: string,
  ownNames?: readonly unknown[],
): boolean | undefined {
  for (const { isFor, matches, allow } of rules) {
    if (isFor(caller) && matches[capability]?.(name, ownNames) === true) return allow;
  }
  return undefined;
}

function readRule(rule: AuthorizeRule): Rule {
  const { allow = RULE.allow.default, callers, scopes } = rule;
  const named = LIST_CAPABILITIES.map((capability) => [capability, rule[capability]] as const);
  const namesNone = named.every(([, globs]) => globs === undefined);
  const matches = Object.fromEntries(
    named.map(([capability, globs]) => {
      if (globs === undefined) return [capability, namesNone ? () => true : undefined];
      if (allow) return [capability, nameMatcher(capability, globs, [])];
      // A refusal counts for all names of an item, also for those at the upstreams.
      const isFree = nameMatcher(capability, undefined, globs);
      return [capability, (name: string, ownNames?: readonly unknown[]) => !isFree(name, ownNames)];
    }),
  ) as Rule["matches"];
  const hasScopes = (caller: Caller): boolean =>
    allow ? permits(scopes, caller) : (scopes ?? []).every((scope) => caller.scopes?.includes(scope) === true);
  return {
    allow,
    scopes,
    matches,
    isFor: (caller) => isOneOf(callers, caller) && hasScopes(caller),
  };
}

function isOneOf(callers: readonly string[] | undefined, { principal }: Caller): boolean {
  return callers === undefined || (principal !== undefined && callers.some((glob) => matchesGlob(glob, principal)));
}

/** Names the scopes that a rule would need, so that the client can ask for them. Does not say whether the item exists. */
function refusal(rules: readonly Rule[], caller: Caller, capability: ListCapability, name: string): McpError {
  const needed = rules.find(
    ({ allow, scopes, matches, isFor }) =>
      allow && scopes !== undefined && matches[capability]?.(name) === true && isFor({ ...caller, scopes }),
  )?.scopes;
  const why = needed === undefined ? "is not allowed for this caller" : `needs the scopes ${needed.join(", ")}`;
  const data = { middlewareName: "authorize", ...(needed && { requiredScopes: needed }) };
  return McpError.of("access_denied", `The ${KINDS[capability]} ${name} ${why}`, data);
}
