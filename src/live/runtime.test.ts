// Frames that arrive in pieces, and invalid frames.

import fc from "fast-check";
import { PassThrough } from "node:stream";
import { expect, it, vi } from "vitest";
import { PacedReader } from "../core/turn-budget.ts";
import { frame, FrameReader } from "./frames.ts";

function read(bytes: Buffer, size: number): string[] {
  const frames: string[] = [];
  const reader = new FrameReader(
    (text) => frames.push(text),
    () => 1_000_000,
  );
  for (let at = 0; at < bytes.length; at += size) reader.push(bytes.subarray(at, at + size));
  return frames;
}

it("reads frames wherever they are split", () => {
  const texts = fc.array(fc.string({ unit: "grapheme" }), { maxLength: 6 });
  fc.assert(
    fc.property(texts, fc.integer({ min: 1, max: 40 }), (sent, size) => {
      expect(read(Buffer.from(sent.map(frame).join("")), size)).toEqual(sent);
    }),
    { numRuns: 200 },
  );
});

it.each(["x\n", "\n", "12x\nabc", "123456789012345\n", "999999999999\n"])("refuses %j", (text) => {
  expect(() => read(Buffer.from(text), 3)).toThrow(/frame/);
});

it("handles as many tiny frames in one turn as its budget allows, and all of them in order", async () => {
  let now = 1_000;
  vi.spyOn(performance, "now").mockImplementation(() => now);
  const handled: number[] = [];
  const frames = new FrameReader(
    (text) => {
      handled.push(Number(text));
      now += 1;
    },
    () => 100,
  );
  const input = new PassThrough();
  new PacedReader(input, { take: (chunk, from) => frames.take(chunk, from) }).start();
  const sent = Array.from({ length: 100 }, (_, at) => at);
  input.write(sent.map((at) => frame(String(at))).join(""));
  const turns: number[] = [];
  for (let left = 100; left > 0 && handled.length < 100; left -= 1) {
    const before = handled.length;
    await new Promise((resolve) => setImmediate(resolve));
    turns.push(handled.length - before);
  }
  vi.restoreAllMocks();
  expect(handled).toEqual(sent);
  expect(Math.max(...turns)).toBeLessThanOrEqual(6);
});
