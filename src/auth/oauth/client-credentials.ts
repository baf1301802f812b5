// The grant of a program that acts for itself: it shows its own credentials, a secret or a key, and nobody is asked
// (the extension oauth-client-credentials). The credentials must have been given out beforehand; nothing is registered
// for it.

import type { Grant } from "./grant.ts";
import { IssuerBond } from "./issuer-bond.ts";
import type { PrivateKeySource } from "./private-key.ts";

export interface SecretCredentials {
  readonly id: string;
  readonly secret: string;
  /** By what the server lists where it is left out. */
  readonly authMethod?: "client_secret_basic" | "client_secret_post" | "client_secret_jwt";
  /** The only server that may see them; the first that gives a token where it is left out. */
  readonly issuer?: string;
}

export interface KeyCredentials {
  readonly id: string;
  /** A CryptoKey, a private JWK, or a text in PEM. */
  readonly privateKey: PrivateKeySource;
  /** What the key signs with; what it is made for where it is left out. */
  readonly alg?: string;
  /** The only server that may see what it signs; the first that gives a token where it is left out. */
  readonly issuer?: string;
}

const KIND = "client_credentials";

/** @param credentials Where they are left out, those of the client that `oauth()` was given are used. */
export function clientCredentials(credentials?: SecretCredentials | KeyCredentials): Grant {
  const bond = new IssuerBond(credentials?.issuer);
  return {
    kind: KIND,
    extension: "io.modelcontextprotocol/oauth-client-credentials",
    ...(credentials === undefined ? {} : { identity: credentials.id }),
    interactive: false,
    fits: (server) => bond.misfit(server, KIND),
    async obtain(ground) {
      bond.check(ground.server, KIND);
      const { knownClient, requestTokens } = await import("./grant-request.ts");
      const known = credentials === undefined ? await ground.client() : await knownClient(credentials, ground.server);
      const advice = "check the client's id and its secret or key, and whether it may use this grant";
      const tokens = await requestTokens(ground, known, {
        grantType: KIND,
        parameters: {},
        secrets: [known.secret],
        advice,
      });
      if (credentials !== undefined) bond.keep(ground.server);
      return tokens;
    },
  };
}
