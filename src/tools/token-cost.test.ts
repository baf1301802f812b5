// What definitions cost in tokens, by the tokenizer that is installed here.

import { countTokens } from "gpt-tokenizer";
import { expect, it } from "vitest";
import { loadTokenizer } from "./token-cost.ts";

const { count, isEstimate } = await loadTokenizer();

const TEXT = JSON.stringify({
  name: "create_issue",
  description:
    "Creates an issue. Don't use it for questions; 10,000 characters at most, like /a/long/path?with=1&more=2.\n",
  inputSchema: { type: "object", properties: { título: { type: "string", description: "日本語の説明, שלום" } } },
}).repeat(5);

it("tokens are counted as by the tokenizer itself, though in pieces", () => {
  expect(isEstimate).toBe(false);
  expect(count("")).toBe(0);
  const whole = countTokens(TEXT);
  expect(Math.abs(count(TEXT) - whole) / whole).toBeLessThan(0.02);
});

it("tokens of a text with the name of a special token are those of a text", () => {
  expect(() => countTokens("<|endoftext|>")).toThrow();
  expect(count("<|endoftext|>")).toBeGreaterThan(3);
});

it.each(["a", " ", "!", "😀"])("tokens of a million times %j are counted without a pause of minutes", (character) => {
  const begun = process.cpuUsage();
  expect(count(character.repeat(1_000_000))).toBeGreaterThan(1_000);
  // About a second. Without pieces it would be twenty minutes.
  expect(process.cpuUsage(begun).user).toBeLessThan(60_000_000);
});
