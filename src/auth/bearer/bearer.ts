// Bearer tokens, as a resource server sees them: who brings one is known or refused, and whoever is refused is told
// where to get one (RFC 6750, RFC 9728; specification, basic/authorization). An authenticator for HTTP fronts. It
// issues no tokens, keeps none, and passes none on; what judges a token is loaded when the first one comes.

import { type Authenticator, AuthError, type Credentials, type Identity } from "../../core/authentication.ts";
import { type BearerOptions, type BearerSettings, isLoopback, settle, spellings } from "./bearer-options.ts";
import type { TokenFault, Tokens } from "./bearer-token.ts";
import { type Challenge, challengeText, tokenOf } from "./challenge.ts";
import { isScope } from "./scopes.ts";

const WELL_KNOWN = "/.well-known/oauth-protected-resource";

/** Longer than any token of use, and short enough to be looked at for everybody. */
const MOST_CHARACTERS = 16 * 1024;

/**
 * Lets in who brings a token that was issued for this server: a JWT of one of the authorization servers, or whatever
 * `verify` knows.
 *
 * @example
 * await serve(server, {
 *   http: { auth: bearer({ authorizationServers: ["https://auth.example.com"], resource: "https://notes.example.com/mcp" }) },
 * });
 */
export function bearer(options: BearerOptions): Required<Authenticator> {
  return new Bearer(settle(options));
}

class Bearer implements Required<Authenticator> {
  readonly #settings: BearerSettings;
  #tokens: Promise<Tokens> | undefined;

  constructor(settings: BearerSettings) {
    this.#settings = settings;
  }

  async authenticate(credentials: Credentials): Promise<Identity> {
    const { scopes: needed } = this.#settings;
    const audience = this.#audience(credentials);
    const token = this.#token(credentials);
    const known = await this.#judge(token, audience, credentials);
    if ("fault" in known) throw this.#refusal(401, { error: "invalid_token", description: known.fault }, credentials);
    const identity = this.#widened(known);
    if (needed.every((scope) => identity.scopes?.includes(scope))) return identity;
    throw this.lacking([], identity, credentials);
  }

  lacking(scopes: readonly string[], _identity: Identity, credentials: Credentials): AuthError {
    const description = "The token does not allow this";
    return this.#refusal(403, { error: "insufficient_scope", description, scopes }, credentials);
  }

  document(path: string, endpoint: string): object | undefined {
    const { metadata, resource = endpoint } = this.#settings;
    if (metadata === undefined) return undefined;
    const places = [WELL_KNOWN, wellKnown(resource)?.pathname, wellKnown(endpoint)?.pathname];
    return places.includes(path) ? { resource, ...metadata } : undefined;
  }

  /** What a token must have been issued for. */
  #audience({ endpoint }: Credentials): readonly string[] {
    const { audience } = this.#settings;
    if (audience !== undefined) return audience;
    // A caller says itself by which name it calls, so a token for another server would pass under that server's name.
    if (URL.canParse(endpoint) && isLoopback(new URL(endpoint))) return spellings(endpoint);
    throw new Error(
      `bearer(): who is called by another name than localhost needs the option resource; got ${endpoint}`,
    );
  }

  #token(credentials: Credentials): string {
    const brought = tokenOf(credentials.headers["authorization"]);
    if (brought.kind === "malformed") {
      throw this.#refusal(400, { error: "invalid_request", description: brought.why }, credentials);
    }
    if (brought.kind === "none") throw this.#refusal(401, {}, credentials);
    if (brought.token.length <= MOST_CHARACTERS) return brought.token;
    throw this.#refusal(401, { error: "invalid_token", description: "The token is too long" }, credentials);
  }

  async #judge(token: string, audience: readonly string[], credentials: Credentials): Promise<Identity | TokenFault> {
    const { judge } = this.#settings;
    if (typeof judge === "function") return verified(() => judge(token, credentials));
    this.#tokens ??= import("./bearer-token.ts").then(({ Tokens }) => new Tokens(judge));
    return (await this.#tokens).judge(token, audience);
  }

  #widened(identity: Identity): Identity {
    const { implied } = this.#settings;
    if (identity.scopes === undefined) return identity;
    return { ...identity, scopes: [...new Set(identity.scopes.flatMap((scope) => implied.get(scope) ?? scope))] };
  }

  #refusal(status: 400 | 401 | 403, { scopes = [], ...said }: Challenge, { endpoint }: Credentials): AuthError {
    const { scopes: needed, metadata, resource = endpoint } = this.#settings;
    // What a handler names in its error is held to the form too.
    const all = [...new Set([...needed, ...scopes.filter((scope) => isScope(scope) && scope !== "offline_access")])];
    const challenge = challengeText({ ...said, scopes: all, metadata: metadata && wellKnown(resource)?.href });
    return new AuthError(status, said.description ?? "A token is needed to call this", challenge);
  }
}

/** Where a resource's metadata stands (RFC 9728, 3.1); undefined where the resource is no address. */
function wellKnown(resource: string): URL | undefined {
  if (!URL.canParse(resource)) return undefined;
  const { origin, pathname } = new URL(resource);
  return new URL(`${origin}${WELL_KNOWN}${pathname === "/" ? "" : pathname}`);
}

/** What a verify function throws is its word on the token, unless it could not get as far as the token. */
async function verified(
  verify: () => Partial<Identity> | undefined | null | Promise<Partial<Identity> | undefined | null>,
): Promise<Identity | TokenFault> {
  let given: Partial<Identity> | undefined | null;
  try {
    given = await verify();
  } catch (error) {
    if (error instanceof AuthError || isOutOfReach(error)) throw error;
    return { fault: "The token was refused" };
  }
  return checked(given);
}

/** A service that did not answer has said nothing of the token: a caller sent for a new one would come back in vain. */
function isOutOfReach(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const { code } = error as NodeJS.ErrnoException;
  if (error.name === "AbortError" || error.name === "TimeoutError") return true;
  // A fetch that failed says no more than this; errors of the system have codes such as ECONNREFUSED.
  return error.message === "fetch failed" || (typeof code === "string" && /^E[A-Z]+$/.test(code));
}

/** Programs without types may give anything, and nothing of it is somebody unless it says who. */
function checked(given: Partial<Identity> | undefined | null): Identity | TokenFault {
  const { principal, scopes, claims } = given ?? {};
  if (typeof principal !== "string" || principal === "") return { fault: "The token is not known here" };
  if (scopes !== undefined && !(Array.isArray(scopes) && scopes.every((scope) => typeof scope === "string"))) {
    throw new TypeError("bearer(): verify must give scopes as a list of strings");
  }
  return {
    principal,
    ...(scopes === undefined ? undefined : { scopes }),
    ...(claims === undefined ? undefined : { claims }),
  };
}
