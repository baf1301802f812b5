// Values and errors as texts, however large they are.

import { expect, it } from "vitest";
import { describe as described, printed } from "./print.ts";

const PRINTING = { printLength: 100, printLevel: 10, maxOutput: 50 };

it("cuts a value that is longer than what is kept, and says so", () => {
  expect(printed([1, 2], PRINTING)).toBe("[ 1, 2 ]");
  expect(printed(Array.from({ length: 99 }), PRINTING)).toMatch(/^\[\n[^]{48}\.\.\. \[cut at 50 characters\]$/);
  const faces = printed([`od${"\u{1f600}".repeat(30)}`], PRINTING);
  expect(faces).toMatch(/^\[\s+'od(?:\u{1f600}){21}\.\.\. \[cut at 50/u);
});

it("cuts an error's name, message and stack", () => {
  const error = new Error("x".repeat(100_000));
  class Long extends Error {}
  Object.defineProperty(Long, "name", { value: "N".repeat(1_000) });
  expect(described(error).message).toHaveLength(20_000 + "... [cut at 20,000 characters]".length);
  expect(described(error).stack.length).toBeLessThanOrEqual(50_000);
  expect(described(error).stack).toContain("printing.test");
  expect(described(new Long("y")).type).toMatch(/^N{200}\.\.\. \[cut/);
});
