// Encoding and decoding header values: examples of the specification, malformed values, and properties.

import fc from "fast-check";
import { expect, it } from "vitest";
import { decodeHeaderValue, encodeHeaderValue } from "./header-values.ts";

const base64 = (bytes: string | Uint8Array): string => `=?base64?${Buffer.from(bytes).toString("base64")}?=`;

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
])("header values encodes %j as %j, and decodes it", (text, value) => {
  expect(encodeHeaderValue(text)).toBe(value);
  expect(decodeHeaderValue(value)).toBe(text);
});

it.each([
  ["=?base64??=", ""],
  ["=?base64?YQ==?=", "a"],
  ["=?base64?YWI=?=", "ab"],
  ["=?base64?YWJj?=", "abc"],
  ["=?base64?77u/YQ==?=", "\ufeffa"],
])("header values decodes %j as %j, although base64 is not needed", (value, text) => {
  expect(decodeHeaderValue(value)).toBe(text);
});

it.each([
  ["overlapping prefix and suffix", "=?base64?="],
  ["no padding", "=?base64?YQ?="],
  ["half the padding", "=?base64?YQ=?="],
  ["too much padding", "=?base64?YQ===?="],
  ["padding of a whole group", "=?base64?YWJj=?="],
  ["padding alone", "=?base64?==?="],
  ["padding in the middle", "=?base64?YQ==YQ==?="],
  ["one character", "=?base64?Y?="],
  ["bits left over in two characters", "=?base64?YR==?="],
  ["bits left over in three characters", "=?base64?YWJ=?="],
  ["base64url", "=?base64?-_-_?="],
  ["a character outside the alphabet", "=?base64?YQ!=?="],
  ["a space inside", "=?base64?YW Jj?="],
  ["a line break inside", "=?base64?YWJj\n?="],
  ["a line break after it", "=?base64?YWJj?=\n"],
  ["invalid UTF-8", base64(Uint8Array.of(0xff))],
  ["an overlong form", base64(Uint8Array.of(0xc0, 0x80))],
  ["half a character", base64(Uint8Array.of(0xe4, 0xb8))],
  ["half of a surrogate pair", base64(Uint8Array.of(0xed, 0xa0, 0x80))],
  ["characters beyond ASCII", "é"],
  ["a control character", "a\u0001b"],
  ["a line break", "a\r\nb"],
  ["DEL", "a\u007f"],
])("header values refuses %s", (_, value) => {
  expect(decodeHeaderValue(value)).toBeUndefined();
});

it("header values encodes and decodes every string that has UTF-8", () => {
  fc.assert(
    fc.property(fc.oneof(fc.string({ unit: "binary" }), fc.string()), (text) => {
      const value = encodeHeaderValue(text);
      expect(value).toMatch(/^[\t\x20-\x7e]*$/);
      expect(value.trim()).toBe(value);
      expect(decodeHeaderValue(value)).toBe(text);
    }),
  );
});

it("header values has one base64 value for each string", () => {
  fc.assert(
    fc.property(fc.string({ maxLength: 12 }), (inner) => {
      const text = decodeHeaderValue(`=?base64?${inner}?=`);
      expect(text === undefined || base64(text) === `=?base64?${inner}?=`).toBe(true);
    }),
  );
});
