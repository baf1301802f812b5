// From a config to a gateway: its upstreams with their options, its middleware, and that nothing is left open if it fails.
// The last test connects to real servers.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { eventually } from "../../test/support/waiting.ts";
import { upstream, type Upstream } from "../chain/upstream/upstream.ts";
import type { UpstreamOptions, UpstreamTarget } from "../chain/upstream/options.ts";
import { fakeClient } from "../../test/support/handlers/fake-client.ts";
import { connect } from "../client/connect.ts";
import { TOKEN_PRINCIPAL } from "../core/authentication.ts";
import type { Handler } from "../core/handler.ts";
import { defined } from "../core/values.ts";
import { createServer } from "../server/server.ts";
import { ConfigGateway, createGateway, type CreateGatewayOptions } from "./gateway.ts";
import { loadConfig, type Config } from "./load.ts";

let folder = "";
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "catenary-gateway-"));
  writeFileSync(
    join(folder, "mark.mjs"),
    `export default ({ word = "marked" }) => async (request, context, next) => {
      const result = await next(request, context);
      return request.method === "tools/call" ? { ...result, content: [...result.content, { type: "text", text: word }] } : result;
    };`,
  );
});
afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
});

function written(config: unknown): string {
  const file = join(folder, "catenary.json");
  writeFileSync(file, JSON.stringify(config, undefined, 2));
  return file;
}

async function gateway(config: unknown, options?: CreateGatewayOptions): ReturnType<typeof createGateway> {
  return createGateway(await loadConfig(written(config), { env: { WORD: "s3cret" } }), options);
}

interface CreatedUpstream {
  readonly target: UpstreamTarget;
  readonly options: UpstreamOptions;
  readonly start: ReturnType<typeof vi.fn>;
  readonly close: ReturnType<typeof vi.fn>;
}

/** Records the arguments of upstreams, and replaces them by servers in memory. */
function recordUpstreams(): { created: CreatedUpstream[]; upstream: NonNullable<CreateGatewayOptions["upstream"]> } {
  const created: CreatedUpstream[] = [];
  return {
    created,
    upstream: (target, options) => {
      const name = options.name ?? "";
      const server = createServer({ name, version: "1" }).tool(`tool-of-${name}`, {}, () => name);
      const inner = upstream(server);
      const close = vi.fn(async () => inner.close());
      const start = vi.fn(async () => undefined);
      created.push({ target, options, start, close });
      const handler: Handler = (request, context) => inner(request, context);
      return Object.defineProperties(handler, {
        called: { value: () => undefined },
        status: { value: () => inner.status() },
        start: { value: start },
        close: { value: close },
      }) as Upstream;
    },
  };
}

const SERVERS = {
  notes: { command: "./notes", args: ["-v"], env: { A: "1" }, share: "shared", timeoutMs: 5000, idleMs: 0 },
  web: { url: "https://example.com/mcp", headers: { "X-Key": "${WORD}" }, startTimeoutMs: 10 },
};

it("a gateway has the upstreams of its config, with their options", async () => {
  const { created, upstream: make } = recordUpstreams();
  const onStderr = vi.fn();
  const onState = vi.fn();
  const built = await gateway({ mcpServers: SERVERS }, { upstream: make, onStderr, onState });
  expect(created.map(({ target, options }) => ({ target, options }))).toEqual([
    {
      target: { command: join(folder, "notes"), args: ["-v"], env: { A: "1" }, cwd: folder },
      options: {
        name: "notes",
        share: "shared",
        timeoutMs: 5000,
        idleMs: 0,
        onStderr: expect.any(Function) as unknown,
        onState: expect.any(Function) as unknown,
      },
    },
    {
      target: "https://example.com/mcp",
      options: {
        name: "web",
        startTimeoutMs: 10,
        headers: { "X-Key": "s3cret" },
        auth: expect.any(Object) as unknown,
        onStderr: expect.any(Function) as unknown,
        onState: expect.any(Function) as unknown,
      },
    },
  ]);
  created[0]?.options.onStderr?.("said");
  const status = built.status()["notes"];
  if (status === undefined) throw new Error("The upstream has no status");
  created[1]?.options.onState?.(status);
  expect(onStderr).toHaveBeenCalledExactlyOnceWith("notes", "said");
  expect(onState).toHaveBeenCalledExactlyOnceWith("web", status);
  await built.close();
  expect(created.map(({ close }) => close.mock.calls.length)).toEqual([1, 1]);
});

it("a gateway passes its limits to its upstreams, and hides the values of variables", async () => {
  const { created, upstream: make } = recordUpstreams();
  const onStderr = vi.fn();
  const onState = vi.fn();
  const built = await gateway(
    {
      mcpServers: { web: { url: "http://127.0.0.1:9/${WORD}/mcp" }, notes: { command: "x", args: ["${WORD}"] } },
      limits: { messageBytes: 1000, depth: 9, sessions: 3 },
    },
    {
      onStderr,
      onState,
      upstream: (target, options) => (created.length === 0 ? real(target, options) : make(target, options)),
    },
  );
  function real(target: UpstreamTarget, options: UpstreamOptions): Upstream {
    make(target, options);
    return upstream(target, options);
  }
  expect(created.map(({ options }) => options.limits)).toEqual([
    { messageBytes: 1000, depth: 9 },
    { messageBytes: 1000, depth: 9 },
  ]);
  created[1]?.options.onStderr?.("no such key: s3cret");
  expect(onStderr).toHaveBeenCalledExactlyOnceWith("notes", "no such key: ${WORD}");
  expect(built.status()["web"]?.target).toBe("http://127.0.0.1:9");
  created[0]?.options.onState?.({
    state: "idle",
    target: "s3cret",
    sessions: 0,
    pids: [],
    restarts: 0,
    problem: "s3cret",
  });
  expect(onState).toHaveBeenCalledExactlyOnceWith(
    "web",
    expect.objectContaining({ target: "${WORD}", problem: "${WORD}" }),
  );
  await built.close();
});

it("a gateway has middleware for all and for one upstream", async () => {
  const { upstream: make } = recordUpstreams();
  const built = await gateway(
    {
      name: "office",
      instructions: "Read me",
      names: "always",
      mcpServers: { ...SERVERS, notes: { ...SERVERS.notes, use: [{ use: "./mark.mjs" }] } },
      chain: [{ timeout: 5000 }, { use: "./mark.mjs", options: { word: "all ${WORD}" }, name: "all" }],
    },
    { upstream: make },
  );
  expect(built.middleware.map(({ name }) => name)).toEqual(["timeout", "all"]);
  const client = await connect(built);
  expect(client.server?.name).toBe("office");
  expect(client.instructions).toBe("Read me");
  const tools = (await client.listTools()).tools.map(({ name }) => name);
  expect(tools).toEqual(["notes_tool-of-notes", "web_tool-of-web"]);
  const texts = async (name: string): Promise<unknown> =>
    (await client.callTool(name)).content.map((one) => "text" in one && one.text);
  expect(await texts("notes_tool-of-notes")).toEqual(["notes", "marked", "all s3cret"]);
  expect(await texts("web_tool-of-web")).toEqual(["web", "all s3cret"]);
  await client.close();
  await built.close();
});

it("a gateway that cannot be built reports all failures with their positions, and leaves nothing open", async () => {
  writeFileSync(join(folder, "bad.mjs"), "export default 1;");
  writeFileSync(join(folder, "thrown.mjs"), "throw new Error('no key');");
  const { created, upstream: make } = recordUpstreams();
  const building = gateway(
    {
      chain: [{ use: "./bad.mjs" }],
      mcpServers: { ...SERVERS, mine: { module: "./thrown.mjs" }, other: { module: "./bad.mjs" } },
    },
    { upstream: make },
  );
  await expect(building).rejects.toMatchObject({
    name: "ConfigError",
    path: join(folder, "catenary.json"),
    problems: [
      { line: 3, column: 5, message: expect.stringContaining("bad.mjs exports no middleware") as string },
      {
        line: 27,
        column: 13,
        message: expect.stringMatching(/^Cannot load .*thrown\.mjs: no key, at /) as string,
      },
      { line: 30, column: 14, message: expect.stringContaining("bad.mjs exports no server") as string },
    ],
  });
  expect(created.map(({ close }) => close.mock.calls.length)).toEqual([1, 1]);
});

it("a gateway reports an envFile that was deleted", async () => {
  const file = join(folder, "gone.env");
  writeFileSync(file, "A=1");
  const config = await loadConfig(written({ mcpServers: { a: { command: "x", envFile: "./gone.env" } } }));
  rmSync(file);
  await expect(createGateway(config)).rejects.toThrow("3:10: error: Cannot read the envFile: ENOENT");
});

/** A minimal server without imports, so that it starts fast. */
const OUTER = `
import { createInterface } from "node:readline";
const ANSWERS = {
  initialize: (params) => ({ protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "outer", version: "1" } }),
  "tools/list": () => ({ tools: [{ name: "outer", inputSchema: { type: "object" } }] }),
  "tools/call": (params) => ({ content: [{ type: "text", text: process.env[params.arguments?.name ?? "MARK"] ?? "not set" }] }),
};
for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) continue;
  const answer = ANSWERS[method];
  const outcome = answer ? { result: answer(params) } : { error: { code: -32601, message: "Method not found" } };
  console.log(JSON.stringify({ jsonrpc: "2.0", id, ...outcome }));
}
`;

it("real servers in this process and in a child process are reached through it", async () => {
  writeFileSync(
    join(folder, "inner.ts"),
    `
      import { createServer } from ${JSON.stringify(new URL("../server/server.ts", import.meta.url).href)};
      const text: string = "here";
      export const server = createServer({ name: "inner", version: "1" }).tool("inner", {}, () => text);`,
  );
  writeFileSync(join(folder, "outer.mjs"), OUTER);
  writeFileSync(join(folder, "a.env"), "MARK='from the file'\n");
  const built = await gateway({
    mcpServers: {
      inner: { module: "./inner.ts" },
      outer: { command: process.execPath, args: ["./outer.mjs"], envFile: "a.env", use: [{ use: "./mark.mjs" }] },
    },
  });
  const client = await connect(built);
  expect((await client.listTools()).tools.map(({ name }) => name).toSorted()).toEqual(["inner", "outer"]);
  expect(await client.callTool("inner")).toMatchObject({ content: [{ text: "here" }] });
  expect(await client.callTool("outer")).toMatchObject({
    content: [{ text: "from the file" }, { text: "marked" }],
  });
  await client.close();
  await built.close();
});

it("real servers get only the variables that programs need, and those that the config names", async () => {
  writeFileSync(join(folder, "outer.mjs"), OUTER);
  const given = { GATEWAY_TEST_KEY: "1", OTHER_TEST_KEY: "2", CATENARY_TOKEN: "3", CATENARY_INPUT_KEY: "4" };
  Object.assign(process.env, given);
  const server = { command: process.execPath, args: ["./outer.mjs"], remember: false };
  const built = await gateway({
    names: "always",
    mcpServers: {
      none: server,
      some: { ...server, inheritEnv: ["GATEWAY_TEST_*"], env: { OTHER_TEST_KEY: "own" } },
      all: { ...server, inheritEnv: true },
    },
  });
  const client = await connect(built);
  try {
    const { tools } = await client.listTools();
    const seen: Record<string, unknown> = {};
    for (const { name: tool } of tools) {
      const [label = ""] = /^[a-z]+/.exec(tool) ?? [];
      const values = Object.keys(given).map(async (name) => (await client.callTool(tool, { name })).content);
      seen[label] = (await Promise.all(values)).map(([block]) => (block?.type === "text" ? block.text : undefined));
      expect(await client.callTool(tool, { name: "PATH" })).toMatchObject({
        content: [{ text: process.env["PATH"] }],
      });
    }
    expect(seen).toEqual({
      none: ["not set", "not set", "not set", "not set"],
      some: ["1", "own", "not set", "not set"],
      all: ["1", "2", "not set", "not set"],
    });
  } finally {
    for (const name of Object.keys(given)) delete process.env[name];
    await client.close();
    await built.close();
  }
});

const load = async (config: unknown): Promise<Config> => loadConfig(written(config), { env: { WORD: "s3cret" } });
const A = { command: "./a" };
const B = { command: "./b" };

it("a changed config closes and creates only what has changed", async () => {
  const { created, upstream: make } = recordUpstreams();
  const running = await ConfigGateway.create(await load({ mcpServers: { a: A, b: B } }), { upstream: make });
  const closed = (): number[] => created.map(({ close }) => close.mock.calls.length);
  const { gateway: own } = running;
  const timeout = { timeout: 5000 };
  expect(await running.change(await load({ mcpServers: { a: A, b: B }, chain: [timeout] }))).toEqual({
    ...{ added: [], removed: [], restarted: [], changed: [], isChainChanged: true },
  });
  const [first] = own.middleware;
  const changes = await running.change(
    await load({ mcpServers: { b: { ...B, timeoutMs: 9 }, c: A }, chain: ["log", timeout] }),
  );
  expect(changes).toEqual({
    ...{ added: ["c"], removed: ["a"], restarted: ["b"], changed: [], isChainChanged: true },
  });
  expect(created).toHaveLength(4);
  await eventually(() => expect(closed()).toEqual([1, 1, 0, 0]));
  expect(own.middleware.map(({ name }) => name)).toEqual(["log", "timeout"]);
  expect(own.middleware[1]?.middleware).toBe(first?.middleware);
  // Middleware of one entry changes without its upstream.
  const filtered = { ...A, use: [{ filter: { tools: { exclude: ["x"] } } }] };
  expect(await running.change(await load({ mcpServers: { c: filtered } }))).toMatchObject({ changed: ["c"] });
  expect(await running.change(await load({ mcpServers: { c: A } }))).toMatchObject({ changed: ["c"] });
  await eventually(() => expect(closed()).toEqual([1, 1, 1, 0]));
  expect(created).toHaveLength(4);
  await own.close();
  expect(closed()).toEqual([1, 1, 1, 1]);
});

it("a changed config is refused as a whole if a part cannot be created, or the check fails", async () => {
  const { created, upstream: make } = recordUpstreams();
  const running = await ConfigGateway.create(await load({ mcpServers: { a: A } }), { upstream: make });
  writeFileSync(join(folder, "broken.mjs"), "throw new Error('broken on purpose')");
  const broken = await load({ mcpServers: { a: A, b: B, c: { module: "./broken.mjs" } } });
  await expect(running.change(broken)).rejects.toThrow("broken on purpose");
  const check = (): void => {
    throw new Error("not now");
  };
  await expect(running.change(await load({ mcpServers: { a: A, b: B } }), check)).rejects.toThrow("not now");
  expect(created.map(({ close }) => close.mock.calls.length)).toEqual([0, 1, 1]);
  expect([...running.gateway.upstreams.keys()]).toEqual(["a"]);
  await running.gateway.close();
  expect(created[0]?.close).toHaveBeenCalledTimes(1);
});

it("a changed config ends the subscriptions of callers that it removes, and refuses them, also if none is left", async () => {
  const { upstream: make } = recordUpstreams();
  const [ada, bob] = [{ token: "ada-key", profile: "p" }, { token: "bob-key" }];
  const one = { mcpServers: { a: A }, profiles: { p: { servers: ["a"] } } };
  const running = await ConfigGateway.create(await load({ ...one, callers: { ada, bob } }), {
    upstream: make,
    changing: true,
  });
  const as = (principal: string | undefined) => fakeClient(running.gateway, { caller: defined({ principal }) });
  const listen = (principal: string): Promise<unknown> =>
    as(principal).call("subscriptions/listen", { notifications: { toolsListChanged: true } });
  const [listening, going] = [listen("ada"), listen("bob")];
  await running.change(await load({ ...one, callers: { bob } }));
  await expect(listening).rejects.toThrow("You are not among the callers of this gateway");
  await expect(as("ada").call("tools/list")).rejects.toThrow("You are not among the callers");
  // Also without profiles, and with a single server.
  await running.change(await load({ mcpServers: { a: A } }));
  await expect(going).rejects.toThrow("You are not among the callers");
  for (const principal of ["ada", "bob"]) {
    await expect(as(principal).call("tools/list")).rejects.toThrow("You are not among the callers");
  }
  for (const principal of [undefined, TOKEN_PRINCIPAL]) {
    expect((await as(principal).call("tools/list"))["tools"]).toHaveLength(1);
  }
  await running.gateway.close();
});

it("a changed config without callers leaves the principals to the program that serves it", async () => {
  const { upstream: make } = recordUpstreams();
  const built = await gateway({ mcpServers: { a: A, b: B } }, { upstream: make });
  const eve = fakeClient(built, { caller: { principal: "eve" } });
  expect((await eve.call("tools/list"))["tools"]).toHaveLength(2);
  await built.close();
});

it("a changed config notices another content of an envFile", async () => {
  const { created, upstream: make } = recordUpstreams();
  writeFileSync(join(folder, "a.env"), "KEY=1");
  const config = { mcpServers: { a: { ...A, envFile: "./a.env" } } };
  const running = await ConfigGateway.create(await load(config), { upstream: make });
  expect(await running.change(await load(config))).toMatchObject({ restarted: [], changed: [] });
  writeFileSync(join(folder, "a.env"), "KEY=2");
  expect(await running.change(await load(config))).toMatchObject({ restarted: ["a"] });
  expect(created.map(({ target }) => (target as { env: object }).env)).toEqual([{ KEY: "1" }, { KEY: "2" }]);
  await running.gateway.close();
});

it("a changed config reads an OpenAPI document again if it has changed", async () => {
  const write = (path: string): void =>
    writeFileSync(
      join(folder, "api.json"),
      JSON.stringify({
        openapi: "3.1.0",
        info: {},
        servers: [{ url: "http://127.0.0.1:9" }],
        paths: { [path]: { get: {} } },
      }),
    );
  write("/one");
  const config = { mcpServers: { api: { openapi: "./api.json" } } };
  const running = await ConfigGateway.create(await load(config), {});
  const names = async (): Promise<unknown> =>
    ((await fakeClient(running.gateway).call("tools/list"))["tools"] as { name: string }[]).map(({ name }) => name);
  expect(await names()).toEqual(["get_one"]);
  expect(await running.change(await load(config))).toMatchObject({ restarted: [], changed: [] });
  write("/two");
  expect(await running.change(await load(config))).toMatchObject({ restarted: ["api"] });
  expect(await names()).toEqual(["get_two"]);
  await running.gateway.close();
});

it("a changed config replaces one upstream on request, but not a module", async () => {
  const { created, upstream: make } = recordUpstreams();
  writeFileSync(join(folder, "fine.mjs"), "export default async () => ({})");
  const config = { mcpServers: { a: A, b: B, m: { module: "./fine.mjs" } } };
  const running = await ConfigGateway.create(await load(config), { upstream: make });
  await running.restart("a", 5);
  await eventually(() =>
    expect(created.map(({ close }) => close.mock.calls.length > 0)).toEqual([true, false, false, false]),
  );
  expect(created.at(-1)?.options.name).toBe("a");
  await expect(running.restart("m", 5)).rejects.toThrow("m is a module, which is loaded once");
  await expect(running.restart("x", 5)).rejects.toThrow("There is no server x");
  await running.gateway.close();
});
