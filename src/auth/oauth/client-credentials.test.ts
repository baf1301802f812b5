// The grant of a program that acts for itself, at a small real authorization server: what is sent, by which method,
// for which end; which server may see the credentials; and what is said, and not said, of a refusal.

import * as oauth from "oauth4webapi";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { json, openAuthorizationServer, type AuthorizationServer } from "../../../test/support/authorization-server.ts";
import { failure, groundOn, RESOURCE } from "../../../test/support/grant-ground.ts";
import { clientCredentials } from "./client-credentials.ts";
import { DPoPKey } from "./dpop.ts";

let server: AuthorizationServer;

beforeEach(async () => {
  server = await openAuthorizationServer();
});

afterEach(() => server.close());

const secret = "s3cret-of-the-client";
const basicOf = (id: string, word: string): string => `Basic ${Buffer.from(`${id}:${word}`).toString("base64")}`;

describe("client credentials", () => {
  it("are a secret in the header, and the request is for the end and the scope", async () => {
    server.metadata["token_endpoint_auth_methods_supported"] = ["client_secret_post", "client_secret_basic"];
    const grant = clientCredentials({ id: "a-client_1", secret });
    expect(grant).toMatchObject({ kind: "client_credentials", identity: "a-client_1", interactive: false });
    const tokens = await grant.obtain(groundOn(server, { scope: "read write" }));
    expect(tokens).toMatchObject({ access_token: expect.any(String), token_type: "bearer", scope: "read write" });
    const [asked, ...others] = server.at("/token");
    expect(others).toEqual([]);
    expect(asked?.headers.authorization).toBe(basicOf("a-client_1", secret));
    expect(Object.fromEntries(asked?.form ?? [])).toEqual({
      grant_type: "client_credentials",
      resource: RESOURCE,
      scope: "read write",
    });
    expect(server.at("/register")).toEqual([]);
  });

  it("are in the header where the server lists no method, with what needs it escaped", async () => {
    delete server.metadata["token_endpoint_auth_methods_supported"];
    await clientCredentials({ id: "a:b c", secret: "p%w/ü" }).obtain(groundOn(server));
    expect(server.at("/token")[0]?.headers.authorization).toBe(basicOf("a%3Ab+c", "p%25w%2F%C3%BC"));
    expect(server.at("/token")[0]?.form.has("scope")).toBe(false);
  });

  it("are in the body where the server lists that alone, or the program says so", async () => {
    server.metadata["token_endpoint_auth_methods_supported"] = ["client_secret_post"];
    await clientCredentials({ id: "c", secret }).obtain(groundOn(server));
    server.metadata["token_endpoint_auth_methods_supported"] = ["client_secret_basic"];
    await clientCredentials({ id: "c", secret, authMethod: "client_secret_post" }).obtain(groundOn(server));
    for (const { form, headers } of server.at("/token")) {
      expect([form.get("client_id"), form.get("client_secret"), headers.authorization]).toEqual([
        "c",
        secret,
        undefined,
      ]);
    }
    expect(server.at("/token")).toHaveLength(2);
  });

  it("are those of the client that the flow knows where none are given", async () => {
    const known = { client: { client_id: "known" }, auth: oauth.ClientSecretPost(secret) };
    const grant = clientCredentials();
    expect(grant.identity).toBeUndefined();
    await grant.obtain(groundOn(server, { client: () => Promise.resolve(known) }));
    expect(server.at("/token")[0]?.form.get("client_id")).toBe("known");
  });

  it("bind the token to a key, by the server's nonce where it wants one", async () => {
    server.pages.set("/token", ({ headers }, response) => {
      const claims = JSON.parse(Buffer.from(String(headers["dpop"]).split(".")[1] ?? "", "base64url").toString());
      if (claims.nonce === "n1") json(response, 200, { access_token: "t", token_type: "DPoP" });
      else json(response, 400, { error: "use_dpop_nonce" }, { "dpop-nonce": "n1" });
    });
    const ground = groundOn(server);
    const key = await DPoPKey.create();
    const tokens = await clientCredentials({ id: "c", secret }).obtain({
      ...ground,
      http: { ...ground.http, DPoP: key.handle },
    });
    expect(tokens.token_type).toBe("dpop");
    expect(server.at("/token")).toHaveLength(2);
  });
});

describe("which server sees client credentials", () => {
  it("is the one that the program named, and no other", async () => {
    const grant = clientCredentials({ id: "c", secret, issuer: "https://login.example" });
    const { server: metadata } = groundOn(server);
    expect(grant.fits?.(metadata)).toContain("https://login.example");
    expect(grant.fits?.({ ...metadata, issuer: "https://login.example/" })).toBeUndefined();
    const error = await failure(grant, groundOn(server), secret);
    expect([error.kind, error.mayHaveRun]).toEqual(["unauthorized", false]);
    expect(server.at("/token")).toEqual([]);
  });

  it("is the first that gave a token where none is named", async () => {
    const other = await openAuthorizationServer();
    try {
      const grant = clientCredentials({ id: "c", secret });
      server.pages.set("/token", (_asked, response) => json(response, 400, { error: "invalid_client" }));
      await failure(grant, groundOn(server), secret);
      await grant.obtain(groundOn(other));
      await grant.obtain(groundOn(other));
      server.pages.delete("/token");
      expect((await failure(grant, groundOn(server), secret)).message).toContain(other.url);
      expect([server.at("/token").length, other.at("/token").length]).toEqual([1, 2]);
    } finally {
      await other.close();
    }
  });

  it("is none that lists other grants only", () => {
    const { server: metadata } = groundOn(server);
    const grant = clientCredentials({ id: "c", secret });
    expect(grant.fits?.({ ...metadata, grant_types_supported: ["authorization_code"] })).toContain(
      "client_credentials",
    );
    expect(grant.fits?.({ ...metadata, grant_types_supported: ["client_credentials"] })).toBeUndefined();
    expect(grant.fits?.(metadata)).toBeUndefined();
  });
});

describe("a refusal of client credentials", () => {
  it("is told with the server's reason, once, without a secret that the server repeats", async () => {
    server.pages.set("/token", ({ headers }, response) => {
      const description = `no such client: ${secret} (${headers.authorization}) \u001B[31m\n`;
      json(response, 401, { error: "invalid_client", error_description: description });
    });
    const error = await failure(
      clientCredentials({ id: "c", secret }),
      groundOn(server),
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
      "an answer that is no token",
      (): object => ({ access_token: 1, token_type: "Bearer", secret_part: "hidden-token" }),
    ],
    ["a token of an unknown kind", (): object => ({ access_token: "hidden-token", token_type: "MAC" })],
    [
      "a token that expires at some word",
      (): object => ({ access_token: "hidden-token", token_type: "Bearer", expires_in: "soon" }),
    ],
  ])("is %s too, and its token is not told", async (_what, answer) => {
    server.pages.set("/token", (_asked, response) => json(response, 200, answer()));
    const error = await failure(clientCredentials({ id: "c", secret }), groundOn(server), secret, "hidden-token");
    expect(error.kind).toBe("unauthorized");
    expect(server.at("/token")).toHaveLength(1);
  });

  it("is what keeps a secret from a server that is not reached by https", async () => {
    server.metadata["token_endpoint"] = "http://login.example/token";
    const error = await failure(clientCredentials({ id: "c", secret }), groundOn(server), secret);
    expect(error.message).toContain("https");
  });

  it("is passed on from a signal", async () => {
    const stop = new AbortController();
    server.pages.set("/token", () => stop.abort());
    const ground = groundOn(server);
    const error = await failure(
      clientCredentials({ id: "c", secret }),
      { ...ground, http: { ...ground.http, signal: stop.signal } },
      secret,
    );
    expect(error.kind).toBe("cancelled");
  });
});
