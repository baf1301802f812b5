// Strings with the result that each decodes to, and messages with the line that each is encoded as.

import { expect, it } from "vitest";
import { DEFAULT_LIMITS, decode, encode } from "./codec.ts";
import { ExactId } from "./message.ts";
import type { ErrorMessage, Id, Message } from "./message.ts";

function message(text: string): Record<string, unknown> {
  const decoded = decode(text);
  if (decoded.kind !== "message") throw new Error(`no message but ${JSON.stringify(decoded)}`);
  return decoded.message as unknown as Record<string, unknown>;
}

/** The two faults whose data is a plain string. */
const PLAIN = ["Missing required field: jsonrpc", "Missing required field: method"];

function invalid(id: Id | null, details: string): ErrorMessage {
  const data = PLAIN.includes(details) ? details : { kind: "invalid_request", details };
  return { jsonrpc: "2.0", id, error: { code: -32600, message: "Invalid Request", data } };
}

/** The engine's own message for invalid JSON. */
function engineReason(text: string): string {
  try {
    JSON.parse(text);
  } catch (error) {
    return (error as Error).message;
  }
  throw new Error("It is JSON");
}

it("decode: messages returns the parsed object itself, with unknown fields", () => {
  const text = '{"jsonrpc":"2.0","id":1,"method":"a","params":{"_meta":{"x/y":[1]},"z":null},"extra":{"Method":2}}';
  expect(message(text)).toStrictEqual(JSON.parse(text));
});

it("decode: messages accepts requests, notifications, results and errors", () => {
  const texts = [
    '{"jsonrpc":"2.0","id":"a","method":"m"}',
    '{"jsonrpc":"2.0","method":"m","params":{}}',
    '{"jsonrpc":"2.0","id":1,"result":{}}',
    '{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"no","data":[1]}}',
    '{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}',
  ];
  for (const text of texts) expect(message(text)).toStrictEqual(JSON.parse(text));
});

it("decode: messages gives an error without an id the id null", () => {
  const text = '{"jsonrpc":"2.0","error":{"code":-32700,"message":"Parse error"}}';
  expect(message(text)).toStrictEqual({ ...JSON.parse(text), id: null });
});

it("decode: messages skips one BOM, not two", () => {
  expect(message('\ufeff{"jsonrpc":"2.0","id":1.0,"method":"m"}')["id"]).toEqual(new ExactId("1.0", 1));
  expect(decode('\ufeff\ufeff{"jsonrpc":"2.0","id":1,"method":"m"}')).toMatchObject({
    fault: { error: { code: -32700 } },
  });
});

it("decode: messages uses the last of duplicate keys", () => {
  expect(message('{"jsonrpc":"2.0","id":1.0,"id":2,"method":"a","method":"b"}')).toMatchObject({
    id: 2,
    method: "b",
  });
  expect(message('{"jsonrpc":"2.0","id":2,"id":1.0,"method":"b"}')["id"]).toEqual(new ExactId("1.0", 1));
});

it("decode: messages ignores tokens in params that a later params replaces", () => {
  const head = '{"jsonrpc":"2.0","method":"m","params":{"requestId":1.0,"_meta":{"progressToken":1e3}},"params":';
  expect(message(`${head}{"requestId":1}}`)["params"]).toStrictEqual({ requestId: 1 });
  expect(message(`${head}{"_meta":{"progressToken":5}}}`)["params"]).toStrictEqual({ _meta: { progressToken: 5 } });
  expect(message(`${head}{"_meta":{"x":1},"_meta":{}}}`)["params"]).toStrictEqual({ _meta: {} });
  const twice = message(`${head}{"requestId":[1.0],"requestId":2.0}}`)["params"];
  expect(twice).toStrictEqual({ requestId: new ExactId("2.0", 2) });
});

it("decode: messages keeps hostile keys as data", () => {
  const text =
    '{"jsonrpc":"2.0","id":1.0,"method":"m","__proto__":{"id":7,"polluted":1},"constructor":{"prototype":{"polluted":1}},' +
    '"params":{"__proto__":{"requestId":9},"requestId":2.0,"_meta":{"__proto__":{"progressToken":1}}}}';
  const got = message(text);
  expect(Object.getPrototypeOf(got)).toBe(Object.prototype);
  expect(Object.hasOwn(got, "__proto__")).toBe(true);
  expect(got["id"]).toEqual(new ExactId("1.0", 1));
  const params = got["params"] as Record<string, unknown>;
  expect(Object.getPrototypeOf(params)).toBe(Object.prototype);
  expect(params["requestId"]).toEqual(new ExactId("2.0", 2));
  expect(JSON.stringify(params)).toBe(
    '{"__proto__":{"requestId":9},"requestId":2,"_meta":{"__proto__":{"progressToken":1}}}',
  );
  expect(({} as Record<string, unknown>)["polluted"]).toBeUndefined();
});

it("decode: messages compares keys exactly, escapes resolved", () => {
  expect(message('{"jsonrpc":"2.0","\\u0069d":1.0,"method":"m"}')["id"]).toEqual(new ExactId("1.0", 1));
  expect(message('{"jsonrpc":"2.0","method":"m","ID":1.0,"iD":1.0}')).toMatchObject({ ID: 1, iD: 1 });
  expect(decode('{"jsonrpc":"2.0","id":1,"Method":"m"}')).toMatchObject({
    fault: { error: { data: "Missing required field: method" } },
  });
});

const stream = "io.modelcontextprotocol/subscriptionId";

it("decode: exact tokens are kept at the listed paths only", () => {
  const t = "1.0";
  const exact = new ExactId(t, 1);
  const text = `{"jsonrpc":"2.0","id":${t},"method":"m","other":${t},"params":{"requestId":${t},"progressToken":${t},"id":${t},
      "_meta":{"progressToken":${t},"${stream}":${t},"requestId":${t},"deep":{"progressToken":${t}}},
      "arguments":{"_meta":{"progressToken":${t}},"requestId":${t},"id":${t}},"list":[{"requestId":${t}}]}}`;
  expect(message(text)).toEqual({
    jsonrpc: "2.0",
    id: exact,
    method: "m",
    other: 1,
    params: {
      requestId: exact,
      progressToken: exact,
      id: 1,
      _meta: { progressToken: exact, [stream]: exact, requestId: 1, deep: { progressToken: 1 } },
      arguments: { _meta: { progressToken: 1 }, requestId: 1, id: 1 },
      list: [{ requestId: 1 }],
    },
  });
  const result = message(`{"jsonrpc":"2.0","id":1,"result":{"requestId":${t},"_meta":{"${stream}":${t}}}}`)["result"];
  expect(result).toEqual({ requestId: 1, _meta: { [stream]: exact } });
});

it("decode: exact tokens are not kept inside an array", () => {
  const params = message('{"jsonrpc":"2.0","method":"m","params":{"_meta":[{"progressToken":1.0}]}}')["params"];
  expect(params).toStrictEqual({ _meta: [{ progressToken: 1 }] });
});

it("decode: exact tokens are kept in each item of a batch", () => {
  const decoded = decode(
    '[1.0,{"jsonrpc":"2.0","id":1.0,"method":"a"},[2.0],{"jsonrpc":"2.0","id":2,"method":"b"},' +
      '{"jsonrpc":"2.0","id":3,"method":"c","params":{"_meta":{"progressToken":"\\u0041"}}}]',
  );
  expect(decoded).toMatchObject({
    kind: "batch",
    items: [
      { fault: invalid(null, "A message must be an object") },
      { message: { id: new ExactId("1.0", 1) } },
      { fault: invalid(null, "A batch inside a batch is not a message") },
      { message: { id: 2 } },
      { message: { params: { _meta: { progressToken: new ExactId('"\\u0041"', "A") } } } },
    ],
  });
});

it("decode: exact tokens are kept in a single message if batches are off", () => {
  const decoded = decode('{"jsonrpc":"2.0","id":1.0,"method":"m"}', { ...DEFAULT_LIMITS, batch: 0 });
  expect(decoded).toMatchObject({ kind: "message", message: { id: new ExactId("1.0", 1) } });
});

const table: [text: string, id: Id | null, details: string, answerable: boolean][] = [
  ['"text"', null, "A message must be an object", true],
  ["null", null, "A message must be an object", true],
  ["7", null, "A message must be an object", true],
  ["[]", null, "Empty batch", true],
  ["{}", null, "Missing required field: jsonrpc", true],
  ['{"not-jsonrpc":"2.0","method":"initialize"}', null, "Missing required field: jsonrpc", true],
  ['{"id":4,"method":"m"}', 4, "Missing required field: jsonrpc", true],
  ['{"id":4,"result":{}}', 4, "Missing required field: jsonrpc", false],
  ['{"jsonrpc":"1.0","id":"x","method":"m"}', "x", "Invalid jsonrpc version", true],
  ['{"jsonrpc":2.0,"id":"x","method":"m"}', "x", "Invalid jsonrpc version", true],
  ['{"jsonrpc":"2.0","id":3}', 3, "Missing required field: method", true],
  ['{"jsonrpc":"2.0","id":1.0}', new ExactId("1.0", 1), "Missing required field: method", true],
  ['{"jsonrpc":"2.0","id":3,"method":5}', 3, "Invalid field: method must be a string", true],
  ['{"jsonrpc":"2.0","id":3,"method":null}', 3, "Invalid field: method must be a string", true],
  ['{"jsonrpc":"2.0","id":null,"method":"m"}', null, "Invalid field: id must be a string or a number", true],
  ['{"jsonrpc":"2.0","id":true,"method":"m"}', null, "Invalid field: id must be a string or a number", true],
  ['{"jsonrpc":"2.0","id":{},"method":"m"}', null, "Invalid field: id must be a string or a number", true],
  ['{"jsonrpc":"2.0","id":[1],"method":"m"}', null, "Invalid field: id must be a string or a number", true],
  ['{"jsonrpc":"2.0","id":1,"method":"m","result":{}}', 1, "Invalid field: result is not allowed with method", true],
  ['{"jsonrpc":"2.0","id":1,"method":"m","error":{}}', 1, "Invalid field: error is not allowed with method", true],
  ['{"jsonrpc":"2.0","id":1,"result":null}', 1, "Invalid field: result must be an object", false],
  ['{"jsonrpc":"2.0","id":1,"result":[]}', 1, "Invalid field: result must be an object", false],
  ['{"jsonrpc":"2.0","result":{}}', null, "Missing required field: id", false],
  ['{"jsonrpc":"2.0","id":null,"result":{}}', null, "Invalid field: id must be a string or a number", false],
  [
    '{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":""}}',
    1,
    "Invalid field: result and error exclude each other",
    false,
  ],
  ['{"jsonrpc":"2.0","id":1,"error":null}', 1, "Invalid field: error must be an object", false],
  ['{"jsonrpc":"2.0","id":1,"error":{"message":"x"}}', 1, "Invalid field: error.code must be an integer", false],
  [
    '{"jsonrpc":"2.0","id":1,"error":{"code":1.5,"message":"x"}}',
    1,
    "Invalid field: error.code must be an integer",
    false,
  ],
  ['{"jsonrpc":"2.0","id":1,"error":{"code":1}}', 1, "Invalid field: error.message must be a string", false],
  [
    '{"jsonrpc":"2.0","id":[],"error":{"code":1,"message":""}}',
    null,
    "Invalid field: id must be a string, a number or null",
    false,
  ],
];
it.each(table)("decode: faults: %s", (text, id, details, answerable) => {
  expect(decode(text)).toEqual({ kind: "fault", fault: invalid(id, details), answerable });
});

it.each(["[1]", '"x"', "null", "1"])("decode: faults: params %s", (params) => {
  const decoded = decode(`{"jsonrpc":"2.0","id":9,"method":"m","params":${params}}`);
  const details = "Invalid field: params must be an object (JSON-RPC also allows an array, MCP does not)";
  expect(decoded).toEqual({ kind: "fault", fault: invalid(9, details), answerable: true });
});

it.each(["", " ", "{", '{"jsonrpc":"2.0","id":1', "nonsense", "}{", "]", '{"id":1}}', '"\\', "x".repeat(5000)])(
  "decode: faults: broken JSON %#",
  (text) => {
    const data = { kind: "parse_error", details: engineReason(text).slice(0, 100) };
    const fault = { jsonrpc: "2.0", id: null, error: { code: -32700, message: "Parse error", data } };
    expect(decode(text)).toEqual({ kind: "fault", answerable: true, fault });
  },
);

it("decode: faults names the limit and its option", () => {
  const limits = { messageBytes: 60, depth: 3, batch: 2 };
  const ok = '{"jsonrpc":"2.0","id":1,"method":"m"}';
  expect(decode(`[${ok}]`, limits)).toMatchObject({ kind: "batch" });
  expect(decode("[1,2,3]", limits)).toEqual({
    kind: "fault",
    answerable: true,
    fault: invalid(null, "Batch of 3 messages is over the limit of 2 (limits.batch)"),
  });
  expect(decode(`${ok}${" ".repeat(40)}`, limits)).toMatchObject({
    fault: { id: null, error: { code: -32600, message: "Message longer than 60 bytes (limits.messageBytes)" } },
  });
  expect(
    decode(
      '{"jsonrpc":"2.0","id":1,"method":"\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9"}',
      limits,
    ),
  ).toMatchObject({
    fault: { id: null, error: { code: -32600, message: "Message longer than 60 bytes (limits.messageBytes)" } },
  });
  const deep = '{"id":1.0,"params":{"a":{"b":{}}},"method":"m"}';
  expect(decode(deep, limits)).toEqual({
    kind: "fault",
    answerable: true,
    fault: invalid(new ExactId("1.0", 1), "Nested deeper than 3 levels (limits.depth)"),
  });
});

it("decode: faults finds the id of a message that is too deep, and tells a response from a request", () => {
  const nest = "[".repeat(200) + "]".repeat(200);
  const at = (text: string): unknown => decode(text);
  expect(at(`{"params":{"x":${nest}},"method":"m","id":7}`)).toMatchObject({ answerable: true, fault: { id: 7 } });
  expect(at(`{"id":"a","result":{"x":${nest}}}`)).toMatchObject({ answerable: false, fault: { id: "a" } });
  expect(at(`{"error":${nest},"id":01}`)).toMatchObject({ answerable: false, fault: { id: null } });
  expect(at(`{"id":{"id":5},"method":"m","params":${nest}}`)).toMatchObject({
    answerable: true,
    fault: { id: null },
  });
  expect(at(`[{"id":5,"x":${nest}}]`)).toMatchObject({ answerable: true, fault: { id: null } });
  // The scan before had an id; this text has none.
  expect(at(nest)).toMatchObject({ answerable: true, fault: { id: null } });
});

it("encode writes each kind of message", () => {
  const table: [Message | Message[], string][] = [
    [{ jsonrpc: "2.0", id: 1, method: "m" }, '{"jsonrpc":"2.0","id":1,"method":"m"}'],
    [{ jsonrpc: "2.0", method: "m", params: { a: 1 } }, '{"jsonrpc":"2.0","method":"m","params":{"a":1}}'],
    [{ jsonrpc: "2.0", id: "1", result: { a: undefined } }, '{"jsonrpc":"2.0","id":"1","result":{}}'],
    [
      { jsonrpc: "2.0", id: null, error: { code: -1, message: "a\nb" } },
      '{"jsonrpc":"2.0","id":null,"error":{"code":-1,"message":"a\\nb"}}',
    ],
    [
      [
        { jsonrpc: "2.0", method: "a" },
        { jsonrpc: "2.0", method: "b" },
      ],
      '[{"jsonrpc":"2.0","method":"a"},{"jsonrpc":"2.0","method":"b"}]',
    ],
  ];
  for (const [one, text] of table) expect(encode(one)).toBe(text);
});

it("encode writes an ExactId as it was received, anywhere", () => {
  const text =
    '{"jsonrpc":"2.0","id":9007199254740993,"method":"m","params":{"requestId":1.0,"_meta":{"progressToken":"\\u0041$&","x":[1]}}}';
  const { params, ...rest } = message(text);
  expect(encode({ ...rest, params } as unknown as Message)).toBe(text);
  const nested = { list: [new ExactId("-0", -0), { deep: new ExactId("1e400", Infinity) }] };
  expect(encode({ jsonrpc: "2.0", id: 1, result: nested })).toBe(
    '{"jsonrpc":"2.0","id":1,"result":{"list":[-0,{"deep":1e400}]}}',
  );
});

it("encode writes an ExactId as a plain value in JSON.stringify, and allows nested calls", () => {
  const exact = new ExactId("1.0", 1);
  expect(JSON.stringify({ exact })).toBe('{"exact":1}');
  const inner = { toJSON: () => encode({ jsonrpc: "2.0", method: "in", params: { exact } }) };
  const text = encode({ jsonrpc: "2.0", method: "out", params: { before: exact, inner, after: exact } });
  expect(text).toContain('"before":1.0');
  expect(text).toContain('"after":1.0');
  expect(text).toContain('\\"exact\\":1.0');
  expect(JSON.stringify({ exact })).toBe('{"exact":1}');
});

it("encode throws a TypeError with the reason", () => {
  const cycle: Record<string, unknown> = {};
  cycle["self"] = cycle;
  let deep: unknown[] = [];
  for (let i = 0; i < 200_000; i++) deep = [deep];
  const params: Record<string, unknown>[] = [cycle, { big: 1n }, { deep }];
  for (const one of params) {
    expect(() => encode({ jsonrpc: "2.0", method: "m", params: one })).toThrow(TypeError);
    expect(() => encode({ jsonrpc: "2.0", method: "m", params: one })).toThrow(/^Message cannot be written as JSON: ./);
  }
  const none = { jsonrpc: "2.0", id: 1, result: undefined } as unknown as Message;
  expect(() => encode(none)).toThrow("result has no JSON form");
  expect(() => encode({ jsonrpc: "2.0", id: Number.NaN, method: "m" })).toThrow("id must be");
  // A failure leaves nothing behind.
  expect(JSON.stringify(new ExactId("1.0", 1))).toBe("1");
});

it("a response that also has params keeps an exact token in its result", () => {
  const token = "-14600665395637733";
  const result = `{"_meta":{"io.modelcontextprotocol/subscriptionId":${token}}}`;
  const text = `{"jsonrpc":"2.0","params":{"_meta":{}},"result":${result},"id":0}`;
  expect(encode((decode(text) as { message: Message }).message)).toContain(token);
});
