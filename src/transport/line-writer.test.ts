// Writing to a pipe that is slow, full or closed.

import { Writable } from "node:stream";
import { expect, it } from "vitest";
import { ConnectionError } from "../core/errors.ts";
import type { Message } from "../jsonrpc/message.ts";
import { LineWriter } from "./line-writer.ts";

const ping: Message = { jsonrpc: "2.0", method: "ping" };
const LINE = '{"jsonrpc":"2.0","method":"ping"}\n';

/** A stream that completes each write only on request. */
function slow(highWaterMark: number): { output: Writable; writes: string[]; take(): void } {
  const writes: string[] = [];
  const waiting: (() => void)[] = [];
  const output = new Writable({
    highWaterMark,
    write(chunk: Buffer, _encoding, done) {
      writes.push(chunk.toString());
      waiting.push(done);
    },
  });
  return { output, writes, take: () => waiting.shift()?.() };
}

const LIMIT = 4 * 1024 * 1024;

it("LineWriter writes once for all messages of a tick and its microtasks", async () => {
  const { output, writes, take } = slow(1e6);
  const writer = new LineWriter(output, LIMIT, () => {});
  for (let count = 0; count < 100; count += 1) void writer.send(ping);
  await Promise.resolve().then(() => writer.send([ping, ping]));
  await new Promise(setImmediate);
  expect(writes).toEqual([LINE.repeat(100) + `[${LINE.trim()},${LINE.trim()}]\n`]);
  take();
});

it("LineWriter returns the same settled promise while the pipe is not full", () => {
  const writer = new LineWriter(slow(1e6).output, LIMIT, () => {});
  expect(writer.send(ping)).toBe(writer.send(ping));
});

it("LineWriter makes senders wait until a full stream has drained", async () => {
  const { output, take } = slow(10);
  const writer = new LineWriter(output, LIMIT, () => {});
  let drained = false;
  const sent = writer.send(ping).then(() => {
    drained = true;
  });
  await new Promise(setImmediate);
  expect(drained).toBe(false);
  take();
  await sent;
  expect(drained).toBe(true);
});

it("LineWriter rejects waiting senders when the stream fails instead, and reports it once", async () => {
  const { output } = slow(10);
  const broken: ConnectionError[] = [];
  const writer = new LineWriter(output, LIMIT, (error) => broken.push(error));
  const first = writer.send(ping);
  const second = writer.send(ping);
  output.destroy(new Error("write EPIPE"));
  await expect(first).rejects.toMatchObject({ kind: "closed", message: "the pipe is closed: write EPIPE" });
  await expect(second).rejects.toBeInstanceOf(ConnectionError);
  await expect(writer.send(ping)).rejects.toMatchObject({ kind: "closed" });
  expect(broken).toHaveLength(1);
});

it("LineWriter refuses a message that has no JSON, and continues", async () => {
  const { output, writes } = slow(1e6);
  const writer = new LineWriter(output, LIMIT, () => {});
  const circle: Record<string, unknown> = {};
  circle["self"] = circle;
  await expect(writer.send({ jsonrpc: "2.0", method: "x", params: circle })).rejects.toMatchObject({
    kind: "protocol",
  });
  await writer.send(ping);
  await new Promise(setImmediate);
  expect(writes).toEqual([LINE]);
});

it("LineWriter notices a stream that was ended elsewhere", async () => {
  const { output } = slow(1e6);
  const broken: ConnectionError[] = [];
  const writer = new LineWriter(output, LIMIT, (error) => broken.push(error));
  output.end();
  await writer.send(ping);
  await new Promise(setImmediate);
  expect(broken).toHaveLength(1);
});

it("LineWriter finishes when everything is taken, or at its timeout", async () => {
  const { output, take } = slow(1e6);
  const writer = new LineWriter(output, LIMIT, () => {});
  void writer.send(ping);
  await writer.finish(0);
  expect(output.writableLength).toBe(LINE.length);
  const finished = writer.finish(20_000);
  const taking = setInterval(take, 1);
  await finished;
  clearInterval(taking);
  expect(output.writableLength).toBe(0);
});
