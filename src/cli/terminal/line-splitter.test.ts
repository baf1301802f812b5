// The lines of programs and of our own log: how many are passed on and kept when there are too many.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { afterEach, expect, it, vi } from "vitest";
import { compiledImport } from "../../../test/support/programs.ts";
import { LineSplitter, MAX_LINES_PER_SECOND } from "./line-splitter.ts";

afterEach(() => {
  vi.useRealTimers();
});

const numbered = (from: number, to: number): string[] => Array.from({ length: to - from }, (_, at) => `${from + at}`);

it("LineSplitter leaves out what is more than a number of lines in a second, and says how many", () => {
  vi.useFakeTimers({ now: 0 });
  const lines: string[] = [];
  const splitter = new LineSplitter((line) => lines.push(line));
  splitter.add(`${numbered(0, 10_000).join("\n")}\n`);
  expect(lines).toEqual(numbered(0, MAX_LINES_PER_SECOND));
  splitter.add("more\n");
  vi.advanceTimersByTime(1_000);
  expect(lines.slice(MAX_LINES_PER_SECOND)).toEqual([`(9501 lines left out: more than 500 in a second)`]);
  splitter.add("next\n");
  expect(lines.at(-1)).toBe("next");
});

it("LineSplitter passes on all lines of a program that writes fewer", () => {
  vi.useFakeTimers({ now: 0 });
  const lines: string[] = [];
  const splitter = new LineSplitter((line) => lines.push(line));
  for (let second = 0; second < 10; second += 1) {
    splitter.add(`${numbered(second * 400, (second + 1) * 400).join("\n")}\n`);
    vi.advanceTimersByTime(1_000);
  }
  expect(lines).toEqual(numbered(0, 4_000));
});

it("LineSplitter says at the end how many were left out", () => {
  const lines: string[] = [];
  const splitter = new LineSplitter((line) => lines.push(line));
  splitter.add("x\n".repeat(600));
  splitter.flush();
  expect(lines.slice(MAX_LINES_PER_SECOND)).toEqual(["(100 lines left out: more than 500 in a second)"]);
});

it("our stderr, if it is not read keeps a bounded amount, and says later how many lines were left out", async () => {
  const script = `
      import { writeLines } from ${compiledImport("output.ts", import.meta.url)};
      for (let count = 0; count < 100_000; count += 1) writeLines(\`\${"x".repeat(100)}\\n\`);
      console.log(process.stderr.writableLength);`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", script], { stdio: ["ignore", "pipe", "pipe"] });
  // The process ends only when its stderr has been read.
  const [kept] = (await once(child.stdout.setEncoding("utf8"), "data")) as [string];
  expect(Number(kept)).toBeGreaterThan(0);
  expect(Number(kept)).toBeLessThanOrEqual(1024 * 1024 + 101);
  let text = "";
  for await (const chunk of child.stderr.setEncoding("utf8")) text += chunk as string;
  const lines = text.split("\n").slice(0, -1);
  const leftOut = Number(/^catenary: (\d+) lines were left out here/.exec(lines.at(-1) ?? "")?.[1]);
  expect(lines.length - 1 + leftOut).toBe(100_000);
});
