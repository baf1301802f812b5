// Text at a terminal: its width in columns, truncation and tables. Untrusted text cannot control the terminal, and plain
// text is not changed.

import fc from "fast-check";
import { expect, it } from "vitest";
import { sanitizeFor } from "./output.ts";
import { formatTable, oneLine, pad, quoteWord, sanitize, sanitizeJson, truncate, widthOf } from "./text.ts";

it("counts wide characters twice and combining marks not at all", () => {
  expect(["abc", "世界", "e\u0301", "👍", ""].map(widthOf)).toEqual([3, 4, 1, 2, 0]);
});

it("truncates to a width, with dots", () => {
  expect(truncate(10, "short")).toBe("short");
  expect(truncate(10, "much too long")).toBe("much to...");
  expect(truncate(6, "世界世界")).toBe("世...");
  expect(truncate(2, "long")).toBe("..");
  fc.assert(
    fc.property(fc.string({ unit: "grapheme" }), fc.nat(40), (text, width) => {
      expect(widthOf(truncate(width, text))).toBeLessThanOrEqual(width);
    }),
  );
});

it("quotes a word for a shell if it has to", () => {
  expect(["notes", "~/a b.json", "it's", "$(x)", ""].map(quoteWord)).toEqual([
    "notes",
    "'~/a b.json'",
    String.raw`'it'\''s'`,
    "'$(x)'",
    "''",
  ]);
});

it("pads by width, not by characters", () => {
  expect(pad(5, "世界")).toBe("世界 ");
  expect(pad(2, "long")).toBe("long");
});

it("aligns columns, except beside a very long cell", () => {
  expect(
    formatTable(
      [
        ["a", "b", "c"],
        ["aaa", "世", "d"],
      ],
      { indent: 2 },
    ),
  ).toBe("  a    b   c\n  aaa  世  d\n");
  expect(
    formatTable([
      ["x".repeat(60), "far"],
      ["y", "near"],
    ]),
  ).toBe(`${"x".repeat(60)}  far\n${"y".padEnd(48)}  near\n`);
  expect(formatTable([["name", "a long description"]], { width: 12 })).toBe("name  a l...\n");
  expect(formatTable([])).toBe("");
});

/** Whether the text contains C0 or C1 controls other than newline and tab, or delete. */
function hasControls(text: string): boolean {
  return [...text].some((character) => {
    const code = character.codePointAt(0) ?? 0;
    return (code < 0x20 && code !== 0x0a && code !== 0x09) || (code >= 0x7f && code <= 0x9f);
  });
}

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
])("untrusted text: %j is shown as %j", (text, shown) => {
  expect(sanitize(text)).toBe(shown);
});

it("untrusted text never contains control characters", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary" }), (text) => {
      expect(hasControls(sanitize(text))).toBe(false);
      expect(sanitize(sanitize(text))).toBe(sanitize(text));
      expect(oneLine(text)).not.toMatch(/[\n\t]/);
    }),
  );
});

it("untrusted text in JSON stays JSON of the same value", () => {
  fc.assert(
    fc.property(fc.json({ stringUnit: "binary" }), (json) => {
      const shown = sanitizeJson(JSON.stringify(JSON.parse(json)));
      expect(hasControls(shown)).toBe(false);
      expect(JSON.parse(shown)).toEqual(JSON.parse(json));
    }),
  );
  expect(sanitizeJson(JSON.stringify("\u{e0041}\u009b"))).toBe('"\\udb40\\udc41\\u009b"');
});

it("untrusted text goes to a pipe unchanged", () => {
  expect(sanitizeFor({}, "\u001b[1m")).toBe("\u001b[1m");
  expect(sanitizeFor({ isTTY: true }, "\u001b[1m")).toBe("\\x1b[1m");
});
