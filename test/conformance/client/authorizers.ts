// How the everything client proves who it is, by scenario. The person who would consent in a browser is played by a
// request: the suite's authorization server sends everybody back at once, so the address that it names is the answer.

import {
  clientCredentials,
  enterpriseManaged,
  oauth,
  workloadIdentity,
  type Authorizer,
  type OAuthOptions,
  type Redirect,
} from "catenary/oauth";
import type { Stage } from "./scenarios.ts";

/** The suite takes it as it is and never reads what stands there. */
const METADATA_URL = "https://conformance-test.local/client-metadata.json";

const redirect: Redirect = {
  // Nothing listens there, and nobody comes.
  uri: "http://localhost:3000/callback",
  visit: async (url, { signal }) => {
    const answer = await fetch(url, { redirect: "manual", signal });
    await answer.body?.cancel();
    const back = answer.headers.get("location");
    if (back === null) throw new Error(`The authorization server answered ${answer.status} and sent nobody back`);
    return new URL(back);
  },
};

/** What stands in the context of the scenarios that have one. */
interface Given {
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

export function authorizerOf({ scenario, context }: Stage): Authorizer {
  return oauth(OPTIONS[scenario]?.(context as unknown as Given) ?? { redirect });
}

/** Where it is something else than a person's consent to a client that registers itself. */
const OPTIONS: { readonly [scenario: string]: (given: Given) => OAuthOptions } = {
  "auth/basic-cimd": () => ({ redirect, metadataUrl: METADATA_URL }),
  "auth/pre-registration": ({ client_id: id, client_secret: secret }) => ({ redirect, client: { id, secret } }),
  // That tokens are bound to a key is asked for here; in auth/dpop it is found out.
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
  "auth/enterprise-managed-authorization": (given) => ({
    grant: enterpriseManaged({
      idp: {
        issuer: given.idp_issuer,
        tokenEndpoint: given.idp_token_endpoint,
        client: { id: given.idp_client_id },
      },
      idToken: given.idp_id_token,
      client: { id: given.client_id, secret: given.client_secret },
    }),
  }),
};
