// Long strings in every field of a request take bounded work. Without the limits, a single one of these requests stops
// a gateway for minutes, or ends it. long-strings.long.test.ts sends longer ones, and more of them.

import { expect, it } from "vitest";
import { sendLongStrings } from "./long-strings.ts";

it("answers requests with strings of 200,000 characters in any field", async () => {
  const { count, fields, strings, answers } = await sendLongStrings("--length", "200000", "--few");
  expect(count).toBe(fields * strings);
  expect(answers).toEqual([
    expect.stringContaining('"text":"read"'),
    expect.stringContaining('"text":"a"'),
    expect.stringContaining('"text":"1"'),
    expect.stringContaining('"values":["this"]'),
    expect.stringContaining("one_read_note(text?: string"),
  ]);
});
