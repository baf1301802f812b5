// Decides which caller may use which tools, prompts and resources: by rules, or by a function of the program. One
// decision counts for lists, calls, completions and subscriptions, which `hideItems` of filter.ts applies. What a list
// shows then depends on the caller, so no cache may share it between callers.

import { permits, scopesProblem } from "../../protocol/caller.ts";
import type { Caller, Middleware, Request, Result } from "../../core/handler.ts";
import { boolean, choice, func, listOf, refine, strings, type OptionsOf } from "../../core/fields.ts";
import { trusted } from "../../protocol/compose.ts";
import { McpError } from "../../protocol/errors.ts";
import { CACHEABLE, LIST_CAPABILITIES, type ListCapability } from "../../protocol/lists.ts";
import { define, type DefinedMiddleware, type DefinitionPlace } from "../define.ts";
import { hideItems, matchesGlob, nameMatcher, type HideOptions, type IsVisible, type NameMatcher } from "./filter.ts";

const RULE = {
  allow: boolean("What a match means. Default: true."),
  callers: strings("The identities of callers; `*` matches any characters."),
  scopes: refine(strings("The caller must have all of these scopes."), (scopes, place) => {
    const problem = scopesProblem(scopes);
    if (problem !== undefined) throw place.error(problem);
  }),
  tools: strings("Names of tools; `*` matches any characters."),
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
  rules: listOf("The first rule that matches decides.", RULE),
  default: choice("What no rule matches. Default: deny.", ["allow", "deny"]),
  /** Decides about what no rule matches, instead of `default`. */
  decide: func<(caller: Caller, item: AuthorizedItem) => boolean | Promise<boolean>>(),
  tell: boolean("Whether a refused call says so. Default: false."),
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
  middleware: createAuthorize,
});

function createAuthorize(options: AuthorizeOptions, { error }: DefinitionPlace): Middleware {
  const { decide, default: byDefault, tell = false } = options;
  if (options.rules === undefined && decide === undefined) throw error("rules", "is required");
  if (decide !== undefined && byDefault !== undefined) throw error("default", "and `decide` exclude each other");
  const rules = (options.rules ?? []).map(readRule);
  const dependsOnCaller =
    decide !== undefined || options.rules?.some(({ callers, scopes }) => (callers ?? scopes) !== undefined) === true;
  // Only refusals count for the names that items have at the upstreams.
  const knowsNames = rules.every(({ allow }) => allow);
  const isOpen = decide !== undefined || byDefault === "allow";
  // Most options do not depend on the caller, and then they are the same for all requests.
  const hidingFor = (caller: Caller): HideOptions => ({
    knowsNames,
    isAllowed:
      decide &&
      ((capability, name) =>
        rulingOf(rules, caller, capability, name) ?? decide(caller, { kind: KINDS[capability], name })),
    refuse: tell ? (capability, name) => refusal(rules, caller, capability, name) : undefined,
  });
  const hidingForAll: HideOptions | undefined = decide === undefined && !tell ? { knowsNames } : undefined;
  const middleware: Middleware = function authorize(request, context, next) {
    const { caller } = context;
    const isVisible: IsVisible = (capability, name, own) => rulingOf(rules, caller, capability, name, own) ?? isOpen;
    const answer = hideItems(request, context, next, isVisible, hidingForAll ?? hidingFor(caller));
    return dependsOnCaller && CACHEABLE.has(request.method)
      ? answer.then((result) => asPrivate(request, result))
      : answer;
  };
  return decide === undefined ? trusted(middleware) : middleware;
}

/** What the first rule that matches says. */
function rulingOf(
  rules: readonly Rule[],
  caller: Caller,
  capability: ListCapability,
  name: string,
  own?: readonly unknown[],
): boolean | undefined {
  for (const { isFor, matches, allow } of rules) {
    if (isFor(caller) && matches[capability]?.(name, own) === true) return allow;
  }
  return undefined;
}

function readRule(rule: AuthorizeRule): Rule {
  const { allow = true, callers, scopes } = rule;
  const named = LIST_CAPABILITIES.map((capability) => [capability, rule[capability]] as const);
  const namesNone = named.every(([, globs]) => globs === undefined);
  const matches = Object.fromEntries(
    named.map(([capability, globs]) => {
      if (globs === undefined) return [capability, namesNone ? () => true : undefined];
      if (allow) return [capability, nameMatcher(capability, globs, [])];
      // A refusal counts for all names of an item, also for those at the upstreams.
      const isFree = nameMatcher(capability, undefined, globs);
      return [capability, (name: string, own?: readonly unknown[]) => !isFree(name, own)];
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

/** The answer to `server/discover` is the same for all callers. */
function asPrivate({ method }: Request, result: Result): Result {
  return method === "server/discover" || result["cacheScope"] !== "public"
    ? result
    : { ...result, cacheScope: "private" };
}
