// 100 MB that never come to a newline, in chunks of 4 KiB: refused, in bounded time and memory.

import { LineReader } from "../src/jsonrpc/framing.ts";
import { DEFAULT_LIMITS } from "../src/jsonrpc/codec.ts";
import type { Figure } from "./main.ts";

const TOTAL = 100 * 1024 * 1024;
const CHUNK = 4 * 1024;

export async function framingCosts(tell: (text: string) => void): Promise<Figure[]> {
  tell("framing: 100 MB without a newline");
  let faults = 0;
  const reader = new LineReader({
    maxBytes: DEFAULT_LIMITS.messageBytes,
    onLine: () => undefined,
    onFault: () => (faults += 1),
  });
  globalThis.gc?.();
  const before = process.memoryUsage.rss();
  let most = before;
  const begin = performance.now();
  for (let sent = 0; sent < TOTAL; sent += CHUNK) {
    // Each chunk is a new one, as a socket gives it.
    reader.push(Buffer.alloc(CHUNK, 97));
    if (sent % (1024 * 1024) === 0) most = Math.max(most, process.memoryUsage.rss());
  }
  const took = performance.now() - begin;
  if (faults !== 1) throw new Error(`refused ${faults} times instead of once`);
  const detail = "100 MB in 4 KiB chunks, no newline";
  return [
    { name: "unending line, time", value: took / 1000, unit: "s", bound: 1, detail },
    { name: "unending line, memory", value: (most - before) / 1024 / 1024, unit: "MB", bound: 20, detail },
  ];
}
