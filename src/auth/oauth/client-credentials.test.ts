// The client credentials grant against a local authorization server: what is sent and by which method, which server may
// see the credentials, and what an error contains.

import * as oauth from "oauth4webapi";
import { afterEach, beforeEach, expect, it } from "vitest";
import {
  json,
  openAuthorizationServer,
  type AuthorizationServer,
} from "../../../test/support/auth/authorization-server.ts";
import { failure, grantContext, RESOURCE } from "../../../test/support/auth/grant-context.ts";
import { clientCredentials } from "./grants.ts";
import { DPoPKey } from "./keys.ts";

let server: AuthorizationServer;

beforeEach(async () => {
  server = await openAuthorizationServer();
});

afterEach(() => server.close());

const secret = "s3cret-of-the-client";
const basicOf = (id: string, word: string): string => `Basic ${Buffer.from(`${id}:${word}`).toString("base64")}`;

it("client credentials are a secret in the header, and the request names the resource and the scope", async () => {
  server.metadata["token_endpoint_auth_methods_supported"] = ["client_secret_post", "client_secret_basic"];
  const grant = clientCredentials({ id: "a-client_1", secret });
  expect(grant).toMatchObject({ grantType: "client_credentials", identity: "a-client_1", interactive: false });
  const tokens = await grant.obtain(grantContext(server, { scope: "read write" }));
  expect(tokens).toMatchObject({ access_token: expect.any(String), token_type: "bearer", scope: "read write" });
  const [request, ...others] = server.at("/token");
  expect(others).toEqual([]);
  expect(request?.headers.authorization).toBe(basicOf("a-client_1", secret));
  expect(Object.fromEntries(request?.form ?? [])).toEqual({
    grant_type: "client_credentials",
    resource: RESOURCE,
    scope: "read write",
  });
  expect(server.at("/register")).toEqual([]);
});

it("client credentials are in the header if the server lists no method, escaped only where necessary", async () => {
  delete server.metadata["token_endpoint_auth_methods_supported"];
  await clientCredentials({ id: "a:b c", secret: "p%w/ü" }).obtain(grantContext(server));
  expect(server.at("/token")[0]?.headers.authorization).toBe(basicOf("a%3Ab+c", "p%25w%2F%C3%BC"));
  expect(server.at("/token")[0]?.form.has("scope")).toBe(false);
});

it("client credentials are in the body if the server lists only that, or if it is configured", async () => {
  server.metadata["token_endpoint_auth_methods_supported"] = ["client_secret_post"];
  await clientCredentials({ id: "c", secret }).obtain(grantContext(server));
  server.metadata["token_endpoint_auth_methods_supported"] = ["client_secret_basic"];
  await clientCredentials({ id: "c", secret, authMethod: "client_secret_post" }).obtain(grantContext(server));
  for (const { form, headers } of server.at("/token")) {
    expect([form.get("client_id"), form.get("client_secret"), headers.authorization]).toEqual(["c", secret, undefined]);
  }
  expect(server.at("/token")).toHaveLength(2);
});

it("client credentials are those of the client of oauth() by default", async () => {
  const known = { client: { client_id: "known" }, auth: oauth.ClientSecretPost(secret) };
  const grant = clientCredentials();
  expect(grant.identity).toBeUndefined();
  await grant.obtain(grantContext(server, { client: () => Promise.resolve(known) }));
  expect(server.at("/token")[0]?.form.get("client_id")).toBe("known");
});

it("client credentials bind the token to a key, with the nonce that the server requires", async () => {
  server.pages.set("/token", ({ headers }, response) => {
    const claims = JSON.parse(Buffer.from(String(headers["dpop"]).split(".")[1] ?? "", "base64url").toString());
    if (claims.nonce === "n1") json(response, 200, { access_token: "t", token_type: "DPoP" });
    else json(response, 400, { error: "use_dpop_nonce" }, { "dpop-nonce": "n1" });
  });
  const context = grantContext(server);
  const key = await DPoPKey.create();
  const tokens = await clientCredentials({ id: "c", secret }).obtain({
    ...context,
    http: { ...context.http, DPoP: key.handle },
  });
  expect(tokens.token_type).toBe("dpop");
  expect(server.at("/token")).toHaveLength(2);
});

it("refuses unknown options", () => {
  const misspelt = { id: "c", secert: "s" } as unknown as Parameters<typeof clientCredentials>[0];
  expect(() => clientCredentials(misspelt)).toThrow(
    new TypeError("clientCredentials() has no option `secert`; did you mean `secret`?"),
  );
});

it("the server that may see client credentials is the configured one, and no other", async () => {
  const grant = clientCredentials({ id: "c", secret, issuer: "https://login.example" });
  const { server: metadata } = grantContext(server);
  expect(grant.rejectServer?.(metadata)).toContain("https://login.example");
  expect(grant.rejectServer?.({ ...metadata, issuer: "https://login.example/" })).toBeUndefined();
  const error = await failure(grant, grantContext(server), secret);
  expect([error.kind, error.mayHaveRun]).toEqual(["unauthorized", false]);
  expect(server.at("/token")).toEqual([]);
});

it("the server that may see client credentials is the first that issued a token, if none is configured", async () => {
  const other = await openAuthorizationServer();
  try {
    const grant = clientCredentials({ id: "c", secret });
    server.pages.set("/token", (_request, response) => json(response, 400, { error: "invalid_client" }));
    await failure(grant, grantContext(server), secret);
    await grant.obtain(grantContext(other));
    await grant.obtain(grantContext(other));
    server.pages.delete("/token");
    expect((await failure(grant, grantContext(server), secret)).message).toContain(other.url);
    expect([server.at("/token").length, other.at("/token").length]).toEqual([1, 2]);
  } finally {
    await other.close();
  }
});

it("the server that may see client credentials is not one that lists only other grants", () => {
  const { server: metadata } = grantContext(server);
  const grant = clientCredentials({ id: "c", secret });
  expect(grant.rejectServer?.({ ...metadata, grant_types_supported: ["authorization_code"] })).toContain(
    "client_credentials",
  );
  expect(grant.rejectServer?.({ ...metadata, grant_types_supported: ["client_credentials"] })).toBeUndefined();
  expect(grant.rejectServer?.(metadata)).toBeUndefined();
});

it("a failed client credentials grant is reported with the server's reason, without a secret that the server repeats", async () => {
  server.pages.set("/token", ({ headers }, response) => {
    const description = `no such client: ${secret} (${headers.authorization}) \u001B[31m\n`;
    json(response, 401, { error: "invalid_client", error_description: description });
  });
  const error = await failure(
    clientCredentials({ id: "c", secret }),
    grantContext(server),
    secret,
    "\u001B",
    basicOf("c", secret),
  );
  expect(error.kind).toBe("unauthorized");
  expect(error.message).toContain("invalid_client");
  expect(error.message).toContain(server.url);
  expect(error.message).toContain("check the client's id");
  expect(server.at("/token")).toHaveLength(1);
});

it.each([
  [
    "a response without a token",
    (): object => ({ access_token: 1, token_type: "Bearer", secret_part: "hidden-token" }),
  ],
  ["a token of an unknown type", (): object => ({ access_token: "hidden-token", token_type: "MAC" })],
  [
    "an expiry that is not a number",
    (): object => ({ access_token: "hidden-token", token_type: "Bearer", expires_in: "soon" }),
  ],
])("a failed client credentials grant is %s too, and its token is not in the error", async (_what, answer) => {
  server.pages.set("/token", (_request, response) => json(response, 200, answer()));
  const error = await failure(clientCredentials({ id: "c", secret }), grantContext(server), secret, "hidden-token");
  expect(error.kind).toBe("unauthorized");
  expect(server.at("/token")).toHaveLength(1);
});

it("a failed client credentials grant protects a secret from a server without https", async () => {
  server.metadata["token_endpoint"] = "http://login.example/token";
  const error = await failure(clientCredentials({ id: "c", secret }), grantContext(server), secret);
  expect(error.message).toContain("https");
});

it("a failed client credentials grant follows from an aborted signal", async () => {
  const stop = new AbortController();
  server.pages.set("/token", () => stop.abort());
  const context = grantContext(server);
  const error = await failure(
    clientCredentials({ id: "c", secret }),
    { ...context, http: { ...context.http, signal: stop.signal } },
    secret,
  );
  expect(error.kind).toBe("cancelled");
});
