// decodeLong gives the same result as decode. Strings of a few characters count as long here.

import { deepStrictEqual } from "node:assert/strict";
import * as fc from "fast-check";
import { expect, it } from "vitest";
import { decode, DEFAULT_LIMITS, type Decoded, PARSE_ERROR } from "./codec.ts";
import { decodeLong } from "./long-message.ts";
import { ExactId } from "./message.ts";

const LIMITS = { ...DEFAULT_LIMITS, batch: 3, depth: 8 };

function expectSame(text: string, longString: number): Decoded {
  const expected = decode(text, LIMITS);
  const given = decodeLong(Buffer.from(text), LIMITS, longString);
  if (expected.kind === "fault" && expected.fault.error.code === PARSE_ERROR && given.kind === "fault") {
    // In a broken long string the engine counts positions from its start.
    expect(given.fault.error.code).toBe(PARSE_ERROR);
    expect([given.fault.id, given.answerable]).toEqual([expected.fault.id, expected.answerable]);
  } else deepStrictEqual(given, expected);
  return given;
}

const response = (result: unknown, id: unknown = 1): string => JSON.stringify({ jsonrpc: "2.0", id, result });

it.each([
  ["with one string", response({ content: [{ type: "text", text: "a long text" }] })],
  ["with many", response({ a: ["first string", "second string"], b: { c: "third string", "d long key": "fourth" } })],
  ["with escapes", response({ text: 'lines\nand "quotes" and \\ and \u{1F600}' })],
  ["with an unpaired surrogate", '{"jsonrpc":"2.0","id":1,"result":{"text":"half \\ud83d of it"}}'],
  ["with a BOM", `\uFEFF${response({ text: "a long text" })}`],
  ["with long keys", response({ "a very long key": 1, "another long key": "with a long text" })],
  ["with a duplicate key", '{"jsonrpc":"2.0","id":1,"result":{"a":"first string","a":"second string"}}'],
  ["with a key __proto__", '{"jsonrpc":"2.0","id":1,"result":{"__proto__":"a long text"}}'],
  ["with spaces", '{ "jsonrpc" : "2.0" , "id" : 1 , "result" : { "a long key"\n : "a long text" } }'],
  ["with a long method", '{"jsonrpc":"2.0","method":"notifications/of/a/long/name","params":{"a":"b"}}'],
  ["that is an error", '{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"a long message"}}'],
  ["with a long id", response({ text: "a long text" }, "a long id that is plain")],
  ["in a batch", `[${response({ text: "a long text" })},${response({ text: "another text" })}]`],
  ["with nothing long", response({ a: "b" })],
])("a long message: %s is decoded like a string", (_, text) => {
  const { kind } = expectSame(text, 6);
  expect(kind).not.toBe("fault");
});

it("a long message keeps the source text of a long id", () => {
  const text = '{"jsonrpc":"2.0","id":"a long \\u0069d","result":{"text":"a long text"}}';
  const decoded = expectSame(text, 6);
  expect(decoded).toMatchObject({ message: { id: new ExactId('"a long \\u0069d"', "a long id") } });
});

it.each([
  ["is invalid JSON after a string", '{"jsonrpc":"2.0","id":1,"result":{"text":"a long text"}'],
  ["is invalid JSON within a string", '{"jsonrpc":"2.0","id":1,"result":{"text":"a long \\text and \\x"}}'],
  ["has a line break in a string", '{"jsonrpc":"2.0","id":1,"result":{"text":"a long\ntext"}}'],
  [
    "is invalid JSON within a string that a duplicate key replaces",
    '{"jsonrpc":"2.0","id":1,"result":{"a":"a long \\x","a":1}}',
  ],
  ["never ends a string", '{"jsonrpc":"2.0","id":1,"result":{"text":"a long text \\"}}'],
  ["is too deep", response([[[[[[[["a long text"]]]]]]]])],
  ["is not a message", '{"jsonrpc":"2.0","id":1,"text":"a long text"}'],
  ["is not an object", '"a long text"'],
  ["has a revision that is a long string", '{"jsonrpc":"a long text","id":1,"result":{}}'],
  [
    "is a batch with too many",
    `[${Array(4)
      .fill(response({ text: "a long text" }))
      .join(",")}]`,
  ],
  ["is empty", ""],
])("a long message that %s has the same fault", (_, text) => {
  const { kind } = expectSame(text, 6);
  expect(kind).toBe("fault");
});

it("a long message that is too long has the same fault", () => {
  const limits = { ...LIMITS, messageBytes: 40 };
  const text = response({ text: "a long text" });
  expect(decodeLong(Buffer.from(text), limits, 6)).toEqual(decode(text, limits));
});

it("a long message may also contain short strings", () => {
  const long = "x".repeat(100_000);
  const decoded = decodeLong(Buffer.from(response({ long, short: "y" })), DEFAULT_LIMITS);
  expect(decoded).toEqual({ kind: "message", message: { jsonrpc: "2.0", id: 1, result: { long, short: "y" } } });
});

const word = fc.oneof(
  fc.string({ unit: "binary", maxLength: 30 }),
  fc.constantFrom("id", "requestId", "progressToken", "_meta", "A", "\\u0041"),
);
const value = fc.letrec((tie) => ({
  any: fc.oneof(
    { depthSize: "small" },
    word,
    fc.integer(),
    fc.constantFrom(null, true),
    fc.array(tie("any"), { maxLength: 4 }),
    fc.dictionary(word, tie("any"), { maxKeys: 4 }),
  ),
})).any;
const message = fc.oneof(
  fc.record({ jsonrpc: fc.constant("2.0"), id: fc.oneof(word, fc.integer()), result: fc.dictionary(word, value) }),
  fc.record({ jsonrpc: fc.constant("2.0"), method: word, params: fc.dictionary(word, value) }),
  value,
);
const escaped = (text: string): string =>
  text.replaceAll(/[a-z]/g, (char) => `\\u00${char.charCodeAt(0).toString(16)}`);
const text = fc.oneof(
  message.map((one) => JSON.stringify(one)),
  message.map((one) => JSON.stringify(one, null, 1)),
  // Keys and values written with escapes.
  message.map((one) => JSON.stringify(one).replaceAll(/"(?:[^"\\]|\\.){12,}"/g, escaped)),
);

/** An unescaped half of a surrogate pair has no UTF-8. */
const sent = (one: string): string => Buffer.from(one).toString();

it("any message is decoded like a string", () => {
  fc.assert(fc.property(text, fc.nat(12), (one, longString) => void expectSame(one, longString)));
});

it("any message is decoded like a string after a cut or a change", () => {
  fc.assert(
    fc.property(text, fc.nat(), fc.string({ maxLength: 2 }), fc.nat(12), (one, at, change, longString) => {
      const place = at % (one.length + 1);
      expectSame(sent(one.slice(0, place) + change + one.slice(place + 1)), longString);
      expectSame(sent(one.slice(0, place)), longString);
    }),
  );
});
