// The peak memory of long events and bodies, measured in separate processes by the system. The chunks of events are
// garbage that V8 collects when it likes, so the memory of the same chunks without a reader is measured too and allowed
// on top. Bodies come through a socket and get no allowance: there the collector runs after every 32 chunks.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { compiledImport } from "../../../test/support/programs.ts";

const MIB = 1024 * 1024;
const BYTES = 10 * MIB;
const CHUNK_BYTES = 16 * 1024;
/** The used part of V8's young generation varies; less than half was never seen. */
const CHANCE = 8 * MIB;
/** Memory that may remain after collection. */
const KEPT = 4 * MIB;

interface Measured {
  count: number;
  peak: number;
  kept: number;
  /** The most memory in use at a moment at which the collector had just run, and before the reading. */
  held?: number;
  before?: number;
}

/** Runs `read` of the script in a new process, first to warm up, then measured. It returns how many were complete. */
async function measure(script: string): Promise<Measured> {
  const measured = `
    ${script}
    await read(64 * 1024, 50);
    gc();
    const before = process.memoryUsage();
    // Not the memory of this moment: on a busy machine the system takes back what the start has used.
    const { maxRSS } = process.resourceUsage();
    const count = await read(${BYTES}, 5);
    const peak = (process.resourceUsage().maxRSS - maxRSS) * 1024;
    // Memory outside the heap is freed by a thread that the next collection waits for.
    gc();
    await new Promise(setImmediate);
    gc();
    const after = process.memoryUsage();
    const kept = after.heapUsed + after.external - before.heapUsed - before.external;
    const most = globalThis.held?.();
    console.log(JSON.stringify({ count, peak, kept, held: most, before: before.heapUsed + before.external }));
  `;
  // With one thread and a small young generation, the collector depends less on how busy the machine is.
  const flags = ["--expose-gc", "--single-threaded-gc", "--max-semi-space-size=1"];
  const child = spawn(process.execPath, [...flags, "--input-type=module", "-e", measured], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const output: Buffer[] = [];
  child.stdout.on("data", (chunk: Buffer) => output.push(chunk));
  const [code] = await once(child, "close");
  expect(code).toBe(0);
  return JSON.parse(Buffer.concat(output).toString()) as Measured;
}

async function compare(kept: string, thrownAway: string): Promise<void> {
  const control = await measure(thrownAway);
  const subject = await measure(kept);
  expect(control.count).toBe(5);
  expect(subject.count).toBe(5);
  expect(subject.peak).toBeLessThanOrEqual(3 * BYTES + control.peak + CHANCE);
  expect(subject.kept).toBeLessThanOrEqual(KEPT);
}

const READER = compiledImport("sse-reader.ts", import.meta.url);
const REQUESTER = compiledImport("node-requester.ts", import.meta.url);

const body = (unit: string): string => `
    const { readSse } = await import(${READER});
    const unit = Buffer.from(${JSON.stringify(unit.repeat(CHUNK_BYTES / Buffer.byteLength(unit)))});
    async function* body(bytes, count) {
      for (let event = 0; event < count; event += 1) {
        yield Buffer.from("id: 1\\ndata: ");
        for (let sent = 0; sent < bytes; sent += unit.length) yield Buffer.from(unit);
        yield Buffer.from("\\n\\n");
        await new Promise(setImmediate);
      }
    }
  `;
const kept = `
    async function read(bytes, count) {
      let whole = 0;
      const onEvent = ({ data }) => (whole += data.toString().length > bytes / 3 ? 1 : 0);
      await readSse(body(bytes, count), { maxBytes: bytes + ${CHUNK_BYTES}, onEvent });
      return whole;
    }
  `;
const thrownAway = `
    async function read(bytes, count) {
      let whole = 0;
      for await (const chunk of body(bytes, count)) if (chunk.length === 2) whole += 1;
      return whole;
    }
  `;

it.each([
  ["of one line", "abcdefgh"],
  ["of many lines", `${"x".repeat(121)}\ndata: `],
  ["in other scripts", "\u00e9\u20ac\u{1F600}\u044f\u4e2d\u{1F680}"],
  ["with one character that doubles the size of the string", `${"a".repeat(CHUNK_BYTES - 4)}\u{1F600}`],
])("events of 10 MiB, five in a row: %s take no more than 3 times their bytes", async (_what, unit) => {
  await compare(body(unit) + kept, body(unit) + thrownAway);
});

describe("bodies of 10 MiB, five in a row", () => {
  const server = createServer((request, response) => {
    const unit = Buffer.alloc(CHUNK_BYTES, "x");
    let left = Number(new URL(request.url ?? "/", "http://end").searchParams.get("bytes"));
    const send = (): void => {
      while (left > 0) {
        left -= unit.length;
        if (!response.write(unit)) return void response.once("drain", send);
      }
      response.end();
    };
    send();
  });
  beforeAll(async () => {
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
  });
  afterAll(async () => {
    server.close();
    server.closeAllConnections();
    await once(server, "close");
  });

  const reading = (lengthOf: string): string => `
    const { Readable } = await import("node:stream");
    const { push } = Readable.prototype;
    let pushed = 0;
    let held = 0;
    Readable.prototype.push = function (...chunk) {
      if (++pushed % 32 === 0) {
        gc();
        const { heapUsed, external } = process.memoryUsage();
        held = Math.max(held, heapUsed + external);
      }
      return push.apply(this, chunk);
    };
    globalThis.held = () => held;
    const { nodeRequester } = await import(${REQUESTER});
    const ask = nodeRequester();
    async function read(bytes, count) {
      let whole = 0;
      for (let asked = 0; asked < count; asked += 1) {
        const url = new URL("http://127.0.0.1:${(server.address() as AddressInfo).port}/?bytes=" + bytes);
        const answer = await ask({ method: "GET", url, headers: {} });
        let length = 0;
        ${lengthOf}
        if (length === bytes) whole += 1;
      }
      return whole;
    }
  `;

  it("bodies of 10 MiB, five in a row as strings take no more than 4 times the bytes of one", async () => {
    // The bytes and their string, and the previous string if it is not collected yet.
    const { count, peak, kept } = await measure(reading("length = (await answer.text(bytes)).length;"));
    expect(count).toBe(5);
    expect(peak).toBeLessThanOrEqual(4 * BYTES);
    expect(kept).toBeLessThanOrEqual(KEPT);
  });

  // Not the memory of the process: what the allocator keeps depends on the machine.
  it("bodies of 10 MiB, five in a row are not held when read as a stream", async () => {
    const stream = reading("for await (const chunk of answer.body) length += chunk.length;");
    const { count, kept, held = Infinity, before = 0 } = await measure(stream);
    expect(count).toBe(5);
    expect(held - before).toBeLessThanOrEqual(BYTES / 2);
    expect(kept).toBeLessThanOrEqual(KEPT);
  });
});
