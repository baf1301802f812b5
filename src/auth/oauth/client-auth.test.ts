// How a client proves itself to a token endpoint: the method, and what goes out by it.

import { decodeJwt, exportPKCS8, generateKeyPair } from "jose";
import { describe, expect, it } from "vitest";
import { type ClientCredentials, clientAuth } from "./client-auth.ts";

const server = (methods?: string[]): Parameters<typeof clientAuth>[1] => ({
  issuer: "https://as.example",
  token_endpoint: "https://as.example/token",
  ...(methods === undefined ? undefined : { token_endpoint_auth_methods_supported: methods }),
});

async function shown(
  credentials: ClientCredentials,
  methods?: string[],
): Promise<{ form: Record<string, string>; authorization: string | null }> {
  const form = new URLSearchParams();
  const headers = new Headers();
  const auth = await clientAuth(credentials, server(methods));
  await auth(server(methods), { client_id: "a client-1" }, form, headers);
  return { form: Object.fromEntries(form), authorization: headers.get("authorization") };
}

describe("a client's proof", () => {
  it("is its name alone where it has nothing else", async () => {
    expect(await shown({}, ["client_secret_basic"])).toEqual({
      form: { client_id: "a client-1" },
      authorization: null,
    });
  });

  it.each([[undefined], [["client_secret_post", "client_secret_basic"]], [["private_key_jwt"]]])(
    "is HTTP Basic for %j, with only what needs it escaped",
    async (methods) => {
      const { authorization } = await shown({ secret: "s/e-c:r t" }, methods);
      expect(atob(authorization?.slice("Basic ".length) ?? "")).toBe("a+client-1:s%2Fe-c%3Ar+t");
    },
  );

  it("stands in the form where the server lists only that", async () => {
    const { form } = await shown({ secret: "hush" }, ["client_secret_post"]);
    expect(form).toEqual({ client_id: "a client-1", client_secret: "hush" });
  });

  it("is signed where there is a key, given as PEM or as a key", async () => {
    const { privateKey } = await generateKeyPair("ES256", { extractable: true });
    for (const key of [privateKey, { key: privateKey, kid: "one" }, await exportPKCS8(privateKey)]) {
      const { form } = await shown({ privateKey: key }, ["private_key_jwt"]);
      expect(form["client_assertion_type"]).toContain("jwt-bearer");
      expect(decodeJwt(form["client_assertion"] ?? "")).toMatchObject({ iss: "a client-1", aud: "https://as.example" });
    }
  });

  it("is what the program says, whatever the server lists", async () => {
    const { form } = await shown({ secret: "hush", authMethod: "client_secret_post" }, ["client_secret_basic"]);
    expect(form["client_secret"]).toBe("hush");
  });

  it.each([
    [{ authMethod: "client_secret_basic" }, "needs a secret"],
    [{ authMethod: "private_key_jwt" }, "needs a private key"],
    [{ authMethod: "tls_client_auth", secret: "hush" }, "is not known here"],
    [{ privateKey: "-----BEGIN PRIVATE KEY-----\nc2VjcmV0\n-----END PRIVATE KEY-----" }, "private key cannot be used"],
  ])("cannot be made of %j", async (credentials, text) => {
    const made = clientAuth(credentials, server());
    await expect(made).rejects.toThrow(text);
    await expect(made).rejects.not.toThrow("c2VjcmV0");
  });
});
