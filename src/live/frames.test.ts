// Frames, cut anywhere, and what is none.

import fc from "fast-check";
import { expect, it } from "vitest";
import { frame, FrameReader } from "./frames.ts";

function read(bytes: Buffer, size: number): string[] {
  const taken: string[] = [];
  const reader = new FrameReader(
    (text) => taken.push(text),
    () => 1_000_000,
  );
  for (let at = 0; at < bytes.length; at += size) reader.push(bytes.subarray(at, at + size));
  return taken;
}

it("come out as they were put in, wherever they are cut", () => {
  const texts = fc.array(fc.string({ unit: "grapheme" }), { maxLength: 6 });
  fc.assert(
    fc.property(texts, fc.integer({ min: 1, max: 40 }), (sent, size) => {
      expect(read(Buffer.from(sent.map(frame).join("")), size)).toEqual(sent);
    }),
    { numRuns: 200 },
  );
});

it.each(["x\n", "\n", "12x\nabc", "123456789012345\n", "999999999999\n"])("%j is none", (text) => {
  expect(() => read(Buffer.from(text), 3)).toThrow(/frame/);
});
