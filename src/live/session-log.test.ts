// Long texts are cut to head and tail, and kept within bounds; the transcript has the latest evaluations.

import { expect, it } from "vitest";
import type { LiveEvent } from "../core/live-server.ts";
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

const add = (log: SessionLog, code: string, text: string): void =>
  log.end(log.begin({ op: "eval", code }), "ok", text, RECORD);

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
  add(log, "(+ 1\n   1)", "=> 2");
  add(log, "(car 1)", "[ERROR] TYPE-ERROR");
  expect(log.transcript()).toBe("> (+ 1\n>    1)\n=> 2\n\n> (car 1)\n[ERROR] TYPE-ERROR\n");
  for (let n = 0; n < 500; n += 1) add(log, String(n), `=> ${n}`);
  expect(log.transcript().split("\n\n")).toHaveLength(100);
  expect(log.transcript()).toMatch(/^> 400\n=> 400\n[^]*\n> 499\n=> 499\n$/);
});

it("the transcript keeps only the start of long code and long results", () => {
  const log = new SessionLog("main");
  add(log, "x".repeat(5_000_000), "y".repeat(5_000_000));
  expect(log.transcript()).toBe(`> ${"x".repeat(10_000)} ...\n${"y".repeat(40_000)} ...\n`);
});

it("turns have what ran, what runs with its output, and what was refused only while somebody follows", () => {
  const events: LiveEvent[] = [];
  const listeners = { isFollowed: true, emit: (event: LiveEvent) => void events.push(event) };
  const log = new SessionLog("main", "ada", listeners);
  add(log, "1", "=> 1");
  const refused = log.begin({ op: "take-restart", code: 'take-restart {"restart":"0"}', args: { restart: "0" } });
  log.refuse(refused, { content: [{ type: "text", text: "No error is open." }] });
  const running = log.begin({ op: "eval", code: "loop", client: "cursor" });
  log.printed(running, "printed");
  expect(log.running?.turn).toBe(3);
  expect(log.turns(100, "printed")).toMatchObject([
    { turn: 1, code: "1", ended: { status: "ok", text: "=> 1", evaluation: RECORD } },
    { turn: 3, code: "loop", client: "cursor", output: "printed" },
  ]);
  expect(log.turns(0, "")).toHaveLength(1);
  expect(events.map(({ type, turn, owner }) => `${type} ${turn} ${owner}`)).toEqual([
    ...["began 1 ada", "ended 1 ada", "began 2 ada", "ended 2 ada", "began 3 ada", "output 3 ada"],
  ]);
  expect(events[3]).toMatchObject({ status: "refused", text: "No error is open." });
  listeners.isFollowed = false;
  log.printed(running, "more");
  log.end(running, "ok", "=> 2", RECORD);
  expect(events).toHaveLength(6);
});

it("turns keep the parts of the last results only", () => {
  const log = new SessionLog("main");
  for (let n = 0; n < 90; n += 1) add(log, String(n), `=> ${n}`);
  const kept = log.turns(100, "").filter(({ ended }) => ended?.evaluation !== undefined);
  expect(kept.map(({ turn }) => turn)).toEqual(Array.from({ length: 50 }, (_, at) => 41 + at));
});
