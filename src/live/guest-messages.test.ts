// What is understood of what a guest says, what is refused before it costs anything, and when patience ends.

import { expect, it } from "vitest";
import { checkedEvaluation, Patience, understood } from "./guest-messages.ts";

it("reads a message", () => {
  expect(understood('{"id":1,"result":{}}')).toEqual({ id: 1, result: {} });
});

it("puts a sign in the place of half a character, and leaves whole ones alone", () => {
  expect(understood(String.raw`{"a":"\ud83d","b":["\udc00x"],"c":"\ud83d\ude00","d":"\\ud83d"}`)).toEqual({
    a: "\ufffd",
    b: ["\ufffdx"],
    c: "\u{1f600}",
    d: String.raw`\ud83d`,
  });
});

it.each(["null", "1", "[1]", '"text"', "{"])("refuses %s", (text) => {
  expect(() => understood(text)).toThrow(Error);
});

it("takes a long text, whatever stands in it", () => {
  const text = `\\",{[`.repeat(50_000);
  expect(understood(JSON.stringify({ text }))).toEqual({ text });
});

it.each(["{}", "[]", "0"])("refuses very many of %s", (value) => {
  const many = Array.from({ length: 60_000 }, () => value).join(",");
  expect(() => understood(`{"a":[${many}]}`)).toThrow("a message has too many values");
});

it("loses patience with what nobody asked for, by number and by length", () => {
  const flood = (times: number, chars: number) => (): void => {
    const patience = new Patience();
    for (let count = 0; count < times; count += 1) patience.heard(chars);
  };
  expect(flood(4_000, 0)).not.toThrow();
  expect(flood(100_000, 0)).toThrow("it says too much that nobody asked for");
  expect(flood(10, 900_000)).not.toThrow();
  expect(flood(50, 900_000)).toThrow("it says too much that nobody asked for");
});

it("has patience again with each request", () => {
  const patience = new Patience();
  for (let request = 0; request < 1_000; request += 1) {
    patience.asked(100_000);
    // Both streams, as long as they may be, in pieces of the guest's size.
    for (let piece = 0; piece < 50; piece += 1) patience.heard(4_096);
  }
  expect(() => patience.heard(0)).not.toThrow();
});

const GOOD = {
  status: "error",
  values: ["1"],
  warnings: [{ type: "W", message: "m" }],
  condition: {
    type: "E",
    message: "m",
    restarts: [{ name: null, description: "d" }],
    frames: [{ number: 0, text: "f" }],
  },
  package: "P",
  timing: { realMs: 1, bytes: 2 },
  dropped: { stdout: 7 },
  defined: [],
};

it("knows an evaluation", () => {
  expect(checkedEvaluation(GOOD)).toBe(GOOD);
  const { condition: _condition, package: _package, dropped: _dropped, ...least } = GOOD;
  expect(checkedEvaluation(least)).toBe(least);
});

it.each([
  { status: "fine" },
  { values: { length: 0 } },
  { values: [1] },
  { warnings: [null] },
  { condition: 5 },
  { condition: { ...GOOD.condition, frames: [{ number: "0", text: "f" }] } },
  { package: {} },
  { timing: 5 },
  { timing: { realMs: Infinity } },
  { dropped: { stdout: "77" } },
])("knows that it is none: %j", (wrong) => {
  expect(() => checkedEvaluation({ ...GOOD, ...wrong })).toThrow("is no answer to an evaluation");
});
