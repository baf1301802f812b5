// Unknown options with the nearest name.

import { expect, it } from "vitest";
import { checkOptions, didYouMean, kindOf, nearest } from "./options.ts";

const NAMES = ["timeoutMs", "maxTimeoutMs", "revision"];

it("nearest sorts names by distance, and counts a prefix as equal", () => {
  expect(nearest("revison", NAMES)).toEqual(["revision"]);
  expect(nearest("ervision", NAMES)).toEqual(["revision"]);
  expect(nearest("timeout", NAMES)).toEqual(["timeoutMs"]);
  expect(nearest("TIMEOUTMS", NAMES)).toEqual(["timeoutMs"]);
  expect(nearest("other", NAMES)).toEqual([]);
  // One character of one, or two of two, is no typing error.
  expect(nearest("a", ["1", "all", "b"])).toEqual(["all"]);
  expect(nearest("xy", ["ab", "xb"])).toEqual(["xb"]);
  expect(nearest("x".repeat(101), ["x".repeat(101)])).toEqual([]);
});

const known = Object.fromEntries(NAMES.map((name) => [name, true]));

it("checkOptions accepts known options, and unknown ones that are undefined", () => {
  expect(() => checkOptions("f()", { revision: 1, other: undefined }, known)).not.toThrow();
});

it("checkOptions names the nearest option, or lists all options", () => {
  expect(() => checkOptions("f()", { timeout: 1 }, known)).toThrow(
    new TypeError("f() has no option `timeout`; did you mean `timeoutMs`?"),
  );
  expect(() => checkOptions("f()", { other: 1 }, known, "inner.")).toThrow(
    new TypeError("f() has no option `inner.other`; the options are timeoutMs, maxTimeoutMs, revision"),
  );
  expect(() => checkOptions("f()", { toString: 1 }, known)).toThrow("no option `toString`");
  expect(didYouMean("revisions", NAMES)).toBe("did you mean `revision`?");
  expect(didYouMean("inputs", ["inputSchema", "input"])).toBe("did you mean `input`?");
});

it.each([3, "x", null, [], true])("checkOptions refuses %j as options", (given) => {
  expect(() => checkOptions("f()", given, known)).toThrow(
    new TypeError(`f(): the options must be an object, not ${kindOf(given)}`),
  );
});
