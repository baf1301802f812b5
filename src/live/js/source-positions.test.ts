// Columns in lines from which types were removed: restored where that is possible, else undefined.

import { describe, expect, it } from "vitest";
import { columnWithTypes, findTypeGaps } from "./source-positions.ts";

describe("columnWithTypes", () => {
  const written = "let a = 1;\nconst t: string[] = []; (t as any).foo.bar";
  const stripped = "let a = 1;\nconst t = []; (t ).foo.bar";
  const gaps = findTypeGaps(written, stripped);
  const found = (mark: string): number | undefined =>
    columnWithTypes(gaps, 2, (stripped.split("\n")[1] ?? "").indexOf(mark) + 1);

  it("is unchanged before the first type and on lines without types", () => {
    expect(found("t")).toBe(5);
    expect(columnWithTypes(gaps, 1, 7)).toBe(7);
    expect(columnWithTypes(undefined, 1, 7)).toBe(7);
    expect(findTypeGaps("a", "a").size).toBe(0);
  });

  it("is restored after the last type", () => {
    expect(found("bar")).toBe((written.split("\n")[1] ?? "").indexOf("bar") + 1);
    expect(found("foo")).toBe((written.split("\n")[1] ?? "").indexOf("foo") + 1);
  });

  it("is undefined between two types", () => {
    expect(found("[]")).toBeUndefined();
  });

  it("is unchanged if types were replaced by spaces", () => {
    const padded = findTypeGaps("let a: X = b.c", "let a    = b.c");
    expect(columnWithTypes(padded, 1, 12)).toBe(12);
  });
});
