// The banner and the warnings of an HTTP server, and the key of its sessions. Nothing is listened on here.

import { chmodSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, it, vi } from "vitest";
import { bannerLines, sessionKey, warningLines } from "./start.ts";

afterEach(() => {
  vi.unstubAllEnvs();
  vi.restoreAllMocks();
});

it("the key of sessions is the same for all processes of a user, and only this user can read it", async () => {
  const home = mkdtempSync(join(tmpdir(), "catenary-key-"));
  vi.stubEnv("XDG_STATE_HOME", home);
  const keys = await Promise.all([sessionKey(), sessionKey(), sessionKey()]);
  const file = join(home, "catenary", "session.key");
  expect(readFileSync(file, "utf8")).toMatch(/^[\w-]{43}$/);
  expect(new Set([...keys, await sessionKey()])).toEqual(new Set([readFileSync(file, "utf8")]));
  expect(readdirSync(join(home, "catenary"))).toEqual(["session.key"]);
  expect(statSync(file).mode & 0o777).toBe(0o600);
  const told = vi.spyOn(process.stderr, "write").mockReturnValue(true);
  chmodSync(file, 0o644);
  expect(await sessionKey()).toBeUndefined();
  expect(String(told.mock.calls)).toContain("sessions will not survive a restart");
  rmSync(home, { recursive: true });
});

const banner = (host: string): Parameters<typeof bannerLines>[0] => ({
  url: "http://127.0.0.1:3000/mcp",
  source: "./notes.js",
  name: "notes",
  host,
});

it("the banner shows the URL, and an entry for a client's config", () => {
  const [address = "", entry = ""] = bannerLines(banner("127.0.0.1"));
  expect(address).toBe("Serving ./notes.js at http://127.0.0.1:3000/mcp");
  expect(JSON.parse(entry.slice(entry.indexOf("{")))).toEqual({
    mcpServers: { notes: { type: "http", url: "http://127.0.0.1:3000/mcp" } },
  });
});

it("the banner says that a token is required, without showing it", () => {
  const [, entry = "", note] = bannerLines({ ...banner("0.0.0.0"), tokenIn: "catenary.json" });
  expect(entry).toContain('"headers":{"Authorization":"Bearer TOKEN"}');
  expect(note).toBe("Replace TOKEN by the value of listen.token in catenary.json.");
  expect(warningLines({ host: "0.0.0.0", tokenIn: "catenary.json" })).toEqual([]);
  expect(warningLines({ host: "127.0.0.1", howToRequire: "--require-token" })).toEqual([
    "No token is required: every program on this machine can call these tools. To require one: --require-token",
  ]);
});

it("the banner shows a generated token", () => {
  const generated = { ...banner("127.0.0.1"), token: "made-token", evaluatesCode: true };
  const [, entry = "", note] = bannerLines(generated);
  expect(JSON.parse(entry.slice(entry.indexOf("{")))).toEqual({
    mcpServers: {
      notes: {
        type: "http",
        url: "http://127.0.0.1:3000/mcp",
        headers: { Authorization: "Bearer made-token" },
      },
    },
  });
  expect(note).toBe("This token is valid until you stop the server. Anyone who has it can run code on this machine.");
  const [, , plain] = bannerLines({ ...generated, evaluatesCode: false });
  expect(plain).toBe("This token is valid until you stop the server. Anyone who has it can call these tools.");
  const [, , kept] = bannerLines({ ...generated, isTokenKept: true });
  expect(kept).toContain("The token stays the same. Anyone");
  expect(warningLines(generated)).toEqual([]);
});

it("the banner lists all addresses if it listens on all", () => {
  const of = (ip: string, more: object = {}) =>
    ({ address: ip, family: "IPv4", netmask: "", mac: "", cidr: null, internal: false, ...more }) as const;
  const six = { family: "IPv6", scopeid: 0 };
  const found = {
    lo: [of("127.0.0.1", { internal: true })],
    eth0: [of("192.0.2.2"), of("2001:db8::2", six), of("fe80::2", { ...six, scopeid: 2 })],
  } as Parameters<typeof bannerLines>[1];
  const serving = "Serving ./notes.js at http://127.0.0.1:3000/mcp";
  const all = `${serving}, and on all other addresses of this machine`;
  expect(bannerLines(banner("0.0.0.0"), found)[0]).toBe(`${all}: http://192.0.2.2:3000/mcp`);
  expect(bannerLines(banner("::"), found)[0]).toBe(`${all}: http://192.0.2.2:3000/mcp, http://[2001:db8::2]:3000/mcp`);
  expect(bannerLines(banner("0.0.0.0"), {})[0]).toBe(all);
  expect(bannerLines(banner("192.0.2.2"), found)[0]).toBe(serving);
  const only = (...allowedHosts: string[]) => bannerLines({ ...banner("0.0.0.0"), allowedHosts }, found)[0];
  expect(only("a.example", "192.0.2.2")).toBe(
    `${serving}, and from the network only as a.example, 192.0.2.2 (allowedHosts)`,
  );
  expect(only()).toBe(serving);
});

it.each([{ token: "made-token" }, { tokenIn: "catenary.json" }])(
  "the banner warns if code can be run from the network, also with %o",
  (token) => {
    const text = warningLines({ host: "0.0.0.0", evaluatesCode: true, ...token }).join(" ");
    expect(text).toContain("0.0.0.0 can be reached from the network, and anyone who has the token can run code as you");
    expect(text).toContain("The token is sent unencrypted");
    expect(text).not.toContain("made-token");
    expect(warningLines({ host: "127.0.0.1", evaluatesCode: true, ...token })).toEqual([]);
  },
);

it.each([
  ["127.0.0.1", "every program on this machine"],
  ["0.0.0.0", "everyone who can reach 0.0.0.0"],
])("the banner warns on %s if no token is required to run code", (host, callers) => {
  const text = warningLines({ host, isOpen: true }).join(" ");
  expect(text).toContain(`no token is required, so ${callers} can run code as you`);
  expect(text).toContain("Remove --no-token");
});

it.each(["127.0.0.1", "127.8.8.8", "localhost", "::1"])("the banner has no warning on %s", (host) => {
  expect(warningLines(banner(host))).toEqual([]);
});

it.each(["0.0.0.0", "::", "192.168.0.7", "example.com", "127.0.0.1.example.com"])("the banner warns on %s", (host) => {
  const text = warningLines(banner(host)).join(" ");
  expect(text).toContain(`${host} can be reached from the network`);
  expect(text).toContain("callers are not authenticated");
  expect(text).toContain("bearer");
  expect(text).toContain('{"listen": {"token": "${MY_TOKEN}"}}');
});
