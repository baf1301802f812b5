// The two authorizers of `catenary/oauth`: `bearerToken` sends a token that the program already has, `oauth` obtains
// tokens with OAuth 2.1. The OAuth code and its library, oauth4webapi, are loaded with the first request.

import type { Authorizer, OutgoingRequest } from "../../core/authentication.ts";
import { ConnectionError } from "../../core/errors.ts";
import { checkOptions, OptionError, type OptionNames, optionNames } from "../../core/options.ts";
import { CLIENT_OPTIONS } from "./grants.ts";
import type { OAuthOptions } from "./types.ts";
import { challengeWords, parseChallenge, redact, unauthorized } from "./errors.ts";

const OPTIONS: OptionNames<OAuthOptions> = optionNames(
  "store redirect client metadataUrl clientName scopes",
  "grant dpop allowPrivateNetwork fetch onNotice",
);

/**
 * Obtains and refreshes tokens, and asks for more scopes when a server requires them. Works with one MCP server: the
 * first that it is used with.
 *
 * @example
 * await connect("https://notes.example.com/mcp", {
 *   auth: oauth({ redirect: loopbackRedirect(), store: fileTokens() }),
 * });
 */
export function oauth(options: OAuthOptions = {}): Authorizer {
  check(options);
  let loading: Promise<Authorizer> | undefined;
  let loaded: Authorizer | undefined;
  const load = ({ url }: OutgoingRequest): Promise<Authorizer> =>
    (loading ??= import("./oauth-authorizer.ts").then(
      ({ OAuthAuthorizer }) => (loaded = new OAuthAuthorizer(url, options)),
    ));
  const { extension } = options.grant ?? {};
  return {
    ...(extension === undefined ? undefined : { extensions: [extension] }),
    authorize: async (request) => (await load(request)).authorize(request),
    refused: async (challenge) => (await load(challenge)).refused(challenge),
    answered: (request, headers) => loaded?.answered?.(request, headers),
  };
}

function check(options: OAuthOptions): void {
  checkOptions("oauth()", options, OPTIONS);
  const { client, metadataUrl, redirect } = options;
  const demand = (isValid: boolean, option: string, problem: string): void => {
    if (!isValid) throw new OptionError("oauth()", option, problem);
  };
  if (client !== undefined) {
    checkOptions("`client` of oauth()", client, CLIENT_OPTIONS);
    const hasId = typeof client.id === "string" && client.id !== "";
    demand(hasId, "client.id", "must be the ID that the authorization server gave to the client");
    demand(client.issuer === undefined || URL.canParse(client.issuer), "client.issuer", "is not a valid URL");
  }
  const isDocument = metadataUrl === undefined || isClientMetadataUrl(metadataUrl);
  demand(isDocument, "metadataUrl", "must be an https URL with a path, such as https://example.com/client.json");
  const hasVisit = redirect === undefined || typeof redirect.visit === "function";
  demand(hasVisit, "redirect", "must have a method `visit`; loopbackRedirect() creates one");
}

/** The rules for a client ID that is a URL (draft-ietf-oauth-client-id-metadata-document, 3). */
function isClientMetadataUrl(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, pathname, hash, username, password } = new URL(text);
  return protocol === "https:" && pathname !== "/" && `${hash}${username}${password}` === "";
}

/**
 * Sends a token to one MCP server: the first that it is used with. If `token` is a function, it is called before each
 * request.
 */
export function bearerToken(token: string | (() => string | Promise<string>)): Authorizer {
  const isFixed = typeof token !== "function";
  return tokenAuthorizer(token, isFixed ? " given to bearerToken" : " that the function given to bearerToken returned");
}

/** `source` says where the token comes from, for errors. */
export function tokenAuthorizer(token: string | (() => string | Promise<string>), source = ""): Authorizer {
  if (typeof token !== "function" && !isToken(token)) {
    throw new TypeError("bearerToken(): the token is empty, or has characters that a header cannot carry");
  }
  const currentHeader = async (): Promise<string> => {
    const value = typeof token === "function" ? await token() : token;
    if (!isToken(value)) throw unauthorized("The function given to bearerToken did not return a valid token");
    return `Bearer ${value}`;
  };
  let origin: string | undefined;
  const checkOrigin = ({ url }: OutgoingRequest): void => {
    origin ??= url.origin;
    if (url.origin === origin) return;
    const advice = "use one bearerToken() for each server";
    throw unauthorized(`The token${source} is for ${origin}, not for ${url.origin}: ${advice}`);
  };
  return {
    authorize: async (request) => {
      checkOrigin(request);
      return { authorization: await currentHeader() };
    },
    refused: async (challenge) => {
      checkOrigin(challenge);
      const params = parseChallenge(challenge.headers["www-authenticate"]);
      if (challenge.status === 403 && params.error !== "insufficient_scope") return false;
      // The function may return a newer token by now.
      const isNewer = typeof token === "function" && (await currentHeader()) !== challenge.sent["authorization"];
      if (isNewer && challenge.attempt === 1) return true;
      const { url, status, sent } = challenge;
      const why = challengeWords(params, sent["authorization"]).join(", ") || `HTTP ${status}`;
      const missing = params.scopes && `; it requires the scope "${redact(params.scopes.join(" "))}"`;
      const message = `${url.origin} refused the token${source} (${why})${missing ?? ""}`;
      throw new ConnectionError("unauthorized", message, { mayHaveRun: false, status });
    },
  };
}

/** Visible ASCII: more than RFC 6750, 2.1 allows, but safe in a header. */
export function isToken(value: unknown): boolean {
  return typeof value === "string" && /^[\x21-\x7e]+$/.test(value);
}
