// Serving on streams: each request is answered once, whatever a handler throws or returns, and even at the end of input. No
// exception of a handler ends the process.

import { PassThrough } from "node:stream";
import { afterEach, describe, expect, it } from "vitest";
import type { Handler } from "../../../src/core/handler.ts";
import { McpError } from "../../../src/protocol/errors.ts";
import { NEWEST_SESSION, REVISIONS } from "../../../src/protocol/revisions/index.ts";
import { serve, type ServeOptions, type Serving } from "../../../src/serve.ts";
import { createServer } from "../../../src/server/index.ts";
import { stdioTransport } from "../../../src/transport/stdio.ts";
import { IS_LONG } from "../../support/thoroughness.ts";

const BATCHING = REVISIONS.find(({ batches }) => batches)!.name;

class StdioClient {
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

const open: StdioClient[] = [];
afterEach(async () => {
  for (const client of open.splice(0)) await client.serving?.close();
});
async function serving(handler: Handler, options?: ServeOptions): Promise<StdioClient> {
  const client = await new StdioClient().start(handler, options);
  open.push(client);
  return client;
}

const discover = { capabilities: { tools: {} }, _meta: {} };
const throwing =
  (thrown: unknown): Handler =>
  async ({ method }) => {
    if (method === "server/discover") return discover;
    throw thrown;
  };

describe("a thrown value", () => {
  const cycle: Record<string, unknown> = {};
  cycle["self"] = cycle;
  const throwsOnRead = {
    toString: () => {
      throw new Error("thrown again");
    },
  };
  const odd: [string, unknown][] = [
    ["undefined", undefined],
    ["null", null],
    ["a symbol", Symbol("s")],
    ["an object without a prototype", Object.create(null)],
    ["an object whose toString() throws", throwsOnRead],
    ["an error with a BigInt in its data", new McpError(-32000, "x", { row: 1n })],
    ["an error with a cycle in its data", new McpError(-32000, "x", cycle)],
    [
      "an error whose data has a getter that throws",
      new McpError(-32000, "x", {
        get kind() {
          throw new Error("thrown again");
        },
      }),
    ],
    [
      "an error whose toJSON() throws",
      new McpError(-32000, "x", {
        toJSON: () => {
          throw new Error("thrown again");
        },
      }),
    ],
  ];
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  const error = new Proxy(new Error("x"), {
    getPrototypeOf: () => {
      throw new Error("thrown again");
    },
  });
  odd.push(["a revoked proxy", proxy], ["an error that throws in instanceof", error]);
  it.each(odd)("a thrown value: %s: the call gets an error, and the next one works", async (_name, thrown) => {
    const client = await serving(throwing(thrown));
    client.initialize();
    client.write({ id: 1, method: "tools/call", params: { name: "x" } });
    expect(await client.answer(1)).toMatchObject({ error: { code: expect.any(Number) as number } });
    client.write({ id: 2, method: "ping" });
    expect(await client.answer(2)).toMatchObject({ result: {} });
  });

  it("a thrown value may be a result that is not an object", async () => {
    const client = await serving((async ({ method }) => (method === "server/discover" ? discover : 5)) as Handler);
    client.initialize();
    client.write({ id: 1, method: "tools/list" });
    expect(await client.answer(1)).toMatchObject({ error: { code: -32603 } });
  });
});

const server = createServer({ name: "long", version: "1" }).tool("big", { description: "Big" }, () =>
  "x".repeat(100_000),
);

it("a message that is too long is replaced by an error that names the limit", async () => {
  const client = await serving(server, { limits: { messageBytes: 10_000 } });
  client.initialize();
  client.write({ id: 1, method: "tools/call", params: { name: "big" } });
  expect(await client.answer(1)).toMatchObject({
    error: { code: -32603, message: expect.stringContaining("limits.messageBytes") as string },
  });
});

it("a batch of answers that is too long is sent one by one", async () => {
  const handler: Handler = async ({ method, params }) =>
    method === "server/discover" ? discover : { content: [{ type: "text", text: "x".repeat(Number(params["name"])) }] };
  const client = await serving(handler, { limits: { messageBytes: 10_000 } });
  client.initialize(BATCHING);
  await client.answer(0);
  const call = (id: number, size: number): object => ({
    jsonrpc: "2.0",
    id,
    method: "tools/call",
    params: { name: String(size) },
  });
  client.input.write(`${JSON.stringify([call(1, 6_000), call(2, 6_000), call(3, 60_000)])}\n`);
  expect(await client.answer(1)).toMatchObject({ result: {} });
  expect(await client.answer(2)).toMatchObject({ result: {} });
  expect(await client.answer(3)).toMatchObject({ error: { code: -32603 } });
});

const slow: Handler = async ({ method }) => {
  if (method === "server/discover") return discover;
  await new Promise((resolve) => setTimeout(resolve, 50));
  return { content: [] };
};
const CALL = { method: "tools/call", params: { name: "x" } };

it("the end of input waits for a batch", async () => {
  const client = await serving(slow);
  client.initialize(BATCHING);
  await client.answer(0);
  client.input.end(`${JSON.stringify([{ jsonrpc: "2.0", id: 1, ...CALL }])}\n`);
  await client.serving!.closed;
  expect(await client.answer(1)).toMatchObject({ result: { content: [] } });
});

it("the end of input waits for a shutdown that waits for a call", async () => {
  const client = await serving(slow);
  client.initialize();
  client.write({ id: 1, ...CALL }, { id: 2, method: "shutdown" });
  client.input.end();
  await client.serving!.closed;
  expect(client.lines.map(({ id }) => id)).toEqual([0, 1, 2]);
});

it("the end of input answers an invalid message in order", async () => {
  const client = await serving(slow, { ordering: "sequential" });
  client.initialize();
  client.write({ id: 1, ...CALL });
  client.input.end("{broken\n");
  await client.serving!.closed;
  expect(client.lines.map(({ id }) => id)).toEqual([0, 1, null]);
});

it("the end of input may be a shutdown and exit right after initialize", async () => {
  const client = await serving(slow);
  client.initialize();
  client.write({ id: 1, method: "shutdown" }, { method: "exit" });
  await client.serving!.closed;
  expect(client.lines.map(({ id }) => id)).toEqual([0, 1]);
});

it.runIf(IS_LONG)(
  "a client that does not read is not read from, and its progress notifications are dropped",
  async () => {
    const input = new PassThrough();
    const output = new PassThrough({ highWaterMark: 1024 });
    const transport = stdioTransport({ input, output });
    let received = 0;
    await transport.start((inbound) => {
      if (inbound.kind !== "message") return;
      received += 1;
      void transport.send({ jsonrpc: "2.0", id: 1, result: { pad: "x".repeat(1024 * 1024) } });
      for (let n = 0; n < 10; n += 1)
        void transport.send({
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
  },
);
