// Columns of a terminal: a line that is cut never takes more than there are.

import fc from "fast-check";
import { expect, it } from "vitest";
import { columns } from "./columns.ts";
import { cutTo, padTo, widthOf } from "./text-width.ts";

it("counts wide letters twice and marks not at all", () => {
  expect(["abc", "世界", "e\u0301", "👍", ""].map(widthOf)).toEqual([3, 4, 1, 2, 0]);
});

it("cuts to what there is, and says so", () => {
  expect(cutTo(10, "short")).toBe("short");
  expect(cutTo(10, "much too long")).toBe("much to...");
  expect(cutTo(6, "世界世界")).toBe("世...");
  expect(cutTo(2, "long")).toBe("..");
  fc.assert(
    fc.property(fc.string({ unit: "grapheme" }), fc.nat(40), (text, room) => {
      expect(widthOf(cutTo(room, text))).toBeLessThanOrEqual(room);
    }),
  );
});

it("pads by width, not by letters", () => {
  expect(padTo(5, "世界")).toBe("世界 ");
  expect(padTo(2, "long")).toBe("long");
});

it("aligns columns, and lets no long name push the others away", () => {
  expect(
    columns(
      [
        ["a", "b", "c"],
        ["aaa", "世", "d"],
      ],
      { indent: 2 },
    ),
  ).toBe("  a    b   c\n  aaa  世  d\n");
  expect(
    columns([
      ["x".repeat(40), "far"],
      ["y", "near"],
    ]),
  ).toBe(`${"x".repeat(40)}  far\n${"y".padEnd(32)}  near\n`);
  expect(columns([["name", "a long description"]], { width: 12 })).toBe("name  a l...\n");
  expect(columns([])).toBe("");
});
