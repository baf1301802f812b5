// How a client proves to a token endpoint that it is the one: with nothing, a secret or a key, by a method that the
// server lists (RFC 8414; where it lists none, client_secret_basic is what it takes).

import * as oauth from "oauth4webapi";
import { plain, unauthorized } from "./failures.ts";
import type { PrivateKeySource } from "./private-key.ts";

export interface ClientCredentials {
  readonly secret?: string;
  /** For private_key_jwt: a CryptoKey, a private JWK, or a text in PEM. */
  readonly privateKey?: PrivateKeySource | oauth.PrivateKey;
  /** What the key signs with; what it is made for where it is left out. */
  readonly alg?: string;
  /** One of the registered names (`client_secret_post`, ...); left out, it is chosen by what the server lists. */
  readonly authMethod?: string;
}

export async function clientAuth(
  credentials: ClientCredentials,
  server: oauth.AuthorizationServer,
): Promise<oauth.ClientAuth> {
  const method = credentials.authMethod ?? methodFor(credentials, server);
  const { secret, privateKey } = credentials;
  if (method === "none") return oauth.None();
  if (method === "private_key_jwt") {
    if (privateKey === undefined) throw lacking(method, "a private key");
    return oauth.PrivateKeyJwt(await keyOf(privateKey, server, credentials.alg));
  }
  if (secret === undefined) throw lacking(method, "a secret");
  if (method === "client_secret_basic") return secretBasic(secret);
  if (method === "client_secret_post") return oauth.ClientSecretPost(secret);
  if (method === "client_secret_jwt") return oauth.ClientSecretJwt(secret);
  throw unauthorized(`A client cannot authenticate by ${plain(method)}: this method is not known here`);
}

const WITH_SECRET = ["client_secret_basic", "client_secret_post", "client_secret_jwt"];

function methodFor({ secret, privateKey }: ClientCredentials, server: oauth.AuthorizationServer): string {
  if (privateKey !== undefined) return "private_key_jwt";
  if (secret === undefined) return "none";
  const listed = server.token_endpoint_auth_methods_supported;
  return WITH_SECRET.find((method) => listed?.includes(method)) ?? "client_secret_basic";
}

function lacking(method: string, what: string): Error {
  return unauthorized(`A client that authenticates by ${method} needs ${what}, and none was given`);
}

/**
 * As oauth4webapi does it, but without escaping what needs none (RFC 6749, 2.3.1 asks for form encoding): servers
 * that do not decode would otherwise not know a client with a hyphen in its name.
 */
function secretBasic(secret: string): oauth.ClientAuth {
  return (_server, client, _body, headers) => {
    const pair = `${formEncoded(client.client_id)}:${formEncoded(secret)}`;
    headers.set("authorization", `Basic ${btoa(pair)}`);
  };
}

function formEncoded(text: string): string {
  return new URLSearchParams({ "": text }).toString().slice(1);
}

async function keyOf(
  key: PrivateKeySource | oauth.PrivateKey,
  server: oauth.AuthorizationServer,
  alg: string | undefined,
): Promise<oauth.PrivateKey> {
  if (typeof key === "object" && "key" in key) return key;
  const { signingKey } = await import("./private-key.ts");
  return signingKey(key, server, alg);
}
