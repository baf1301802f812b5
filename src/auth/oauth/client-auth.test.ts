// How a client authenticates at a token endpoint: the method, and what is sent.

import { decodeJwt, exportPKCS8, generateKeyPair } from "jose";
import { expect, it } from "vitest";
import { clientAuth } from "./token-request.ts";

const server = (methods?: string[]): Parameters<typeof clientAuth>[1] => ({
  issuer: "https://as.example",
  token_endpoint: "https://as.example/token",
  ...(methods === undefined ? undefined : { token_endpoint_auth_methods_supported: methods }),
});

async function sentBy(
  credentials: Parameters<typeof clientAuth>[0],
  methods?: string[],
): Promise<{ form: Record<string, string>; authorization: string | null }> {
  const form = new URLSearchParams();
  const headers = new Headers();
  const auth = await clientAuth(credentials, server(methods));
  await auth(server(methods), { client_id: "a client-1" }, form, headers);
  return { form: Object.fromEntries(form), authorization: headers.get("authorization") };
}

it("client authentication is the client ID alone without credentials", async () => {
  expect(await sentBy({}, ["client_secret_basic"])).toEqual({
    form: { client_id: "a client-1" },
    authorization: null,
  });
});

it.each([[undefined], [["client_secret_post", "client_secret_basic"]], [["private_key_jwt"]]])(
  "client authentication is HTTP Basic for %j, escaped only where necessary",
  async (methods) => {
    const { authorization } = await sentBy({ secret: "s/e-c:r t" }, methods);
    expect(atob(authorization?.slice("Basic ".length) ?? "")).toBe("a+client-1:s%2Fe-c%3Ar+t");
  },
);

it("client authentication is in the form if the server lists only that", async () => {
  const { form } = await sentBy({ secret: "hush" }, ["client_secret_post"]);
  expect(form).toEqual({ client_id: "a client-1", client_secret: "hush" });
});

it("client authentication is signed with a key, given as PEM or as a key", async () => {
  const { privateKey } = await generateKeyPair("ES256", { extractable: true });
  for (const key of [privateKey, { key: privateKey, kid: "one" }, await exportPKCS8(privateKey)]) {
    const { form } = await sentBy({ privateKey: key }, ["private_key_jwt"]);
    expect(form["client_assertion_type"]).toContain("jwt-bearer");
    expect(decodeJwt(form["client_assertion"] ?? "")).toMatchObject({ iss: "a client-1", aud: "https://as.example" });
  }
});

it("client authentication uses the configured method, whatever the server lists", async () => {
  const { form } = await sentBy({ secret: "hush", authMethod: "client_secret_post" }, ["client_secret_basic"]);
  expect(form["client_secret"]).toBe("hush");
});

it.each([
  [{ authMethod: "client_secret_basic" }, "needs a secret"],
  [{ authMethod: "private_key_jwt" }, "needs a private key"],
  [{ authMethod: "tls_client_auth", secret: "hush" }, "tls_client_auth is not supported"],
  [{ privateKey: "-----BEGIN PRIVATE KEY-----\nc2VjcmV0\n-----END PRIVATE KEY-----" }, "private key cannot be used"],
])("client authentication refuses %j", async (credentials, text) => {
  const made = clientAuth(credentials, server());
  await expect(made).rejects.toThrow(text);
  await expect(made).rejects.not.toThrow("c2VjcmV0");
});
