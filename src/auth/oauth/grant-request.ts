// The token request of the grants in which no person takes part, the same for all: for one end (RFC 8707), for the
// scope that is wanted, made once. A refusal is passed on and never tried in another way: credentials that were wrong
// once are not shown around. Nothing of what the request carried is in the error.

import * as oauth from "oauth4webapi";
import { ConnectionError } from "../../core/errors.ts";
import { clientAuth } from "./client-auth.ts";
import { errorCode, refusal, type Secrets } from "./failures.ts";
import type { Ground, KnownClient } from "./grant.ts";
import { signingKey, type PrivateKeySource } from "./private-key.ts";
import { withNonce } from "./token-request.ts";

/** A client that somebody registered beforehand, and how it proves that it is the one. */
export interface ClientIdentity {
  readonly id: string;
  readonly secret?: string;
  readonly privateKey?: PrivateKeySource;
  /** What the key signs with; what it is made for where it is left out. */
  readonly alg?: string;
  /** One of the registered names (`client_secret_post`, ...); left out, it is chosen by what the server lists. */
  readonly authMethod?: string;
}

export async function knownClient(identity: ClientIdentity, server: oauth.AuthorizationServer): Promise<KnownClient> {
  const { id, secret, privateKey, alg, authMethod } = identity;
  const credentials = {
    ...(secret === undefined ? {} : { secret }),
    ...(privateKey === undefined ? {} : { privateKey: await signingKey(privateKey, server, alg) }),
    ...(authMethod === undefined ? {} : { authMethod }),
  };
  return { client: { client_id: id }, auth: await clientAuth(credentials, server), secret };
}

/** For a server that knows by other means who asks. */
export const NOBODY: KnownClient = { client: { client_id: "-" }, auth: () => undefined };

export interface TokenRequest {
  readonly grantType: string;
  readonly parameters: Readonly<Record<string, string>>;
  readonly secrets: Secrets;
  /** What to look at where the server refuses, as the end of a sentence. */
  readonly advice: string;
}

export async function requestTokens(
  ground: Ground,
  { client, auth }: KnownClient,
  request: TokenRequest,
): Promise<oauth.TokenEndpointResponse> {
  const { server, resource, scope, http } = ground;
  const parameters = { ...request.parameters, resource, ...(scope === undefined ? {} : { scope }) };
  return asked(server, request, () =>
    withNonce(async () =>
      oauth.processGenericTokenEndpointResponse(
        server,
        client,
        await oauth.genericTokenEndpointRequest(server, client, auth, request.grantType, parameters, http),
      ),
    ),
  );
}

/** What fails while `server` is asked, made safe to show. */
export async function asked<T>(
  server: oauth.AuthorizationServer,
  { secrets, advice }: Pick<TokenRequest, "secrets" | "advice">,
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const { kind, message, mayHaveRun } = refusal(`asking ${server.issuer} for a token`, error, secrets);
    const named = errorCode(error) === undefined ? "" : `; ${advice}`;
    throw new ConnectionError(kind, `${message}${named}`, { mayHaveRun });
  }
}
