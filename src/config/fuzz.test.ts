// Randomly changed configs: the checker never throws, every problem has a position inside the text, and no message shows
// the value of a variable. Seeds are printed by fast-check when a property fails.

import * as fc from "fast-check";
import { expect, it } from "vitest";
import { SETTING_MISTAKES } from "../../test/support/config/setting-mistakes.ts";
import { SERVER_MISTAKES, SYNTAX_MISTAKES } from "../../test/support/config/server-mistakes.ts";
import { ENVIRONMENT, GOOD } from "../../test/support/config/valid-configs.ts";
import { checkConfig } from "./load.ts";
import { IS_LONG, runs } from "../../test/support/thoroughness.ts";

const TEXTS = [
  ...GOOD.map(({ text }) => text),
  ...[...SYNTAX_MISTAKES, ...SERVER_MISTAKES, ...SETTING_MISTAKES].map(([, text]) => text),
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

/** Replaces a part of the text by a piece, by another part of it, or by nothing. */
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

async function checkInvariants(text: string): Promise<void> {
  const problems = await checkConfig(text, "/nowhere/at/all/catenary.json", { env: ENVIRONMENT });
  const lines = text.replace(/^\uFEFF/, "").split(/\r\n|\n|\r/);
  for (const { line, column, message, hint = "" } of problems) {
    const length = lines[line - 1]?.length ?? -1;
    if (!(column >= 1 && column <= length + 1)) expect.fail(`${line}:${column} is outside: ${message}`);
    if (message === "") expect.fail("A problem has no message");
    // Unless the text itself contains it.
    if (!text.includes("s3cret") && `${message}${hint}`.includes("s3cret"))
      expect.fail(`A secret is shown: ${message}`);
  }
  const positions = problems.map(({ line, column }) => line * 1e6 + column);
  expect(positions).toEqual(positions.toSorted((a, b) => a - b));
}

it("any text that was a config before it was changed is checked", async () => {
  await fc.assert(fc.asyncProperty(changed, checkInvariants), { numRuns: runs(2_000) });
});

it("any text at all is checked", async () => {
  const anything = fc.oneof(fc.string({ unit: "binary", maxLength: 60 }), fc.json({ maxDepth: 5 }));
  await fc.assert(fc.asyncProperty(anything, checkInvariants), { numRuns: runs(500) });
});

it.runIf(IS_LONG)("any text that is very deep or very long is checked", async () => {
  await checkInvariants("[".repeat(100_000));
  await checkInvariants(`{"mcpServers": {${'"a": {'.repeat(50_000)}`);
  await checkInvariants(`{"mcpServers": {"a": {"command": "x", "args": ["${"${A}".repeat(20_000)}"]}}}`);
  for (const piece of ["${A:-", "${", "${A:-${", "$${", "<a", "$A", "%A", "{env:"]) {
    await checkInvariants(`{"mcpServers": {"a": {"command": "x", "args": ["${piece.repeat(20_000)}"]}}}`);
    await checkInvariants(`{"mcp": {"a": {"type": "local", "command": ["x", "${piece.repeat(20_000)}"]}}}`);
  }
});
