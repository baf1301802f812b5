// An organization's identity provider, asked for one thing: to exchange what it gave to a person who signed in for an
// assertion that the authorization server of one end will take (RFC 8693; the ID-JAG of the extension
// enterprise-managed-authorization). The organization's rules are applied there: a refusal is its last word.

import * as oauth from "oauth4webapi";
import { unauthorized } from "./failures.ts";
import type { Ground } from "./grant.ts";
import { asked, knownClient, type ClientIdentity } from "./grant-request.ts";

export interface Idp {
  /** Its metadata is looked up. */
  readonly issuer?: string;
  /** Nothing is looked up then. */
  readonly tokenEndpoint?: string;
  /** The client for which the person signed in there. */
  readonly client: ClientIdentity;
}

const TOKEN_EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange";
const TOKEN_TYPE = "urn:ietf:params:oauth:token-type:";
const ID_JAG = `${TOKEN_TYPE}id-jag`;

export async function identityProvider(idp: Idp, ground: Ground): Promise<oauth.AuthorizationServer> {
  const { issuer, tokenEndpoint } = idp;
  if (tokenEndpoint !== undefined && URL.canParse(tokenEndpoint)) {
    return { issuer: issuer ?? new URL(tokenEndpoint).origin, token_endpoint: tokenEndpoint };
  }
  if (issuer === undefined || !URL.canParse(issuer)) {
    throw unauthorized("The identity provider is not known: give its issuer or its tokenEndpoint as an address");
  }
  const advice = "check the address of the identity provider";
  return asked({ issuer }, { secrets: [], advice }, async () => {
    const url = new URL(issuer);
    // Typed for POSTs alone; the fetch in it makes any request.
    const http = ground.http as unknown as oauth.DiscoveryRequestOptions;
    let response = await oauth.discoveryRequest(url, { ...http, algorithm: "oidc" });
    if (response.status === 404) response = await oauth.discoveryRequest(url, { ...http, algorithm: "oauth2" });
    return oauth.processDiscoveryResponse(url, response);
  });
}

export interface Exchange {
  readonly idp: Idp;
  readonly provider: oauth.AuthorizationServer;
  /** What the person has. */
  readonly text: string;
  readonly type: "id_token" | "saml2" | undefined;
}

export interface Exchanged {
  readonly assertion: string;
  /** What the organization allows of what was asked for, where it says so. */
  readonly scope: string | undefined;
}

export async function exchange(ground: Ground, { idp, provider, text, type }: Exchange): Promise<Exchanged> {
  const { server, resource, scope } = ground;
  const { client, auth } = await knownClient(idp.client, provider);
  // The key binds tokens of the end, and this is none.
  const { DPoP: _, ...http } = ground.http;
  const parameters = {
    requested_token_type: ID_JAG,
    audience: server.issuer,
    resource,
    subject_token: text,
    subject_token_type: `${TOKEN_TYPE}${type ?? "id_token"}`,
    ...(scope === undefined ? {} : { scope }),
  };
  const advice = "ask whoever manages access there, or sign in again";
  const answer = await asked(provider, { secrets: [text, idp.client.secret], advice }, async () =>
    oauth.processGenericTokenEndpointResponse(
      provider,
      client,
      await oauth.genericTokenEndpointRequest(provider, client, auth, TOKEN_EXCHANGE, parameters, http),
      // It is no access token, and says so.
      { recognizedTokenTypes: { n_a: () => undefined } },
    ),
  );
  if (answer["issued_token_type"] !== ID_JAG) {
    throw unauthorized(
      `The identity provider ${provider.issuer} gave something else than the assertion it was asked for`,
    );
  }
  return { assertion: answer.access_token, scope: answer.scope };
}
