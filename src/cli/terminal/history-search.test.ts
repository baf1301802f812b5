// Ctrl-R: the keys that end a search of the history.

import { expect, it } from "vitest";
import { addHistorySearch, type LineEditor } from "./history-search.ts";

it.each(["c", "g"])("Ctrl-%s gives up a search, with what was typed before it", (name) => {
  const passed: unknown[] = [];
  let prompt = "> ";
  const editor: LineEditor = {
    history: ["first\nsecond"],
    line: "typed",
    cursor: 5,
    prevRows: 0,
    _ttyWrite: (text) => passed.push(text),
    _refreshLine: () => undefined,
    getPrompt: () => prompt,
    setPrompt: (text) => (prompt = text),
  };
  addHistorySearch(editor);
  editor._ttyWrite(undefined, { ctrl: true, name: "r" });
  editor._ttyWrite("s", { name: "s" });
  expect([prompt, editor.line]).toEqual(["(search) s: ", "first\nsecond"]);
  editor._ttyWrite(undefined, { ctrl: true, name });
  expect([prompt, editor.line, passed]).toEqual(["> ", "typed", []]);
});
