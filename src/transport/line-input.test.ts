// How much of a peer's input is handled in one turn of the event loop, and when its input waits.

import { PassThrough } from "node:stream";
import { afterEach, expect, it, vi } from "vitest";
import { LineInput } from "./line-input.ts";
import { LineWriter } from "./line-writer.ts";

const LIMIT = 4 * 1024 * 1024;
const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

afterEach(() => {
  vi.restoreAllMocks();
});

/** A clock that moves only when told to. */
function fakeClock(): { advance(ms: number): void } {
  let now = 1_000;
  vi.spyOn(performance, "now").mockImplementation(() => now);
  return { advance: (ms) => (now += ms) };
}

interface Stage {
  readonly input: PassThrough;
  readonly lines: LineInput;
  readonly got: string[];
}

function stage(
  onLine: () => void = () => undefined,
  isBehind = (): boolean => false,
  output = new PassThrough(),
): Stage {
  const input = new PassThrough({ highWaterMark: 1024 * 1024 });
  const got: string[] = [];
  const writer = new LineWriter(output, LIMIT, () => undefined);
  const lines = new LineInput(input, writer, {
    isBehind,
    maxBytes: LIMIT,
    onLine: (text) => {
      got.push(text);
      onLine();
    },
    onFault: () => {
      got.push("fault");
      onLine();
    },
  });
  lines.start();
  return { input, lines, got };
}

it.each([
  ["{}", "{}\n"],
  ["invalid UTF-8", Buffer.from([0xff, 10])],
  ["a request", '{"jsonrpc":"2.0","id":1,"method":"x"}\n'],
])("LineInput yields to others after a few milliseconds of lines: %s", async (_name, line) => {
  const clock = fakeClock();
  const { input, got } = stage(() => clock.advance(1));
  const bytes = Buffer.concat(Array.from({ length: 1_000 }, () => Buffer.from(line)));
  input.write(bytes);
  const perTurn: number[] = [];
  while (got.length < 1_000) {
    const before = got.length;
    await nextTurn();
    perTurn.push(got.length - before);
  }
  // The clock is read every 64 lines.
  expect(Math.max(...perTurn)).toBe(64);
});

it("LineInput counts all full chunks of one turn together", async () => {
  const clock = fakeClock();
  const { input, got } = stage(() => clock.advance(1));
  const full = Buffer.from(`${"x".repeat(64 * 1024 - 1)}\n`);
  for (let chunk = 0; chunk < 32; chunk += 1) input.write(full);
  let turns = 0;
  for (; got.length < 32; turns += 1) await nextTurn();
  expect(got).toHaveLength(32);
  // Each takes a millisecond, and six are more than five.
  expect(turns).toBeGreaterThanOrEqual(5);
});

it("LineInput does not pause, and reads the clock once, for a chunk of few lines", () => {
  const now = vi.spyOn(performance, "now");
  const { input, got } = stage();
  const pause = vi.spyOn(input, "pause");
  now.mockClear();
  // The listener of the input, without the stream's and the test runner's own use of the clock.
  input.emit("data", Buffer.from("a\n".repeat(60)));
  expect(got).toHaveLength(60);
  expect(pause).not.toHaveBeenCalled();
  expect(now).toHaveBeenCalledTimes(1);
});

it("LineInput keeps order, delivers the rest at the end, and drops it after stop", async () => {
  const clock = fakeClock();
  const numbered = Array.from({ length: 500 }, (_, at) => `${at}`);
  for (const how of ["end", "stop"] as const) {
    const { input, lines, got } = stage(() => clock.advance(1));
    input.write(numbered.join("\n"));
    await nextTurn();
    const before = got.length;
    expect(before).toBeLessThan(500);
    lines[how]();
    expect(got).toEqual(how === "end" ? numbered : numbered.slice(0, before));
    await nextTurn();
    await nextTurn();
    expect(got).toHaveLength(how === "end" ? 500 : before);
  }
});

it("LineInput waits while the peer is behind, until the output has drained or failed", async () => {
  for (const how of ["read", "destroy"] as const) {
    const output = new PassThrough({ highWaterMark: 10 });
    output.on("error", () => undefined);
    output.write("x".repeat(100));
    let behind = true;
    const { input, got } = stage(undefined, () => behind, output);
    input.write("a\n".repeat(100));
    for (let turn = 0; turn < 10; turn += 1) await nextTurn();
    expect(got).toHaveLength(64);
    behind = false;
    if (how === "read") output.resume();
    else output.destroy();
    while (got.length < 100) await nextTurn();
    expect(got).toHaveLength(100);
  }
});
