// What servers say when they refuse: the header WWW-Authenticate, and failures of the OAuth flow as ConnectionErrors
// that are safe to show. The cause of an oauth4webapi error may be a response with tokens, or a URL with a code. So only
// the message is kept, and text from a server is redacted.

import { ConnectionError, type Hint } from "../../core/errors.ts";
import { hiderOf, redactConnectionError } from "../../core/secrets.ts";
import { defined, errorMessage, fieldsOf, systemErrorCode } from "../../core/values.ts";

export function unauthorized(message: string, hint?: Hint): ConnectionError {
  // The MCP server refused the request, so it has not run.
  return new ConnectionError("unauthorized", message, { mayHaveRun: false, hint });
}

/** Strings that no message may contain, even if a server repeats them. Undefined and very short ones are ignored. */
export type Secrets = readonly (string | undefined)[];

/** Converts an error into one that is safe to show. `doing`: what was attempted, such as "getting a token". */
export function authFailure(doing: string, error: unknown, secrets: Secrets = [], hint?: Hint): ConnectionError {
  if (error instanceof ConnectionError && (error.kind === "unauthorized" || error.kind === "cancelled")) return error;
  const { name } = fieldsOf(error);
  if (name === "AbortError") return new ConnectionError("cancelled", `Cancelled: ${doing}`, { mayHaveRun: false });
  if (name === "TimeoutError") return unauthorized(`Timed out: ${doing}`);
  return unauthorized(`Failed: ${doing}: ${reasonOf(error, secrets)}`, hint);
}

/** Does the work. If it fails, throws the error that `authFailure` makes of it. */
export async function attempting<T>(
  doing: string,
  secrets: Secrets,
  work: () => Promise<T> | T,
  hint?: Hint,
): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw authFailure(doing, error, secrets, hint);
  }
}

/** The message of an error of oauth4webapi or `fetch`, without the other data of the error. */
export function reasonOf(error: unknown, secrets: Secrets = []): string {
  if (error instanceof ConnectionError) return error.message;
  const { code, status, cause, error_description: description } = fieldsOf(error);
  const oauthCode = errorCode(error);
  if (oauthCode !== undefined) {
    const more = typeof description === "string" && description !== "" ? ` (${redact(description, secrets)})` : "";
    return `${redact(oauthCode, secrets)}${more}`;
  }
  if (code === "OAUTH_WWW_AUTHENTICATE_CHALLENGE") return `it answered HTTP ${String(status)}`;
  if (cause instanceof Response) return describeResponse(cause);
  if (!(error instanceof TypeError && cause instanceof Error)) return redact(errorMessage(error), secrets);
  // `fetch` describes a failed connection in the cause. Other causes may contain secrets. If a host has several
  // addresses and all fail, the cause is an AggregateError with a code and an empty message.
  return redact(`${error.message}: ${cause.message || systemErrorCode(cause)}`);
}

export function errorCode(error: unknown): string | undefined {
  const { error: code } = fieldsOf(error);
  return typeof code === "string" ? code : undefined;
}

export function describeResponse({ status, headers }: Response): string {
  const isRedirect = status >= 300 && status < 400 && headers.has("location");
  return `it answered HTTP ${status}${isRedirect ? ", a redirect, which is not followed here" : ""}`;
}

const MAX_TEXT_LENGTH = 200;

/** Makes a server's text safe to show: one short line without control characters, secrets and token-like strings. */
export function redact(text: string, secrets: Secrets = []): string {
  const line = hiderOf(secrets.filter((secret) => secret !== undefined))(text)
    .replaceAll(/[\s\p{Cc}\p{Cf}]+/gu, " ")
    .replaceAll(/[\w-]{28,}(?:\.[\w-]+)*/g, "...")
    .trim();
  return line.length > MAX_TEXT_LENGTH ? `${line.slice(0, MAX_TEXT_LENGTH)}...` : line;
}

export interface ChallengeParams {
  /** The schemes of all challenges in the header, also of those not for tokens, in lower case. */
  readonly schemes: ReadonlySet<string>;
  readonly metadata?: string;
  readonly scopes?: readonly string[];
  readonly error?: string;
  readonly description?: string;
}

/**
 * Parses the header WWW-Authenticate (RFC 9110, 11.6.1) and picks the parameters that matter for tokens (RFC 6750, RFC
 * 9728, RFC 9449). The value may be several headers joined by commas. What cannot be read is skipped, since many servers
 * send invalid quotes.
 */
export function parseChallenge(header: string | undefined): ChallengeParams {
  const all = parseSchemes(header ?? "");
  const forTokens = all.filter(({ scheme }) => scheme === "bearer" || scheme === "dpop");
  const first = (name: string, among = forTokens): string | undefined =>
    among.map(({ params }) => params.get(name)).find((value) => value !== undefined && value !== "");
  const scopes = first("scope")?.split(/\s+/).filter(Boolean);
  return {
    schemes: new Set(all.map(({ scheme }) => scheme)),
    ...defined({
      metadata: first("resource_metadata") ?? first("resource_metadata", all),
      scopes: scopes?.length === 0 ? undefined : scopes,
      error: first("error"),
      description: first("error_description"),
    }),
  };
}

/** What a challenge says, as words that are safe to show. The server may quote the token that it refused. */
export function challengeWords({ error, description }: ChallengeParams, sent: string = "", more?: string): string[] {
  const secrets = sent.split(" ").slice(1);
  return [error, description, more].filter((word) => word !== undefined).map((word) => redact(word, secrets));
}

/** A name, and the value if an equals sign follows: quoted, with or without the closing quote, or bare. */
const PART = /([\w!#$%&'*+.^`|~-]+)(?:[ \t]*=[ \t]*(?:"((?:[^"\\]|\\.)*)"?|([^\s,]*)))?/gs;

function parseSchemes(header: string): { scheme: string; params: Map<string, string> }[] {
  const challenges: ReturnType<typeof parseSchemes> = [];
  for (const [, name = "", quoted, bare] of header.matchAll(PART)) {
    const value = quoted?.replaceAll(/\\(.)/gs, "$1") ?? bare;
    const params = challenges.at(-1)?.params;
    const key = name.toLowerCase();
    if (params === undefined || value === undefined) challenges.push({ scheme: key, params: new Map() });
    // The first value is used, since a repeated parameter may have been injected.
    else if (!params.has(key)) params.set(key, value);
  }
  return challenges;
}

/**
 * A server asks for a token and does not name its authorization server. It may offer no sign-in at all, and want a token
 * that its owner gives away.
 */
export class NoSignInError extends ConnectionError {
  readonly server: string;
  /** Why the default endpoints failed. */
  override readonly cause: ConnectionError;

  constructor(server: string, cause: ConnectionError) {
    const message = `${server} does not say how to get a token, and the default endpoints failed: ${cause.message}`;
    super("unauthorized", message, { mayHaveRun: false, cause });
    this.server = server;
    this.cause = cause;
  }

  hide(hide: (text: string) => string): NoSignInError {
    return new NoSignInError(hide(this.server), redactConnectionError(this.cause, hide));
  }

  /** The error, or the one that led to it. */
  static in(error: unknown): NoSignInError | undefined {
    let cause = error;
    while (cause instanceof ConnectionError && !(cause instanceof NoSignInError)) cause = cause.cause;
    return cause instanceof NoSignInError ? cause : undefined;
  }
}
