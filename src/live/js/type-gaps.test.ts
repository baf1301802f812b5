// Columns of lines from which types were taken out: found again where that can be, and otherwise not made up.

import { describe, expect, it } from "vitest";
import { columnWithTypes, typeGaps } from "./source-positions.ts";

describe("the column", () => {
  const written = "let a = 1;\nconst t: string[] = []; (t as any).foo.bar";
  const bare = "let a = 1;\nconst t = []; (t ).foo.bar";
  const gaps = typeGaps(written, bare);
  const found = (mark: string): number | undefined =>
    columnWithTypes(gaps, 2, (bare.split("\n")[1] ?? "").indexOf(mark) + 1);

  it("is the same before the first type, and on lines without types", () => {
    expect(found("t")).toBe(5);
    expect(columnWithTypes(gaps, 1, 7)).toBe(7);
    expect(columnWithTypes(undefined, 1, 7)).toBe(7);
    expect(typeGaps("a", "a").size).toBe(0);
  });

  it("is found again behind the last", () => {
    expect(found("bar")).toBe((written.split("\n")[1] ?? "").indexOf("bar") + 1);
    expect(found("foo")).toBe((written.split("\n")[1] ?? "").indexOf("foo") + 1);
  });

  it("is not known between them", () => {
    expect(found("[]")).toBeUndefined();
  });

  it("is the same where types became blanks", () => {
    const padded = typeGaps("let a: X = b.c", "let a    = b.c");
    expect(columnWithTypes(padded, 1, 12)).toBe(12);
  });
});
