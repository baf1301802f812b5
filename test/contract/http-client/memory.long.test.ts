// What results of ten megabytes cost the whole client, from the socket to the caller: the most that the process ever
// took, above what it took when it was idle, against the bytes of one answer. Nothing is subtracted for what Node
// leaves behind of its own reading. At the peak there are the bytes and the text that is the result, and no more.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import type { FaultyServerOptions } from "../../support/faulty-server/server.ts";
import { LEGACY_SSE, startServer, STYLES } from "./fixture.ts";

const BYTES = 10 * 1024 * 1024;
const CALLER = fileURLToPath(new URL("large-results-client.ts", import.meta.url));

interface Asked {
  readonly unit?: string;
  readonly count?: number;
}

/** The peak, as how many times the bytes of one answer. */
async function peakOf(options: FaultyServerOptions | undefined, { unit = "x", count = 1 }: Asked = {}): Promise<number> {
  const server = await startServer(options);
  const args = ["--expose-gc", "--import", "tsx", CALLER, server.url, unit, String(BYTES), String(count)];
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

describe.runIf(process.platform === "linux")("a result of ten megabytes", () => {
  const ways: readonly [string, FaultyServerOptions | undefined][] = [
    ["as JSON", STYLES["exchanges"]],
    ["as an event", STYLES["exchanges as streams"]],
    ["as an event of a session", STYLES["sessions"]],
    ["by the old pair of addresses", LEGACY_SSE],
  ];

  it.each(ways)("%s takes at most three times its bytes", async (_, options) => {
    expect(await peakOf(options)).toBeLessThanOrEqual(3);
  });

  // Those before are garbage, and ours no more. V8 finds one at the latest when it makes room for the next, except
  // that it keeps one longer that was in use while it collected: up to two such were seen.
  it.each(ways)("%s, five times in a row, takes at most five times the bytes of one", async (_, options) => {
    expect(await peakOf(options, { count: 5 })).toBeLessThanOrEqual(5);
  });

  it.each(ways)("%s takes no more with lines and quotes in it", async (_, options) => {
    const unit = 'The quick brown fox says "no"\nto the lazy dog.\n';
    expect(await peakOf(options, { unit })).toBeLessThanOrEqual(3);
  });

  // V8 keeps two bytes for each character of a text that has one beyond Latin-1: with those of the answer that is three
  // times the bytes, and what the process takes beside comes on top.
  it.each(ways)("%s takes little more with a character that makes its text twice as long", async (_, options) => {
    const unit = `${"x".repeat(1_000)}\u{1F600}`;
    expect(await peakOf(options, { unit })).toBeLessThanOrEqual(3.4);
  });
});
