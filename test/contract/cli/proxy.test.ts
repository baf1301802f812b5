// The commands and the upstreams of a gateway use the proxies of the environment, and certificates of one's own.

import { createServer as createHttpsServer } from "node:https";
import { connect as connectSocket, type AddressInfo } from "node:net";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { createServer, serve } from "catenary";
import { forwardProxy, type ForwardProxy } from "../../support/http/forward-proxy.ts";
import { upstreamCert, upstreamKey } from "../../support/http/tls-certificate.ts";
import { catenary, CLI } from "./cli-process.ts";
import { IS_LONG } from "../../support/thoroughness.ts";

const closing: (() => unknown)[] = [];
let folder = "";
let proxy: ForwardProxy;
/** The port of an MCP server over HTTP, and of the same server over HTTPS. */
let [port, securePort] = [0, 0];

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "catenary-proxy-"));
  writeFileSync(join(folder, "ca.pem"), upstreamCert);
  proxy = await forwardProxy({ password: "me:pw" });
  const server = createServer({ name: "notes", version: "1.0.0" }).tool("echo", {}, () => "hello");
  const serving = await serve(server, { http: { port: 0, allowedHosts: ["upstream.test"] } });
  port = Number(new URL(serving.url ?? "").port);
  const secure = createHttpsServer({ key: upstreamKey, cert: upstreamCert });
  secure.on("secureConnection", (socket) => {
    const inner = connectSocket(port, "127.0.0.1");
    socket.pipe(inner).pipe(socket);
    for (const one of [socket, inner]) one.on("error", () => [socket, inner].forEach((each) => each.destroy()));
  });
  // The requests are for the server behind it.
  secure.removeAllListeners("request");
  await new Promise<void>((resolve) => secure.listen(0, "127.0.0.1", resolve));
  securePort = (secure.address() as AddressInfo).port;
  closing.push(
    () => serving.close(),
    () => proxy.close(),
    () => secure.close(),
  );
});

afterAll(async () => {
  for (const close of closing) await close();
  rmSync(folder, { recursive: true, force: true });
});

const withCredentials = (): string => proxy.url.href.replace("://", "://me:pw@");

it("a command reaches an http server", async () => {
  const url = `http://upstream.test:${port}/mcp`;
  const { code, out, err } = await catenary(["tools", url], "", { env: { http_proxy: withCredentials() } });
  expect({ code, err }).toMatchObject({ code: 0 });
  expect(out).toContain("echo");
  expect(proxy.seen.some((line) => line.startsWith(`POST ${url} Basic `))).toBe(true);
});

it("a command reaches an https server with a certificate of its own", async () => {
  const url = `https://upstream.test:${securePort}/mcp`;
  const env = { HTTPS_PROXY: withCredentials(), NODE_EXTRA_CA_CERTS: join(folder, "ca.pem") };
  const { code, out, err } = await catenary(["call", url, "echo"], "", { env });
  expect({ code, out, err }).toMatchObject({ code: 0, out: "hello\n" });
  expect(proxy.seen.some((line) => line.startsWith(`CONNECT upstream.test:${securePort} Basic `))).toBe(true);
});

it.runIf(IS_LONG)("an error names the proxy, without its password", async () => {
  const env = { HTTP_PROXY: proxy.url.href.replace("://", "://me:wrong-pw@") };
  const { code, err } = await catenary(["tools", `http://upstream.test:${port}/mcp`], "", { env });
  expect(code).toBe(4);
  expect(err).toContain(`The proxy at ${proxy.url.host} (HTTP_PROXY) requires a user name and password (407)`);
  expect(err).not.toContain("wrong-pw");
});

it.runIf(IS_LONG)("an upstream of a gateway is reached, and a server on this machine without the proxy", async () => {
  const before = proxy.seen.length;
  const config = join(folder, "catenary.json");
  const mcpServers = {
    far: { url: `http://upstream.test:${port}/mcp` },
    near: { url: `http://127.0.0.1:${port}/mcp` },
  };
  writeFileSync(config, JSON.stringify({ names: "always", mcpServers }));
  const command = [process.execPath, CLI, "serve", config];
  const { code, out } = await catenary(["tools", "--json", "--", ...command], "", {
    env: { HTTP_PROXY: withCredentials() },
  });
  expect(code).toBe(0);
  expect(out).toMatch(/far.echo/);
  expect(out).toMatch(/near.echo/);
  const seen = proxy.seen.slice(before);
  expect(seen.length).toBeGreaterThan(0);
  expect(seen.filter((line) => !line.includes("upstream.test"))).toEqual([]);
});
