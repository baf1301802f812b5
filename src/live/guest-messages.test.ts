// Validation of messages from the guest process: content, number of values, unrequested messages, evaluations.

import { expect, it } from "vitest";
import { checkEvaluation, parseGuestMessage, UnrequestedLimit } from "./guest-messages.ts";

it("parses a message", () => {
  expect(parseGuestMessage('{"id":1,"result":{}}')).toEqual({ id: 1, result: {} });
});

it("replaces lone surrogates and keeps whole characters", () => {
  expect(parseGuestMessage(String.raw`{"a":"\ud83d","b":["\udc00x"],"c":"\ud83d\ude00","d":"\\ud83d"}`)).toEqual({
    a: "\ufffd",
    b: ["\ufffdx"],
    c: "\u{1f600}",
    d: String.raw`\ud83d`,
  });
});

it.each(["null", "1", "[1]", '"text"', "{"])("refuses %s", (text) => {
  expect(() => parseGuestMessage(text)).toThrow(Error);
});

it("accepts a long string with any content", () => {
  const text = `\\",{[`.repeat(50_000);
  expect(parseGuestMessage(JSON.stringify({ text }))).toEqual({ text });
});

it.each(["{}", "[]", "0"])("refuses a message with very many %s", (value) => {
  const many = Array.from({ length: 60_000 }, () => value).join(",");
  expect(() => parseGuestMessage(`{"a":[${many}]}`)).toThrow("a message has too many values");
});

it("limits unrequested messages by number and by length", () => {
  const flood = (times: number, chars: number) => (): void => {
    const limit = new UnrequestedLimit();
    for (let count = 0; count < times; count += 1) limit.onMessage(chars);
  };
  expect(flood(4_000, 0)).not.toThrow();
  expect(flood(100_000, 0)).toThrow("it sent too many unrequested messages");
  expect(flood(10, 900_000)).not.toThrow();
  expect(flood(50, 900_000)).toThrow("it sent too many unrequested messages");
});

it("raises the limit with each request", () => {
  const limit = new UnrequestedLimit();
  for (let request = 0; request < 1_000; request += 1) {
    limit.onRequest(100_000);
    // The longest output of both streams, in pieces as the guest sends them.
    for (let piece = 0; piece < 50; piece += 1) limit.onMessage(4_096);
  }
  expect(() => limit.onMessage(0)).not.toThrow();
});

const VALID = {
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

it("accepts a valid evaluation", () => {
  expect(checkEvaluation(VALID)).toBe(VALID);
  const { condition: _condition, package: _package, dropped: _dropped, ...minimal } = VALID;
  expect(checkEvaluation(minimal)).toBe(minimal);
});

it.each([
  { status: "fine" },
  { values: { length: 0 } },
  { values: [1] },
  { warnings: [null] },
  { condition: 5 },
  { condition: { ...VALID.condition, frames: [{ number: "0", text: "f" }] } },
  { package: {} },
  { timing: 5 },
  { timing: { realMs: Infinity } },
  { dropped: { stdout: "77" } },
])("refuses an evaluation with %j", (wrong) => {
  expect(() => checkEvaluation({ ...VALID, ...wrong })).toThrow("sent an invalid evaluation result");
});
