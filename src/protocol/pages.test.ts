// Pages and cursors: every item once for any page size, changes of the list between two pages, and invalid cursors.

import * as fc from "fast-check";
import { expect, it } from "vitest";
import { McpError } from "./errors.ts";
import { page, type PageItem } from "./pages.ts";

const items = (...orders: readonly number[]): PageItem[] => orders.map((order) => ({ order, key: `item ${order}` }));

function refused(work: () => unknown): McpError {
  try {
    work();
  } catch (error) {
    if (error instanceof McpError) return error;
  }
  throw new Error("It was not refused");
}

function walk(all: readonly PageItem[], size: number): PageItem[][] {
  const pages: PageItem[][] = [];
  for (let cursor: string | undefined; ;) {
    const { items: part, nextCursor } = page("tools/list", all, cursor, size);
    pages.push([...part]);
    if (nextCursor === undefined) return pages;
    cursor = nextCursor;
  }
}

it("page returns a short list itself, without a cursor", () => {
  const all = items(1, 2, 3);
  expect(page("tools/list", all, undefined, 3)).toEqual({ items: all });
  expect(page("tools/list", all, undefined, 3).items).toBe(all);
  expect(page("tools/list", [], undefined, 3)).toEqual({ items: [] });
});

it("page returns every item once, in order, for any size", () => {
  fc.assert(
    fc.property(fc.uniqueArray(fc.nat(1000)), fc.integer({ min: 1, max: 10 }), (orders, size) => {
      const all = items(...orders.toSorted((a, b) => a - b));
      const pages = walk(all, size);
      expect(pages.flat()).toEqual(all);
      expect(pages.slice(0, -1).every((part) => part.length === size)).toBe(true);
    }),
  );
});

it("page continues correctly after items were added and removed, even the one of the cursor", () => {
  const { nextCursor } = page("tools/list", items(1, 2, 3, 4, 5), undefined, 2);
  expect(page("tools/list", items(3, 4, 5, 6), nextCursor, 9).items).toEqual(items(3, 4, 5, 6));
  expect(page("tools/list", items(1, 4), nextCursor, 9).items).toEqual(items(4));
  expect(page("tools/list", [], nextCursor, 9)).toEqual({ items: [] });
});

it("page continues by key among items of equal order", () => {
  const group = ["a", "b", "c"].map((key) => ({ order: 7, key }));
  const all = [...items(1), ...group, ...items(9)];
  expect(walk(all, 2).flat()).toEqual(all);
  const { nextCursor } = page("tools/list", all, undefined, 3);
  const without = all.filter(({ key }) => key !== "b");
  expect(page("tools/list", without, nextCursor, 9).items.map(({ key }) => key)).toEqual(["a", "c", "item 9"]);
});

it("page supports any string as a key", () => {
  const all = [{ order: 0, key: '"\u00e9\u{1f600}\ud800' }, ...items(1)];
  expect(walk(all, 1).flat()).toEqual(all);
});

it("page refuses other cursors", () => {
  const all = items(1, 2, 3);
  const cursor = page("tools/list", all, undefined, 1).nextCursor!;
  const forged = ["", " ", "x", "1", "MQ", "e30", cursor + "=", cursor + "A", cursor.slice(1), cursor.slice(0, -1)];
  for (const bad of [...forged, 1, null, {}, [cursor]]) {
    const error = refused(() => page("tools/list", all, bad, 1));
    expect(error.kind).toBe("invalid_params");
    expect(error.message).toContain("Invalid cursor");
  }
  for (let at = 0; at < cursor.length; at++) {
    const altered = cursor.slice(0, at) + (cursor[at] === "A" ? "B" : "A") + cursor.slice(at + 1);
    expect(refused(() => page("tools/list", all, altered, 1)).code).toBe(-32602);
  }
  expect(refused(() => page("prompts/list", all, cursor, 1)).kind).toBe("invalid_params");
});

it("page refuses an invented cursor with a valid checksum", () => {
  const sum = (text: string): string => {
    let value = 0x811c9dc5;
    for (const char of text) value = Math.imul(value ^ char.charCodeAt(0), 0x01000193);
    return (value >>> 0).toString(36).padStart(7, "0");
  };
  const made = (body: string): string => Buffer.from(sum(body) + body).toString("base64url");
  const all = items(1, 2, 3);
  expect(page("tools/list", all, made('["tools/list",1,"item 1"]'), 9).items).toEqual(items(2, 3));
  for (const body of ["", "1", "null", "{", "[]", '["tools/list"]', '["tools/list","1","a"]', '["tools/list",1,2]']) {
    expect(refused(() => page("tools/list", all, made(body), 9)).kind).toBe("invalid_params");
  }
});

it("page throws invalid params for any other value", () => {
  fc.assert(
    fc.property(fc.oneof(fc.base64String(), fc.string(), fc.jsonValue()), (cursor) => {
      expect(refused(() => page("tools/list", items(1, 2), cursor, 1)).kind).toBe("invalid_params");
    }),
  );
});
