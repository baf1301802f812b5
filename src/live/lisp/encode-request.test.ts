// Requests encoded as property lists: every kind of value, and strings that Lisp must read unchanged.

import { expect, it } from "vitest";
import { encodeRequest } from "./index.ts";

it("encodes keywords, strings, numbers, t and lists", () => {
  const request = { id: 3, op: "eval", maxSamples: 10, sampleInterval: 0.01, captureTime: true, functions: ["a", "b"] };
  expect(encodeRequest(request)).toBe(
    '(:id 3 :op "eval" :max-samples 10 :sample-interval 0.01 :capture-time t :functions ("a" "b"))',
  );
});

it("leaves out values that are nil in Lisp", () => {
  const request = { id: 1, op: "x", a: undefined, b: null, c: false, d: [], e: Number.NaN, f: {} };
  expect(encodeRequest(request)).toBe('(:id 1 :op "x")');
});

it("encodes an object as a property list", () => {
  const request = { id: 1, op: "x", others: { className: "A", n: 2 } };
  expect(encodeRequest(request)).toBe('(:id 1 :op "x" :others (:class-name "A" :n 2))');
});

it("escapes only the quote and the backslash", () => {
  expect(encodeRequest({ id: 1, op: 'a"b\\c\n#|;\u0000' })).toBe('(:id 1 :op "a\\"b\\\\c\n#|;\u0000")');
});
