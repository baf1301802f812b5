// An authorization server's metadata, looked for where the specification says and in its order
// (basic/authorization/authorization-server-discovery). A document that names another issuer than the one that was
// looked for is not used, and nothing else of that server is then. Which server it is, is chosen elsewhere.

import * as oauth from "oauth4webapi";
import { ConnectionError } from "../../core/errors.ts";
import { answered, plain, reasonOf, unauthorized } from "./failures.ts";
import type { Reach } from "./reach.ts";

/** What was found at several addresses, or why nothing was. */
export interface Search<T> {
  readonly found?: T;
  /** For each address that had nothing. */
  readonly reasons: readonly string[];
  /** Every address answered that there is nothing: none was out of reach or broken. */
  readonly absent: boolean;
}

/** The first of these addresses with a document that `read` takes; what `read` throws as a ConnectionError ends the search. */
export async function search<T>(
  places: readonly URL[],
  reach: Reach,
  signal: AbortSignal | undefined,
  read: (response: Response) => Promise<T>,
): Promise<Search<T>> {
  const reasons: string[] = [];
  let absent = true;
  for (const place of places) {
    const say = (why: string): void => void reasons.push(`${place.origin}${place.pathname}: ${why}`);
    let response: Response;
    try {
      response = await reach.document(place, signal);
    } catch (error) {
      if (signal?.aborted === true) throw error;
      absent = false;
      say(reasonOf(error));
      continue;
    }
    if (response.status !== 200) {
      absent &&= response.status >= 400 && response.status < 500;
      say(answered(response));
      continue;
    }
    try {
      return { found: await read(response), reasons, absent };
    } catch (error) {
      // Some sites answer every path with the same page: a text that is no metadata is no metadata.
      if (error instanceof ConnectionError) throw error;
      say(reasonOf(error));
    }
  }
  return { reasons, absent };
}

export async function serverMetadata(
  issuer: URL,
  reach: Reach,
  signal: AbortSignal | undefined,
): Promise<Search<oauth.AuthorizationServer>> {
  return search(placesOf(issuer), reach, signal, async (response) => {
    const document = response.clone();
    try {
      return checked(await oauth.processDiscoveryResponse(issuer, response));
    } catch (error) {
      const other = await namedIssuer(document);
      if (other === undefined || other === issuer.href) throw error;
      const found = `its metadata is that of another issuer (${plain(other)})`;
      throw unauthorized(`The authorization server ${issuer.href} cannot be trusted: ${found}`);
    }
  });
}

/** oauth4webapi knows two of the three places, so all are written out. */
function placesOf(issuer: URL): readonly URL[] {
  const path = issuer.pathname.replace(/\/$/, "");
  const at = (pathname: string): URL => new URL(pathname, issuer.origin);
  if (path === "") {
    return [at("/.well-known/oauth-authorization-server"), at("/.well-known/openid-configuration")];
  }
  return [
    at(`/.well-known/oauth-authorization-server${path}`),
    at(`/.well-known/openid-configuration${path}`),
    at(`${path}/.well-known/openid-configuration`),
  ];
}

/** oauth4webapi looks at what it uses itself; these are looked into here. */
function checked(server: oauth.AuthorizationServer): oauth.AuthorizationServer {
  const { scopes_supported: scopes, token_endpoint_auth_methods_supported: methods } = server;
  if (hasHidden(server.issuer)) throw new TypeError("its issuer has what no address has");
  if (isTexts(scopes) && isTexts(methods) && isTexts(server.grant_types_supported)) return server;
  throw new TypeError("its lists are no lists of texts");
}

/** A URL is read without them, or with others in their place; but the text as it is goes into messages. */
export function hasHidden(text: string): boolean {
  return /[\s\p{Cc}\p{Cf}]/u.test(text);
}

export function isTexts(value: unknown): boolean {
  return value === undefined || (Array.isArray(value) && value.every((one) => typeof one === "string"));
}

async function namedIssuer(response: Response): Promise<string | undefined> {
  const document = (await response.json().catch(() => undefined)) as { issuer?: unknown } | null | undefined;
  const issuer = document?.issuer;
  return typeof issuer === "string" && URL.canParse(issuer) ? new URL(issuer).href : undefined;
}

/** The first revision with authorization: a server without metadata has its endpoints at the root of its origin. */
export function plainServer(origin: string): oauth.AuthorizationServer {
  return {
    issuer: origin,
    authorization_endpoint: `${origin}/authorize`,
    token_endpoint: `${origin}/token`,
    registration_endpoint: `${origin}/register`,
    // It cannot say so; PKCE is required of it all the same.
    code_challenge_methods_supported: ["S256"],
  };
}
