// Which Host and Origin headers are allowed: one long table.

import { describe, expect, it } from "vitest";
import { createGuard, type GuardOptions } from "./guard.ts";
import type { HttpRequest } from "./http-request.ts";

type RequestHeaders = Readonly<Record<string, string | undefined>>;

function request(headers: RequestHeaders, rest: Partial<HttpRequest> = {}): HttpRequest {
  return { method: "POST", path: "/mcp", query: "", headers, ambiguous: false, ...rest } as HttpRequest;
}

/** The status: 200 if the request is allowed. */
function verdict(options: GuardOptions, headers: RequestHeaders): number {
  const guard = createGuard(options);
  const first = guard.check(request(headers))?.status ?? 200;
  // Remembered values must not change the result.
  expect(guard.check(request(headers))?.status ?? 200).toBe(first);
  return first;
}

type Row = readonly [host: string | undefined, origin: string | undefined, status: number];

const LOOPBACK_ROWS: readonly Row[] = [
  // Loopback names.
  ["localhost", undefined, 200],
  ["localhost:3000", undefined, 200],
  ["localhost:1", undefined, 200],
  ["localhost:65535", undefined, 200],
  ["LOCALHOST", undefined, 200],
  ["LocalHost:3000", undefined, 200],
  ["127.0.0.1", undefined, 200],
  ["127.0.0.1:3000", undefined, 200],
  ["[::1]", undefined, 200],
  ["[::1]:3000", undefined, 200],
  // Other spellings of loopback addresses, which no browser sends.
  ["localhost.", undefined, 403],
  ["localhost.:3000", undefined, 403],
  ["127.1", undefined, 403],
  ["127.0.1", undefined, 403],
  ["127.0.0.2", undefined, 403],
  ["2130706433", undefined, 403],
  ["0x7f000001", undefined, 403],
  ["0177.0.0.1", undefined, 403],
  ["127.0.0.1.", undefined, 403],
  ["[::ffff:127.0.0.1]", undefined, 403],
  ["[::ffff:7f00:1]", undefined, 403],
  ["[0:0:0:0:0:0:0:1]", undefined, 403],
  ["[::]", undefined, 403],
  ["0.0.0.0", undefined, 403],
  ["0.0.0.0:3000", undefined, 403],
  ["0", undefined, 403],
  // Names that resolve to this machine, and names that only look so.
  ["evil.example", undefined, 403],
  ["evil.example:3000", undefined, 403],
  ["127.0.0.1.nip.io", undefined, 403],
  ["127.0.0.1.nip.io:3000", undefined, 403],
  ["localtest.me", undefined, 403],
  ["localhost.evil.example", undefined, 403],
  ["evil.localhost", undefined, 403],
  ["notlocalhost", undefined, 403],
  ["localhostx", undefined, 403],
  ["xlocalhost:3000", undefined, 403],
  ["localhost-evil.example", undefined, 403],
  ["192.168.1.10", undefined, 403],
  ["10.0.0.1:3000", undefined, 403],
  ["169.254.169.254", undefined, 403],
  ["xn--lcalhost-4bc", undefined, 403],
  ["_service.local", undefined, 403],
  // Not valid hosts.
  [undefined, undefined, 400],
  ["", undefined, 400],
  [" ", undefined, 400],
  [":3000", undefined, 400],
  ["localhost:", undefined, 400],
  ["localhost:x", undefined, 400],
  ["localhost:-1", undefined, 400],
  ["localhost:65536", undefined, 400],
  ["localhost:300000", undefined, 400],
  ["localhost:3000:3000", undefined, 400],
  ["localhost localhost", undefined, 400],
  ["localhost, evil.example", undefined, 400],
  ["localhost,localhost", undefined, 400],
  ["localhost/", undefined, 400],
  ["localhost/mcp", undefined, 400],
  ["localhost?x", undefined, 400],
  ["localhost#x", undefined, 400],
  ["localhost@evil.example", undefined, 400],
  ["evil.example@localhost", undefined, 400],
  ["user:pass@localhost", undefined, 400],
  ["http://localhost", undefined, 400],
  ["localhost\\evil.example", undefined, 400],
  ["localhost%00", undefined, 400],
  ["localhost%2eevil", undefined, 400],
  ["l\u00f6calhost", undefined, 400],
  ["\uff4cocalhost", undefined, 400],
  ["localhost\t", undefined, 400],
  ["localhost\0", undefined, 400],
  ["[::1", undefined, 400],
  ["::1", undefined, 400],
  ["::1:3000", undefined, 400],
  ["[::1]3000", undefined, 400],
  ["[::1%25lo]", undefined, 400],
  ["[]", undefined, 400],
  ["[localhost]", undefined, 400],
  ["*", undefined, 400],
  [".localhost", undefined, 400],
  ["-localhost", undefined, 400],
  ["a".repeat(300), undefined, 400],
  // Pages on this machine.
  ["localhost:3000", "http://localhost:3000", 200],
  ["localhost:3000", "http://localhost:6274", 200],
  ["localhost:3000", "http://localhost", 200],
  ["localhost:3000", "https://localhost", 200],
  ["localhost:3000", "https://localhost:8443", 200],
  ["localhost:3000", "http://127.0.0.1:6274", 200],
  ["127.0.0.1:3000", "http://localhost:6274", 200],
  ["127.0.0.1:3000", "http://[::1]:6274", 200],
  ["[::1]:3000", "http://[::1]:3000", 200],
  // Pages elsewhere, and invalid origins.
  ["localhost:3000", "http://evil.example", 403],
  ["localhost:3000", "https://evil.example", 403],
  ["localhost:3000", "http://evil.example:3000", 403],
  ["localhost:3000", "null", 403],
  ["localhost:3000", "NULL", 403],
  ["localhost:3000", "", 403],
  ["localhost:3000", "*", 403],
  ["localhost:3000", "localhost", 403],
  ["localhost:3000", "localhost:3000", 403],
  ["localhost:3000", "//localhost:3000", 403],
  ["localhost:3000", "http://", 403],
  ["localhost:3000", "http:localhost", 403],
  ["localhost:3000", "http:/localhost", 403],
  ["localhost:3000", "http:///localhost", 403],
  ["localhost:3000", "http://localhost:3000/", 403],
  ["localhost:3000", "http://localhost:3000/mcp", 403],
  ["localhost:3000", "http://localhost?x", 403],
  ["localhost:3000", "http://localhost#x", 403],
  ["localhost:3000", "http://localhost@evil.example", 403],
  ["localhost:3000", "http://localhost:3000@evil.example", 403],
  ["localhost:3000", "http://user@localhost:3000", 403],
  ["localhost:3000", "http://user:pass@localhost:3000", 403],
  ["localhost:3000", "http://@localhost:3000", 403],
  ["localhost:3000", "http://localhost:", 403],
  ["localhost:3000", "http://localhost:80", 403],
  ["localhost:3000", "https://localhost:443", 403],
  ["localhost:3000", "http://localhost:03000", 403],
  ["localhost:3000", "http://localhost:65536", 403],
  ["localhost:3000", "HTTP://localhost:3000", 403],
  ["localhost:3000", "http://LOCALHOST:3000", 403],
  ["localhost:3000", "http://localhost.", 403],
  ["localhost:3000", "http://localhost.:3000", 403],
  ["localhost:3000", "http://127.1", 403],
  ["localhost:3000", "http://0x7f000001", 403],
  ["localhost:3000", "http://2130706433", 403],
  ["localhost:3000", "http://127.0.0.2", 403],
  ["localhost:3000", "http://0.0.0.0:3000", 403],
  ["localhost:3000", "http://[::ffff:127.0.0.1]", 403],
  ["localhost:3000", "http://[0:0:0:0:0:0:0:1]", 403],
  ["localhost:3000", "http://127.0.0.1.nip.io", 403],
  ["localhost:3000", "http://localhost.evil.example", 403],
  ["localhost:3000", "http://evil.example/localhost", 403],
  ["localhost:3000", "http://evil.example#localhost", 403],
  ["localhost:3000", "http://localhost\\@evil.example", 403],
  ["localhost:3000", "http://localhost evil.example", 403],
  ["localhost:3000", "http://localhost:3000 http://evil.example", 403],
  ["localhost:3000", "http://localhost:3000, http://evil.example", 403],
  ["localhost:3000", "http://localhost,http://localhost", 403],
  ["localhost:3000", " http://localhost:3000", 403],
  ["localhost:3000", "http://localhost:3000 ", 403],
  ["localhost:3000", "http://localhost\t", 403],
  ["localhost:3000", "http://l\u00f6calhost", 403],
  ["localhost:3000", "http://\uff4cocalhost", 403],
  ["localhost:3000", "ftp://localhost", 403],
  ["localhost:3000", "ws://localhost:3000", 403],
  ["localhost:3000", "file://", 403],
  ["localhost:3000", "file:///etc/passwd", 403],
  ["localhost:3000", "data:text/html,x", 403],
  ["localhost:3000", "blob:http://localhost:3000", 403],
  ["localhost:3000", "chrome-extension://abcdef", 403],
  ["localhost:3000", "vscode-webview://abcdef", 403],
  // An allowed origin does not make up for a forbidden host.
  ["evil.example", "http://localhost:3000", 403],
  ["evil.example:3000", "http://evil.example:3000", 403],
  [undefined, "http://localhost:3000", 400],
];

it("has a table of sufficient size", () => {
  expect(LOOPBACK_ROWS.length).toBeGreaterThanOrEqual(120);
});

describe.each([undefined, "127.0.0.1", "localhost", "::1"])("bound to %s", (host) => {
  it.each(LOOPBACK_ROWS)("a server on loopback: Host %j, Origin %j: %i", (name, origin, status) => {
    expect(verdict({ host }, { host: name, origin })).toBe(status);
  });
});

it("allows its own address as well", () => {
  expect(verdict({ host: "127.0.0.2" }, { host: "127.0.0.2:80" })).toBe(200);
  expect(verdict({ host: "127.0.0.2" }, { host: "localhost" })).toBe(200);
  expect(verdict({ host: "127.0.0.2" }, { host: "127.0.0.3" })).toBe(403);
});

const options: GuardOptions = {
  host: "127.0.0.1",
  allowedHosts: ["mcp.Example.com", "exact.example:8443", "::2", "[::3]:80", "b\u00fccher.example"],
  allowedOrigins: ["https://app.example.com", "vscode-webview://abc123", "http://pages.example:8080"],
};
const rows: readonly Row[] = [
  ["mcp.example.com", undefined, 200],
  ["MCP.example.com:443", undefined, 200],
  ["mcp.example.com.", undefined, 403],
  ["x.mcp.example.com", undefined, 403],
  ["exact.example:8443", undefined, 200],
  ["EXACT.example:8443", undefined, 200],
  ["exact.example", undefined, 403],
  ["exact.example:8444", undefined, 403],
  ["[::2]:9", undefined, 200],
  ["[::3]:80", undefined, 200],
  ["[::3]", undefined, 403],
  ["xn--bcher-kva.example", undefined, 200],
  ["localhost:3000", undefined, 200],
  ["localhost:3000", "https://mcp.example.com", 200],
  ["localhost:3000", "https://exact.example:8443", 200],
  ["localhost:3000", "https://exact.example", 403],
  ["localhost:3000", "https://app.example.com", 200],
  ["localhost:3000", "http://app.example.com", 403],
  ["localhost:3000", "https://app.example.com:8443", 403],
  ["localhost:3000", "https://app.example.com/", 403],
  ["localhost:3000", "https://APP.example.com", 403],
  ["localhost:3000", "http://pages.example:8080", 200],
  ["localhost:3000", "vscode-webview://abc123", 200],
  ["localhost:3000", "vscode-webview://abc124", 403],
  ["app.example.com", "https://app.example.com", 403],
];
it.each(rows)("a server with allowed hosts and origins: Host %j, Origin %j: %i", (host, origin, status) => {
  expect(verdict(options, { host, origin })).toBe(status);
});

const noHosts = [
  "",
  "*",
  "*.",
  "*.com",
  "*x.example.com",
  "a.*.example.com",
  "*.example.com:8443",
  "*.10.0.0.1",
  "http://x.example",
  "x.example/",
  "a b",
  "x:y",
  "x:99999",
  "u@x.example",
  "[::1",
];
it.each(noHosts)("a server with allowed hosts and origins refuses %j as a host", (entry) => {
  expect(() => createGuard({ allowedHosts: [entry] })).toThrow(
    `allowedHosts (--allow-host): "${entry}" is not a valid host`,
  );
});

const noOrigins = [
  "",
  "*",
  "null",
  "app.example.com",
  "https://app.example.com/",
  "https://*.example.com",
  "https://u@x.example",
];
it.each(noOrigins)("a server with allowed hosts and origins refuses %j as an origin", (entry) => {
  expect(() => createGuard({ allowedOrigins: [entry] })).toThrow(
    `allowedOrigins (--allow-origin): "${entry}" is not a valid origin`,
  );
});

it.each(["notes.example.com", "", null, 7, {}, [7], [undefined]])(
  "a server with allowed hosts and origins refuses %j instead of an array of names",
  (given) => {
    const said = (option: string): string => `${option}) must be an array of strings, such as ["`;
    expect(() => createGuard({ allowedHosts: given as never })).toThrow(said("allowedHosts (--allow-host"));
    expect(() => createGuard({ allowedOrigins: given as never })).toThrow(said("allowedOrigins (--allow-origin"));
    expect(() => createGuard({ allowedHosts: given as never })).toThrow(TypeError);
  },
);

describe("bound to another address", () => {
  const rows: readonly (readonly [bound: string, ...Row])[] = [
    ["192.168.1.10", "192.168.1.10", undefined, 200],
    ["192.168.1.10", "192.168.1.10:3000", undefined, 200],
    ["192.168.1.10", "localhost:3000", undefined, 403],
    ["192.168.1.10", "192.168.1.11", undefined, 403],
    ["192.168.1.10", "192.168.1.10:3000", "http://192.168.1.10:3000", 200],
    ["192.168.1.10", "192.168.1.10:3000", "http://localhost:3000", 403],
    ["fe80::1%eth0", "[fe80::1]:3000", undefined, 200],
    ["FD00:0:0::1", "[fd00::1]", undefined, 200],
    ["[fd00::1]", "[fd00::1]", undefined, 200],
    ["Build.Local", "build.local:3000", undefined, 200],
    ["Build.Local", "localhost", undefined, 403],
  ];
  it.each(rows)("bound to another address bound to %s: Host %j, Origin %j: %i", (bound, host, origin, status) => {
    expect(verdict({ host: bound }, { host, origin })).toBe(status);
  });
});

describe.each(["0.0.0.0", "::", "[::]", ""])("bound to all addresses, %j", (bound) => {
  const open: readonly Row[] = [
    ["anything.example", undefined, 200],
    ["192.168.1.10:3000", undefined, 200],
    ["bad host", undefined, 400],
    [undefined, undefined, 400],
    // The owner of a name can point it at this machine, so pages with a name may not call.
    ["a.example:3000", "http://a.example:3000", 403],
    ["A.example:3000", "http://a.example:3000", 403],
    ["a.example", "https://a.example", 403],
    ["a.example:443", "https://a.example", 403],
    ["192.0.2.7:3000", "http://192.0.2.7:3000", 200],
    ["192.0.2.7", "https://192.0.2.7", 200],
    ["192.0.2.7:443", "https://192.0.2.7", 200],
    ["[2001:db8::7]:3000", "http://[2001:db8::7]:3000", 200],
    ["192.0.2.7:3000", "http://192.0.2.7", 403],
    ["192.0.2.7:3000", "http://192.0.2.8:3000", 403],
    ["a.example:3000", "http://a.example", 403],
    ["a.example:3000", "http://b.example:3000", 403],
    ["a.example:3000", "http://localhost:3000", 403],
    ["localhost:3000", "http://localhost:6274", 200],
    ["127.0.0.1:3000", "http://localhost:6274", 200],
    ["localhost:3000", "http://evil.example", 403],
    ["localhost:3000", "null", 403],
  ];
  it.each(open)("a server on all addresses with no names given: Host %j, Origin %j: %i", (host, origin, status) => {
    expect(verdict({ host: bound }, { host, origin })).toBe(status);
  });

  const named: readonly Row[] = [
    ["mcp.example", undefined, 200],
    ["localhost:3000", undefined, 200],
    ["other.example", undefined, 403],
    ["192.168.1.10", undefined, 403],
    ["mcp.example", "https://mcp.example", 200],
    ["mcp.example", "http://localhost:6274", 200],
    ["mcp.example", "https://other.example", 403],
  ];
  it.each(named)("a server on all addresses with a name given: Host %j, Origin %j: %i", (host, origin, status) => {
    expect(verdict({ host: bound, allowedHosts: ["mcp.example"] }, { host, origin })).toBe(status);
  });

  it("a server on all addresses allows only loopback names if the list is empty", () => {
    expect(verdict({ host: bound, allowedHosts: [] }, { host: "a.example" })).toBe(403);
    expect(verdict({ host: bound, allowedHosts: [] }, { host: "localhost" })).toBe(200);
  });
});

describe("Sec-Fetch-Site", () => {
  const rows: readonly (readonly [site: string, origin: string | undefined, status: number])[] = [
    ["cross-site", undefined, 403],
    ["same-origin", undefined, 200],
    ["same-site", undefined, 200],
    ["none", undefined, 200],
    ["cross-site", "http://127.0.0.1:6274", 200],
    ["cross-site", "http://evil.example", 403],
    ["same-origin", "http://evil.example", 403],
  ];
  it.each(rows)("Sec-Fetch-Site: Sec-Fetch-Site %s, Origin %j: %i", (site, origin, status) => {
    expect(verdict({}, { host: "localhost:3000", origin, "sec-fetch-site": site })).toBe(status);
  });

  it("Sec-Fetch-Site refuses an ambiguous request", () => {
    expect(createGuard().check(request({ host: "localhost" }, { isAmbiguous: true }))?.status).toBe(400);
  });
});

describe("a pattern", () => {
  const options: GuardOptions = { allowedHosts: ["*.Vercel.app", "mcp.example.com"] };
  const rows: readonly Row[] = [
    ["app-git-x.vercel.app", undefined, 200],
    ["a.b.vercel.app:8443", undefined, 200],
    ["APP.VERCEL.APP", undefined, 200],
    ["vercel.app", undefined, 403],
    [".vercel.app", undefined, 400],
    ["evilvercel.app", undefined, 403],
    ["app.vercel.app.evil.example", undefined, 403],
    // A page may call its own host, and no page of another subdomain may.
    ["app.vercel.app", "https://app.vercel.app", 200],
    ["app.vercel.app", "https://evil.vercel.app", 403],
    ["mcp.example.com", "https://app.vercel.app", 403],
    ["app.vercel.app", "https://mcp.example.com", 200],
  ];
  it.each(rows)("a pattern: Host %j, Origin %j: %i", (host, origin, status) => {
    expect(verdict(options, { host, origin })).toBe(status);
  });
});

it("an error names the option that would allow it", () => {
  const guard = createGuard();
  expect(guard.check(request({ host: "evil.example:80" }))?.message).toBe(
    'Host "evil.example:80" is not allowed. To allow it, add it to allowedHosts (--allow-host).',
  );
  expect(guard.check(request({ host: "localhost", origin: "https://evil.example" }))?.message).toBe(
    'Origin "https://evil.example" is not allowed. To allow it, add it to allowedOrigins (--allow-origin).',
  );
});

it("an error does not repeat invalid values, and shortens long ones", () => {
  const guard = createGuard();
  expect(guard.check(request({ host: "<script>" }))?.message).toBe("The Host header is not a valid host.");
  expect(guard.check(request({ host: "localhost", origin: "<script>" }))?.message).toBe(
    "The Origin header is not a valid origin.",
  );
  expect(guard.check(request({ host: "a".repeat(250) }))?.message).toContain(`"${"a".repeat(80)}..."`);
});
