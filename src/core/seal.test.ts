// Only what was sealed can be opened. Every byte and every character of a token is altered in turn; the test sets the
// clock.

import { expect, it, vi } from "vitest";
import { Seal, digest } from "./seal.ts";

it("seal opens what it sealed", () => {
  const seal = new Seal();
  const payload = { run: 1, answers: ["é", null, { deep: true }] };
  expect(seal.open(seal.seal(payload, 1000))).toEqual(payload);
  expect(seal.open(seal.seal({}, 1000))).toEqual({});
});

it("seal writes base64url only, and never the same token twice", () => {
  const seal = new Seal("a key");
  const tokens = Array.from({ length: 50 }, () => seal.seal({ n: 1 }, 1000));
  expect(new Set(tokens).size).toBe(50);
  for (const token of tokens) expect(token).toMatch(/^[A-Za-z0-9_-]+$/);
});

it("seal hides what it sealed", () => {
  const token = new Seal().seal({ secret: "mockingbird" }, 1000);
  expect(Buffer.from(token, "base64url").toString("latin1")).not.toContain("mockingbird");
});

it("seal refuses a token with any byte flipped", () => {
  const seal = new Seal();
  const bytes = Buffer.from(seal.seal({ a: "b" }, 1000), "base64url");
  for (let at = 0; at < bytes.length; at++) {
    for (const bit of [1, 0x80]) {
      const altered = Buffer.from(bytes);
      altered[at] = altered[at]! ^ bit;
      expect(seal.open(altered.toString("base64url")), `byte ${at}`).toBeUndefined();
    }
  }
});

it("seal refuses a token with any character changed, cut or added", () => {
  const seal = new Seal();
  // Three lengths, so that the last character carries all, some and few unused bits.
  for (const payload of [{ a: "b" }, { a: "bb" }, { a: "bbb" }]) {
    const token = seal.seal(payload, 1000);
    for (let at = 0; at < token.length; at++) {
      const other = token[at] === "A" ? "B" : "A";
      expect(seal.open(token.slice(0, at) + other + token.slice(at + 1))).toBeUndefined();
      expect(seal.open(token.slice(0, at))).toBeUndefined();
      expect(seal.open(token.slice(0, at) + "!" + token.slice(at))).toBeUndefined();
    }
    for (const tail of ["=", " ", "A", "-TAMPERED"]) expect(seal.open(token + tail)).toBeUndefined();
  }
  expect(seal.open("")).toBeUndefined();
});

it("seal refuses an expired token", () => {
  const clock = vi.spyOn(Date, "now").mockReturnValue(1_000);
  const seal = new Seal("k");
  const token = seal.seal({ a: 1 }, 500);
  clock.mockReturnValue(1_499);
  expect(seal.open(token)).toEqual({ a: 1 });
  clock.mockReturnValue(1_500);
  expect(seal.open(token)).toBeUndefined();
  clock.mockRestore();
});

it("seal opens with an equal key and with no other", () => {
  const token = new Seal("one").seal({ a: 1 }, 1000);
  expect(new Seal("one").open(token)).toEqual({ a: 1 });
  expect(new Seal(new TextEncoder().encode("one")).open(token)).toEqual({ a: 1 });
  expect(new Seal("two").open(token)).toBeUndefined();
  expect(new Seal().open(token)).toBeUndefined();
});

it("seal has a fingerprint that follows the key", () => {
  expect(new Seal("one").id).toBe(new Seal("one").id);
  expect(new Seal("one").id).not.toBe(new Seal("two").id);
  expect(new Seal().id).not.toBe(new Seal().id);
  expect(new Seal("one").id).toMatch(/^[A-Za-z0-9_-]{8}$/);
});

it("seal copies its key, and refuses an empty one", () => {
  const key = new Uint8Array(32).fill(7);
  const seal = new Seal(key);
  key.fill(0);
  expect(seal.id).toBe(new Seal(new Uint8Array(32).fill(7)).id);
  expect(() => new Seal("")).toThrow("must not be empty");
  expect(() => new Seal(new Uint8Array())).toThrow("must not be empty");
});

it("digest does not depend on the order of keys", () => {
  expect(digest({ a: 1, b: { c: [1, 2], d: undefined } })).toBe(digest({ b: { c: [1, 2] }, a: 1 }));
  const others = [{}, [], null, 1, "1", { a: 1 }, { a: "1" }, { a: [1] }, { a: { 0: 1 } }, [1, 2], [[1], 2], ["1,2"]];
  expect(new Set(others.map(digest)).size).toBe(others.length);
});
