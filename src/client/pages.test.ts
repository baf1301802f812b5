// Walking pages, also those of ends that never come to one.

import { describe, expect, it } from "vitest";
import type { Result } from "../core/handler.ts";
import { pagesOf } from "./client.ts";

async function walk(fetch: (cursor: string | undefined) => Result): Promise<unknown[]> {
  const items: unknown[] = [];
  for await (const page of pagesOf("tools/list", "tools", async (cursor) => fetch(cursor))) items.push(...page);
  return items;
}

describe("pages", () => {
  it("gives each cursor back as it came, the empty one too", async () => {
    const cursors: (string | undefined)[] = [];
    const next = new Map<string | undefined, string>([
      [undefined, ""],
      ["", " a"],
    ]);
    const items = await walk((cursor) => {
      cursors.push(cursor);
      const nextCursor = next.get(cursor);
      return { tools: [cursor ?? "first"], ...(nextCursor === undefined ? undefined : { nextCursor }) };
    });
    expect(cursors).toEqual([undefined, "", " a"]);
    expect(items).toEqual(["first", "", " a"]);
  });

  it("takes null for no more", async () => {
    expect(await walk(() => ({ tools: [1], nextCursor: null }))).toEqual([1]);
  });

  it("stops at an end whose pages never finish", async () => {
    let count = 0;
    await expect(walk(() => ({ tools: [], nextCursor: String((count += 1)) }))).rejects.toThrow("more than 1000 pages");
    expect(count).toBe(1_000);
  });

  it("stops at an answer that is no page", async () => {
    await expect(walk(() => ({}))).rejects.toThrow("no array `tools`");
    await expect(walk(() => ({ tools: [], nextCursor: 7 }))).rejects.toThrow("no string");
  });
});
