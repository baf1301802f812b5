// Grants that need no user interaction: a client's own credentials, a workload's JWT, and the identity token of a user
// whose organization manages access. Each sends its credentials to one issuer only. token-request.ts, and oauth4webapi
// with it, is loaded when a token is first needed.

import type { AuthorizationServer } from "oauth4webapi";
import { ConnectionError } from "../../core/errors.ts";
import { checkOptions, type OptionNames, optionNames } from "../../core/options.ts";
import { defined, isObject } from "../../core/values.ts";
import { redact, unauthorized } from "./errors.ts";
import type {
  Assertion,
  AssertionRequest,
  Grant,
  IdentityProvider,
  PreRegisteredClient,
  PrivateKeySource,
} from "./types.ts";

/** Credentials with a secret. */
export interface SecretCredentials extends Pick<PreRegisteredClient, "id"> {
  /** The client secret. */
  readonly secret: string;
  /** How the client authenticates. Default: a method that the server lists. */
  readonly authMethod?: "client_secret_basic" | "client_secret_post" | "client_secret_jwt" | undefined;
  /** The only authorization server that gets the secret. Default: the first one that issues a token. */
  readonly issuer?: string | undefined;
}

/** Credentials with a private key. */
export interface KeyCredentials extends Pick<PreRegisteredClient, "id" | "alg"> {
  /** The key that signs assertions. */
  readonly privateKey: PrivateKeySource;
  /** The only authorization server that gets signed assertions. Default: the first one that issues a token. */
  readonly issuer?: string | undefined;
}

export const CLIENT_OPTIONS: OptionNames<PreRegisteredClient> = optionNames(
  "id secret privateKey alg authMethod issuer",
);

/**
 * The client credentials grant (extension oauth-client-credentials): the program acts for itself. The client must have
 * been registered beforehand.
 *
 * @param credentials Default: the client that `oauth()` was given.
 */
export function clientCredentials(credentials?: SecretCredentials | KeyCredentials): Grant {
  if (credentials !== undefined) checkOptions("clientCredentials()", credentials, CLIENT_OPTIONS);
  const facts = {
    grantType: "client_credentials",
    extension: "io.modelcontextprotocol/oauth-client-credentials",
    ...defined({ identity: credentials?.id }),
  };
  return grantWithoutUser(facts, credentials?.issuer, credentials !== undefined, async (context) => {
    const { oauthClient, requestTokens } = await import("./token-request.ts");
    const client = credentials === undefined ? await context.client() : await oauthClient(credentials, context.server);
    const advice = "check the client's id and its secret or key, and whether it may use this grant";
    return requestTokens(context, client, { grant_type: facts.grantType }, advice);
  });
}

/** Options of `workloadIdentity()`. */
export interface WorkloadIdentityOptions {
  /** The JWT, or a function that returns a fresh one, for example from the file that the platform renews. */
  readonly assertion: Assertion;
  /** The client ID, if the authorization server requires one in addition to the JWT. */
  readonly clientId?: string | undefined;
  /**
   * Names the workload, so that a store keeps the tokens of several workloads apart. Default: the subject of the JWT.
   * If that is unknown, as when `assertion` is a function, tokens are kept in memory only.
   */
  readonly subject?: string | undefined;
  /** The only server that gets the JWT. Default: the first that issues a token and that the JWT's audience allows. */
  readonly issuer?: string | undefined;
}

const WORKLOAD_OPTIONS: OptionNames<WorkloadIdentityOptions> = optionNames("assertion clientId subject issuer");

const JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer";

/**
 * Exchanges a JWT that the platform made for this workload, such as a service account token, for an access token (RFC
 * 7523, 2.1). The JWT must name the authorization server as its audience.
 */
export function workloadIdentity(options: WorkloadIdentityOptions): Grant {
  checkOptions("workloadIdentity()", options, WORKLOAD_OPTIONS);
  const { assertion, clientId, issuer } = options;
  const known = options.subject ?? subjectOf(assertion);
  const identity = [clientId, known ?? "workload"].filter((part) => part !== undefined).join(" ");
  const facts = { grantType: JWT_BEARER, memoryOnly: known === undefined, identity };
  return grantWithoutUser(facts, issuer, true, async (context) => {
    const { server, resource, signal } = context;
    const jwt = await readAssertion(assertion, { audience: server.issuer, resource, signal }, "workload assertion");
    if (issuer === undefined) checkAudience(jwt, server);
    const { ANONYMOUS_CLIENT, oauthClient, requestTokens } = await import("./token-request.ts");
    const client =
      clientId === undefined ? ANONYMOUS_CLIENT : await oauthClient({ id: clientId, authMethod: "none" }, server);
    const advice = `check that the workload's JWT is fresh, names ${server.issuer} as its audience, and is trusted there`;
    return requestTokens(context, client, { grant_type: JWT_BEARER, assertion: jwt }, advice);
  });
}

/** Options of `enterpriseManaged()`. */
export interface EnterpriseManagedOptions {
  /** The organization's identity provider. */
  readonly idp: IdentityProvider;
  /** The token that the user got by signing in to `idp`, or a function that returns a fresh one. */
  readonly idToken: Assertion;
  /** "saml2" for a SAML assertion. Default: "id_token", an OpenID Connect identity token. */
  readonly idTokenType?: "id_token" | "saml2" | undefined;
  /** The client at the authorization server of the MCP server. Default: the one that `oauth()` was given. */
  readonly client?: PreRegisteredClient | undefined;
  /**
   * Names the user, so that a store keeps the tokens of several users apart. Default: the subject of the identity
   * token. If that is unknown, as when `idToken` is a function, tokens are kept in memory only.
   */
  readonly subject?: string | undefined;
}

const ENTERPRISE_OPTIONS: OptionNames<EnterpriseManagedOptions> = optionNames("idp idToken idTokenType client subject");

const IDP_OPTIONS: OptionNames<IdentityProvider> = optionNames("issuer tokenEndpoint client");

const { issuer: _, ...IDP_CLIENT_OPTIONS } = CLIENT_OPTIONS;

/**
 * For users whose organization decides what they may use (extension enterprise-managed-authorization). The identity
 * provider exchanges the user's identity token for an assertion (RFC 8693, an ID-JAG), and the authorization server
 * exchanges that for an access token (RFC 7523). Only the identity provider sees the identity token.
 */
export function enterpriseManaged(options: EnterpriseManagedOptions): Grant {
  checkOptions("enterpriseManaged()", options, ENTERPRISE_OPTIONS);
  const { idp, idToken, idTokenType: type = "id_token", client } = options;
  checkOptions("`idp` of enterpriseManaged()", idp, IDP_OPTIONS);
  checkOptions("`idp.client` of enterpriseManaged()", idp.client, IDP_CLIENT_OPTIONS);
  if (client !== undefined) checkOptions("`client` of enterpriseManaged()", client, CLIENT_OPTIONS);
  const subject = options.subject ?? subjectOf(idToken);
  const facts = {
    grantType: JWT_BEARER,
    extension: "io.modelcontextprotocol/enterprise-managed-authorization",
    memoryOnly: subject === undefined,
    identity: [client?.id, idp.client.id, subject ?? "person"].filter((part) => part !== undefined).join(" "),
  };
  return grantWithoutUser(facts, client?.issuer, true, async (context) => {
    const { server, resource, signal } = context;
    const { identityAssertion, oauthClient, requestTokens } = await import("./token-request.ts");
    // Find the client first. Without one, no access token is issued, and the user's token would be sent for nothing.
    const ownClient = client === undefined ? await context.client() : await oauthClient(client, server);
    const readIdToken = (audience: string): Promise<string> =>
      readAssertion(idToken, { audience, resource, signal }, "identity token");
    const { assertion, issuer, scope } = await identityAssertion(context, idp, type, readIdToken);
    const advice = `check that ${server.issuer} trusts ${issuer}, and knows this client`;
    const allowed = { ...context, ...defined({ scope }) };
    return requestTokens(allowed, ownClient, { grant_type: JWT_BEARER, assertion }, advice);
  });
}

/**
 * A grant that sends its credentials to one authorization server only: the one that the program named, or else, if the
 * credentials are the grant's own, the first that issued a token. Without this, a hostile MCP server could name an
 * authorization server that collects credentials.
 */
function grantWithoutUser(
  facts: Omit<Grant, "interactive" | "rejectServer" | "obtain">,
  issuer: string | undefined,
  hasOwnCredentials: boolean,
  obtain: Grant["obtain"],
): Grant {
  let pinned = issuer;
  const rejectServer = (server: AuthorizationServer): string | undefined => {
    if (pinned !== undefined && !isSameIssuer(server.issuer, pinned)) {
      return `the credentials are for ${pinned}, and are sent to no other server`;
    }
    const isListed = server.grant_types_supported?.includes(facts.grantType) ?? true;
    return isListed ? undefined : `it does not list ${facts.grantType} among its grants`;
  };
  return {
    ...facts,
    interactive: false,
    rejectServer,
    async obtain(context) {
      const reason = rejectServer(context.server);
      if (reason !== undefined) throw unauthorized(`${context.server.issuer} cannot be asked for a token: ${reason}`);
      const tokens = await obtain(context);
      if (hasOwnCredentials) pinned ??= context.server.issuer;
      return tokens;
    },
  };
}

/** Compares issuers as URLs: an origin with and without a slash is the same one. */
export function isSameIssuer(one: string, other: string): boolean {
  return one === other || (URL.canParse(one) && URL.canParse(other) && new URL(one).href === new URL(other).href);
}

/** @param what The name of the assertion in error messages. */
async function readAssertion(assertion: Assertion, request: AssertionRequest, what: string): Promise<string> {
  let text: unknown = assertion;
  if (typeof assertion === "function") {
    try {
      text = await assertion(request);
    } catch (error) {
      request.signal.throwIfAborted();
      throw new ConnectionError("unauthorized", `The function for the ${what} failed`, {
        cause: error,
        mayHaveRun: false,
      });
    }
  }
  // A file often ends with a newline.
  const trimmed = typeof text === "string" ? text.trim() : "";
  if (trimmed === "") throw unauthorized(`The ${what} is empty`);
  return trimmed;
}

/** The subject of a JWT, without verifying it. Undefined if there is none, or if a function returns the JWT. */
function subjectOf(assertion: Assertion): string | undefined {
  if (typeof assertion === "function") return undefined;
  const { iss, sub } = readClaims(assertion);
  return typeof sub === "string" ? `${sub} of ${String(iss)}` : undefined;
}

/**
 * Throws if the JWT is for other audiences only. The MCP server names the authorization server, so a hostile MCP server
 * could name one that collects the JWT, and then use the JWT at its real audience. A JWT without an audience may go to
 * any server.
 */
function checkAudience(jwt: string, { issuer, token_endpoint: endpoint }: AuthorizationServer): void {
  const { aud } = readClaims(jwt);
  const audiences = (Array.isArray(aud) ? aud : [aud]).filter((audience) => typeof audience === "string");
  const isForServer = (audience: string): boolean => audience === endpoint || isSameIssuer(audience, issuer);
  if (audiences.length === 0 || audiences.some(isForServer)) return;
  const advice = "set `issuer` to allow this server";
  throw unauthorized(`The JWT is for ${redact(audiences.join(", "))} and is not sent to ${issuer}: ${advice}`);
}

/** The claims of a JWT, without verifying it. */
function readClaims(jwt: string): Readonly<Record<string, unknown>> {
  try {
    const [, payload = ""] = jwt.split(".");
    const claims: unknown = JSON.parse(Buffer.from(payload, "base64url").toString());
    return isObject(claims) ? claims : {};
  } catch {
    return {};
  }
}
