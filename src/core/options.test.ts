// Unknown options with the nearest name, and readers of option values.

import { describe, expect, it } from "vitest";
import { checkOptions, didYouMean, kindOf, nearest, OptionError, OptionReader } from "./options.ts";

const NAMES = ["timeoutMs", "maxTimeoutMs", "revision"];

describe("nearest", () => {
  it("sorts names by distance, and counts a prefix as equal", () => {
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
});

describe("checkOptions", () => {
  const known = Object.fromEntries(NAMES.map((name) => [name, true]));

  it("accepts known options, and unknown ones that are undefined", () => {
    expect(() => checkOptions("f()", { revision: 1, other: undefined }, known)).not.toThrow();
  });

  it("names the nearest option, or lists all options", () => {
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

  it.each([3, "x", null, [], true])("refuses %j as options", (given) => {
    expect(() => checkOptions("f()", given, known)).toThrow(
      new TypeError(`f(): the options must be an object, not ${kindOf(given)}`),
    );
  });
});

describe("OptionReader", () => {
  const read = (given: object): OptionReader => new OptionReader("f()", given, Object.keys(given));

  it("returns valid values, and undefined for absent ones", () => {
    const reader = new OptionReader("f()", { ms: 5, count: 2, list: ["a"], map: { a: "b" } }, [
      ..."ms count list map none".split(" "),
    ]);
    expect(reader.ms("ms")).toBe(5);
    expect(reader.count("count")).toBe(2);
    expect(reader.strings("list")).toEqual(["a"]);
    expect(reader.stringMap("map")).toEqual(new Map([["a", "b"]]));
    expect(reader.ms("none")).toBeUndefined();
    expect(reader.choice("none", ["x"])).toBeUndefined();
    expect(reader.function("none")).toBeUndefined();
  });

  it("names the owner, the option and the rule", () => {
    expect(() => read({ a: 0 }).ms("a")).toThrow(
      "f(): `a` must be a number of milliseconds above 0, at most 2147483647, not 0",
    );
    expect(() => read({ a: 1.5 }).count("a")).toThrow("f(): `a` must be a whole number above 0, not 1.5");
    expect(() => read({ a: "z" }).choice("a", ["x", "y"])).toThrow('f(): `a` must be "x" or "y", not "z"');
    expect(() => read({ a: [""] }).strings("a")).toThrow("f(): `a` must be an array of non-empty strings");
    expect(() => read({ a: { b: 1 } }).stringMap("a")).toThrow("f(): `a.b` must be a non-empty string, not 1");
    expect(() => read({ a: 1 }).function("a")).toThrow("f(): `a` must be a function, so only code can set it, not 1");
    expect(() => read({ a: { bc: 1 } }).inner("a", ["b"])).toThrow("f(): `a.bc` is not an option; did you mean");
    expect(() => new OptionReader("f()", { b: 1 }, ["a"])).toThrow(OptionError);
  });
});
