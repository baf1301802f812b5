// Strings of 200,000 and of a million characters in every field of a request: an answer comes, and nothing ends.

import { expect, it } from "vitest";
import { sendLongStrings } from "./long-strings.ts";

it.each([
  ["200,000", ["--length", "200000"]],
  ["1,000,000", ["--length", "1000000", "--few"]],
])("answers requests with strings of %s characters in any field", async (_length, args) => {
  const { count, fields, strings } = await sendLongStrings(...args);
  expect(count).toBe(fields * strings);
});
