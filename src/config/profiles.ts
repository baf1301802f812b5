// Who sees what of a gateway: profiles (some servers, some of their tools), callers with tokens of their own and what
// each may use, and the paths of profiles and single servers. All of them share the same upstreams.

import { filterUpstream, RULE } from "../chain/transforms/filter.ts";
import type { GatewayPart, SelectPart } from "../chain/router/naming.ts";
import { OPERATOR, TOKEN_PRINCIPAL } from "../core/authentication.ts";
import { expecting, object, required, strings, text, textLike, type Field, type OptionsOf } from "../core/fields.ts";
import type { Fields } from "../core/options.ts";
import { defined } from "../core/values.ts";
import { McpError } from "../protocol/errors.ts";
import * as read from "./readers.ts";

const RULE_EXAMPLE = 'an object, such as {"include": ["search_*"]}';

const PROFILE = {
  servers: expecting('an array of servers, such as ["notes"]', strings("The servers of the profile. Default: all.")),
  tools: object("Which tools, by the name at the server, or with the prefix of the server.", RULE, RULE_EXAMPLE),
  prompts: object("Which prompts.", RULE, RULE_EXAMPLE),
  resources: object("Which resources, by URI, and templates, by URI template.", RULE, RULE_EXAMPLE),
};

/** Some servers, and some of what they offer. */
export type Profile = OptionsOf<typeof PROFILE>;

/** A bearer token, which is never shown. */
export function token<const Description extends string>(description: Description): Field<Description, string> {
  return textLike(description, "^[A-Za-z0-9\\-._~+/]+=*$", [
    "not a valid bearer token",
    "use letters, digits and - . _ ~ + /, with = only at the end",
  ]);
}

const CALLER = {
  token: required(
    "a bearer token",
    token("The bearer token of the caller. Write ${TOKEN} to keep the token itself out of the file."),
  ),
  profile: text("The profile that the caller sees, on every path. Default: everything."),
};

/** A caller with a token of its own. */
export type CallerEntry = OptionsOf<typeof CALLER>;

/** What of a config says who sees what. */
export interface Access {
  readonly profiles: ReadonlyMap<string, Profile>;
  /** By name, which is the principal. */
  readonly callers: ReadonlyMap<string, CallerEntry>;
}

/** Objects by name. The names must match the pattern; `problem` says so. */
function named<Of extends Fields>(
  fields: Of,
  expected: string,
  example: string,
  pattern: string,
  ...problem: readonly [message: string, hint: string]
): read.Reader<ReadonlyMap<string, OptionsOf<Of>>> {
  const record = read.recordOf(read.readerOf(object("", fields, example)), expected);
  return read.reader({ ...record.schema, propertyNames: { pattern } }, (cursor) => {
    for (const member of cursor.members()) {
      if (!new RegExp(pattern).test(member.name)) member.errorAtKey(...problem);
    }
    const values = record(cursor);
    return values && new Map(Object.entries(values));
  });
}

export const profiles: read.Reader<ReadonlyMap<string, Profile>> = named(
  PROFILE,
  'an object of profiles by name, such as {"work": {"servers": ["notes"]}}',
  'an object, such as {"servers": ["notes"]}',
  // A name is a part of a path. At these two paths is legacy HTTP+SSE.
  "^(?!(sse|messages)$)[A-Za-z0-9_-]{1,64}$",
  "not a valid name of a profile",
  "use up to 64 letters, digits, _ and -, and not sse or messages",
);

export const callers: read.Reader<ReadonlyMap<string, Partial<CallerEntry>>> = named(
  CALLER,
  'an object of callers by name, such as {"ada": {"token": "${ADA_TOKEN}"}}',
  'an object, such as {"token": "${ADA_TOKEN}", "profile": "work"}',
  // A call of the operator has the principal "console".
  `^(?!${OPERATOR}$)[A-Za-z0-9_.@-]{1,64}$`,
  "not a valid name of a caller",
  `use up to 64 letters, digits, _ . @ and -, and not ${OPERATOR}, which is the operator`,
);

/** Checks profiles and callers against the servers and each other. */
export function readAccess(
  root: read.Cursor,
  sections: {
    readonly profiles?: ReadonlyMap<string, Profile>;
    readonly callers?: ReadonlyMap<string, Partial<CallerEntry>>;
  },
  servers: { readonly upstreams: ReadonlyMap<string, unknown>; readonly disabled: readonly string[] },
  sharedToken: string | undefined,
): Access {
  const known = [...servers.upstreams.keys(), ...servers.disabled];
  for (const [name] of sections.profiles ?? []) {
    for (const item of root.get("profiles")?.get(name)?.get("servers")?.items() ?? []) {
      const server = read.anyString(item);
      if (server === undefined || known.includes(server)) continue;
      item.error(
        `there is no server ${JSON.stringify(server)}`,
        read.suggest(server, known) ?? `there are ${known.join(", ")}`,
      );
    }
  }
  const all = new Map<string, CallerEntry>();
  const tokens = new Map<string, string>(sharedToken === undefined ? [] : [[sharedToken, "listen.token"]]);
  for (const [name, { token: callerToken, profile: used }] of sections.callers ?? []) {
    const cursor = root.get("callers")?.get(name);
    if (callerToken === undefined) {
      if (cursor?.get("token") === undefined) cursor?.error('"token" is missing', 'write {"token": "${MY_TOKEN}"}');
      continue;
    }
    const other = tokens.get(callerToken);
    if (other !== undefined) cursor?.get("token")?.error(`the same token as ${other}`, "give each caller its own");
    tokens.set(callerToken, `callers.${name}`);
    if (used !== undefined && sections.profiles?.has(used) !== true) {
      const names = [...(sections.profiles?.keys() ?? [])];
      const hint = names.length === 0 ? "write it in profiles" : `there are ${names.join(", ")}`;
      cursor?.get("profile")?.error(`there is no profile ${JSON.stringify(used)}`, read.suggest(used, names) ?? hint);
    }
    all.set(name, { token: callerToken, ...defined({ profile: used }) });
  }
  return { profiles: sections.profiles ?? new Map(), callers: all };
}

/** A config, as far as it says who sees what. */
type AccessOf = Access & { readonly upstreams: ReadonlyMap<string, unknown> };

/** What a caller sees: some of the servers, with the rules of a profile. */
interface VisiblePart {
  readonly key: string;
  readonly servers: ReadonlySet<string>;
  readonly profile: Profile;
}

const PROFILE_PATH = /^\/mcp\/([^/]+)$/;
const SERVER_PATH = /^\/servers\/([^/]+)\/mcp$/;

/** `endpoint` is the path, undefined for the main one. Returns undefined if the caller has nothing at the path. */
function visiblePartOf(
  config: AccessOf,
  endpoint: string | undefined,
  principal: string | undefined,
): VisiblePart | undefined {
  const bound = principal === undefined ? undefined : config.callers.get(principal)?.profile;
  const named = segmentOf(PROFILE_PATH, endpoint);
  const server = segmentOf(SERVER_PATH, endpoint);
  if (endpoint !== undefined && named === undefined && server === undefined) return undefined;
  // A caller with a profile has no other one.
  if (bound !== undefined && named !== undefined && named !== bound) return undefined;
  const profileName = bound ?? named;
  const profile = profileName === undefined ? {} : config.profiles.get(profileName);
  if (profile === undefined) return undefined;
  const all = [...config.upstreams.keys()].filter((name) => profile.servers?.includes(name) ?? true);
  if (server !== undefined && !all.includes(server)) return undefined;
  return {
    // What the part has, and not its name: a config that is read again may give the name to another part.
    key: JSON.stringify([profile, server === undefined ? all : [server]]),
    servers: new Set(server === undefined ? all : [server]),
    profile,
  };
}

function segmentOf(pattern: RegExp, path: string | undefined): string | undefined {
  const segment = path === undefined ? undefined : pattern.exec(path)?.[1];
  try {
    return segment === undefined ? undefined : decodeURIComponent(segment);
  } catch {
    return undefined;
  }
}

/** Whether there is something at a path for a caller: `/servers/NAME/mcp` or `/mcp/PROFILE`. */
export function hasPath(config: AccessOf, path: string, principal: string | undefined): boolean {
  return visiblePartOf(config, path, principal) !== undefined;
}

/** Whether a caller sees a server, or some of what it offers. */
export function seesServer(config: AccessOf, server: string, principal: string | undefined): boolean {
  return visiblePartOf(config, undefined, principal)?.servers.has(server) === true;
}

/** Whether a caller may use everything. */
export function seesAll(config: AccessOf, principal: string | undefined): boolean {
  if (principal === undefined || config.callers.size === 0 || principal === TOKEN_PRINCIPAL) return true;
  const caller = config.callers.get(principal);
  return caller !== undefined && caller.profile === undefined;
}

/**
 * The option `select` of the gateway. `hasCallers`: the config has callers, or the config before it had some. Then a
 * principal that is not among them is refused. It may be a caller that was removed and still has an open stream.
 */
export function selectPart(config: AccessOf, hasCallers: boolean): SelectPart {
  const parts = new Map<string, GatewayPart>();
  const nothing: GatewayPart = { key: "nothing", handlerOf: () => undefined };
  return ({ endpoint, principal, operatorCall }) => {
    // The operator may use everything, at the main endpoint.
    const isRefused = operatorCall === undefined && hasCallers;
    if (isRefused && principal !== undefined && principal !== TOKEN_PRINCIPAL && !config.callers.has(principal)) {
      throw McpError.of("unauthorized", "You are not among the callers of this gateway");
    }
    if (endpoint === undefined && config.callers.size === 0) return undefined;
    const sight = visiblePartOf(config, endpoint, principal);
    if (sight === undefined) return nothing;
    const { key, servers, profile } = sight;
    const part = parts.get(key) ?? {
      key,
      handlerOf: (name, handler, labelled) =>
        servers.has(name) ? filterUpstream(profile, handler, labelled) : undefined,
    };
    parts.set(key, part);
    return part;
  };
}
