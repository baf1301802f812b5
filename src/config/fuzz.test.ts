// Configs that were changed at random: whatever the text, the checker answers, every problem stands inside the text,
// and nothing that came from a variable is told. Seeds are printed by fast-check when a property fails.

import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ELSEWHERE } from "../../test/support/config-mistakes-elsewhere.ts";
import { IN_SERVERS, IN_THE_TEXT } from "../../test/support/config-mistakes.ts";
import { ENVIRONMENT, GOOD } from "../../test/support/config-samples.ts";
import { checkConfig } from "./load.ts";

const TEXTS = [
  ...GOOD.map(({ text }) => text),
  ...[...IN_THE_TEXT, ...IN_SERVERS, ...ELSEWHERE].map(([, text]) => text),
];

const PIECES = [
  ...'{}[],:"\\\n\r\t/*$ \0\uFEFF\uD83D0-e'.split(""),
  "//",
  "*/",
  "\\u",
  "\\u00",
  "${",
  "$${",
  "${API_KEY}",
  "${input:",
  ":-",
  "null",
  "true",
  "1e999",
  "-0",
  '""',
  '"__proto__":',
  '"constructor":{}',
  '"toString"',
  '{"use":"',
  "[[[[[[[[",
];

/** A stretch of the text gives way to a piece, to another stretch of it, or to nothing. */
const change = fc.record({
  at: fc.double({ min: 0, max: 1, noNaN: true }),
  length: fc.nat(12),
  piece: fc.oneof(fc.constantFrom("", ...PIECES), fc.string({ maxLength: 4, unit: "binary" })),
  from: fc.option(fc.double({ min: 0, max: 1, noNaN: true })),
});

const changed = fc
  .record({ text: fc.constantFrom(...TEXTS), changes: fc.array(change, { minLength: 1, maxLength: 4 }) })
  .map(({ text, changes }) =>
    changes.reduce((now, { at, length, piece, from }) => {
      const start = Math.floor(at * now.length);
      const put = from === null ? piece : now.slice(Math.floor(from * now.length)).slice(0, length * 2);
      return now.slice(0, start) + put + now.slice(start + length);
    }, text),
  );

async function holds(text: string): Promise<void> {
  const problems = await checkConfig(text, "/nowhere/at/all/catenary.json", { env: ENVIRONMENT });
  const lines = text.replace(/^\uFEFF/, "").split(/\r\n|\n|\r/);
  for (const { line, column, message, hint = "" } of problems) {
    const length = lines[line - 1]?.length ?? -1;
    if (!(column >= 1 && column <= length + 1)) expect.fail(`${line}:${column} is outside: ${message}`);
    if (message === "") expect.fail("A problem says nothing");
    // Where it stands in the text itself, it came from there.
    if (!text.includes("s3cret") && `${message}${hint}`.includes("s3cret")) expect.fail(`A secret is told: ${message}`);
  }
  const places = problems.map(({ line, column }) => line * 1e6 + column);
  expect(places).toEqual(places.toSorted((a, b) => a - b));
}

describe("any text", () => {
  it("that was a config before it was changed is answered", async () => {
    await fc.assert(fc.asyncProperty(changed, holds), { numRuns: 2_000 });
  }, 60_000);

  it("at all is answered", async () => {
    const anything = fc.oneof(fc.string({ unit: "binary", maxLength: 60 }), fc.json({ maxDepth: 5 }));
    await fc.assert(fc.asyncProperty(anything, holds), { numRuns: 500 });
  }, 60_000);

  it("that is very deep, or very long, is answered", async () => {
    await holds("[".repeat(100_000));
    await holds(`{"mcpServers": {${'"a": {'.repeat(50_000)}`);
    await holds(`{"mcpServers": {"a": {"command": "x", "args": ["${"${A}".repeat(20_000)}"]}}}`);
  });
});
