// How the authorization server of an end is found: the places and their order, what is not believed, and which of
// several is taken. All of it over real HTTP, driven through oauth().

import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  type AuthorizationServer,
  consenting,
  json,
  openAuthorizationServer,
} from "../../../test/support/authorization-server.ts";
import { openServer, type ProtectedServer, send } from "../../../test/support/protected-end.ts";
import { covers } from "./discovery.ts";
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

/** What was read on the way, in its order; nothing of what comes after discovery. */
const read = (asked: readonly { path: string; method: string }[]): string[] =>
  asked.filter(({ path, method }) => method === "GET" && path.includes("well-known")).map(({ path }) => path);

const connected = (): Promise<number> => send(oauth({ redirect: consenting() }), end.url);

describe("the end's metadata", () => {
  it("is read where the refusal says", async () => {
    end.metadataPath = "/custom/place.json";
    expect(await connected()).toBe(200);
    expect(end.asked.map(({ path }) => path)).toEqual(["/mcp", "/custom/place.json", "/mcp"]);
  });

  it("is looked for under the end's path first, then at the root, where the refusal does not say", async () => {
    end.namesMetadata = false;
    end.metadataPath = "/.well-known/oauth-protected-resource";
    end.metadata = { ...end.metadata, resource: end.origin };
    expect(await connected()).toBe(200);
    expect(read(end.asked)).toEqual([
      "/.well-known/oauth-protected-resource/mcp",
      "/.well-known/oauth-protected-resource",
    ]);
    expect(server.grantsOf("authorization_code")[0]?.get("resource")).toBe(end.origin);
  });

  it("is looked for at the end itself where the place that was named cannot be reached", async () => {
    end.namesMetadata = "http://internal.invalid/.well-known/oauth-protected-resource/mcp";
    expect(await connected()).toBe(200);
  });

  it("is followed through redirects on its origin, and no farther", async () => {
    end.metadataPath = "/moved";
    end.namesMetadata = `${end.origin}/old`;
    end.pages.set("/old", (_asked, response) => response.writeHead(302, { location: "/moved" }).end());
    expect(await connected()).toBe(200);
    end.pages.set("/old", (_asked, response) => response.writeHead(302, { location: `${server.url}/elsewhere` }).end());
    await expect(connected()).rejects.toThrow("a redirect, which is not followed here");
    expect(server.at("/elsewhere")).toEqual([]);
  });

  it.each([
    ["another origin", "https://evil.example/mcp"],
    ["another path", "/other"],
    ["a path that only begins alike", "/mc"],
    ["a longer path", "/mcp/deeper"],
    ["no address", "the end"],
  ])("that speaks of another resource stops everything: %s", async (_what, resource) => {
    end.metadata = { ...end.metadata, resource: resource.startsWith("/") ? `${end.origin}${resource}` : resource };
    await expect(connected()).rejects.toThrow("is that of another resource");
    expect(server.asked).toEqual([]);
  });

  it("that is broken is an error, not a reason to guess", async () => {
    end.namesMetadata = false;
    end.pages.set("/.well-known/oauth-protected-resource/mcp", (_asked, response) => response.writeHead(500).end());
    await expect(connected()).rejects.toThrow("HTTP 500");
  });

  it("that is endless is not read to its end", async () => {
    end.namesMetadata = false;
    end.pages.set("/.well-known/oauth-protected-resource/mcp", (_asked, response) => {
      response.writeHead(200, { "content-type": "application/json" });
      const more = (): void => {
        if (response.destroyed) return;
        response.write(" ".repeat(65_536), () => setImmediate(more));
      };
      more();
    });
    await expect(connected()).rejects.toThrow("longer than the limit of 1048576 bytes");
  });
});

describe("the authorization server's metadata", () => {
  it("is looked for as OAuth's, then as OpenID's, at an issuer without a path", async () => {
    server.metadataPath = "/.well-known/openid-configuration";
    expect(await connected()).toBe(200);
    expect(read(server.asked)).toEqual([
      "/.well-known/oauth-authorization-server",
      "/.well-known/openid-configuration",
    ]);
  });

  it("is looked for in three places at an issuer with a path, and never at the root", async () => {
    const issuer = `${server.url}/tenant1`;
    server.metadataPath = "/tenant1/.well-known/openid-configuration";
    server.metadata["issuer"] = issuer;
    server.iss = issuer;
    end.metadata = { ...end.metadata, authorization_servers: [issuer] };
    expect(await connected()).toBe(200);
    expect(read(server.asked)).toEqual([
      "/.well-known/oauth-authorization-server/tenant1",
      "/.well-known/openid-configuration/tenant1",
      "/tenant1/.well-known/openid-configuration",
    ]);
  });

  it("that names another issuer is not used, nor is anything else of that server", async () => {
    server.metadata["issuer"] = "https://honest.example";
    await expect(connected()).rejects.toThrow("another issuer (https://honest.example/)");
    expect(server.asked.map(({ path }) => path)).toEqual([server.metadataPath]);
  });

  it("may write an origin with a slash at its end: that is the same issuer", async () => {
    end.metadata = { ...end.metadata, authorization_servers: [`${server.url}/`] };
    expect(await connected()).toBe(200);
  });

  it.each([
    ["absent", undefined],
    ["without S256", ["plain"]],
  ])("without PKCE is refused before anybody is sent there: %s", async (_what, methods) => {
    server.metadata["code_challenge_methods_supported"] = methods;
    await expect(connected()).rejects.toThrow("PKCE with S256");
    expect(server.asked).toHaveLength(1);
  });

  it.each(["data:text/html,hello", "file:///etc/passwd", "http://public.example/authorize", "nowhere"])(
    "must not send a person to %s",
    async (address) => {
      server.metadata["authorization_endpoint"] = address;
      const redirect = consenting();
      await expect(send(oauth({ redirect }), end.url)).rejects.toThrow(
        "its authorization endpoint is no https address",
      );
      expect(redirect.visited).toEqual([]);
    },
  );

  it("is not used where its lists are none", async () => {
    server.metadata["scopes_supported"] = "everything offline_access";
    await expect(connected()).rejects.toThrow("its lists are no lists of texts");
  });

  it("is asked of the next server where the first cannot be used", async () => {
    const unusable = await openAuthorizationServer();
    delete unusable.metadata["code_challenge_methods_supported"];
    end.metadata = {
      ...end.metadata,
      authorization_servers: ["http://127.0.0.1:9", "no address", unusable.url, server.url],
    };
    expect(await connected()).toBe(200);
    await unusable.close();
    expect(unusable.asked).toHaveLength(1);
  });

  it("stays with the server that was used before, where the end still lists it", async () => {
    const other = await openAuthorizationServer();
    const auth = oauth({ redirect: consenting() });
    await send(auth, end.url);
    end.metadata = { ...end.metadata, authorization_servers: [other.url, server.url] };
    server.revoke();
    expect(await send(auth, end.url)).toBe(200);
    await other.close();
    expect(other.asked).toEqual([]);
  });
});

describe("an end of the first revision with authorization", () => {
  beforeEach(() => {
    end.namesMetadata = false;
    end.metadata = undefined;
  });

  const serve = (...paths: readonly string[]): void => {
    for (const path of paths) end.pages.set(path, (asked, response) => server.answer(asked, response));
  };

  it("is its own authorization server, with metadata at the root of its origin", async () => {
    server.metadata = {
      issuer: end.origin,
      authorization_endpoint: `${end.origin}/oauth/authorize`,
      token_endpoint: `${end.origin}/oauth/token`,
      registration_endpoint: `${end.origin}/oauth/register`,
      code_challenge_methods_supported: ["S256"],
      token_endpoint_auth_methods_supported: ["none"],
    };
    server.iss = undefined;
    for (const name of ["authorize", "token", "register"]) {
      end.pages.set(`/oauth/${name}`, (asked, response) => server.answer({ ...asked, path: `/${name}` }, response));
    }
    serve("/.well-known/oauth-authorization-server");
    expect(await connected()).toBe(200);
    expect(server.grantsOf("authorization_code")[0]?.get("resource")).toBe(end.url.href);
  });

  it("has default endpoints where it has no metadata at all, also when its token is refreshed", async () => {
    server.iss = undefined;
    serve("/authorize", "/token", "/register");
    const auth = oauth({ redirect: consenting() });
    expect(await send(auth, end.url)).toBe(200);
    const [issued] = server.issued.values();
    server.issued.clear();
    if (issued !== undefined) server.issued.set("gone", issued);
    expect(await send(auth, end.url)).toBe(200);
    expect(server.grantsOf("refresh_token")).toHaveLength(1);
  });

  it("that has none of this is told as what it is", async () => {
    const sent = connected();
    await expect(sent).rejects.toThrow(`registering with ${end.origin} as a client`);
    await expect(sent).rejects.toThrow("it answered HTTP 404");
  });
});

describe("whether a resource is the end", () => {
  it.each([
    ["https://a.example/mcp", "https://a.example/mcp", true],
    ["https://A.example/mcp", "https://a.example/mcp", true],
    ["https://a.example:443", "https://a.example/mcp", true],
    ["https://a.example/", "https://a.example/mcp", true],
    ["https://a.example/team/", "https://a.example/team/mcp", true],
    ["https://a.example/mcp?one=1", "https://a.example/mcp", false],
    ["https://a.example/mcp#part", "https://a.example/mcp", false],
    ["http://a.example/mcp", "https://a.example/mcp", false],
    ["https://a.example:8443/mcp", "https://a.example/mcp", false],
    ["https://a.example.evil/mcp", "https://a.example/mcp", false],
    ["urn:end", "https://a.example/mcp", false],
  ])("%s for %s: %s", (resource, address, expected) => {
    expect(covers(resource, new URL(address))).toBe(expected);
  });
});

it("does not take a page for metadata where a site answers every path with one", async () => {
  for (const path of ["/.well-known/oauth-authorization-server"]) {
    server.pages.set(path, (_asked, response) => response.writeHead(200).end("<!doctype html>"));
  }
  server.pages.set("/.well-known/openid-configuration", (_asked, response) => json(response, 200, server.metadata));
  expect(await connected()).toBe(200);
});
