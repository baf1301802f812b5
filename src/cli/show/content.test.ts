// What of a result a person gets to read: its text once, and the JSON of its structured content only where there is no
// text. How it looks on a terminal, and what becomes of bytes, is played in test/cli.

import { afterEach, beforeEach, expect, it, vi } from "vitest";
import type { CallToolResult } from "../../protocol/model/index.ts";
import { showResult } from "./content.ts";
import { Saver } from "./saving.ts";

let out = "";
beforeEach(() => {
  out = "";
  vi.spyOn(process.stdout, "write").mockImplementation((text) => (out += String(text)) !== "");
});
afterEach(() => {
  vi.restoreAllMocks();
});

const text = (words: string): { type: "text"; text: string } => ({ type: "text", text: words });
const JSON_OF_IT = '{\n  "answer": 42\n}\n';

it.each([
  ["no text", [], JSON_OF_IT],
  ["an empty text", [text("")], JSON_OF_IT],
  ["what is no list", undefined as unknown as [], JSON_OF_IT],
  ["the same as a text", [text('{ "answer": 42 }')], '{ "answer": 42 }\n'],
  ["the same among other texts", [text("look:"), text('{"answer":42}')], 'look:\n{"answer":42}\n'],
  ["a text that says it in words", [text("=> 42")], "=> 42\n"],
])("structured content with %s", async (_name, content, printed) => {
  const notes: string[] = [];
  const result: CallToolResult = { resultType: "complete", content, structuredContent: { answer: 42 } };
  await showResult(result, { saver: new Saver({ force: false }), note: (line) => notes.push(line) });
  expect({ out, notes }).toEqual({ out: printed, notes: [] });
});
