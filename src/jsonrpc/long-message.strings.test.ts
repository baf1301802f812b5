// readString against JSON.parse, with blocks so small that everything is cut somewhere.

import { deepStrictEqual } from "node:assert/strict";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { readString } from "./long-message.ts";

/** Reads `raw` from within other bytes, which must not change. */
function read(raw: string | Buffer, blockBytes?: number): string {
  const inside = Buffer.from(raw as string);
  const bytes = Buffer.concat([Buffer.from('before"'), inside, Buffer.from('"behind')]);
  try {
    return readString(bytes, 7, 7 + inside.length, blockBytes);
  } finally {
    expect(bytes.toString("latin1", 0, 7)).toBe('before"');
    expect(bytes.toString("latin1", 7 + inside.length)).toBe('"behind');
  }
}

const parsed = (raw: string): string => JSON.parse(`"${raw}"`) as string;

const RAW = [
  "",
  "plain",
  String.raw`\"\\\/\b\f\n\r\t`,
  String.raw`\u0000\u0041\u007f\u0080\u07ff\u0800\uffff\uFEFF`,
  String.raw`\ud83d\ude00 \uD83D\uDE00`,
  String.raw`\\u0041\\\u0041`,
  "\u00e9\u20ac\u{1F600}\ufeff\u007f",
  String.raw`\ud800`,
  String.raw`\udc00\ud800`,
  String.raw`\ud83d\u0041`,
  String.raw`\ud83d\n`,
  String.raw`half \ud83d and "whole" \ud83d\ude00`.replaceAll('"', String.raw`\"`),
];
const NOT_RAW = ["\n", "\u0000", "a\u001fb", "\\", "\\x", "\\u", "\\u12", "\\u12g4", "\\U0041", "x\\", "\\ud83d\\ude0"];

describe.each([undefined, 4, 8, 12, 16, 64])("a string in blocks of %s", (blockBytes) => {
  it.each(RAW)("a string in blocks equals JSON.parse for %j", (raw) => {
    for (let before = 0; before < 16; before += 1) {
      const text = "x".repeat(before) + raw;
      expect(read(text, blockBytes)).toBe(parsed(text));
    }
  });

  it.each(NOT_RAW)("a string in blocks throws for %j", (raw) => {
    for (let before = 0; before < 16; before += 1) {
      expect(() => read("x".repeat(before) + raw, blockBytes)).toThrow(SyntaxError);
    }
  });
});

const piece = fc.oneof(
  fc.string({ unit: "binary" }).map((text) => JSON.stringify(text).slice(1, -1)),
  fc.string({ unit: "grapheme" }).map((text) => JSON.stringify(text).slice(1, -1)),
  fc.nat(0xffff).map((unit) => `\\u${unit.toString(16).padStart(4, "0")}`),
  fc.constantFrom(...RAW),
);

it("any string equals JSON.parse", () => {
  fc.assert(
    fc.property(fc.array(piece), fc.constantFrom(4, 12, 16, 1024), (pieces, blockBytes) => {
      const raw = pieces.join("");
      deepStrictEqual(read(raw, blockBytes), parsed(raw));
    }),
  );
});

it("any string replaces invalid UTF-8 as Buffer.toString does", () => {
  const bytes = fc.oneof(
    fc.uint8Array(),
    piece.map((raw) => new Uint8Array(Buffer.from(raw))),
  );
  fc.assert(
    fc.property(fc.array(bytes), fc.constantFrom(4, 16, 1024), (pieces, blockBytes) => {
      // Bytes that would end the string or make it invalid are tested above.
      const odd = (piece: Uint8Array): boolean => piece.some((byte) => byte < 32 || byte === 34 || byte === 92);
      const raw = Buffer.concat(pieces.filter((piece) => !odd(piece)));
      deepStrictEqual(read(raw, blockBytes), parsed(raw.toString("utf8")));
    }),
  );
});
