// Mistakes in the options of servers and their messages, and the check for handlers that evaluate code.

import { describe, expect, it, vi } from "vitest";
import { chain } from "./chain/chain.ts";
import type { Handler } from "./core/handler.ts";
import { EVALUATES_CODE } from "./core/handler-marks.ts";
import { takeStdio } from "./core/process-stdio.ts";
import { fetchHandler, nodeHandler } from "./http.ts";
import * as main from "./index.ts";
import { serve } from "./serve.ts";
import { bearer } from "./auth/bearer/bearer.ts";

const handler: Handler = async () => ({});
const attempt = (options: unknown): Promise<unknown> => serve(handler, options as never);

async function refused(options: unknown): Promise<string> {
  const error: unknown = await attempt(options).then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(TypeError);
  return (error as Error).message;
}

it.each([
  [3134, "3134"],
  [true, "true"],
  [false, "false"],
  [null, "null"],
  ["127.0.0.1:3000", '"127.0.0.1:3000"'],
  [[], "an array"],
])("serve() refuses %j as the option http", async (http, shown) => {
  expect(await refused({ http })).toBe(`serve(): \`http\` must be an object, such as { port: 3000 }; got ${shown}`);
});

it.each(["", " "])("serve() does not listen on all addresses for the host %j", async (host) => {
  expect(await refused({ http: { host, port: 0 } })).toBe(
    "serve(): http.host is empty: leave it out for 127.0.0.1, or write 0.0.0.0 to listen on all addresses",
  );
});

it.each([null, 1, {}])("serve() refuses the host %j", async (host) => {
  expect(await refused({ http: { host, port: 0 } })).toContain("serve(): http.host must be a string; got ");
});

it("serve() explains how to pass a port from an environment variable", async () => {
  expect(await refused({ http: { port: "3135" } })).toBe(
    'serve(): http.port must be an integer from 0 (picks a free port) to 65535; got "3135" (use Number(process.env.PORT) for an environment variable)',
  );
});

it.each([-1, 65_536, 1.5, Number.NaN, null])("serve() refuses the port %d", async (port) => {
  expect(await refused({ http: { port } })).toBe(
    `serve(): http.port must be an integer from 0 (picks a free port) to 65535; got ${port}`,
  );
});

it.each(["allowedHosts", "allowedOrigins"])("serve() refuses a string for the array %s", async (name) => {
  expect(await refused({ http: { port: 0, [name]: "notes.example.com" } })).toMatch(
    new RegExp(`^${name} .* must be an array of strings, .*; got "notes\\.example\\.com"$`),
  );
});

it("serve() names the nearest option, or lists all options", async () => {
  expect(await refused({ http: { prot: 1 } })).toBe("serve() has no option `http.prot`; did you mean `port`?");
  expect(await refused({ port: 3000 })).toBe("serve() has no option `port`; write http: { port: 3000 }");
  expect(await refused({ ports: 3000 })).toMatch(/^serve\(\) has no option `ports`; the options are http, stdio, .*$/);
  expect(await refused({ http: { toString: 1 } })).toContain("no option `http.toString`");
  expect(await refused(3000)).toBe("serve(): the options must be an object, not a number");
});

it("serve() is refused at once while the stdio of the process is reserved, also before its code is loaded", async () => {
  const release = takeStdio("reserved for another server");
  const refusals: unknown[] = [];
  try {
    const done = main.serve(handler).catch((error: unknown) => refusals.push(error));
    // Only microtasks run here, so nothing has been loaded or read yet.
    for (let count = 0; count < 10; count += 1) await Promise.resolve();
    expect(refusals).toEqual([new Error("reserved for another server")]);
    await done;
  } finally {
    release();
  }
});

it("serve() ignores undefined options", async () => {
  const options = { http: { port: 0, host: undefined, prot: undefined }, graceMs: undefined };
  const serving = (await attempt(options)) as { url: string; close(): Promise<void> };
  expect(serving.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/mcp$/);
  await serving.close();
});

describe.each([
  ["nodeHandler", nodeHandler],
  ["fetchHandler", fetchHandler],
])("%s()", (name, mount) => {
  it("fetchHandler() or nodeHandler() has no options host and port, since it does not listen", () => {
    const message = `${name}() has no option \`port\`; the options are path, paths, legacySse, `;
    expect(() => mount(handler, { port: 3000 } as never)).toThrow(message);
    expect(() => mount(handler, { port: 3000 } as never)).toThrow(TypeError);
  });

  it("fetchHandler() or nodeHandler() refuses a string for an array", () => {
    expect(() => mount(handler, { allowedHosts: "notes.example.com" as never })).toThrow("must be an array of strings");
  });
});

describe("a handler that evaluates code", () => {
  const live: Handler = async () => ({});
  Object.defineProperty(live, EVALUATES_CODE, { value: true });
  const gateway = chain().to({ js: live, other: handler });
  const message = /^This server evaluates code, .*: set `auth`, for example bearer.*, or `auth: false` to let anyone/;

  const post = (headers: Record<string, string> = {}): Request =>
    new Request("http://localhost/mcp", { method: "POST", headers, body: "" });

  it("a handler that evaluates code is not served over HTTP without authentication, unless that is explicit", async () => {
    await expect(serve(live, { http: { port: 0 } })).rejects.toThrow(message);
    await expect(serve(gateway, { http: { port: 0 } })).rejects.toThrow(TypeError);
    expect(() => nodeHandler(gateway)).toThrow(message);
    expect(() => fetchHandler(live)).toThrow(message);
    const open = fetchHandler(gateway, { auth: false });
    expect((await open(post())).status).toBe(415);
    await open.close();
  });

  it("a handler that evaluates code is served to authenticated callers", async () => {
    const auth = bearer({ verify: (token) => (token === "right" ? { principal: "ada" } : undefined) });
    const closed = fetchHandler(live, { auth });
    expect((await closed(post())).status).toBe(401);
    expect((await closed(post({ authorization: "Bearer right" }))).status).toBe(415);
    await closed.close();
  });
});

it("warns at the start of scopes that no caller can have", async () => {
  const printed = vi.spyOn(console, "error").mockReturnValue();
  const server = main
    .createServer({ name: "a", version: "1" })
    .tool("t", { scopes: ["notes:write"] }, () => "x")
    .resource("a:b", { scopes: ["notes:read"] }, () => "x")
    .template("t:{id}", { scopes: ["notes:read"] }, () => "x")
    .prompt("p", { scopes: ["notes:prompt"] }, () => "x")
    .method("acme/m", { scopes: ["acme"] }, () => ({}));
  expect(server.requiredScopes).toEqual(["notes:write", "notes:prompt", "notes:read", "acme"]);
  await (await serve(server, { http: { port: 0 } })).close();
  expect(printed.mock.calls).toEqual([
    [
      "catenary: serve(): no caller can use what needs a scope (notes:write, notes:prompt, notes:read, acme), " +
        "since there is no `auth`; set it, for example to bearer({ ... })",
    ],
  ]);
  printed.mockClear();
  const auth = { authenticate: async () => ({ principal: "ann" }) };
  await (await serve(server, { http: { port: 0, auth } })).close();
  server.removeTool("t");
  expect(server.requiredScopes).not.toContain("notes:write");
  await (await serve(main.createServer({ name: "a", version: "1" }), { http: { port: 0 } })).close();
  expect(printed.mock.calls).toEqual([]);
  printed.mockRestore();
});

it.each([
  [{ maxInFlight: 0 }, "maxInFlight must be a number above 0"],
  [{ maxInFlight: Number.NaN }, "maxInFlight must be a number above 0"],
  [{ tap: 3 }, "tap must be a function"],
])("serve() refuses %j at once, over HTTP too", async (wrong, message) => {
  expect(await refused({ http: { port: 0 }, ...wrong })).toBe(message);
  expect(await refused({ http: { port: 0, ...wrong } })).toBe(message);
});
