// The same as long-strings.test.ts, with strings of a megabyte and more kinds of them.

import { expect, it } from "vitest";
import { sendLongStrings } from "./long-strings.ts";

it.each([
  ["200,000", ["--length", "200000"]],
  ["1,000,000", ["--length", "1000000", "--few"]],
])("answers requests with strings of %s characters in any field", async (_length, args) => {
  const { count, fields, strings } = await sendLongStrings(...args);
  expect(count).toBe(fields * strings);
});
