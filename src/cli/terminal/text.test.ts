// Width of text in terminal columns, truncation and tables.

import fc from "fast-check";
import { expect, it } from "vitest";
import { formatTable, pad, quoteWord, truncate, widthOf } from "./text.ts";

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
