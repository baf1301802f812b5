// Streams as a transport: messages in both directions, and error responses to invalid input.

import { spawn } from "node:child_process";
import type { ChildProcessByStdio } from "node:child_process";
import { once } from "node:events";
import { PassThrough } from "node:stream";
import type { Readable, Writable } from "node:stream";
import { afterEach, describe, expect, it } from "vitest";
import { compiledImport } from "../../test/support/programs.ts";
import type { Message } from "../jsonrpc/message.ts";
import { stdioTransport, type StdioOptions } from "./stdio.ts";
import { messageOf, type SeenInbound } from "../../test/support/dialogue/seen-inbound.ts";
import type { Transport } from "./transport.ts";

const ping = (id: number): Message => ({ jsonrpc: "2.0", id, method: "ping" });

interface Stage {
  readonly input: PassThrough;
  readonly output: PassThrough;
  readonly got: SeenInbound[];
  readonly transport: Transport;
  said(): string;
}

/** A transport on two streams in memory that answers each request with its method. */
async function stage(options: StdioOptions = {}): Promise<Stage> {
  const input = new PassThrough();
  const output = new PassThrough();
  const got: SeenInbound[] = [];
  let said = "";
  output.on("data", (chunk: Buffer) => {
    said += chunk.toString();
  });
  const transport = stdioTransport({ input, output, ...options });
  await transport.start((inbound) => {
    got.push(inbound);
    const message = messageOf(inbound);
    if (message !== undefined && "method" in message && "id" in message)
      void transport.send({ jsonrpc: "2.0", id: message.id, result: { method: message.method } });
  });
  return { input, output, got, transport, said: () => said };
}

/** Like once(), but an error event is not a failure. */
function closed(stream: PassThrough): Promise<void> {
  return new Promise((resolve) => stream.once("close", resolve));
}

async function ended(input: PassThrough): Promise<void> {
  input.end();
  await once(input, "close");
  await new Promise(setImmediate);
}

it("stdioTransport delivers each message with its reply, however the bytes are cut", async () => {
  const text = '\ufeff{"jsonrpc":"2.0","id":1.0,"method":"é€"}\r\n\n  \n{"jsonrpc":"2.0","id":2,"method":"b"}\n';
  for (const size of [1, 2, 3, 7, 1000]) {
    const { input, got, said } = await stage();
    const bytes = Buffer.from(text);
    for (let at = 0; at < bytes.length; at += size) input.write(bytes.subarray(at, at + size));
    await ended(input);
    expect(got.map((one) => one.kind)).toEqual(["message", "message", "end"]);
    expect(said()).toBe(
      '{"jsonrpc":"2.0","id":1.0,"result":{"method":"é€"}}\n{"jsonrpc":"2.0","id":2,"result":{"method":"b"}}\n',
    );
  }
});

it("stdioTransport delivers invalid input with its error response, and continues", async () => {
  const { input, got, said } = await stage({ limits: { messageBytes: 60 } });
  input.write(`{"jsonrpc":\n${"x".repeat(100)}\n`);
  // A broken response gets no response, or two such peers would never stop.
  input.write('{"jsonrpc":"2.0","id":9,"result":{},"error":{}}\n');
  input.write('{"jsonrpc":"2.0","id":3,"method":"still here"}\n');
  await ended(input);
  const broken = { kind: "parse_error", details: "Unexpected end of JSON input" };
  const long = { kind: "invalid_request", details: "Message longer than 60 bytes (limits.messageBytes)" };
  expect(got.map(({ kind, fault }) => [kind, fault?.id, fault?.error])).toEqual([
    ["fault", null, { code: -32700, message: "Parse error", data: broken }],
    ["fault", null, { code: -32600, message: long.details, data: long }],
    ["fault", 9, expect.objectContaining({ code: -32600 })],
    ["message", undefined, undefined],
    ["end", undefined, undefined],
  ]);
  expect(said()).toBe('{"jsonrpc":"2.0","id":3,"result":{"method":"still here"}}\n');
});

it("stdioTransport delivers a batch as a whole, with error responses for invalid items, and writes one on one line", async () => {
  const { input, got, transport, said } = await stage();
  input.write('[{"jsonrpc":"2.0","id":1,"method":"a"},{"jsonrpc":"2.0","id":2}]\n');
  await ended(input);
  expect(got[0]?.kind).toBe("batch");
  expect(got[0]?.items).toMatchObject([
    { message: { method: "a" } },
    { fault: { id: 2, error: { code: -32600, data: "Missing required field: method" } } },
  ]);
  await transport.send([ping(1), ping(2)]);
  await new Promise(setImmediate);
  expect(said()).toBe('[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":2,"method":"ping"}]\n');
});

it("stdioTransport reads a last line without a newline, and can answer after the end of input", async () => {
  const { input, got, said } = await stage();
  input.write('{"jsonrpc":"2.0","id":1,"method":"last"}');
  await ended(input);
  expect(got.map((one) => one.kind)).toEqual(["message", "end"]);
  expect(said()).toContain('"method":"last"');
});

it("stdioTransport reports the end once when its output fails, and aborts running calls", async () => {
  const { input, output, got, transport } = await stage();
  input.write('{"jsonrpc":"2.0","method":"note"}\n');
  await new Promise(setImmediate);
  output.destroy(new Error("gone"));
  await closed(output);
  expect(got.map((one) => one.kind)).toEqual(["message", "end"]);
  expect(got[1]?.error).toMatchObject({ kind: "closed" });
  await expect(transport.send(ping(1))).rejects.toMatchObject({ kind: "closed" });
  await ended(input);
  expect(got).toHaveLength(2);
});

it("stdioTransport reports the end with the reason when its input fails", async () => {
  const { input, got } = await stage();
  input.destroy(new Error("read EIO"));
  await closed(input);
  expect(got).toMatchObject([
    { kind: "end", error: { kind: "closed", message: "reading the input failed: read EIO" } },
  ]);
});

it("stdioTransport ends at once if its input had already ended", async () => {
  const input = new PassThrough();
  input.destroy();
  const { got } = await stage({ input });
  await new Promise(setImmediate);
  expect(got.map((one) => one.kind)).toEqual(["end"]);
});

it("stdioTransport writes pending messages on close, ends its output, and receives nothing more", async () => {
  const { input, output, got, transport, said } = await stage();
  void transport.send(ping(1));
  const over = once(output, "end");
  await transport.close();
  await over;
  expect(said()).toBe('{"jsonrpc":"2.0","id":1,"method":"ping"}\n');
  input.write('{"jsonrpc":"2.0","id":1,"method":"late"}\n');
  await new Promise(setImmediate);
  expect(got).toEqual([]);
  await expect(transport.send(ping(2))).rejects.toMatchObject({ kind: "closed" });
  await expect(transport.start(() => {})).rejects.toThrow("already started");
});

describe("stdio on the process's own streams", () => {
  const running: ChildProcessByStdio<Writable, Readable, Readable>[] = [];
  const here = compiledImport("stdio.ts", import.meta.url);

  function run(script: string): ChildProcessByStdio<Writable, Readable, Readable> {
    const source = `import { stdioTransport } from ${here}; const transport = stdioTransport(); ${script}`;
    const args = ["--input-type=module", "-e", source];
    const started = spawn(process.execPath, args, { stdio: "pipe" });
    running.push(started);
    return started;
  }

  async function text(stream: Readable): Promise<string> {
    let all = "";
    for await (const chunk of stream) all += String(chunk);
    return all;
  }

  afterEach(async () => {
    for (const one of running.splice(0)) {
      if (one.exitCode === null && one.signalCode === null) {
        const exit = once(one, "exit");
        one.kill("SIGKILL");
        await exit;
      }
      expect(one.exitCode ?? one.signalCode).not.toBeNull();
    }
  });

  it("stdio on the process's own streams keeps the console off stdout while it serves", async () => {
    const server = run(`
      await transport.start((inbound) => { if (inbound.kind === "end") void transport.close().then(() => console.log("after")); });
      console.log("l%d", 1); console.info("i"); console.debug("d"); console.dir({ dir: 1 }); console.table([[1]]);
      console.group("g"); console.count("c"); console.dirxml("x"); console.error("e");
      await transport.send({ jsonrpc: "2.0", method: "m" });
    `);
    server.stdin.end();
    const [out, err] = await Promise.all([text(server.stdout), text(server.stderr)]);
    expect(out).toBe('{"jsonrpc":"2.0","method":"m"}\n  after\n');
    for (const word of ["l1", "i", "d", "{ dir: 1 }", "index", "g", "c: 1", "x", "e"]) expect(err).toContain(word);
  });

  it("stdio on the process's own streams survives a client that goes away, and reports it", async () => {
    const server = run(`
      await transport.start((inbound) => {
        if (inbound.kind !== "end") return;
        console.error(inbound.error?.kind);
        void transport.close();
      });
      const params = { text: "x".repeat(100_000) };
      try {
        for (;;) await transport.send({ jsonrpc: "2.0", method: "m", params });
      } catch (error) { console.error(error.kind); }
    `);
    await once(server.stdout, "data");
    server.stdout.destroy();
    const exit = once(server, "exit");
    expect((await text(server.stderr)).trim().split("\n").toSorted()).toEqual(["closed", "closed"]);
    expect(await exit).toEqual([0, null]);
  });

  it("stdio on the process's own streams lets the process exit after a close, although its input is still open", async () => {
    const server = run("await transport.start(() => {}); await transport.close();");
    expect(await once(server, "exit")).toEqual([0, null]);
  });

  it("stdio on the process's own streams has written everything when a close resolves, so that the process may exit", async () => {
    const server = run(`
      await transport.start(() => {});
      for (let id = 0; id < 200; id++) void transport.send({ jsonrpc: "2.0", id, result: { text: "x".repeat(5000) } });
      await transport.close();
      process.exit(0);
    `);
    const lines = (await text(server.stdout)).trim().split("\n");
    expect(lines).toHaveLength(200);
    expect(JSON.parse(lines[199] ?? "")).toMatchObject({ id: 199 });
  });
});
