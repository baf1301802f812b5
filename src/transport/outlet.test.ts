// Writing to a pipe that is slow, full, or gone.

import { Writable } from "node:stream";
import { describe, expect, it } from "vitest";
import { ConnectionError } from "../core/errors.ts";
import type { Message } from "../jsonrpc/message.ts";
import { Outlet } from "./outlet.ts";

const ping: Message = { jsonrpc: "2.0", method: "ping" };
const LINE = '{"jsonrpc":"2.0","method":"ping"}\n';

/** A stream that takes each write only when told to. */
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

describe("an outlet", () => {
  it("writes once for all that is sent in one tick, also from microtasks of it", async () => {
    const { output, writes, take } = slow(1e6);
    const outlet = new Outlet(output, LIMIT, () => {});
    for (let count = 0; count < 100; count += 1) void outlet.send(ping);
    await Promise.resolve().then(() => outlet.send([ping, ping]));
    await new Promise(setImmediate);
    expect(writes).toEqual([LINE.repeat(100) + `[${LINE.trim()},${LINE.trim()}]\n`]);
    take();
  });

  it("gives the same settled promise while there is room", () => {
    const outlet = new Outlet(slow(1e6).output, LIMIT, () => {});
    expect(outlet.send(ping)).toBe(outlet.send(ping));
  });

  it("holds back who sends more than the stream can take, until it has drained", async () => {
    const { output, take } = slow(10);
    const outlet = new Outlet(output, LIMIT, () => {});
    let drained = false;
    const sent = outlet.send(ping).then(() => {
      drained = true;
    });
    await new Promise(setImmediate);
    expect(drained).toBe(false);
    take();
    await sent;
    expect(drained).toBe(true);
  });

  it("settles all who wait when the stream dies instead, and says so once", async () => {
    const { output } = slow(10);
    const broken: ConnectionError[] = [];
    const outlet = new Outlet(output, LIMIT, (error) => broken.push(error));
    const first = outlet.send(ping);
    const second = outlet.send(ping);
    output.destroy(new Error("write EPIPE"));
    await expect(first).rejects.toMatchObject({ kind: "closed", message: "the pipe is closed: write EPIPE" });
    await expect(second).rejects.toBeInstanceOf(ConnectionError);
    await expect(outlet.send(ping)).rejects.toMatchObject({ kind: "closed" });
    expect(broken).toHaveLength(1);
  });

  it("refuses what is no JSON and carries on", async () => {
    const { output, writes } = slow(1e6);
    const outlet = new Outlet(output, LIMIT, () => {});
    const circle: Record<string, unknown> = {};
    circle["self"] = circle;
    await expect(outlet.send({ jsonrpc: "2.0", method: "x", params: circle })).rejects.toMatchObject({
      kind: "protocol",
    });
    await outlet.send(ping);
    await new Promise(setImmediate);
    expect(writes).toEqual([LINE]);
  });

  it("notices a stream that was ended behind its back", async () => {
    const { output } = slow(1e6);
    const broken: ConnectionError[] = [];
    const outlet = new Outlet(output, LIMIT, (error) => broken.push(error));
    output.end();
    await outlet.send(ping);
    await new Promise(setImmediate);
    expect(broken).toHaveLength(1);
  });

  it("finishes when all is taken, and without patience at once", async () => {
    const { output, take } = slow(1e6);
    const outlet = new Outlet(output, LIMIT, () => {});
    void outlet.send(ping);
    await outlet.finish(0);
    expect(output.writableLength).toBe(LINE.length);
    const finished = outlet.finish(20_000);
    const taking = setInterval(take, 1);
    await finished;
    clearInterval(taking);
    expect(output.writableLength).toBe(0);
  });
});
