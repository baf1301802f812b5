// The memory that the client needs for results of ten megabytes: the peak of the process above its size when idle, relative
// to the bytes of one response. At the peak there should be the bytes and the string of the result, and no more.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { expect, it } from "vitest";
import { compiled } from "../../support/programs.ts";
import type { FaultyServerOptions } from "../../support/faulty-server/server.ts";
import { LEGACY_SSE, startServer, STYLES } from "./fixture.ts";

const BYTES = 10 * 1024 * 1024;
const PROGRAM = compiled("large-results-client.ts", import.meta.url);

interface Calls {
  readonly unit?: string;
  readonly count?: number;
}

/** The peak as a multiple of the bytes of one response. */
async function peakOf(
  options: FaultyServerOptions | undefined,
  { unit = "x", count = 1 }: Calls = {},
): Promise<number> {
  const server = await startServer(options);
  const args = ["--expose-gc", PROGRAM, server.url, unit, String(BYTES), String(count)];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
  const output: Buffer[] = [];
  child.stdout.on("data", (chunk: Buffer) => output.push(chunk));
  const [code] = await once(child, "close");
  expect(code).toBe(0);
  const { length, peak } = JSON.parse(Buffer.concat(output).toString()) as { length: number; peak: number };
  const units = Math.ceil(BYTES / Buffer.byteLength(unit));
  expect(length).toBe(units * unit.length * count);
  return peak / (units * (Buffer.byteLength(JSON.stringify(unit)) - 2));
}

const ways: readonly [string, FaultyServerOptions | undefined][] = [
  ["as JSON", STYLES["stateless"]],
  ["as an event", STYLES["stateless with SSE"]],
  ["as an event of a session", STYLES["sessions"]],
  ["over legacy HTTP+SSE", LEGACY_SSE],
];

it.runIf(process.platform === "linux").each(ways)(
  "a result of ten megabytes: %s takes at most three times its bytes",
  async (_, options) => {
    expect(await peakOf(options)).toBeLessThanOrEqual(3);
  },
);

// Earlier results are garbage. V8 may keep up to two that were in use during a collection.
it.runIf(process.platform === "linux").each(ways)(
  "a result of ten megabytes: %s, five times in a row, takes at most five times the bytes of one",
  async (_, options) => {
    expect(await peakOf(options, { count: 5 })).toBeLessThanOrEqual(5);
  },
);

it.runIf(process.platform === "linux").each(ways)(
  "a result of ten megabytes: %s takes no more with lines and quotes in it",
  async (_, options) => {
    const unit = 'The quick brown fox says "no"\nto the lazy dog.\n';
    expect(await peakOf(options, { unit })).toBeLessThanOrEqual(3);
  },
);

// V8 stores a string with characters beyond Latin-1 in two bytes per character. With the bytes of the response, that is
// three times the bytes, plus other memory of the process.
it.runIf(process.platform === "linux").each(ways)(
  "a result of ten megabytes: %s takes little more with characters beyond Latin-1",
  async (_, options) => {
    const unit = `${"x".repeat(1_000)}\u{1F600}`;
    expect(await peakOf(options, { unit })).toBeLessThanOrEqual(3.4);
  },
);
