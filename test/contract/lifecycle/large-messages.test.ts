// One limit for the size of a message, in both directions: a message over it fails its own call at once with that reason,
// and nothing else, over stdio, HTTP and through a gateway, in both styles.

import { PassThrough } from "node:stream";
import { afterEach, describe, expect, it } from "vitest";
import { chain, upstream } from "../../../src/chain/index.ts";
import { connect, ConnectionError, McpError, type Client, type ConnectOptions } from "../../../src/client/index.ts";
import type { Handler } from "../../../src/core/handler.ts";
import { NEWEST, NEWEST_SESSION } from "../../../src/protocol/revisions/index.ts";
import { serve, type Serving, type ServeOptions } from "../../../src/serve.ts";
import { createServer } from "../../../src/server/index.ts";

const LIMIT = 20_000;
const limits = { messageBytes: LIMIT };
const REASON = `Message longer than ${LIMIT} bytes (limits.messageBytes)`;
const STYLES = [
  ["stateless", NEWEST.name],
  ["session", NEWEST_SESSION.name],
] as const;

const opened: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of opened.splice(0).toReversed()) await close();
});

let runs: number[] = [];
function sized(): Handler {
  runs = [];
  return createServer({ name: "sized", version: "1" }).tool(
    "sized",
    { description: "Returns a text of this size", input: { type: "object" } as const },
    (given) => {
      const { size = 0 } = given as { size?: number };
      runs.push(size);
      return "x".repeat(size);
    },
  );
}

async function serving(handler: Handler, options: ServeOptions): Promise<Serving> {
  const server = await serve(handler, options);
  opened.push(() => server.close());
  return server;
}

async function connected(target: Parameters<typeof connect>[0], options: ConnectOptions): Promise<Client> {
  const client = await connect(target, { timeoutMs: 0, ...options });
  opened.push(() => client.close());
  return client;
}

async function failureOf(call: Promise<unknown>): Promise<ConnectionError | McpError> {
  return call.then(
    () => expect.fail("the call succeeded"),
    (error: unknown) => error as ConnectionError,
  );
}

/** A program that answers each call with what the function `result` returns. The official SDK writes the id last. */
function program(result: string, isIdLast: boolean): string {
  return `
    const known = { initialize: { protocolVersion: "${NEWEST_SESSION.name}", capabilities: { tools: {} }, serverInfo: { name: "p", version: "1" } },
      "server/discover": { resultType: "complete", supportedVersions: ["${NEWEST.name}"], capabilities: { tools: {} }, serverInfo: { name: "p", version: "1" } },
      "tools/list": { resultType: "complete", tools: [{ name: "t", inputSchema: { type: "object" } }], ttlMs: 0, cacheScope: "private" } };
    require("node:readline").createInterface({ input: process.stdin }).on("line", (line) => {
      const { id, method, params } = JSON.parse(line);
      if (id === undefined || method === undefined) return;
      if (known[method] === undefined && method !== "tools/call")
        return console.log(JSON.stringify({ jsonrpc: "2.0", id, error: { code: -32601, message: "Unknown" } }));
      const result = known[method] ?? (${result})(params.arguments);
      console.log(JSON.stringify(${isIdLast} ? { result, jsonrpc: "2.0", id } : { jsonrpc: "2.0", id, result }));
    });`;
}

const TEXT = `(args) => ({ resultType: "complete", content: [{ type: "text", text: "x".repeat(args.size ?? 1) }] })`;

describe.each(STYLES)("a result over the limit (%s)", (_style, revision) => {
  it.each([
    ["first", false],
    ["last", true],
  ])(
    "a result over the limit fails its call at once in a client of a program that writes the id %s",
    async (_where, isIdLast) => {
      const command = { command: process.execPath, args: ["-e", program(TEXT, isIdLast)] };
      const client = await connected(command, { revision, limits });
      const other = client.callTool("t", { size: 10 });
      const error = await failureOf(client.callTool("t", { size: 3 * LIMIT }));
      expect(error).toBeInstanceOf(ConnectionError);
      expect(error).toMatchObject({ kind: "protocol", mayHaveRun: true });
      expect(error.message).toContain(REASON);
      expect(error.message).not.toContain("timeoutMs");
      expect(await other).toMatchObject({ content: [{ text: "x".repeat(10) }] });
      expect(await client.callTool("t", { size: 5 })).toMatchObject({ content: [{ text: "xxxxx" }] });
    },
  );

  it("a result over the limit is replaced by an error in a server over HTTP", async () => {
    const { url = "" } = await serving(sized(), { http: { port: 0 }, limits });
    const client = await connected(url, { revision });
    const error = await failureOf(client.callTool("sized", { size: 3 * LIMIT }));
    expect(error).toBeInstanceOf(McpError);
    expect(error.message).toContain(REASON);
    expect(await client.callTool("sized", { size: 5 })).toMatchObject({ content: [{ text: "xxxxx" }] });
  });

  it("a result over the limit fails its call with the reason through a gateway", async () => {
    const command = { command: process.execPath, args: ["-e", program(TEXT, true)] };
    const gateway = chain().to({ p: upstream(command, { limits, remember: false }), q: upstream(sized()) });
    const { url = "" } = await serving(gateway, { http: { port: 0 } });
    const client = await connected(url, { revision });
    const error = await failureOf(client.callTool("t", { size: 3 * LIMIT }));
    expect(error).toBeInstanceOf(McpError);
    expect(error.message).toContain(REASON);
    expect(await client.callTool("t", { size: 5 })).toMatchObject({ content: [{ text: "xxxxx" }] });
  });
});

describe.each(STYLES)("arguments over the limit (%s)", (_style, revision) => {
  const long = { pad: "y".repeat(3 * LIMIT) };

  it("arguments over the limit are not sent to a program, and fail their call", async () => {
    const command = { command: process.execPath, args: ["-e", program(TEXT, true)] };
    const client = await connected(command, { revision, limits });
    const error = await failureOf(client.callTool("t", long));
    expect(error).toMatchObject({ kind: "protocol", mayHaveRun: false, message: REASON });
    expect(await client.callTool("t", { size: 5 })).toMatchObject({ content: [{ text: "xxxxx" }] });
  });

  it("arguments over the limit are not sent over HTTP, and fail their call", async () => {
    const { url = "" } = await serving(sized(), { http: { port: 0 } });
    const client = await connected(url, { revision, limits });
    const error = await failureOf(client.callTool("sized", long));
    expect(error).toMatchObject({ kind: "protocol", mayHaveRun: false, message: REASON });
    expect(runs).toEqual([]);
    await client.callTool("sized", { size: 5 });
    expect(runs).toEqual([5]);
  });

  it("arguments over the limit are refused with the reason by a server over HTTP", async () => {
    const { url = "" } = await serving(sized(), { http: { port: 0 }, limits });
    const client = await connected(url, { revision });
    const error = await failureOf(client.callTool("sized", long));
    expect(error.message).toContain(REASON);
    await client.callTool("sized", { size: 5 });
    expect(runs).toEqual([5]);
  });

  it("arguments over the limit fail their call with the reason through a gateway", async () => {
    const command = { command: process.execPath, args: ["-e", program(TEXT, true)] };
    const gateway = chain().to({ p: upstream(command, { limits, remember: false }), q: upstream(sized()) });
    const { url = "" } = await serving(gateway, { http: { port: 0 } });
    const client = await connected(url, { revision });
    const error = await failureOf(client.callTool("t", long));
    expect(error.message).toContain(REASON);
    expect(await client.callTool("t", { size: 5 })).toMatchObject({ content: [{ text: "xxxxx" }] });
  });
});

/** Serves on streams; returns the answers by id. */
async function stdio(): Promise<{ write(line: string): void; answer(id: unknown): Promise<unknown> }> {
  const [input, output] = [new PassThrough(), new PassThrough()];
  let text = "";
  output.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
  await serving(sized(), { stdio: { input, output }, limits });
  const find = (id: unknown): unknown =>
    text
      .split("\n")
      .slice(0, -1)
      .map((line) => JSON.parse(line) as { id: unknown })
      .find((message) => message.id === id);
  return {
    write: (line) => input.write(`${line}\n`),
    answer: async (id) => {
      await expect.poll(() => find(id)).toBeDefined();
      return find(id);
    },
  };
}

it("a request over the limit on stdio is answered with an error for its id, wherever that is, and others are answered", async () => {
  const { write, answer } = await stdio();
  const params = { name: "sized", arguments: { pad: "y".repeat(3 * LIMIT) } };
  write(JSON.stringify({ jsonrpc: "2.0", id: "first", method: "tools/call", params }));
  write(JSON.stringify({ method: "tools/call", params, jsonrpc: "2.0", id: 7 }));
  write(JSON.stringify({ method: "notifications/progress", params, jsonrpc: "2.0" }));
  write(JSON.stringify({ jsonrpc: "2.0", id: 8, method: "ping" }));
  expect(await answer("first")).toMatchObject({ error: { code: -32600, message: REASON } });
  expect(await answer(7)).toMatchObject({ error: { code: -32600, message: REASON } });
  expect(await answer(8)).toMatchObject({ result: {} });
  expect(runs).toEqual([]);
});

it("a question over the limit of a program is answered with the reason", async () => {
  const script = `${program(TEXT, true)}
      require("node:readline").createInterface({ input: process.stdin }).on("line", (line) => {
        const { id, method, error } = JSON.parse(line);
        if (method === "notifications/initialized")
          console.log(JSON.stringify({ method: "sampling/createMessage", params: { pad: "x".repeat(${3 * LIMIT}) }, jsonrpc: "2.0", id: "q" }));
        if (id === "q") console.error(error.message);
      });`;
  let stderr = "";
  const options = { revision: NEWEST_SESSION.name, limits, onStderr: (text: string) => void (stderr += text) };
  await connected({ command: process.execPath, args: ["-e", script] }, options);
  await expect.poll(() => stderr).toContain(REASON);
});

it("messages of several megabytes pass in both directions by default: stdio, HTTP, a gateway", async () => {
  const echo = `(args) => ({ resultType: "complete", content: [{ type: "text", text: args.text }] })`;
  const command = { command: process.execPath, args: ["-e", program(echo, true)] };
  const text = "z".repeat(5 * 1024 * 1024);
  const lengthOf = async (client: Client): Promise<number> => {
    const { content } = await client.callTool("t", { text });
    return (content[0] as { text: string }).text.length;
  };
  expect(await lengthOf(await connected(command, { revision: NEWEST_SESSION.name }))).toBe(text.length);
  const { url = "" } = await serving(chain().to(upstream(command, { remember: false })), { http: { port: 0 } });
  for (const [, revision] of STYLES) expect(await lengthOf(await connected(url, { revision }))).toBe(text.length);
});
