// The progress line: redrawn in place on a terminal, plain lines elsewhere, nothing with `quiet`. Uses fake timers.

import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { ProgressLine, type Screen } from "./progress-line.ts";

const CLEAR = "\r\u001b[K";

function screen(isTTY: boolean, columns = 60): Screen & { written: string; lines: () => string[] } {
  return {
    isTTY,
    columns,
    written: "",
    write(text: string) {
      this.written += text;
    },
    lines() {
      return this.written.split("\n").slice(0, -1);
    },
  };
}

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

it("a progress line on a terminal draws a bar in place, and removes it at the end", () => {
  const stderr = screen(true);
  const line = new ProgressLine(stderr);
  line.progress({ progress: 1, total: 4, message: "first" });
  expect(stderr.written).toBe(`${CLEAR}[######------------------] 25% 1/4  first`);
  line.progress({ progress: 2, total: 4 });
  line.progress({ progress: 3, total: 4 });
  vi.advanceTimersByTime(100);
  expect(stderr.written.endsWith(`${CLEAR}[##################------] 75% 3/4`)).toBe(true);
  expect(stderr.written).not.toContain("2/4");
  line.stop();
  expect(stderr.written.endsWith(CLEAR)).toBe(true);
  expect(stderr.written).not.toContain("\n");
  expect(vi.getTimerCount()).toBe(0);
});

it("a progress line on a terminal counts without a total, and is never wider than the screen", () => {
  const stderr = screen(true, 20);
  const line = new ProgressLine(stderr);
  line.progress({ progress: 7.123, message: "a message that is too long" });
  expect(stderr.written).toBe(`${CLEAR}| 7.12  a messag...`);
});

it("a progress line on a terminal has no bar on a narrow screen", () => {
  const stderr = screen(true, 20);
  const line = new ProgressLine(stderr);
  line.progress({ progress: 1, total: 4, message: "first of all" });
  expect(stderr.written).toBe(`${CLEAR}| 25% 1/4  first...`);
});

it("a progress line on a terminal assumes 80 columns if the width is unknown", () => {
  const stderr = screen(true, 0);
  const line = new ProgressLine(stderr);
  line.progress({ progress: 1, total: 4 });
  expect(stderr.written).toBe(`${CLEAR}[######------------------] 25% 1/4`);
});

it("a progress line on a terminal ignores or sanitizes invalid progress", () => {
  const stderr = screen(true);
  const line = new ProgressLine(stderr);
  line.progress({ progress: Number.NaN, total: 3 });
  line.progress({ progress: "3" as unknown as number });
  expect(stderr.written).toBe("");
  line.progress({ progress: 9, total: 3, message: "over\u001b[2J\nand out" });
  expect(stderr.written).toBe(`${CLEAR}[${"#".repeat(24)}] 100% 9/3  over\\x1b[2J and out`);
  line.progress({ progress: -1, total: 0, message: {} as string });
  vi.advanceTimersByTime(100);
  expect(stderr.written.endsWith("/ -1")).toBe(true);
});

it("a progress line on a terminal shows what is going on only if it takes a while", () => {
  const stderr = screen(true);
  const line = new ProgressLine(stderr);
  line.busy("Connecting");
  vi.advanceTimersByTime(299);
  expect(stderr.written).toBe("");
  vi.advanceTimersByTime(1);
  expect(stderr.written).toBe(`${CLEAR}| Connecting`);
  vi.advanceTimersByTime(2_000);
  expect(stderr.written).toContain("Connecting 2 s");
  line.stop();
  line.busy("Quick");
  line.stop();
  expect(stderr.written).not.toContain("Quick");
});

it("a progress line on a terminal prints notes above it, and nothing while paused", () => {
  const stderr = screen(true);
  const line = new ProgressLine(stderr);
  line.progress({ progress: 1, total: 2 });
  line.note("a note");
  const bar = `${CLEAR}[############------------] 50% 1/2`;
  expect(stderr.written).toBe(`${bar}${CLEAR}a note\n${bar}`);
  const resume = line.pause();
  const before = stderr.written;
  line.note("later");
  line.progress({ progress: 2, total: 2 });
  vi.advanceTimersByTime(5_000);
  expect(stderr.written).toBe(before);
  resume();
  resume();
  expect(stderr.written.slice(before.length)).toMatch(/^later\n.*100% 2\/2$/s);
});

it("elsewhere writes at most one plain line per second, including the last", () => {
  const stderr = screen(false);
  const line = new ProgressLine(stderr);
  line.busy("Calling");
  for (let step = 1; step <= 25; step += 1) {
    line.progress({ progress: step, total: 25, message: `step ${step}` });
    vi.advanceTimersByTime(100);
  }
  expect(stderr.lines()).toEqual([
    "progress: 4% 1/25  step 1",
    "progress: 40% 10/25  step 10",
    "progress: 80% 20/25  step 20",
  ]);
  vi.advanceTimersByTime(1_000);
  expect(stderr.lines().at(-1)).toBe("progress: 100% 25/25  step 25");
  line.stop();
  expect(stderr.written).not.toContain("\r");
});

it("elsewhere does the same on a dumb terminal", () => {
  const stderr = screen(true);
  new ProgressLine(stderr, { dumb: true }).progress({ progress: 1, message: "x" });
  expect(stderr.written).toBe("progress: 1  x\n");
});

it("prints only notes with quiet", () => {
  for (const isTTY of [true, false]) {
    const stderr = screen(isTTY);
    const line = new ProgressLine(stderr, { quiet: true });
    line.busy("Connecting");
    line.progress({ progress: 1, total: 2 });
    vi.advanceTimersByTime(3_000);
    expect(stderr.written).toBe("");
    line.note("a note");
    expect(stderr.written).toBe("a note\n");
    line.stop();
  }
});
