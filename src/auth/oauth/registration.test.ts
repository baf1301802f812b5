// As whom we come to an authorization server, in the order of the specification, and that nothing of one server is
// ever shown to another.

import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  type AuthorizationServer,
  consenting,
  json,
  openAuthorizationServer,
} from "../../../test/support/authorization-server.ts";
import { openServer, type ProtectedServer, send } from "../../../test/support/protected-end.ts";
import { memoryTokens } from "./memory-tokens.ts";
import { oauth } from "./oauth.ts";

let server: AuthorizationServer;
let end: ProtectedServer;

beforeEach(async () => {
  server = await openAuthorizationServer();
  end = await openServer(server);
});

afterEach(async () => {
  await Promise.all([server.close(), end.close()]);
});

const clientIds = (redirect: { visited: readonly URL[] }): (string | null)[] =>
  redirect.visited.map((url) => url.searchParams.get("client_id"));

describe("a client that the server knows already", () => {
  it("comes before all else, and authenticates by a method that the server lists", async () => {
    server.metadata["client_id_metadata_document_supported"] = true;
    server.metadata["token_endpoint_auth_methods_supported"] = ["client_secret_post"];
    const redirect = consenting();
    const client = { id: "known-one", secret: "hush" };
    await send(oauth({ redirect, client, metadataUrl: "https://example.com/client.json" }), end.url);
    expect(clientIds(redirect)).toEqual(["known-one"]);
    expect(server.at("/register")).toEqual([]);
    expect(server.grantsOf("authorization_code")[0]?.get("client_secret")).toBe("hush");
  });

  it("authenticates by HTTP Basic, unescaped where nothing needs escaping", async () => {
    server.metadata["token_endpoint_auth_methods_supported"] = ["client_secret_basic"];
    const client = { id: "known-one_1.0", secret: "hush-hush" };
    await send(oauth({ redirect: consenting(), client }), end.url);
    const shown = server.at("/token")[0]?.headers.authorization ?? "";
    expect(atob(shown.slice("Basic ".length))).toBe("known-one_1.0:hush-hush");
  });

  it("is shown to no other server than its own", async () => {
    const client = { id: "known-one", secret: "hush", issuer: "https://elsewhere.example" };
    const sent = send(oauth({ redirect: consenting(), client }), end.url);
    await expect(sent).rejects.toThrow("registered with https://elsewhere.example");
    expect(server.asked.map(({ path }) => path)).toEqual(["/.well-known/oauth-authorization-server"]);
  });

  it("leads to its own server where the end lists several", async () => {
    const other = await openAuthorizationServer();
    end.metadata = { ...end.metadata, authorization_servers: [other.url, server.url] };
    const client = { id: "known-one", issuer: server.url };
    expect(await send(oauth({ redirect: consenting(), client }), end.url)).toBe(200);
    await other.close();
    expect(other.asked.map(({ path }) => path)).toEqual(["/.well-known/oauth-authorization-server"]);
  });

  it("is not tried on a second server where it came to nothing at the first", async () => {
    const auth = oauth({ redirect: consenting(), client: { id: "known-one", secret: "hush" } });
    server.pages.set("/token", (_asked, response) => json(response, 503, {}));
    await expect(send(auth, end.url)).rejects.toThrow("HTTP 503");
    const other = await openAuthorizationServer();
    end.metadata = { ...end.metadata, authorization_servers: [other.url] };
    await expect(send(auth, end.url)).rejects.toThrow(`registered with ${server.url}`);
    await other.close();
    expect(other.at("/token")).toEqual([]);
  });

  it("is not tried on a server that the end names later, though its own was never named", async () => {
    const client = { id: "known-one", secret: "hush" };
    const auth = oauth({ redirect: consenting(), client });
    await send(auth, end.url);
    const other = await openAuthorizationServer();
    end.trusts = other;
    end.metadata = { ...end.metadata, authorization_servers: [other.url] };
    await expect(send(auth, end.url)).rejects.toThrow(`registered with ${server.url}`);
    await other.close();
    expect(other.at("/token")).toEqual([]);
    expect(other.at("/authorize")).toEqual([]);
  });
});

describe("a client id metadata document", () => {
  const metadataUrl = "https://example.com/client.json";

  it("is the client's name where the server reads such documents", async () => {
    server.metadata["client_id_metadata_document_supported"] = true;
    const redirect = consenting();
    await send(oauth({ redirect, metadataUrl }), end.url);
    expect(clientIds(redirect)).toEqual([metadataUrl]);
    expect(server.at("/register")).toEqual([]);
  });

  it("gives way to registration where it does not", async () => {
    const redirect = consenting();
    await send(oauth({ redirect, metadataUrl }), end.url);
    expect(clientIds(redirect)).toEqual(["client-1"]);
  });
});

describe("registration", () => {
  it.each([
    [["none", "client_secret_basic"], "none"],
    [["client_secret_post", "client_secret_basic"], "client_secret_basic"],
    [["client_secret_post"], "client_secret_post"],
    [undefined, "client_secret_basic"],
  ])("asks for a method that the server lists: %j", async (listed, method) => {
    server.metadata["token_endpoint_auth_methods_supported"] = listed;
    await send(oauth({ redirect: consenting() }), end.url);
    expect(JSON.parse(server.at("/register")[0]?.text ?? "")).toMatchObject({ token_endpoint_auth_method: method });
  });

  it("goes by what the server made of it, a secret without a date and a 200 included", async () => {
    server.metadata["token_endpoint_auth_methods_supported"] = ["client_secret_post"];
    server.pages.set("/register", (_asked, response) =>
      json(response, 200, { client_id: "given", client_secret: "hush" }),
    );
    await send(oauth({ redirect: consenting() }), end.url);
    const [form] = server.grantsOf("authorization_code");
    expect([form?.get("client_id"), form?.get("client_secret")]).toEqual(["given", "hush"]);
  });

  it("does not send a secret where the server asks for none", async () => {
    server.pages.set("/register", (_asked, response) =>
      json(response, 201, { client_id: "given", client_secret: "hush" }),
    );
    await send(oauth({ redirect: consenting() }), end.url);
    expect(server.grantsOf("authorization_code")[0]?.has("client_secret")).toBe(false);
  });

  it.each([
    ["http://localhost:7777/callback", "native"],
    ["com.example.app:/callback", "native"],
    ["https://app.example.com/callback", "web"],
  ])("says what kind of application comes back to %s: %s", async (uri, kind) => {
    await send(oauth({ redirect: consenting(uri), clientName: "Mine" }), end.url);
    expect(JSON.parse(server.at("/register")[0]?.text ?? "")).toMatchObject({
      application_type: kind,
      client_name: "Mine",
      redirect_uris: [uri],
    });
  });

  it("is used again by later runs, until the redirect's address is another", async () => {
    const store = memoryTokens();
    server.givesRefresh = false;
    await send(oauth({ store, redirect: consenting() }), end.url);
    server.revoke();
    await send(oauth({ store, redirect: consenting() }), end.url);
    expect(server.at("/register")).toHaveLength(1);
    server.revoke();
    await send(oauth({ store, redirect: consenting("http://127.0.0.1:10/callback") }), end.url);
    expect(server.at("/register")).toHaveLength(2);
  });

  it("is repeated once where the server no longer knows the client", async () => {
    const redirect = consenting();
    const store = memoryTokens();
    server.givesRefresh = false;
    await send(oauth({ store, redirect }), end.url);
    server.revoke();
    let count = 0;
    server.pages.set("/token", (asked, response) => {
      if (count++ === 0) return json(response, 401, { error: "invalid_client" }, { "www-authenticate": "Basic" });
      server.pages.delete("/token");
      server.answer(asked, response);
    });
    expect(await send(oauth({ store, redirect }), end.url)).toBe(200);
    expect(clientIds(redirect)).toEqual(["client-1", "client-1", expect.not.stringMatching(/^client-1$/)]);
  });

  it("is not lost to one that came to nothing: its tokens are still renewed", async () => {
    const store = memoryTokens();
    await send(oauth({ store, redirect: consenting("http://127.0.0.1:1001/callback") }), end.url);
    end.needs = () => ["more"];
    for (const port of [1002, 1003]) {
      const uri = `http://127.0.0.1:${port}/callback`;
      const redirect = { uri, visit: () => Promise.reject(new Error("the tab was closed")) };
      await expect(send(oauth({ store, redirect }), end.url)).rejects.toThrow("the tab was closed");
    }
    end.needs = () => [];
    expect(server.at("/register")).toHaveLength(3);
    for (const [access, issued] of [...server.issued]) {
      server.issued.delete(access);
      server.issued.set(`gone-${access}`, issued);
    }
    expect(await send(oauth({ store }), end.url)).toBe(200);
    expect(server.grantsOf("refresh_token").map((form) => form.get("client_id"))).toEqual(["client-1"]);
  });

  it("that is refused is told with the server's own words, and with what to do", async () => {
    server.pages.set("/register", (_asked, response) =>
      json(response, 400, { error: "invalid_redirect_uri", error_description: "no\u001b[31m loopback" }),
    );
    const sent = send(oauth({ redirect: consenting() }), end.url);
    await expect(sent).rejects.toThrow(/invalid_redirect_uri \(no \[31m loopback\)/);
    await expect(sent).rejects.toThrow("configure `client` with one that it knows");
  });

  it("that is not offered is told with what to do", async () => {
    delete server.metadata["registration_endpoint"];
    const sent = send(oauth({ redirect: consenting(), metadataUrl: "https://example.com/client.json" }), end.url);
    await expect(sent).rejects.toThrow("oauth({ client: { id, secret } })");
  });
});

describe("an end that moves to another authorization server", () => {
  it("leads to a registration there, and nothing of the old server is shown to the new one", async () => {
    const other = await openAuthorizationServer();
    const store = memoryTokens();
    const auth = oauth({ store, redirect: consenting() });
    await send(auth, end.url);
    const old = server.grantsOf("authorization_code")[0]?.get("client_id") ?? "";
    end.trusts = other;
    end.metadata = { ...end.metadata, authorization_servers: [other.url] };
    other.pages.set("/register", (_asked, response) => json(response, 201, { client_id: "of-the-other" }));

    expect(await send(auth, end.url)).toBe(200);
    await other.close();
    const seen = other.asked.map(({ query, text, headers }) => `${query.toString()} ${text} ${headers.authorization}`);
    expect(seen.join()).not.toContain(`client_id=${old}&`);
    expect(seen.join()).not.toContain("access-3");
    expect(seen.join()).not.toContain("refresh-");
    expect(other.grantsOf("authorization_code")[0]?.get("client_id")).toBe("of-the-other");
    expect(server.grantsOf("refresh_token")).toEqual([]);
  });
});
