// Printed values and errors are cut if they are large.

import { expect, it } from "vitest";
import { describeThrown, printValue } from "./print.ts";

const LIMITS = { printLength: 2_000_000, printDepth: 10, outputChars: 50 };

it("cuts a very long value and says so", () => {
  expect(printValue([1, 2], LIMITS)).toBe("[ 1, 2 ]");
  expect(printValue(["x".repeat(999_999), 1], LIMITS)).toMatch(/x\.\.\. \[cut at 1,000,000 characters\]$/);
  expect(printValue([`od${"\u{1f600}".repeat(600_000)}`], LIMITS)).toMatch(/\u{1f600}\.\.\. \[cut at 1,000,000/u);
});

it("cuts an error's name, message and stack", () => {
  const error = new Error("x".repeat(100_000));
  class Long extends Error {}
  Object.defineProperty(Long, "name", { value: "N".repeat(1_000) });
  expect(describeThrown(error).message).toHaveLength(20_000 + "... [cut at 20,000 characters]".length);
  expect(describeThrown(error).stack.length).toBeLessThanOrEqual(50_000);
  expect(describeThrown(error).stack).toContain("print.test");
  expect(describeThrown(new Long("y")).type).toMatch(/^N{200}\.\.\. \[cut/);
});
