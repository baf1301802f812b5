// Real streams, hostile handlers and callers who leave early: everybody who asked is answered, once, and the
// process that serves never dies of what a handler threw.

import { PassThrough } from "node:stream";
import { afterEach, describe, expect, it } from "vitest";
import { connect } from "../../../src/client/index.ts";
import type { Handler } from "../../../src/core/handler.ts";
import { McpError } from "../../../src/protocol/errors.ts";
import { NEWEST_SESSION, REVISIONS } from "../../../src/protocol/revisions/index.ts";
import { serve, type ServeOptions, type Serving } from "../../../src/serve.ts";
import { createServer } from "../../../src/server/index.ts";
import { stdioTransport } from "../../../src/transport/stdio.ts";

const BATCHING = REVISIONS.find(({ batches }) => batches)!.name;

class Line {
  readonly input = new PassThrough();
  readonly output = new PassThrough();
  serving: Serving | undefined;
  text = "";

  async start(handler: Handler, options: ServeOptions = {}): Promise<this> {
    this.output.setEncoding("utf8").on("data", (chunk: string) => (this.text += chunk));
    this.serving = await serve(handler, { ...options, stdio: { input: this.input, output: this.output } });
    return this;
  }

  write(...messages: readonly object[]): void {
    this.input.write(messages.map((message) => `${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`).join(""));
  }

  initialize(protocolVersion: string = NEWEST_SESSION.name): void {
    this.write({ id: 0, method: "initialize", params: { protocolVersion } }, { method: "notifications/initialized" });
  }

  get lines(): { id?: unknown; error?: { code: number; message: string }; result?: unknown }[] {
    return this.text
      .split("\n")
      .filter(Boolean)
      .flatMap((line) => JSON.parse(line) as never);
  }

  async answer(id: unknown): Promise<object> {
    await expect.poll(() => this.lines.some((line) => line.id === id)).toBe(true);
    return this.lines.find((line) => line.id === id)!;
  }
}

const open: Line[] = [];
afterEach(async () => {
  for (const line of open.splice(0)) await line.serving?.close();
});
async function serving(handler: Handler, options?: ServeOptions): Promise<Line> {
  const line = await new Line().start(handler, options);
  open.push(line);
  return line;
}

const discover = { capabilities: { tools: {} }, _meta: {} };
const throwing =
  (thrown: unknown): Handler =>
  async ({ method }) => {
    if (method === "server/discover") return discover;
    throw thrown;
  };

describe("what a handler throws", () => {
  const cycle: Record<string, unknown> = {};
  cycle["self"] = cycle;
  const bites = {
    toString: () => {
      throw new Error("bitten");
    },
  };
  const odd: [string, unknown][] = [
    ["nothing", undefined],
    ["null", null],
    ["a symbol", Symbol("s")],
    ["an object without a prototype", Object.create(null)],
    ["an object that bites", bites],
    ["an error with a BigInt in its data", new McpError(-32000, "x", { row: 1n })],
    ["an error with a cycle in its data", new McpError(-32000, "x", cycle)],
    [
      "an error whose data bites",
      new McpError(-32000, "x", {
        get kind() {
          throw new Error("bitten");
        },
      }),
    ],
    [
      "an error whose JSON bites",
      new McpError(-32000, "x", {
        toJSON: () => {
          throw new Error("bitten");
        },
      }),
    ],
  ];
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  const error = new Proxy(new Error("x"), {
    getPrototypeOf: () => {
      throw new Error("bitten");
    },
  });
  odd.push(["a revoked proxy", proxy], ["an error that denies its kind", error]);
  it.each(odd)("%s: is answered with an error, and the next call is served", async (_name, thrown) => {
    const line = await serving(throwing(thrown));
    line.initialize();
    line.write({ id: 1, method: "tools/call", params: { name: "x" } });
    expect(await line.answer(1)).toMatchObject({ error: { code: expect.any(Number) as number } });
    line.write({ id: 2, method: "ping" });
    expect(await line.answer(2)).toMatchObject({ result: {} });
  });

  it("may be a result that is none", async () => {
    const line = await serving((async ({ method }) => (method === "server/discover" ? discover : 5)) as Handler);
    line.initialize();
    line.write({ id: 1, method: "tools/list" });
    expect(await line.answer(1)).toMatchObject({ error: { code: -32603 } });
  });
});

describe("an answer that is too long", () => {
  const server = createServer({ name: "long", version: "1" }).tool("big", { description: "Big" }, () =>
    "x".repeat(100_000),
  );

  it("is not sent: the caller is told the limit", async () => {
    const line = await serving(server, { limits: { messageBytes: 10_000 } });
    line.initialize();
    line.write({ id: 1, method: "tools/call", params: { name: "big" } });
    expect(await line.answer(1)).toMatchObject({
      error: { code: -32603, message: expect.stringContaining("limits.messageBytes") as string },
    });
  });

  it("is not waited for, where an end sends it all the same", async () => {
    const script = `
      const { createInterface } = require("node:readline");
      createInterface({ input: process.stdin }).on("line", (text) => {
        const { id, method } = JSON.parse(text);
        const result = method === "initialize" ? { protocolVersion: "${NEWEST_SESSION.name}", capabilities: { tools: {} }, serverInfo: { name: "e", version: "1" } } : { content: [], pad: "x".repeat(5e6) };
        if (id !== undefined) console.log(JSON.stringify({ jsonrpc: "2.0", id, result }));
      });`;
    const client = await connect(
      { command: process.execPath, args: ["-e", script] },
      { revision: NEWEST_SESSION.name },
    );
    await expect(client.callTool("big")).rejects.toMatchObject({
      kind: "protocol",
      message: expect.stringContaining("limits.messageBytes") as string,
    });
    await client.close();
  });
});

describe("answers of a batch that are too long together", () => {
  it("go out one by one", async () => {
    const handler: Handler = async ({ method, params }) =>
      method === "server/discover"
        ? discover
        : { content: [{ type: "text", text: "x".repeat(Number(params["name"])) }] };
    const line = await serving(handler, { limits: { messageBytes: 10_000 } });
    line.initialize(BATCHING);
    await line.answer(0);
    const call = (id: number, size: number): object => ({
      jsonrpc: "2.0",
      id,
      method: "tools/call",
      params: { name: String(size) },
    });
    line.input.write(`${JSON.stringify([call(1, 6_000), call(2, 6_000), call(3, 60_000)])}\n`);
    expect(await line.answer(1)).toMatchObject({ result: {} });
    expect(await line.answer(2)).toMatchObject({ result: {} });
    expect(await line.answer(3)).toMatchObject({ error: { code: -32603 } });
  });
});

describe("the end of input", () => {
  const slow: Handler = async ({ method }) => {
    if (method === "server/discover") return discover;
    await new Promise((resolve) => setTimeout(resolve, 50));
    return { content: [] };
  };
  const CALL = { method: "tools/call", params: { name: "x" } };

  it("waits for a batch", async () => {
    const line = await serving(slow);
    line.initialize(BATCHING);
    await line.answer(0);
    line.input.end(`${JSON.stringify([{ jsonrpc: "2.0", id: 1, ...CALL }])}\n`);
    await line.serving!.closed;
    expect(await line.answer(1)).toMatchObject({ result: { content: [] } });
  });

  it("waits for a shutdown that waits for a call", async () => {
    const line = await serving(slow);
    line.initialize();
    line.write({ id: 1, ...CALL }, { id: 2, method: "shutdown" });
    line.input.end();
    await line.serving!.closed;
    expect(line.lines.map(({ id }) => id)).toEqual([0, 1, 2]);
  });

  it("waits, in order, for what is no message", async () => {
    const line = await serving(slow, { ordering: "sequential" });
    line.initialize();
    line.write({ id: 1, ...CALL });
    line.input.end("{broken\n");
    await line.serving!.closed;
    expect(line.lines.map(({ id }) => id)).toEqual([0, 1, null]);
  });

  it("also when it is said in one breath with all the rest", async () => {
    const line = await serving(slow);
    line.initialize();
    line.write({ id: 1, method: "shutdown" }, { method: "exit" });
    await line.serving!.closed;
    expect(line.lines.map(({ id }) => id)).toEqual([0, 1]);
  });
});

describe("a caller that does not read", () => {
  it("is not asked for more, and what is only worth hearing now is not kept for it", async () => {
    const input = new PassThrough();
    const output = new PassThrough({ highWaterMark: 1024 });
    const transport = stdioTransport({ input, output });
    let received = 0;
    await transport.start((inbound) => {
      if (inbound.message === undefined) return;
      received += 1;
      void inbound.reply({ jsonrpc: "2.0", id: 1, result: { pad: "x".repeat(1024 * 1024) } });
      for (let n = 0; n < 10; n += 1)
        void inbound.reply({
          jsonrpc: "2.0",
          method: "notifications/progress",
          params: { n, pad: "y".repeat(1024 * 1024) },
        });
    });
    for (let n = 0; n < 100; n += 1) {
      input.write('{"jsonrpc":"2.0","id":1,"method":"ping"}\n');
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(received).toBeLessThan(10);
    expect(output.writableLength).toBeLessThan(32 * 1024 * 1024);
    await transport.close();
  });
});
