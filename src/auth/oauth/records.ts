// What is kept of an authorization, as texts for a token store: tokens with all that they are bound to, a client as a
// server registered it, and which of both an end led to last. A text that is not what we would have written counts
// as none: a store is a file that anybody may have edited.

import type * as oauth from "oauth4webapi";

export interface Tokens {
  readonly issuer: string;
  readonly resource: string;
  /** The client that they were given to. */
  readonly client: string;
  readonly access: string;
  readonly scheme: "Bearer" | "DPoP";
  readonly refresh?: string;
  /** What was asked for, and what was given where the server said that. */
  readonly asked: readonly string[];
  readonly granted?: readonly string[];
  /** Milliseconds since the epoch. */
  readonly expires?: number;
  /** From when on they are renewed, a little before they expire. */
  readonly renew?: number;
  /** The key that they are bound to. */
  readonly key?: string;
  /** The server publishes no metadata: its endpoints are the default ones. */
  readonly plain?: boolean;
}

/** Where an end led to when it was last spoken with. */
export interface Trace {
  readonly issuer: string;
  readonly resource: string;
  readonly client: string;
}

/** A client as a server registered it. */
export interface Registered {
  readonly client_id: string;
  readonly client_secret?: string;
  /** Seconds since the epoch; 0: never. */
  readonly client_secret_expires_at?: number;
  readonly token_endpoint_auth_method: string;
  readonly redirect_uris: readonly string[];
  /** The one that it replaced, for as long as there are tokens that were given to that one. */
  readonly before?: Registered;
}

export function readTokens(text: string | undefined): Tokens | undefined {
  const it = parsed(text);
  const whole =
    it !== undefined &&
    texts(it, "issuer", "resource", "client", "access") &&
    (it["scheme"] === "Bearer" || it["scheme"] === "DPoP") &&
    isList(it["asked"]);
  return whole ? (it as unknown as Tokens) : undefined;
}

export function readTrace(text: string | undefined): Trace | undefined {
  const it = parsed(text);
  return it !== undefined && texts(it, "issuer", "resource", "client") ? (it as unknown as Trace) : undefined;
}

export function readRegistered(text: string | undefined): Registered | undefined {
  const it = parsed(text);
  return isRegistered(it) && (it.before === undefined || isRegistered(it.before)) ? it : undefined;
}

function isRegistered(value: unknown): value is Registered {
  const it = (value ?? {}) as Record<string, unknown>;
  return texts(it, "client_id", "token_endpoint_auth_method") && isList(it["redirect_uris"]);
}

function parsed(text: string | undefined): Record<string, unknown> | undefined {
  if (text === undefined) return undefined;
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}

function texts(it: Record<string, unknown>, ...names: readonly string[]): boolean {
  return names.every((name) => typeof it[name] === "string");
}

function isList(value: unknown): boolean {
  return Array.isArray(value) && value.every((one) => typeof one === "string");
}

/** At most this long before its end a token is renewed. */
const MARGIN_MS = 60_000;

export interface Bound {
  readonly issuer: string;
  readonly resource: string;
  readonly client: string;
  readonly asked: readonly string[];
  readonly key?: string | undefined;
  readonly plain?: boolean | undefined;
  /** The refresh token that led to this answer: it stays good where the answer brings no other. */
  readonly refresh?: string | undefined;
}

export function tokensOf(answer: oauth.TokenEndpointResponse, bound: Bound, now: number = Date.now()): Tokens {
  const { issuer, resource, client, asked, key, plain } = bound;
  const refresh = answer.refresh_token ?? bound.refresh;
  const told = (answer.expires_in ?? 0) * 1000;
  // A server that says 0 means that it does not know: whoever gives a token wants it used.
  const life = told > 0 && Number.isFinite(told) ? told : undefined;
  return {
    issuer,
    resource,
    client,
    access: answer.access_token,
    scheme: answer.token_type === "dpop" ? "DPoP" : "Bearer",
    asked,
    ...(refresh === undefined ? undefined : { refresh }),
    ...(answer.scope === undefined ? undefined : { granted: answer.scope.split(/\s+/).filter(Boolean) }),
    ...(life === undefined ? undefined : { expires: now + life, renew: now + life - Math.min(MARGIN_MS, life / 10) }),
    ...(key === undefined ? undefined : { key }),
    ...(plain === true ? { plain } : undefined),
  };
}

export function isDue({ renew = Infinity }: Tokens, now: number = Date.now()): boolean {
  return now >= renew;
}

export function isExpired({ expires = Infinity }: Tokens, now: number = Date.now()): boolean {
  return now >= expires;
}
