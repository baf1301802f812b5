// What is printed, cut at its beginning or at its end: never through the middle of a character.

import { expect, it, vi } from "vitest";
import { Background, Capture, first, last } from "./output.ts";

const FACE = "\u{1f600}";

it("is cut between two characters", () => {
  expect(first(`a${FACE}b`, 2)).toBe("a");
  expect(first(`a${FACE}b`, 3)).toBe(`a${FACE}`);
  expect(last(`a${FACE}b`, 2)).toBe("b");
  expect(last(`a${FACE}b`, 3)).toBe(`${FACE}b`);
  expect([first(FACE, 2), last(FACE, 2)]).toEqual([FACE, FACE]);
});

it("is told and kept in whole characters", () => {
  const tell = vi.fn<(text: string, total: number) => void>();
  const capture = new Capture(4, tell);
  const text = `${FACE.repeat(3_000)}x`;
  capture.hear(text, "stdout");
  capture.close();
  const background = new Background();
  background.keep(text, "stdout");
  expect(tell.mock.calls).toEqual([[`${FACE.repeat(999)}x`, 6_001]]);
  expect(capture.of("stdout")).toEqual({ text: FACE.repeat(2), total: 6_001 });
  expect(background.take()).toBe(`${FACE.repeat(1_999)}x`);
});
