// From a config to a gateway: which ends are made of it, with which options, behind which links; and that nothing is
// left open where something fails. Real ends are reached at the end of the file, through everything.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { upstream, type Upstream, type UpstreamOptions, type UpstreamTarget } from "../chain/upstream/upstream.ts";
import { connect } from "../client/connect.ts";
import type { Handler } from "../core/handler.ts";
import { createServer } from "../server/server.ts";
import { gatewayOf, type GatewayOfOptions } from "./gateway.ts";
import { loadConfig } from "./load.ts";

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

async function gateway(config: unknown, options?: GatewayOfOptions): ReturnType<typeof gatewayOf> {
  return gatewayOf(await loadConfig(written(config), { env: { WORD: "s3cret" } }), options);
}

interface Made {
  readonly target: UpstreamTarget;
  readonly options: UpstreamOptions;
  readonly close: ReturnType<typeof vi.fn>;
}

/** Notes what ends are made of, and answers for them by servers in memory. */
function stage(): { made: Made[]; upstream: NonNullable<GatewayOfOptions["upstream"]> } {
  const made: Made[] = [];
  return {
    made,
    upstream: (target, options) => {
      const name = options.name ?? "";
      const server = createServer({ name, version: "1" }).tool(`tool-of-${name}`, {}, () => name);
      const inner = upstream(server);
      const close = vi.fn(async () => inner.close());
      made.push({ target, options, close });
      const handler: Handler = (request, context) => inner(request, context);
      return Object.defineProperties(handler, {
        called: { value: () => undefined },
        status: { value: () => inner.status() },
        close: { value: close },
      }) as Upstream;
    },
  };
}

const SERVERS = {
  notes: { command: "./notes", args: ["-v"], env: { A: "1" }, share: "shared", timeout: 5000, idle: 0 },
  web: { url: "https://example.com/mcp", headers: { "X-Key": "${WORD}" }, startTimeout: 10 },
};

describe("a gateway", () => {
  it("has the ends of its config, with their options", async () => {
    const { made, upstream: make } = stage();
    const onStderr = vi.fn();
    const onState = vi.fn();
    const built = await gateway({ mcpServers: SERVERS }, { upstream: make, onStderr, onState });
    expect(made.map(({ target, options }) => ({ target, options }))).toEqual([
      {
        target: { command: join(folder, "notes"), args: ["-v"], env: { A: "1" }, cwd: folder },
        options: {
          name: "notes",
          share: "shared",
          timeout: 5000,
          idle: 0,
          onStderr: expect.any(Function) as unknown,
          onState: expect.any(Function) as unknown,
        },
      },
      {
        target: "https://example.com/mcp",
        options: {
          name: "web",
          startTimeout: 10,
          headers: { "X-Key": "s3cret" },
          onStderr: expect.any(Function) as unknown,
          onState: expect.any(Function) as unknown,
        },
      },
    ]);
    made[0]?.options.onStderr?.("said");
    const status = built.status()["notes"];
    if (status === undefined) throw new Error("The end has no status");
    made[1]?.options.onState?.(status);
    expect(onStderr).toHaveBeenCalledExactlyOnceWith("notes", "said");
    expect(onState).toHaveBeenCalledExactlyOnceWith("web", status);
    await built.close();
    expect(made.map(({ close }) => close.mock.calls.length)).toEqual([1, 1]);
  });

  it("gives its ends its limits, and names variables where they say something of themselves", async () => {
    const { made, upstream: make } = stage();
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
        upstream: (target, options) => (made.length === 0 ? real(target, options) : make(target, options)),
      },
    );
    function real(target: UpstreamTarget, options: UpstreamOptions): Upstream {
      make(target, options);
      return upstream(target, options);
    }
    expect(made.map(({ options }) => options.limits)).toEqual([
      { messageBytes: 1000, depth: 9 },
      { messageBytes: 1000, depth: 9 },
    ]);
    made[1]?.options.onStderr?.("no such key: s3cret");
    expect(onStderr).toHaveBeenCalledExactlyOnceWith("notes", "no such key: ${WORD}");
    expect(built.status()["web"]?.target).toBe("http://127.0.0.1:9/${WORD}/mcp");
    made[0]?.options.onState?.({
      state: "asleep",
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

  it("has links for all and links for one", async () => {
    const { upstream: make } = stage();
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
    expect(built.links.map(({ name }) => name)).toEqual(["timeout", "all"]);
    const client = await connect(built);
    expect(client.server?.name).toBe("office");
    expect(client.instructions).toBe("Read me");
    const tools = (await client.listTools()).tools.map(({ name }) => name);
    expect(tools).toEqual(["notes.tool-of-notes", "web.tool-of-web"]);
    const texts = async (name: string): Promise<unknown> =>
      (await client.callTool(name)).content.map((one) => "text" in one && one.text);
    expect(await texts("notes.tool-of-notes")).toEqual(["notes", "marked", "all s3cret"]);
    expect(await texts("web.tool-of-web")).toEqual(["web", "all s3cret"]);
    await client.close();
    await built.close();
  });

  it("that cannot be built tells all that failed with its place, and leaves nothing open", async () => {
    writeFileSync(join(folder, "bad.mjs"), "export default 1;");
    writeFileSync(join(folder, "thrown.mjs"), "throw new Error('no key');");
    const { made, upstream: make } = stage();
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
        { line: 3, column: 5, message: expect.stringContaining("bad.mjs exports no link") as string },
        {
          line: 27,
          column: 13,
          message: expect.stringContaining("thrown.mjs cannot be loaded: no key, at ") as string,
        },
        { line: 30, column: 14, message: expect.stringContaining("bad.mjs exports no server") as string },
      ],
    });
    expect(made.map(({ close }) => close.mock.calls.length)).toEqual([1, 1]);
  });

  it("tells of an envFile that went away", async () => {
    const file = join(folder, "gone.env");
    writeFileSync(file, "A=1");
    const config = await loadConfig(written({ mcpServers: { a: { command: "x", envFile: "./gone.env" } } }));
    rmSync(file);
    await expect(gatewayOf(config)).rejects.toThrow("3:10: error: the envFile cannot be read: ENOENT");
  });
});

/** The least that is a server: it imports nothing, so it starts at once. */
const OUTER = `
import { createInterface } from "node:readline";
const ANSWERS = {
  initialize: (params) => ({ protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "outer", version: "1" } }),
  "tools/list": () => ({ tools: [{ name: "outer", inputSchema: { type: "object" } }] }),
  "tools/call": () => ({ content: [{ type: "text", text: process.env.MARK }] }),
};
for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) continue;
  const answer = ANSWERS[method];
  const outcome = answer ? { result: answer(params) } : { error: { code: -32601, message: "Method not found" } };
  console.log(JSON.stringify({ jsonrpc: "2.0", id, ...outcome }));
}
`;

describe("real ends", () => {
  it("of every kind in this process and beside it are reached through it", async () => {
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
});
