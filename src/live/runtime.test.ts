// Frames that arrive in pieces, and invalid frames.

import fc from "fast-check";
import { expect, it } from "vitest";
import { frame, FrameReader } from "./runtime.ts";

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
