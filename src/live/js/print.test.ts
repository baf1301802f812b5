// Printed values and errors are cut if they are large.

import { expect, it } from "vitest";
import { describeThrown, printValue } from "./print.ts";

const LIMITS = { printLength: 100, printDepth: 10, outputChars: 50 };

it("cuts a long value and says so", () => {
  expect(printValue([1, 2], LIMITS)).toBe("[ 1, 2 ]");
  expect(printValue(Array.from({ length: 99 }), LIMITS)).toMatch(/^\[\n[^]{48}\.\.\. \[cut at 50 characters\]$/);
  const faces = printValue([`od${"\u{1f600}".repeat(30)}`], LIMITS);
  expect(faces).toMatch(/^\[\s+'od(?:\u{1f600}){21}\.\.\. \[cut at 50/u);
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
