// Decides which caller may use which tools, prompts and resources: by rules, or by a function of the program. One
// decision counts for lists, calls, completions and subscriptions, which `hideItems` of filter.ts applies. What a list
// shows then depends on the caller, so no cache may share it between callers.

import { permits, scopesProblem } from "../../protocol/caller.ts";
import type { Caller, Middleware, Request, Result } from "../../core/handler.ts";
import { OPTION_SCHEMAS, OptionReader, type OptionsHelp } from "../../core/options.ts";
import { trusted } from "../../protocol/compose.ts";
import { McpError } from "../../protocol/errors.ts";
import { CACHEABLE, LIST_CAPABILITIES, type ListCapability } from "../../protocol/lists.ts";
import { hideItems, matchesGlob, nameMatcher, type HideOptions, type IsVisible, type NameMatcher } from "./filter.ts";

/** A rule of `authorize()`. It matches if all its conditions do; without conditions, it matches everything. */
export interface AuthorizeRule {
  /** What a match means. Default: true. */
  readonly allow?: boolean | undefined;
  /** The authenticated identities of callers; `*` matches any characters. Callers without an identity never match. */
  readonly callers?: readonly string[] | undefined;
  /** The caller must have all of these scopes. */
  readonly scopes?: readonly string[] | undefined;
  /** Names of tools; `*` matches any characters. If a rule names items, it does not match items of other kinds. */
  readonly tools?: readonly string[] | undefined;
  /** Names of prompts. */
  readonly prompts?: readonly string[] | undefined;
  /** URIs of resources, and URI templates. */
  readonly resources?: readonly string[] | undefined;
}

/** What a caller wants to use. */
export interface AuthorizedItem {
  readonly kind: "tool" | "prompt" | "resource";
  /** The name, the URI or the URI template, as callers see it. */
  readonly name: string;
}

/** Options of `authorize()`. */
export interface AuthorizeOptions {
  /** The first rule that matches decides. */
  readonly rules?: readonly AuthorizeRule[] | undefined;
  /** What no rule matches. Default: `deny`. */
  readonly default?: "allow" | "deny" | undefined;
  /** Decides about what no rule matches, instead of `default`. */
  readonly decide?: ((caller: Caller, item: AuthorizedItem) => boolean | Promise<boolean>) | undefined;
  /** Whether a refused call says that it was refused. Default: false, it fails as if the item did not exist. */
  readonly tell?: boolean | undefined;
}

const STRINGS = OPTION_SCHEMAS.strings;

const RULE: OptionsHelp<AuthorizeRule>["options"] = {
  allow: { ...OPTION_SCHEMAS.boolean, description: "What a match means. Default: true." },
  callers: { ...STRINGS, description: "The identities of callers; `*` matches any characters." },
  scopes: { ...STRINGS, description: "The caller must have all of these scopes." },
  tools: { ...STRINGS, description: "Names of tools; `*` matches any characters." },
  prompts: { ...STRINGS, description: "Names of prompts; `*` matches any characters." },
  resources: { ...STRINGS, description: "URIs of resources, and URI templates; `*` matches any characters." },
};

export const AUTHORIZE: OptionsHelp<AuthorizeOptions> = {
  summary: "Decides which caller may use which tools, prompts and resources.",
  options: {
    rules: {
      type: "array",
      items: { type: "object", properties: RULE, additionalProperties: false },
      description: "The first rule that matches decides.",
    },
    default: { enum: ["allow", "deny"], description: "What no rule matches. Default: deny." },
    decide: "code only",
    tell: { ...OPTION_SCHEMAS.boolean, description: "Whether a refused call says so. Default: false." },
  },
};

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
export function authorize(options: AuthorizeOptions): Middleware {
  const read = new OptionReader("authorize", options, Object.keys(AUTHORIZE.options));
  const rules = read.innerList("rules", Object.keys(RULE)).map(readRule);
  const decide = read.function("decide") as AuthorizeOptions["decide"];
  const byDefault = read.choice("default", ["allow", "deny"]);
  const tell = read.boolean("tell") ?? false;
  if (read.any("rules") === undefined && decide === undefined) throw read.error("rules", "is required");
  if (decide !== undefined && byDefault !== undefined) throw read.error("default", "and `decide` exclude each other");
  const dependsOnCaller = decide !== undefined || read.innerList("rules", Object.keys(RULE)).some(isAboutCallers);
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

function isAboutCallers(rule: OptionReader): boolean {
  return rule.any("callers") !== undefined || rule.any("scopes") !== undefined;
}

function readRule(read: OptionReader): Rule {
  const allow = read.boolean("allow") ?? true;
  const callers = read.strings("callers");
  const scopes = read.strings("scopes");
  const problem = scopes && scopesProblem(scopes);
  if (problem !== undefined) throw read.error("scopes", problem);
  const named = LIST_CAPABILITIES.map((capability) => [capability, read.strings(capability)] as const);
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
