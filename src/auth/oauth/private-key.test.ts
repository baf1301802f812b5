// Private keys of clients in every form, and the assertions that they sign, at a local authorization server.

import { createPublicKey, generateKeyPairSync } from "node:crypto";
import type { KeyObject } from "node:crypto";
import { createLocalJWKSet, decodeProtectedHeader, exportJWK, generateKeyPair, jwtVerify } from "jose";
import type { JWK } from "jose";
import { afterEach, beforeEach, expect, it } from "vitest";
import { openAuthorizationServer, type AuthorizationServer } from "../../../test/support/auth/authorization-server.ts";
import { failure, grantContext } from "../../../test/support/auth/grant-context.ts";
import { clientCredentials } from "./grants.ts";
import { IS_LONG } from "../../../test/support/thoroughness.ts";

let server: AuthorizationServer;

beforeEach(async () => {
  server = await openAuthorizationServer();
});

afterEach(() => server.close());

const pkcs8 = (key: KeyObject): string => key.export({ type: "pkcs8", format: "pem" }).toString();
const ec = (namedCurve: string): KeyObject => generateKeyPairSync("ec", { namedCurve }).privateKey;
const rsa = (): KeyObject => generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey;
const jwk = (key: KeyObject): JWK => key.export({ format: "jwk" });

it.each([
  ["ES256", "PEM", pkcs8, ec("P-256")],
  ["ES384", "PEM", pkcs8, ec("P-384")],
  ["ES512", "PEM", pkcs8, ec("P-521")],
  ["Ed25519", "PEM", pkcs8, generateKeyPairSync("ed25519").privateKey],
  ["PS256", "PEM", pkcs8, rsa()],
  [
    "ES256",
    "the older PEM form",
    (key: KeyObject) => key.export({ type: "sec1", format: "pem" }).toString(),
    ec("P-256"),
  ],
  ["ES256", "a JWK", (key: KeyObject) => ({ ...jwk(key), kid: "k1" }), ec("P-256")],
  ["RS512", "a JWK with alg", (key: KeyObject) => ({ ...jwk(key), alg: "RS512" }), rsa()],
])(
  "client credentials with a key are signed with %s by %s, for the issuer, for at most a minute",
  async (alg, how, write, key) => {
    server.metadata["token_endpoint_auth_methods_supported"] = ["private_key_jwt"];
    server.metadata["token_endpoint_auth_signing_alg_values_supported"] = ["ES256", "PS256"];
    const grant = clientCredentials({ id: "c", privateKey: write(key) });
    await grant.obtain(grantContext(server));
    await grant.obtain(grantContext(server));
    const forms = server.at("/token").map(({ form }) => form);
    const ids = await Promise.all(
      forms.map(async (form) => {
        expect(form.get("client_assertion_type")).toBe("urn:ietf:params:oauth:client-assertion-type:jwt-bearer");
        const assertion = form.get("client_assertion") ?? "";
        expect(decodeProtectedHeader(assertion).alg).toBe(alg);
        const { kid } = decodeProtectedHeader(assertion);
        const keys = createLocalJWKSet({
          keys: [{ ...jwk(createPublicKey(key)), ...(kid === undefined ? {} : { kid }) }],
        });
        expect(kid).toBe(how === "a JWK" ? "k1" : undefined);
        const { payload } = await jwtVerify(assertion, keys, {
          issuer: "c",
          subject: "c",
          audience: server.url,
          maxTokenAge: 60,
        });
        expect((payload.exp ?? 0) - (payload.iat ?? 0)).toBeLessThanOrEqual(60);
        return payload.jti;
      }),
    );
    expect(new Set(ids).size).toBe(2);
  },
);

it.runIf(IS_LONG)("client credentials with a key are signed by a CryptoKey with its own algorithm", async () => {
  const { privateKey, publicKey } = await generateKeyPair("PS384");
  await clientCredentials({ id: "c", privateKey }).obtain(grantContext(server));
  const assertion = server.at("/token")[0]?.form.get("client_assertion") ?? "";
  expect(
    (await jwtVerify(assertion, createLocalJWKSet({ keys: [await exportJWK(publicKey)] }))).protectedHeader.alg,
  ).toBe("PS384");
});

it.runIf(IS_LONG)("client credentials with a key are signed with the configured algorithm", async () => {
  await clientCredentials({ id: "c", privateKey: pkcs8(rsa()), alg: "PS512" }).obtain(grantContext(server));
  expect(decodeProtectedHeader(server.at("/token")[0]?.form.get("client_assertion") ?? "").alg).toBe("PS512");
});

it("client credentials with a key that is not valid is refused before anything is sent, and not quoted", async () => {
  const pem = pkcs8(ec("P-256"));
  const inside = pem.split("\n")[1] ?? "";
  const cases = [
    { privateKey: pem.replace("PRIVATE", "PRIVTE") },
    { privateKey: inside },
    { privateKey: pem, alg: "RS256" },
    { privateKey: { ...jwk(ec("P-256")), d: undefined } as unknown as JWK },
    { privateKey: { kty: "oct", k: inside } },
    { privateKey: createPublicKey(pem).export({ type: "spki", format: "pem" }).toString() },
  ];
  for (const one of cases) {
    const error = await failure(clientCredentials({ id: "c", ...one }), grantContext(server), inside);
    expect(error.kind).toBe("unauthorized");
    expect(error.message).toContain("private key cannot be used");
  }
  expect(server.at("/token")).toEqual([]);
});
