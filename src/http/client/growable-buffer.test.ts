// The growable buffer.

import { expect, it } from "vitest";
import { decodeUtf8, GrowableBuffer, decodeBody } from "./growable-buffer.ts";

it("a growable buffer contains what was appended, whatever its size", () => {
  const bytes = new GrowableBuffer(10_000_000);
  const expected: Buffer[] = [];
  for (const size of [0, 1, 10, 65_536, 3, 1_000_000, 70_000, 1]) {
    const chunk = Buffer.alloc(size, size % 251);
    expect(bytes.append(chunk)).toBe(true);
    expected.push(chunk);
  }
  expect(bytes.bytes.equals(Buffer.concat(expected))).toBe(true);
  expect(bytes.length).toBe(1_135_551);
});

it("a growable buffer appends part of a chunk", () => {
  const bytes = new GrowableBuffer(10);
  bytes.append(Buffer.from("abcdef"), 2, 4);
  expect(bytes.bytes.toString()).toBe("cd");
});

it("a growable buffer refuses what exceeds the maximum, as a whole", () => {
  const bytes = new GrowableBuffer(5);
  expect(bytes.append(Buffer.from("abc"))).toBe(true);
  expect(bytes.append(Buffer.from("def"))).toBe(false);
  expect(bytes.append(Buffer.from("de"))).toBe(true);
  expect(bytes.bytes.toString()).toBe("abcde");
  expect(bytes.append(Buffer.from("f"))).toBe(false);
});

it("a growable buffer may have any maximum", () => {
  for (const limit of [Number.MAX_SAFE_INTEGER, Number.POSITIVE_INFINITY]) {
    const bytes = new GrowableBuffer(limit);
    expect(bytes.append(Buffer.from("abc"))).toBe(true);
    expect(bytes.bytes.toString()).toBe("abc");
    bytes.release();
  }
  const none = new GrowableBuffer(0);
  expect(none.append(Buffer.alloc(0))).toBe(true);
  expect(none.append(Buffer.alloc(1))).toBe(false);
});

it("a growable buffer can be truncated, released, and grow again", () => {
  const bytes = new GrowableBuffer(1_000_000);
  bytes.append(Buffer.alloc(500_000, "a"));
  bytes.truncate(3);
  expect(bytes.bytes.toString()).toBe("aaa");
  bytes.truncate(9);
  expect(bytes.length).toBe(3);
  bytes.append(Buffer.alloc(300_000, "b"));
  expect(bytes.bytes.toString("utf8", 0, 5)).toBe("aaabb");
  bytes.truncate(0);
  expect(bytes.length).toBe(0);
  bytes.append(Buffer.alloc(200_000, "c"));
  expect(bytes.bytes.equals(Buffer.alloc(200_000, "c"))).toBe(true);
  bytes.release();
  expect(bytes.length).toBe(0);
  bytes.append(Buffer.from("d"));
  expect(bytes.bytes.toString()).toBe("d");
});

it("a growable buffer returns its memory at once", () => {
  const bytes = new GrowableBuffer(64 * 1024 * 1024);
  bytes.append(Buffer.alloc(32 * 1024 * 1024, "x"));
  const { buffer } = bytes.bytes;
  expect(buffer.byteLength).toBeGreaterThanOrEqual(32 * 1024 * 1024);
  bytes.truncate(0);
  expect(buffer.byteLength).toBeLessThanOrEqual(64 * 1024);
  bytes.release();
  expect(buffer.byteLength).toBe(0);
});

it.each(["", "plain", "\u00e9", "\u20ac\u{1F600}", "x".repeat(100_000), `${"x".repeat(100_000)}\u00e9`])(
  "decoding returns what was written",
  (text) => {
    expect(decodeUtf8(Buffer.from(text))).toBe(text);
  },
);

it("decoding removes a byte order mark", () => {
  expect(decodeBody(Buffer.from("\uFEFFa\uFEFF"))).toBe("a\uFEFF");
  expect(decodeBody(Buffer.from("a"))).toBe("a");
  expect(decodeBody(Buffer.alloc(0))).toBe("");
});
