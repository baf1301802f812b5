// URLs that are never requested: with plain http, in private networks, or on this machine for a remote MCP server. And
// the timeout of those that are.

import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import {
  type AuthorizationServer,
  consentingUser,
  openAuthorizationServer,
} from "../../../test/support/auth/authorization-server.ts";
import { openProtectedServer, type ProtectedServer, send } from "../../../test/support/auth/protected-server.ts";
import { oauth } from "./authorizers.ts";
import { OAuthFetch } from "./oauth-fetch.ts";
import { sampleOf } from "../../../test/support/thoroughness.ts";

let server: AuthorizationServer;
let mcpServer: ProtectedServer;

beforeEach(async () => {
  server = await openAuthorizationServer();
  mcpServer = await openProtectedServer(server);
});

afterEach(async () => {
  await Promise.all([server.close(), mcpServer.close()]);
});

const connect = (): Promise<number> => send(oauth({ redirect: consentingUser() }), mcpServer.url);

it("URLs without https are not requested for a remote MCP server", async () => {
  const requested: string[] = [];
  const fetch = (url: string): Promise<Response> => {
    requested.push(url);
    return Promise.reject(new Error("must not be requested"));
  };
  const url = new URL("http://mcp.example/mcp");
  const request = { method: "POST", url, signal: new AbortController().signal };
  const auth = oauth({ redirect: consentingUser(), fetch });
  const refused = auth.refused({ ...request, status: 401, headers: {}, sent: {}, attempt: 1 });
  await expect(refused).rejects.toThrow("use https");
  expect(requested).toEqual([]);
});

it("URLs without https are not requested on a remote server, for an MCP server on this machine", async () => {
  mcpServer.metadata = { ...mcpServer.metadata, authorization_servers: ["http://public.example"] };
  await expect(connect()).rejects.toThrow("https is needed");
});

const elsewhere = { method: "POST", url: new URL("https://mcp.example/mcp"), signal: new AbortController().signal };
const refused = (place: string): Promise<boolean> => {
  const headers = { "www-authenticate": `Bearer resource_metadata="${place}"` };
  const auth = oauth({ redirect: consentingUser() });
  return auth.refused({ ...elsewhere, status: 401, headers, sent: {}, attempt: 1 });
};

it.each(
  sampleOf(1, [
    ["https://169.254.169.254/latest/meta-data", "link-local"],
    ["https://10.0.0.1/metadata", "private address"],
    ["https://localhost/metadata", "loopback address"],
    ["https://[::ffff:127.0.0.1]/metadata", "loopback address"],
  ]),
)("URLs in private networks are not requested for a remote MCP server: %s", async (place, why) => {
  await expect(refused(place)).rejects.toThrow(why);
});

it("URLs in private networks are not requested for an MCP server on this machine either", async () => {
  mcpServer.metadata = { ...mcpServer.metadata, authorization_servers: ["https://10.0.0.1"] };
  await expect(connect()).rejects.toThrow("set allowPrivateNetwork to allow it");
  server.metadata["token_endpoint"] = "https://169.254.169.254/token";
  mcpServer.metadata = { ...mcpServer.metadata, authorization_servers: [server.url] };
  await expect(connect()).rejects.toThrow("link-local");
});

it("a server that does not respond has 30 s", async () => {
  let onRequest: () => void = () => undefined;
  const requested = new Promise<void>((resolve) => {
    onRequest = resolve;
  });
  const silent = createServer(() => onRequest());
  await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve));
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  try {
    const url = new URL(`http://127.0.0.1:${(silent.address() as AddressInfo).port}/metadata`);
    let isOver = false;
    const document = new OAuthFetch(url)
      .document([url.href], undefined, () => undefined)
      .finally(() => {
        isOver = true;
      });
    await requested;
    await vi.advanceTimersByTimeAsync(29_999);
    expect(isOver).toBe(false);
    await vi.advanceTimersByTimeAsync(1);
    expect(await document).toEqual({ reasons: [expect.stringContaining("30000 ms")], isAbsent: false });
  } finally {
    vi.useRealTimers();
    silent.closeAllConnections();
    silent.close();
  }
});
