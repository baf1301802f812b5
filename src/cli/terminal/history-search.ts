// Ctrl-R at a prompt: searches the history backwards while the person types, as shells do. Node's line editor has history
// and no search.

import type { Key } from "node:readline";

/** What the line editor of node:readline has beside its public type. */
export interface LineEditor {
  /** The newest first. */
  readonly history: string[];
  line: string;
  cursor: number;
  /** How many rows of the screen are above the cursor that belong to the prompt and the input. */
  prevRows: number;
  _ttyWrite(text: string | undefined, key: Key): void;
  _refreshLine(): void;
  getPrompt(): string;
  setPrompt(prompt: string): void;
}

interface Search {
  readonly prompt: string;
  /** What was typed before the search. */
  readonly typed: string;
  query: string;
  /** Where in the history the entry is that is shown. */
  at: number;
}

/** Adds Ctrl-R: Ctrl-R again goes on to older entries, Ctrl-G, Ctrl-C and Escape give up, and any other key uses the entry. */
export function addHistorySearch(editor: LineEditor): void {
  const write = editor._ttyWrite.bind(editor);
  let search: Search | undefined;
  const show = (line: string, prompt: string): void => {
    editor.setPrompt(prompt);
    editor.line = line;
    editor.cursor = line.length;
    editor._refreshLine();
  };
  const find = (current: Search, from: number): void => {
    const index = editor.history.findIndex((entry, at) => at >= from && entry.includes(current.query));
    if (index >= 0) current.at = index;
    const entry = current.query === "" ? "" : (editor.history[current.at] ?? "");
    const label = index < 0 && current.query !== "" ? "search failed" : "search";
    show(entry, `(${label}) ${current.query}: `);
  };
  const end = (line: string): void => {
    const { prompt = "" } = search ?? {};
    search = undefined;
    show(line, prompt);
  };
  editor._ttyWrite = (text, key) => {
    const isSearch = key.ctrl === true && key.name === "r";
    if (search === undefined) {
      if (!isSearch) return write(text, key);
      search = { prompt: editor.getPrompt(), typed: editor.line, query: "", at: -1 };
      return find(search, 0);
    }
    if (isSearch) return find(search, search.at + 1);
    if ((key.ctrl === true && /^[cg]$/.test(key.name ?? "")) || key.name === "escape") return end(search.typed);
    if (key.name === "backspace") {
      search.query = search.query.slice(0, -1);
      return find(search, 0);
    }
    const isText = text !== undefined && key.ctrl !== true && key.meta !== true && /^[^\p{Cc}]+$/u.test(text);
    if (isText) {
      search.query += text;
      return find(search, Math.max(0, search.at));
    }
    end(editor.line);
    return write(text, key);
  };
}
