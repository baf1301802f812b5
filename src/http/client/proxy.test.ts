// Proxies of the environment: which URLs need one, and requests through a real one.

import { createServer } from "node:http";
import { createServer as createHttpsServer } from "node:https";
import { createServer as createSilentServer } from "node:net";
import { afterEach, expect, it } from "vitest";
import { forwardProxy, type ForwardProxy } from "../../../test/support/http/forward-proxy.ts";
import { closeAll, closeLater, failure, get, listen } from "../../../test/support/http/local-servers.ts";
import { upstreamCert, upstreamKey } from "../../../test/support/http/tls-certificate.ts";
import { networkGuard } from "./network-guard.ts";
import { nodeRequester, type NodeRequesterOptions } from "./node-requester.ts";
import { proxyFor } from "./proxy.ts";
import type { Requester } from "./requester.ts";

const VARIABLES = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"];
const ALL = VARIABLES.flatMap((name) => [name, name.toLowerCase()]);
const before = Object.fromEntries(ALL.map((name) => [name, process.env[name]]));
afterEach(async () => {
  for (const name of ALL) {
    if (before[name] === undefined) delete process.env[name];
    else process.env[name] = before[name];
  }
  await closeAll();
});

const proxy = { HTTPS_PROXY: "http://secure:1", HTTP_PROXY: "plain:2", ALL_PROXY: "http://all:3" };
it.each([
  ["https://example.com/mcp", proxy, "http://secure:1/"],
  ["http://example.com/mcp", proxy, "http://plain:2/"],
  ["http://example.com/mcp", { ALL_PROXY: "http://all:3" }, "http://all:3/"],
  ["https://example.com/mcp", { ...proxy, https_proxy: "http://lower:4" }, "http://lower:4/"],
  ["http://example.com/mcp", { HTTP_PROXY: "http://a:1", REQUEST_METHOD: "GET" }, undefined],
  ["https://example.com/mcp", { HTTPS_PROXY: "" }, undefined],
  ["https://example.com/mcp", {}, undefined],
  // Never for this machine.
  ["http://localhost:3000/mcp", proxy, undefined],
  ["https://a.localhost/mcp", proxy, undefined],
  ["http://127.1.2.3:3000/mcp", proxy, undefined],
  ["http://[::1]/mcp", proxy, undefined],
])("the proxy for %s with %j is %s", (url, env, expected) => {
  expect(proxyFor(new URL(url), env)?.url.href).toBe(expected);
});

it.each([
  ["https://example.com/", "example.com", true],
  ["https://api.example.com/", "example.com", true],
  ["https://api.example.com/", ".example.com", true],
  ["https://api.example.com/", "*.example.com", true],
  ["https://myexample.com/", "example.com", false],
  ["https://EXAMPLE.com./", "Example.Com", true],
  ["https://example.com/", "other.com, example.com", true],
  ["https://example.com/", "other.com example.com", true],
  ["https://example.com/", "example.com:443", true],
  ["https://example.com:8443/", "example.com:443", false],
  ["https://example.com/", "*", true],
  ["https://example.com/", "", false],
  ["https://10.1.2.3/", "10.0.0.0/8", true],
  ["https://11.1.2.3/", "10.0.0.0/8", false],
  ["https://10.1.2.3/", "10.1.2.3", true],
  ["https://[fd00::1]/", "fd00::/8", true],
  ["https://[fd00::1]/", "fd00::1", true],
  ["https://[fd00::1]:8443/", "[fd00::1]:8443", true],
  ["https://example.com/", "not/a/range, ,:, :80, [", false],
])("the proxy of %s with NO_PROXY=%s: none is used: %s", (url, list, isDirect) => {
  expect(proxyFor(new URL(url), { ...proxy, NO_PROXY: list }) === undefined).toBe(isDirect);
});

it("the proxy of an unsupported kind is an error that does not show its password", () => {
  const url = new URL("https://example.com/");
  expect(() => proxyFor(url, { HTTPS_PROXY: "socks5://me:s3cret@a:1" })).toThrow(
    "HTTPS_PROXY names a proxy of the kind socks5:, which is not supported; write an http:// or https:// proxy there, or add example.com to NO_PROXY",
  );
  expect(() => proxyFor(url, { HTTPS_PROXY: "http://me:s3cret@[" })).toThrow(
    /^HTTPS_PROXY is not a valid URL; write http:\/\/HOST:PORT$/,
  );
});

function requesterFor(options?: NodeRequesterOptions): Requester {
  const requester = nodeRequester(options);
  closeLater(() => requester.close());
  return requester;
}

/** Starts a proxy and names it in the environment. */
async function useProxy(
  variable: string,
  options?: Parameters<typeof forwardProxy>[0],
  credentials = "",
): Promise<ForwardProxy> {
  const proxy = await forwardProxy(options);
  closeLater(() => proxy.close());
  process.env[variable] = proxy.url.href.replace("://", `://${credentials}`);
  return proxy;
}

async function plainServer(): Promise<URL> {
  const url = await listen(createServer((request, response) => response.end(`${request.url} ${request.headers.host}`)));
  url.hostname = "upstream.test";
  return url;
}

async function secureServer(): Promise<URL> {
  const options = { key: upstreamKey, cert: upstreamCert };
  const url = await listen(
    createHttpsServer(options, (request, response) => response.end(`safe ${request.url}`)),
    "https",
  );
  url.hostname = "upstream.test";
  return url;
}

it("a request to an http server has its whole URL, and its connection is used again", async () => {
  const proxy = await useProxy("HTTP_PROXY", { password: "me:s3:cret" }, "me:s3%3Acret@");
  const url = await plainServer();
  const requester = requesterFor();
  for (let count = 0; count < 2; count += 1) {
    expect(await (await requester(get(url))).text(100)).toBe(`/mcp ${url.host}`);
  }
  const credentials = Buffer.from("me:s3:cret").toString("base64");
  expect(proxy.seen).toEqual(Array(2).fill(`GET ${url.href} Basic ${credentials}`));
});

it("a request to an https server goes through a tunnel, which is used again", async () => {
  const proxy = await useProxy("https_proxy", { password: "me:pw" }, "me:pw@");
  const url = await secureServer();
  const requester = requesterFor({ ca: upstreamCert });
  for (let count = 0; count < 2; count += 1) {
    expect(await (await requester(get(url))).text(100)).toBe("safe /mcp");
  }
  expect(proxy.seen).toEqual([`CONNECT ${url.host} Basic ${Buffer.from("me:pw").toString("base64")}`]);
});

it("a request still checks the certificate of the server", async () => {
  await useProxy("HTTPS_PROXY");
  const error = await failure(requesterFor()(get(await secureServer())));
  expect(error).toMatchObject({ kind: "refused", mayHaveRun: false });
  expect(error.message).toMatch(/^No secure connection to upstream.test.*SELF_SIGNED/);
});

it("a request to this machine, or to a host in NO_PROXY, does not use it", async () => {
  const proxy = await useProxy("HTTP_PROXY");
  const url = await plainServer();
  process.env["NO_PROXY"] = "upstream.test";
  expect((await failure(requesterFor()(get(url)))).message).toMatch(/upstream.test was not found/);
  url.hostname = "127.0.0.1";
  expect(await (await requesterFor()(get(url))).text(100)).toBe(`/mcp ${url.host}`);
  expect(proxy.seen).toEqual([]);
});

it.each([
  ["HTTP_PROXY", plainServer],
  ["HTTPS_PROXY", secureServer],
])("a request without the password that %s needs has not run", async (variable, server) => {
  const proxy = await useProxy(variable, { password: "me:pw" });
  const error = await failure(requesterFor({ ca: upstreamCert })(get(await server())));
  expect(error).toMatchObject({ kind: "refused", status: 407, mayHaveRun: false });
  expect(error.message).toBe(
    `The proxy at ${proxy.url.host} (${variable}) requires a user name and password (407); write http://NAME:PASSWORD@HOST:PORT in ${variable}`,
  );
});

it.each([
  ["HTTP_PROXY", plainServer],
  ["HTTPS_PROXY", secureServer],
])("a request through a proxy in %s that is gone has not run", async (variable, server) => {
  const proxy = await useProxy(variable, {}, "me:s3cret@");
  await proxy.close();
  const error = await failure(requesterFor()(get(await server())));
  expect(error).toMatchObject({ kind: "refused", mayHaveRun: false });
  expect(error.message).toBe(
    `The proxy at ${proxy.url.host} (${variable}) cannot be reached (ECONNREFUSED); check ${variable}`,
  );
});

it("a request that the proxy refuses has not run", async () => {
  const proxy = await useProxy("HTTPS_PROXY", { status: 403 });
  const url = await secureServer();
  const error = await failure(requesterFor()(get(url)));
  expect(error).toMatchObject({ kind: "refused", status: 403, mayHaveRun: false });
  expect(error.message).toContain(
    `The proxy at ${proxy.url.host} (HTTPS_PROXY) refused to connect to ${url.host} (403)`,
  );
});

it("a request can be cancelled while the tunnel is opened", async () => {
  const silent = await listen(createSilentServer());
  process.env["HTTPS_PROXY"] = `http://${silent.host}`;
  const ending = new AbortController();
  const sent = requesterFor()({ ...get(new URL("https://upstream.test/mcp")), signal: ending.signal });
  setImmediate(() => ending.abort());
  expect(await failure(sent)).toMatchObject({ kind: "cancelled", mayHaveRun: false });
  const late = await failure(requesterFor({ connectTimeoutMs: 20 })(get(new URL("https://upstream.test/mcp"))));
  expect(late).toMatchObject({ kind: "timeout", mayHaveRun: false });
  expect(late.message).toContain("did not open a connection to upstream.test:443 within 20 ms");
});

it("the network guard refuses a name that means a private address here, although the proxy resolves names", async () => {
  const proxy = await useProxy("HTTPS_PROXY");
  const url = await secureServer();
  const guarded = (address: string | undefined): Requester => {
    const guard = networkGuard({
      target: new URL("https://example.com/mcp"),
      lookup: (_name, _options, callback) => {
        if (address === undefined) callback(Object.assign(new Error("no"), { code: "ENOTFOUND" }), []);
        else callback(null, [{ address, family: 4 }]);
      },
    });
    return requesterFor({ ca: upstreamCert, lookup: guard.lookup });
  };
  const error = await failure(guarded("10.0.0.1")(get(url)));
  expect(error.message).toMatch(/^Refused to connect to upstream.test \(10\.0\.0\.1\): it is a private address/);
  expect(proxy.seen).toEqual([]);
  expect(await (await guarded("93.184.216.34")(get(url))).text(100)).toBe("safe /mcp");
  // A name that only the proxy can resolve is left to the proxy.
  expect(await (await guarded(undefined)(get(url))).text(100)).toBe("safe /mcp");
  expect(proxy.seen).toHaveLength(2);
});
