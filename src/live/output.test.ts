// Captured output is cut at its start or end, but never within a character.

import { expect, it, vi } from "vitest";
import { firstChars, lastChars } from "../core/text.ts";
import { BackgroundOutput, OutputCapture, withoutMemoryReport } from "./output.ts";

const FACE = "\u{1f600}";

it("cuts between two characters", () => {
  expect(firstChars(`a${FACE}b`, 2)).toBe("a");
  expect(firstChars(`a${FACE}b`, 3)).toBe(`a${FACE}`);
  expect(lastChars(`a${FACE}b`, 2)).toBe("b");
  expect(lastChars(`a${FACE}b`, 3)).toBe(`${FACE}b`);
  expect([firstChars(FACE, 2), lastChars(FACE, 2)]).toEqual([FACE, FACE]);
});

it("reports and keeps whole characters", () => {
  const onProgress = vi.fn<(text: string, total: number) => void>();
  const capture = new OutputCapture(4, onProgress);
  const text = `${FACE.repeat(3_000)}x`;
  capture.write(text, "stdout");
  capture.close();
  const background = new BackgroundOutput();
  background.write(text, "stdout");
  expect(onProgress.mock.calls).toEqual([[`${FACE.repeat(999)}x`, 6_001]]);
  expect(capture.captured("stdout")).toEqual({ text: FACE.repeat(2), total: 6_001 });
  expect(background.take()).toBe(`${FACE.repeat(1_999)}x`);
});

it("finds the report of a process without memory in output that nearly has one at each line", () => {
  const output = `${"FATAL ERROR: ".repeat(70_000)}\nHeap exhausted`;
  expect(withoutMemoryReport(output)).toBe(output);
  const report = "FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory\n 1: 0xb";
  expect(withoutMemoryReport(`before\n${report}`)).toBe("before\n");
});
