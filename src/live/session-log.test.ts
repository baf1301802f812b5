// Long texts are cut to head and tail, and kept within bounds; the transcript has the latest evaluations.

import { describe, expect, it } from "vitest";
import type { EvaluationRecord } from "./evaluation.ts";
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

describe("a long text", () => {
  it("is cut to its head and tail, and can be read whole", () => {
    const log = new SessionLog("main");
    const { evaluation, truncated } = log.shorten(
      { ...RECORD, stdout: "abcde--------vwxyz", values: ["1234567"] },
      limits,
    );
    const { stdout, values: [value] = [] } = truncated ?? {};
    const gap = `[8 of 18 characters left out here; all are in ${stdout?.uri}]`;
    expect(evaluation.stdout).toBe(`abcde\n${gap}\nvwxyz`);
    expect(evaluation.values[0]).toBe(`12\n[3 of 7 characters left out here; all are in ${value?.uri}]\n67`);
    expect(stdout).toEqual({
      chars: 18,
      uri: expect.stringMatching(/^live:\/\/session\/main\/output\/\d+$/) as string,
    });
    expect(log.text(Number(stdout?.uri.split("/").at(-1)))).toBe("abcde--------vwxyz");
    expect(value?.uri).not.toBe(stdout?.uri);
  });

  it("says if not all of it was kept", () => {
    const { evaluation } = new SessionLog("main").shorten(
      { ...RECORD, stdout: "abcde", truncated: { stdout: 1_000_000, stderr: false } },
      limits,
    );
    expect(evaluation.stdout).toMatch(
      /^abcde\n\[999,995 of 1,000,000 characters left out here; the first 5 are in .*\]\n$/,
    );
  });

  it("that fits is not copied", () => {
    const record = { ...RECORD, stdout: "0123456789" };
    expect(new SessionLog("main").shorten(record, limits)).toEqual({ evaluation: record, truncated: undefined });
  });

  it("is forgotten when there are many, and numbers are never used twice", () => {
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
});

describe("the transcript", () => {
  it("has the code and the text of the latest evaluations", () => {
    const log = new SessionLog("main");
    log.add("(+ 1\n   1)", "=> 2");
    log.add("(car 1)", "[ERROR] TYPE-ERROR");
    expect(log.transcript()).toBe("> (+ 1\n>    1)\n=> 2\n\n> (car 1)\n[ERROR] TYPE-ERROR\n");
    for (let n = 0; n < 500; n += 1) log.add(String(n), `=> ${n}`);
    expect(log.transcript().split("\n\n")).toHaveLength(100);
    expect(log.transcript()).toMatch(/^> 400\n=> 400\n[^]*\n> 499\n=> 499\n$/);
  });

  it("keeps only the start of long code and long results", () => {
    const log = new SessionLog("main");
    log.add("x".repeat(5_000_000), "y".repeat(5_000_000));
    expect(log.transcript()).toBe(`> ${"x".repeat(10_000)} ...\n${"y".repeat(40_000)} ...\n`);
  });
});
