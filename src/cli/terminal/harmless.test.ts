// Nothing that a stranger writes may move a cursor, and nothing that is plain text may be changed.

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { fitFor, harmless, harmlessJson, oneLine } from "./harmless.ts";

/** What a terminal acts on, by code: the C0 and C1 controls but for the newline and the tab, and delete. */
function acts(text: string): boolean {
  return [...text].some((letter) => {
    const code = letter.codePointAt(0) ?? 0;
    return (code < 0x20 && code !== 0x0a && code !== 0x09) || (code >= 0x7f && code <= 0x9f);
  });
}

describe("text of strangers", () => {
  it.each([
    ["\u001b[2J", "\\x1b[2J"],
    ["\u009b31m", "\\x9b31m"],
    ["\u001b]0;title\u0007", "\\x1b]0;title\\x07"],
    ["good\rbad", "good\\x0dbad"],
    ["back\u0008space\u007f", "back\\x08space\\x7f"],
    ["\u202eevil\u2066", "\\u{202e}evil\\u{2066}"],
    ["zero\u200bwidth\ufeff", "zero\\u{200b}width\\u{feff}"],
    ["tag\u{e0041}", "tag\\u{e0041}"],
    ["half \ud800", "half \\u{d800}"],
    ["two\r\nlines\n\tindented", "two\nlines\n\tindented"],
    ["Grüße, 世界 👩‍💻 שלום", "Grüße, 世界 👩‍💻 שלום"],
  ])("%j is shown as %j", (text, shown) => {
    expect(harmless(text)).toBe(shown);
  });

  it("never acts on the terminal, whatever it is", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (text) => {
        expect(acts(harmless(text))).toBe(false);
        expect(harmless(harmless(text))).toBe(harmless(text));
        expect(oneLine(text)).not.toMatch(/[\n\t]/);
      }),
    );
  });

  it("in JSON stays JSON of the same value", () => {
    fc.assert(
      fc.property(fc.json({ stringUnit: "binary" }), (json) => {
        const shown = harmlessJson(JSON.stringify(JSON.parse(json)));
        expect(acts(shown)).toBe(false);
        expect(JSON.parse(shown)).toEqual(JSON.parse(json));
      }),
    );
    expect(harmlessJson(JSON.stringify("\u{e0041}\u009b"))).toBe('"\\udb40\\udc41\\u009b"');
  });

  it("goes to a pipe as it is", () => {
    expect(fitFor({}, "\u001b[1m")).toBe("\u001b[1m");
    expect(fitFor({ isTTY: true }, "\u001b[1m")).toBe("\\x1b[1m");
  });
});
