// Entries that lead back to the gateway of their own config.

import { expect, it } from "vitest";
import { checkConfig } from "./load.ts";
import { isOwnEntry, isOwnUrl } from "./self-calls.ts";

const check = async (servers: object, more: object = {}): Promise<string[]> =>
  (await checkConfig(JSON.stringify({ mcpServers: servers, ...more }), "/home/ada/catenary.json")).map(
    ({ severity, message }) => `${severity}: ${message}`,
  );

it.each([
  "http://127.0.0.1:3000/mcp",
  "http://localhost:3000/mcp/work",
  "http://LOCALHOST.:3000/",
  "http://gateway.localhost:3000/mcp",
  "http://[::1]:3000/servers/notes/mcp",
  "http://[::ffff:127.0.0.1]:3000/mcp",
  "http://127.1:3000/mcp",
  "http://2130706433:3000/mcp",
  "http://0.0.0.0:3000/mcp",
])("%s is the address of a gateway on this machine", (url) => {
  for (const host of [undefined, "127.0.0.1", "localhost", "::1", "0.0.0.0", "::"]) {
    expect(isOwnUrl(url, { host })).toBe(true);
  }
  expect(isOwnUrl(url, { port: 3001 })).toBe(false);
});

it("another host, port or protocol is not the gateway", () => {
  expect(isOwnUrl("http://example.com:3000/mcp", {})).toBe(false);
  expect(isOwnUrl("https://localhost:3000/mcp", {})).toBe(false);
  expect(isOwnUrl("http://localhost/mcp", { port: 80 })).toBe(true);
  expect(isOwnUrl("http://10.0.0.7:3000/mcp", { host: "10.0.0.7" })).toBe(true);
  expect(isOwnUrl("http://127.0.0.1:3000/mcp", { host: "10.0.0.7" })).toBe(false);
});

it("a URL is an error at the address of listen", async () => {
  const me = { url: "http://localhost:4000/mcp" };
  expect(await check({ me }, { listen: { port: 4000 } })).toEqual([
    'error: mcpServers.me.url: is the address of this gateway ("listen"), which would call itself',
  ]);
  expect(await check({ me })).toEqual([]);
});

it.each([
  [{ command: "catenary", args: ["up", "catenary.json"] }],
  [{ command: "catenary", args: ["serve"] }],
  [{ command: "catenary", args: ["up", "--http", ":3001"] }],
  [{ command: "npx", args: ["-y", "catenary", "serve", "/home/ada/catenary.json"] }],
  [{ command: "node", args: ["/opt/catenary/dist/cli/main.js", "serve", "../ada/catenary.json"] }],
])("a command that serves the same file is an error: %j", async (me) => {
  expect(await check({ me })).toContain(
    "error: mcpServers.me: starts the gateway of this same file, which would start itself without end",
  );
});

it.each([
  [{ command: "catenary", args: ["serve", "other.json"] }],
  [{ command: "catenary", args: ["serve", "--live", "js"] }],
  [{ command: "catenary", args: ["serve"], cwd: "/" }],
  [{ command: "cat", args: ["serve", "catenary.json"] }],
  [{ command: "catenary", args: ["run", "--", "npx", "notes-mcp", "serve", "catenary.json"] }],
])("a command that serves something else is not: %j", async (me) => {
  expect((await check({ me })).filter((text) => text.startsWith("error"))).toEqual([]);
});

it("`catenary run` starts us with a URL, and another server with a command", () => {
  for (const program of [["catenary"], ["npx", "-y", "catenary"], ["node", "/opt/catenary/dist/cli/main.js"]]) {
    const [command, ...args] = program;
    expect(isOwnEntry({ command, args: [...args, "run", "http://127.0.0.1:3000/mcp"] })).toBe(true);
    expect(isOwnEntry({ command, args: [...args, "serve"] })).toBe(true);
    expect(isOwnEntry({ command, args: [...args, "run", "--", "npx", "notes-mcp"] })).toBe(false);
    expect(isOwnEntry({ command, args: [...args, "run", "--log", "--", "catenary", "serve"] })).toBe(false);
  }
  expect(isOwnEntry({ command: "npx", args: ["notes-mcp"] })).toBe(false);
  expect(isOwnEntry({})).toBe(false);
});
