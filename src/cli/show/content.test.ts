// Printing of results: text once, and structured content only without text. test/contract/cli runs whole commands.

import { afterEach, beforeEach, expect, it, vi } from "vitest";
import type { CallToolResult } from "../../protocol/model/index.ts";
import { printResult } from "./content.ts";
import { Saver } from "./saver.ts";

let out = "";
beforeEach(() => {
  out = "";
  vi.spyOn(process.stdout, "write").mockImplementation((text) => (out += String(text)) !== "");
});
afterEach(() => {
  vi.restoreAllMocks();
});

const text = (content: string): { type: "text"; text: string } => ({ type: "text", text: content });
const JSON_OF_IT = '{\n  "answer": 42\n}\n';

it.each([
  ["no text", [], JSON_OF_IT],
  ["empty text", [text("")], JSON_OF_IT],
  ["content that is not an array", undefined as unknown as [], JSON_OF_IT],
  ["the same as text", [text('{ "answer": 42 }')], '{ "answer": 42 }\n'],
  ["the same among other text", [text("look:"), text('{"answer":42}')], 'look:\n{"answer":42}\n'],
  ["a text that says it in content", [text("=> 42")], "=> 42\n"],
])("structured content with %s", async (_name, content, printed) => {
  const notes: string[] = [];
  const result: CallToolResult = { resultType: "complete", content, structuredContent: { answer: 42 } };
  await printResult(result, { saver: new Saver({ force: false }), note: (line) => notes.push(line) });
  expect({ out, notes }).toEqual({ out: printed, notes: [] });
});
