// Finds the authorization server of an MCP server: where metadata is looked for, what is not trusted, and which of
// several servers is used. Over real HTTP, through oauth().

import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  type AuthorizationServer,
  consentingUser,
  json,
  openAuthorizationServer,
} from "../../../test/support/auth/authorization-server.ts";
import { openProtectedServer, type ProtectedServer, send } from "../../../test/support/auth/protected-server.ts";
import { coversUrl } from "./discovery.ts";
import { oauth } from "./authorizers.ts";

let server: AuthorizationServer;
let mcpServer: ProtectedServer;

beforeEach(async () => {
  server = await openAuthorizationServer();
  mcpServer = await openProtectedServer(server);
});

afterEach(async () => {
  await Promise.all([server.close(), mcpServer.close()]);
});

/** The metadata requests, in order. */
const metadataRequests = (requests: readonly { path: string; method: string }[]): string[] =>
  requests.filter(({ path, method }) => method === "GET" && path.includes("well-known")).map(({ path }) => path);

const connect = (): Promise<number> => send(oauth({ redirect: consentingUser() }), mcpServer.url);

it("the resource metadata is read from the URL in the challenge", async () => {
  mcpServer.metadataPath = "/custom/place.json";
  expect(await connect()).toBe(200);
  expect(mcpServer.requests.map(({ path }) => path)).toEqual(["/mcp", "/custom/place.json", "/mcp"]);
});

it("the resource metadata is looked for under the path first, then at the root, if the challenge has no URL", async () => {
  mcpServer.namesMetadata = false;
  mcpServer.metadataPath = "/.well-known/oauth-protected-resource";
  mcpServer.metadata = { ...mcpServer.metadata, resource: mcpServer.origin };
  expect(await connect()).toBe(200);
  expect(metadataRequests(mcpServer.requests)).toEqual([
    "/.well-known/oauth-protected-resource/mcp",
    "/.well-known/oauth-protected-resource",
  ]);
  expect(server.grantsOf("authorization_code")[0]?.get("resource")).toBe(mcpServer.origin);
});

it("the resource metadata is looked for at the usual places if the named URL cannot be reached", async () => {
  mcpServer.namesMetadata = "http://internal.invalid/.well-known/oauth-protected-resource/mcp";
  expect(await connect()).toBe(200);
});

it("the resource metadata is read through redirects within its origin only", async () => {
  mcpServer.metadataPath = "/moved";
  mcpServer.namesMetadata = `${mcpServer.origin}/old`;
  mcpServer.pages.set("/old", (_request, response) => response.writeHead(302, { location: "/moved" }).end());
  expect(await connect()).toBe(200);
  mcpServer.pages.set("/old", (_request, response) =>
    response.writeHead(302, { location: `${server.url}/elsewhere` }).end(),
  );
  await expect(connect()).rejects.toThrow("a redirect, which is not followed here");
  expect(server.at("/elsewhere")).toEqual([]);
});

it.each([
  ["another origin", "https://evil.example/mcp"],
  ["another path", "/other"],
  ["a path with a common prefix", "/mc"],
  ["a longer path", "/mcp/deeper"],
  ["not a URL", "the server"],
])("the resource metadata of another resource is refused: %s", async (_what, resource) => {
  mcpServer.metadata = {
    ...mcpServer.metadata,
    resource: resource.startsWith("/") ? `${mcpServer.origin}${resource}` : resource,
  };
  await expect(connect()).rejects.toThrow("is that of another resource");
  expect(server.requests).toEqual([]);
});

it("the resource metadata that is broken is an error, and nothing is guessed", async () => {
  mcpServer.namesMetadata = false;
  mcpServer.pages.set("/.well-known/oauth-protected-resource/mcp", (_request, response) =>
    response.writeHead(500).end(),
  );
  await expect(connect()).rejects.toThrow("HTTP 500");
});

it("the resource metadata is read up to a limit", async () => {
  mcpServer.namesMetadata = false;
  mcpServer.pages.set("/.well-known/oauth-protected-resource/mcp", (_request, response) => {
    response.writeHead(200, { "content-type": "application/json" });
    const more = (): void => {
      if (response.destroyed) return;
      response.write(" ".repeat(65_536), () => setImmediate(more));
    };
    more();
  });
  await expect(connect()).rejects.toThrow("longer than the limit of 1048576 bytes");
});

it("the authorization server's metadata is looked for as OAuth, then as OpenID metadata, for an issuer without a path", async () => {
  server.metadataPath = "/.well-known/openid-configuration";
  expect(await connect()).toBe(200);
  expect(metadataRequests(server.requests)).toEqual([
    "/.well-known/oauth-authorization-server",
    "/.well-known/openid-configuration",
  ]);
});

it("the authorization server's metadata is looked for in three places for an issuer with a path, and never at the root", async () => {
  const issuer = `${server.url}/tenant1`;
  server.metadataPath = "/tenant1/.well-known/openid-configuration";
  server.metadata["issuer"] = issuer;
  server.iss = issuer;
  mcpServer.metadata = { ...mcpServer.metadata, authorization_servers: [issuer] };
  expect(await connect()).toBe(200);
  expect(metadataRequests(server.requests)).toEqual([
    "/.well-known/oauth-authorization-server/tenant1",
    "/.well-known/openid-configuration/tenant1",
    "/tenant1/.well-known/openid-configuration",
  ]);
});

it("the authorization server's metadata of another issuer is refused, with everything else of that server", async () => {
  server.metadata["issuer"] = "https://honest.example";
  await expect(connect()).rejects.toThrow("another issuer (https://honest.example/)");
  expect(server.requests.map(({ path }) => path)).toEqual([server.metadataPath]);
});

it("the authorization server's metadata may name an origin with a trailing slash, which is the same issuer", async () => {
  mcpServer.metadata = { ...mcpServer.metadata, authorization_servers: [`${server.url}/`] };
  expect(await connect()).toBe(200);
});

it.each([
  ["absent", undefined],
  ["without S256", ["plain"]],
])(
  "the authorization server's metadata without PKCE is refused before the user is sent there: %s",
  async (_what, methods) => {
    server.metadata["code_challenge_methods_supported"] = methods;
    await expect(connect()).rejects.toThrow("PKCE with S256");
    expect(server.requests).toHaveLength(1);
  },
);

it.each(["data:text/html,hello", "file:///etc/passwd", "http://public.example/authorize", "nowhere"])(
  "the authorization server's metadata must not send the user to %s",
  async (address) => {
    server.metadata["authorization_endpoint"] = address;
    const redirect = consentingUser();
    await expect(send(oauth({ redirect }), mcpServer.url)).rejects.toThrow(
      "its authorization endpoint is not an https URL",
    );
    expect(redirect.visited).toEqual([]);
  },
);

it("the authorization server's metadata is not used if a list is not an array", async () => {
  server.metadata["scopes_supported"] = "everything offline_access";
  await expect(connect()).rejects.toThrow("its lists are not arrays of strings");
});

it("the authorization server's metadata is fetched from the next server if the first cannot be used", async () => {
  const unusable = await openAuthorizationServer();
  delete unusable.metadata["code_challenge_methods_supported"];
  mcpServer.metadata = {
    ...mcpServer.metadata,
    authorization_servers: ["http://127.0.0.1:9", "not a URL", unusable.url, server.url],
  };
  expect(await connect()).toBe(200);
  await unusable.close();
  expect(unusable.requests).toHaveLength(1);
});

it("the authorization server's metadata is that of the server used before, if it is still listed", async () => {
  const other = await openAuthorizationServer();
  const auth = oauth({ redirect: consentingUser() });
  await send(auth, mcpServer.url);
  mcpServer.metadata = { ...mcpServer.metadata, authorization_servers: [other.url, server.url] };
  server.revoke();
  expect(await send(auth, mcpServer.url)).toBe(200);
  await other.close();
  expect(other.requests).toEqual([]);
});

describe("an MCP server without resource metadata", () => {
  beforeEach(() => {
    mcpServer.namesMetadata = false;
    mcpServer.metadata = undefined;
  });

  const serve = (...paths: readonly string[]): void => {
    for (const path of paths) mcpServer.pages.set(path, (request, response) => server.answer(request, response));
  };

  it("an MCP server without resource metadata is its own authorization server, with metadata at the root of its origin", async () => {
    server.metadata = {
      issuer: mcpServer.origin,
      authorization_endpoint: `${mcpServer.origin}/oauth/authorize`,
      token_endpoint: `${mcpServer.origin}/oauth/token`,
      registration_endpoint: `${mcpServer.origin}/oauth/register`,
      code_challenge_methods_supported: ["S256"],
      token_endpoint_auth_methods_supported: ["none"],
    };
    server.iss = undefined;
    for (const name of ["authorize", "token", "register"]) {
      mcpServer.pages.set(`/oauth/${name}`, (request, response) =>
        server.answer({ ...request, path: `/${name}` }, response),
      );
    }
    serve("/.well-known/oauth-authorization-server");
    expect(await connect()).toBe(200);
    expect(server.grantsOf("authorization_code")[0]?.get("resource")).toBe(mcpServer.url.href);
  });

  it("an MCP server without resource metadata has default endpoints without any metadata, also for a refresh", async () => {
    server.iss = undefined;
    serve("/authorize", "/token", "/register");
    const auth = oauth({ redirect: consentingUser() });
    expect(await send(auth, mcpServer.url)).toBe(200);
    const [issued] = server.issued.values();
    server.issued.clear();
    if (issued !== undefined) server.issued.set("gone", issued);
    expect(await send(auth, mcpServer.url)).toBe(200);
    expect(server.grantsOf("refresh_token")).toHaveLength(1);
  });

  it("an MCP server without resource metadata without those endpoints is an error", async () => {
    const sent = connect();
    await expect(sent).rejects.toThrow(`registering with ${mcpServer.origin} as a client`);
    await expect(sent).rejects.toThrow("it answered HTTP 404");
  });
});

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
  ["urn:server", "https://a.example/mcp", false],
])("whether a resource covers a URL: %s for %s: %s", (resource, address, expected) => {
  expect(coversUrl(resource, new URL(address))).toBe(expected);
});

it("skips a page that a site serves for every path", async () => {
  for (const path of ["/.well-known/oauth-authorization-server"]) {
    server.pages.set(path, (_request, response) => response.writeHead(200).end("<!doctype html>"));
  }
  server.pages.set("/.well-known/openid-configuration", (_request, response) => json(response, 200, server.metadata));
  expect(await connect()).toBe(200);
});
