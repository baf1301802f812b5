// Long texts are cut to head and tail, and kept within bounds; the transcript has the latest evaluations.

import { expect, it } from "vitest";
import type { CutText, EvaluationRecord } from "./evaluation.ts";
import { DEFAULT_LIMITS } from "./runtime.ts";
import { SessionLog } from "./session-log.ts";

const RECORD: EvaluationRecord = {
  session: "main",
  status: "ok",
  values: ["1"],
  stdout: "",
  stderr: "",
  warnings: [],
  truncated: { stdout: false, stderr: false },
  timing: { realMs: 1 },
  state: "kept",
};
const limits = { ...DEFAULT_LIMITS, outputChars: 10, valueChars: 4 };

it("a long text is cut to its head and tail, and can be read whole", () => {
  const log = new SessionLog("main");
  const { evaluation, truncated } = log.shorten(
    { ...RECORD, stdout: "abcde--------vwxyz", values: ["1234567"] },
    limits,
  );
  const { stdout, values: [value] = [] } = truncated ?? {};
  const number = (cut: CutText | undefined): number => Number(cut?.uri.split("/").at(-1));
  const gap = (left: string, cut: CutText | undefined, start: number): string =>
    `[${left} characters left out here; all are in ${cut?.uri}; ` +
    `inspect {"output": ${number(cut)}, "start": ${start}} shows them]`;
  expect(evaluation.stdout).toBe(`abcde\n${gap("8 of 18", stdout, 5)}\nvwxyz`);
  expect(evaluation.values[0]).toBe(`12\n${gap("3 of 7", value, 2)}\n67`);
  expect(stdout).toEqual({
    chars: 18,
    uri: expect.stringMatching(/^live:\/\/session\/main\/output\/\d+$/) as string,
  });
  expect(log.text(number(stdout))).toBe("abcde--------vwxyz");
  expect(value?.uri).not.toBe(stdout?.uri);
});

it("a long text is cut between lines, if it has lines", () => {
  const log = new SessionLog("main");
  expect(log.shortenText("one\ntwo\nthree\nfour\nfive\nsix\n", 18)).toMatch(
    /^one\ntwo\n\[11 of 28 characters left out here; [^\n]*"start": 8} shows them\]\nfive\nsix\n$/,
  );
});

it("a long text can be read in pages", () => {
  const log = new SessionLog("main");
  const number = Number(/"output": (\d+)/.exec(log.shortenText("abcdefghij", 4))?.[1]);
  expect(log.page(number, 2, 4)).toEqual({ text: "cdef\n[Characters 2 to 6 of 10; the next ones: start 6]" });
  expect(log.page(number, 6, 100)).toEqual({ text: "ghij\n[Characters 6 to 10 of 10]" });
  expect(log.page(number, 60, 100)).toEqual({ text: "[Characters 60 to 60 of 10]" });
  expect(log.page(0, 0, 1)).toEqual({
    text: `Session main has no long output 0; kept are ${number}`,
    isError: true,
  });
});

it("a long text says if not all of it was kept", () => {
  const { evaluation } = new SessionLog("main").shorten(
    { ...RECORD, stdout: "abcde", truncated: { stdout: 1_000_000, stderr: false } },
    limits,
  );
  expect(evaluation.stdout).toMatch(
    /^abcde\n\[999,995 of 1,000,000 characters left out here; the first 5 are in .*\]\n$/,
  );
});

it("a long text that fits is not copied", () => {
  const record = { ...RECORD, stdout: "0123456789" };
  expect(new SessionLog("main").shorten(record, limits)).toEqual({ evaluation: record, truncated: undefined });
});

it("a long text is forgotten when there are many, and numbers are never used twice", () => {
  const logs = [new SessionLog("a"), new SessionLog("b")];
  const numbers = Array.from({ length: 50 }, (_, index) => {
    const { truncated } = (logs[index % 2] as SessionLog).shorten({ ...RECORD, values: ["12345"] }, limits);
    return Number(truncated?.values?.[0]?.uri.split("/").at(-1));
  });
  expect(new Set(numbers).size).toBe(50);
  expect(numbers.filter((number) => logs.some((log) => log.text(number) !== undefined))).toHaveLength(40);
  const log = new SessionLog("big");
  const [first = "", second = ""] = ["x", "y"].map((char) => log.shortenText(char.repeat(1_500_000), 10));
  const number = (text: string): number => Number(/output\/(\d+)/.exec(text)?.[1]);
  expect([log.text(number(first)), log.text(number(second))?.length]).toEqual([undefined, 1_500_000]);
});

it("the transcript has the code and the text of the latest evaluations", () => {
  const log = new SessionLog("main");
  log.add("(+ 1\n   1)", "=> 2");
  log.add("(car 1)", "[ERROR] TYPE-ERROR");
  expect(log.transcript()).toBe("> (+ 1\n>    1)\n=> 2\n\n> (car 1)\n[ERROR] TYPE-ERROR\n");
  for (let n = 0; n < 500; n += 1) log.add(String(n), `=> ${n}`);
  expect(log.transcript().split("\n\n")).toHaveLength(100);
  expect(log.transcript()).toMatch(/^> 400\n=> 400\n[^]*\n> 499\n=> 499\n$/);
});

it("the transcript keeps only the start of long code and long results", () => {
  const log = new SessionLog("main");
  log.add("x".repeat(5_000_000), "y".repeat(5_000_000));
  expect(log.transcript()).toBe(`> ${"x".repeat(10_000)} ...\n${"y".repeat(40_000)} ...\n`);
});
