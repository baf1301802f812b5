// Texts in a budget of bytes: what counts, what is dropped first, and which characters survive.

import { expect, it } from "vitest";
import { ChunkedLog } from "./chunked-log.ts";

it("keeps texts as they were, whatever their characters", () => {
  const log = new ChunkedLog(100_000);
  const texts = ["", "plain", "Grüße \u00ff\n", "日本語 ✓ 😀", "\u0000\u001f", "half \ud800 a pair"];
  for (const [slot, text] of texts.entries()) log.write(slot, text);
  expect(texts.map((_, slot) => log.read(slot)?.text)).toEqual([...texts.slice(0, -1), "half \ufffd a pair"]);
  log.write(1, "again");
  expect(log.read(1)?.text).toBe("again");
  log.forget(1);
  expect(log.read(1)).toBeUndefined();
  expect(log.read(99)).toBeUndefined();
});

it("never has more bytes than its budget, and drops the oldest first", () => {
  const log = new ChunkedLog(64_000);
  for (let slot = 0; slot < 5_000; slot += 1) {
    log.write(slot, `${slot} ${"x".repeat(slot % 300)}`);
    expect(log.bytes).toBeLessThanOrEqual(64_000);
  }
  const kept = Array.from({ length: 5_000 }, (_, slot) => log.read(slot)?.text);
  const first = kept.findIndex((text) => text !== undefined);
  expect(kept.slice(first).every((text, at) => text?.startsWith(`${first + at} `))).toBe(true);
  const bytes = kept.slice(first).reduce((sum, text = "") => sum + text.length, 0);
  expect(bytes).toBeGreaterThan(40_000);
  expect(log.bytes).toBeGreaterThan(60_000);
});

it("keeps large values as references, which count and go with the texts of their time", () => {
  const log = new ChunkedLog(64_000);
  const large = { text: "x" };
  log.write(0, "first", [large], 30_000);
  const { bytes } = log;
  expect(bytes).toBeGreaterThan(30_000);
  expect(log.read(0)?.large[0]).toBe(large);
  log.write(1, "second", [large], 30_000);
  log.write(2, "third", [large], 30_000);
  expect(log.read(0)).toBeUndefined();
  expect(log.read(2)).toEqual({ text: "third", large: [large] });
  expect(log.bytes).toBeLessThanOrEqual(64_000);
});

it("a text that is longer than all of the budget is not kept, and drops nothing", () => {
  const log = new ChunkedLog(1_000);
  log.write(0, "short");
  log.write(1, "x".repeat(2_000));
  log.write(2, "y", [{}], 2_000);
  expect(log.read(0)?.text).toBe("short");
  expect(log.read(1)).toBeUndefined();
  expect(log.read(2)).toBeUndefined();
  log.write(3, "x".repeat(900));
  expect(log.read(3)?.text).toHaveLength(900);
  expect(new ChunkedLog(0).bytes).toBe(0);
});
