// Texts as the values of headers and back: the examples of the specification, what is no text, and laws.

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { decodeHeaderValue, encodeHeaderValue } from "./header-value.ts";

const base64 = (bytes: string | Uint8Array): string => `=?base64?${Buffer.from(bytes).toString("base64")}?=`;

describe("texts in headers", () => {
  it.each([
    ["us-west1", "us-west1"],
    ["", ""],
    ["two words", "two words"],
    ["a\tb", "a\tb"],
    ["~!@#$%^&*()_+{}|:<>?", "~!@#$%^&*()_+{}|:<>?"],
    ["Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="],
    [" padded ", "=?base64?IHBhZGRlZCA=?="],
    ["line1\nline2", "=?base64?bGluZTEKbGluZTI=?="],
    ["=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="],
    ["=?base64?=", base64("=?base64?=")],
    [" a", base64(" a")],
    ["a ", base64("a ")],
    ["\ta", base64("\ta")],
    ["a\t", base64("a\t")],
    [" ", base64(" ")],
    ["a\rb", base64("a\rb")],
    ["a\0b", base64("a\0b")],
    ["\u007f", base64("\u007f")],
    ["é", base64("é")],
    ["\ufeffa", base64("\ufeffa")],
    ["=?base64?a", "=?base64?a"],
    ["YQ==?=", "YQ==?="],
    ["=?BASE64?YQ==?=", "=?BASE64?YQ==?="],
  ])("writes %j as %j, and reads it again", (text, value) => {
    expect(encodeHeaderValue(text)).toBe(value);
    expect(decodeHeaderValue(value)).toBe(text);
  });

  it.each([
    ["=?base64??=", ""],
    ["=?base64?YQ==?=", "a"],
    ["=?base64?YWI=?=", "ab"],
    ["=?base64?YWJj?=", "abc"],
    ["=?base64?77u/YQ==?=", "\ufeffa"],
  ])("reads %j as %j, though it need not have been in base64", (value, text) => {
    expect(decodeHeaderValue(value)).toBe(text);
  });

  it.each([
    ["the marks share a character", "=?base64?="],
    ["no padding", "=?base64?YQ?="],
    ["half the padding", "=?base64?YQ=?="],
    ["too much padding", "=?base64?YQ===?="],
    ["padding of a whole group", "=?base64?YWJj=?="],
    ["padding alone", "=?base64?==?="],
    ["padding in the middle", "=?base64?YQ==YQ==?="],
    ["one character", "=?base64?Y?="],
    ["bits left over in two characters", "=?base64?YR==?="],
    ["bits left over in three characters", "=?base64?YWJ=?="],
    ["the alphabet of addresses, dash", "=?base64?-_-_?="],
    ["a character of no alphabet", "=?base64?YQ!=?="],
    ["a blank inside", "=?base64?YW Jj?="],
    ["a line end inside", "=?base64?YWJj\n?="],
    ["a line end behind", "=?base64?YWJj?=\n"],
    ["bytes that are no UTF-8", base64(Uint8Array.of(0xff))],
    ["an overlong form", base64(Uint8Array.of(0xc0, 0x80))],
    ["half a character", base64(Uint8Array.of(0xe4, 0xb8))],
    ["half of a pair", base64(Uint8Array.of(0xed, 0xa0, 0x80))],
    ["raw text beyond ASCII", "é"],
    ["a control character", "a\u0001b"],
    ["a line end", "a\r\nb"],
    ["DEL", "a\u007f"],
  ])("takes no text from %s", (_, value) => {
    expect(decodeHeaderValue(value)).toBeUndefined();
  });

  it("carries every text that UTF-8 can carry", () => {
    fc.assert(
      fc.property(fc.oneof(fc.string({ unit: "binary" }), fc.string()), (text) => {
        const value = encodeHeaderValue(text);
        expect(value).toMatch(/^[\t\x20-\x7e]*$/);
        expect(value.trim()).toBe(value);
        expect(decodeHeaderValue(value)).toBe(text);
      }),
    );
  });

  it("never takes two values in base64 for one text", () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 12 }), (inner) => {
        const text = decodeHeaderValue(`=?base64?${inner}?=`);
        expect(text === undefined || base64(text) === `=?base64?${inner}?=`).toBe(true);
      }),
    );
  });
});
