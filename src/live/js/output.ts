// How a guest prints: each write to stdout and stderr is done when it returns. So a program that prints without end
// waits for its reader instead of filling its memory, what it printed stands in the pipe before its result stands in the
// channel, and there is nothing half done where it is terminated in the middle of printing.

import { writeSync } from "node:fs";

const toBytes = Buffer.from.bind(Buffer) as (text: string, encoding?: BufferEncoding) => Buffer;
const later = process.nextTick.bind(process);

export function printAtOnce(): void {
  for (const stream of [process.stdout, process.stderr]) {
    const { fd } = stream;
    const { _handle: handle } = stream as { readonly _handle?: { setBlocking?(isBlocking: boolean): void } };
    handle?.setBlocking?.(true);
    stream.write = (chunk: string | Uint8Array, encoding?: unknown, done?: unknown): boolean => {
      print(fd, typeof chunk === "string" ? toBytes(chunk, encodingOf(encoding)) : chunk);
      const callback = typeof encoding === "function" ? encoding : done;
      if (typeof callback === "function") later(callback);
      return true;
    };
  }
}

function encodingOf(given: unknown): BufferEncoding | undefined {
  return typeof given === "string" ? (given as BufferEncoding) : undefined;
}

function print(fd: number, bytes: Uint8Array): void {
  try {
    for (let from = 0; from < bytes.length;) from += writeSync(fd, bytes, from);
  } catch {
    // A reader that is gone is no fault of what prints.
  }
}
