// The authorization of the everything client, by scenario. A plain request takes the place of the user's browser: the
// suite's authorization server redirects at once, without asking for consent.

import {
  clientCredentials,
  enterpriseManaged,
  oauth,
  workloadIdentity,
  type Authorizer,
  type OAuthOptions,
  type Redirect,
} from "catenary/oauth";
import type { ScenarioInput } from "./scenarios.ts";

/** The suite never fetches it. */
const METADATA_URL = "https://conformance-test.local/client-metadata.json";

const redirect: Redirect = {
  // Nothing listens there: the redirect is not followed.
  uri: "http://localhost:3000/callback",
  visit: async (url, { signal }) => {
    const response = await fetch(url, { redirect: "manual", signal });
    await response.body?.cancel();
    const location = response.headers.get("location");
    if (location === null) throw new Error(`The authorization server answered ${response.status} without a redirect`);
    return new URL(location);
  },
};

/** The fields of the context, in the scenarios that have them. */
interface AuthContext {
  readonly client_id: string;
  readonly client_secret: string;
  readonly private_key_pem: string;
  readonly signing_algorithm: string;
  readonly valid_jwt: string;
  readonly idp_client_id: string;
  readonly idp_id_token: string;
  readonly idp_issuer: string;
  readonly idp_token_endpoint: string;
}

export function createAuthorizer({ scenario, context }: ScenarioInput): Authorizer {
  return oauth(OPTIONS[scenario]?.(context as unknown as AuthContext) ?? { redirect });
}

/** Where it differs from a user's consent to a dynamically registered client. */
const OPTIONS: { readonly [scenario: string]: (context: AuthContext) => OAuthOptions } = {
  "auth/basic-cimd": () => ({ redirect, metadataUrl: METADATA_URL }),
  "auth/pre-registration": ({ client_id: id, client_secret: secret }) => ({ redirect, client: { id, secret } }),
  // DPoP is requested here; in auth/dpop the client finds out from the metadata that it is needed.
  "auth/dpop-nonce": () => ({ redirect, dpop: true }),
  "auth/client-credentials-basic": ({ client_id: id, client_secret: secret }) => ({
    grant: clientCredentials({ id, secret }),
  }),
  "auth/client-credentials-jwt": ({ client_id: id, private_key_pem: privateKey, signing_algorithm: alg }) => ({
    grant: clientCredentials({ id, privateKey, alg }),
  }),
  "auth/wif-jwt-bearer": ({ client_id: clientId, valid_jwt: assertion }) => ({
    grant: workloadIdentity({ clientId, assertion }),
  }),
  "auth/enterprise-managed-authorization": (context) => ({
    grant: enterpriseManaged({
      idp: {
        issuer: context.idp_issuer,
        tokenEndpoint: context.idp_token_endpoint,
        client: { id: context.idp_client_id },
      },
      idToken: context.idp_id_token,
      client: { id: context.client_id, secret: context.client_secret },
    }),
  }),
};
