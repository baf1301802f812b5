// Holds an answer, as the text that came over a wire, against what a row of the tables of bad inputs expects.

import { expect } from "vitest";
import type { Expected } from "./row.ts";

/** The text is cut in messages, so that one of a megabyte does not fill the screen. */
export function expectAnswer(text: string, expected: Expected): void {
  const shown = text.slice(0, 300);
  if (expected.kind === "batch") {
    const answers = JSON.parse(text) as unknown[];
    expect(answers, shown).toHaveLength(expected.answers.length);
    let rest = text.slice(1);
    for (const answer of expected.answers) {
      const end = startOf(rest.slice(1));
      expectAnswer(rest.slice(0, end), answer);
      rest = rest.slice(end + 1);
    }
    return;
  }
  if (expected.kind === "none") throw new Error(`An answer to what wants none: ${shown}`);
  const head = `{"jsonrpc":"2.0","id":${expected.id},"${expected.kind}":`;
  expect(text.startsWith(head), `${shown}\nshould begin with ${head.slice(0, 300)}`).toBe(true);
  if (expected.kind === "error") {
    const { code, data } = JSON.parse(text).error;
    expect(code, shown).toBe(expected.code);
    expect(data, shown).toEqual(expected.data ?? expect.objectContaining({ kind: expect.any(String) }));
  }
  if (expected.shows !== undefined) expect(text.slice(head.length)).toContain(expected.shows);
}

/** Where the next answer of a batch begins, or the batch ends. */
function startOf(rest: string): number {
  const next = rest.indexOf(',{"jsonrpc":"2.0","id":');
  return (next === -1 ? rest.lastIndexOf("]") : next) + 1;
}
