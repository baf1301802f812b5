// Hostile input. Only results are checked, never times: work that is not linear would run into the timeout of the test
// runner by hours.
import { expect, it } from "vitest";
import { DEFAULT_LIMITS, decode, encode } from "./codec.ts";
import { ExactId, idKey } from "./message.ts";
import type { Id, Message } from "./message.ts";
import { IS_LONG } from "../../test/support/thoroughness.ts";

function echoed(rawId: string): { id: Id; text: string } {
  const decoded = decode(`{"jsonrpc":"2.0","id":${rawId},"method":"m"}`);
  if (decoded.kind !== "message" || !("id" in decoded.message) || decoded.message.id === null) {
    throw new Error(`refused ${rawId.slice(0, 40)}`);
  }
  const { id } = decoded.message;
  return { id, text: encode({ jsonrpc: "2.0", id, result: {} }) };
}

const raws = [
  "0",
  "-0",
  "-1",
  "1",
  "1.0",
  "1.5",
  "1e3",
  "1E3",
  "1e+3",
  "0.1e1",
  "1e400",
  "-1e400",
  "1e-400",
  "9007199254740991",
  "9007199254740992",
  "9007199254740993",
  "-9007199254740993",
  "1".repeat(400),
  "123456789012345",
  "1234567890123456",
  "0.30000000000000004",
  "1e21",
  "1000000000000000000000",
  '""',
  '"1"',
  '"1.0"',
  '"\\u0041"',
  '"A"',
  '"\\/"',
  '"/"',
  '"\\b\\f\\n\\r\\t\\\\\\""',
  '"\\u000a"',
  '"\\u0000"',
  '"\\ud800"',
  '"\\uD800"',
  '"\\udc00\\ud800"',
  '"\\ud83d\\ude00"',
  '"\u{1f600}"',
  '"\u2028\u2029"',
  '"\\u2028"',
  '"\u007f"',
  '"\ufeff"',
  '"__proto__"',
  `"${"x".repeat(65_536)}"`,
  `"${"\\u0078".repeat(10_923)}"`,
  '"\\\\"',
  '"\\\\\\\\"',
  '"\\\\\\""',
  '"}"',
  '"{\\"id\\":2}"',
];
it.each(raws)("ids come back byte for byte: %#", (raw) => {
  expect(echoed(raw).text).toBe(`{"jsonrpc":"2.0","id":${raw},"result":{}}`);
});

it("ids come back byte for byte are plain values if JavaScript writes them the same", () => {
  for (const raw of ["0", "-1", "1.5", "9007199254740991", '""', '"A"', '"\\n"', '"\\ud800"', '"\u2028"', "1e+21"]) {
    expect(echoed(raw).id).toBe(JSON.parse(raw));
  }
  for (const raw of ["1.0", "1e3", "-0", "9007199254740993", '"\\u0041"']) {
    expect(echoed(raw).id).toEqual(new ExactId(raw, JSON.parse(raw) as string | number));
  }
});

it("ids come back byte for byte have different keys if they differ", () => {
  const keys = ["1", "1.0", '"1"', '"1.0"', "1e0", "9007199254740992", "9007199254740993"].map((raw) =>
    idKey(echoed(raw).id),
  );
  expect(new Set(keys).size).toBe(keys.length);
  expect(idKey(echoed('"\\u0041"').id)).toBe(idKey(echoed('"A"').id));
});

it("ids come back byte for byte may repeat in a batch", () => {
  const one = '{"jsonrpc":"2.0","id":1.0,"method":"m"}';
  const decoded = decode(`[${one},${one}]`);
  if (decoded.kind !== "batch") throw new Error("no batch");
  expect(decoded.items.map((item) => "message" in item && (item.message as { id?: unknown }).id)).toEqual([
    new ExactId("1.0", 1),
    new ExactId("1.0", 1),
  ]);
});

it("ids come back byte for byte with an unpaired surrogate, which has no UTF-8, are escaped", () => {
  expect(echoed('"\ud800"').text).toBe('{"jsonrpc":"2.0","id":"\\ud800","result":{}}');
  expect(echoed('"\ud800\\u0041"').text).toBe('{"jsonrpc":"2.0","id":"\\ud800A","result":{}}');
});

const nested = (levels: number, open = "[", close = "]"): string => {
  // The message is one level and its params another.
  const inner = open.repeat(levels - 2) + "1" + close.repeat(levels - 2);
  return `{"jsonrpc":"2.0","id":1,"method":"m","params":{"x":${inner}}}`;
};

it("nesting of 128 is accepted, of 129 refused", () => {
  expect(decode(nested(128)).kind).toBe("message");
  expect(decode(nested(128, '{"a":', "}")).kind).toBe("message");
  const refused = { kind: "fault", fault: { id: 1, error: { code: -32600 } } };
  expect(decode(nested(129))).toMatchObject(refused);
  expect(decode(nested(129, '{"a":', "}"))).toMatchObject(refused);
  expect(decode(nested(129, '{"_meta":', "}"))).toMatchObject(refused);
  expect(decode(`[${nested(127)}]`).kind).toBe("batch");
  expect(decode(`[${nested(128)}]`)).toMatchObject({ kind: "fault", fault: { id: null } });
});

it("nesting inside strings does not count", () => {
  const text = `{"jsonrpc":"2.0","id":1,"method":"m","params":{"x":"${'\\"[{'.repeat(500)}"}}`;
  expect(decode(text).kind).toBe("message");
});

it.runIf(IS_LONG)("nesting of five million is refused, closed or not", () => {
  const limits = { ...DEFAULT_LIMITS, messageBytes: 64 * 1024 * 1024 };
  for (const text of ["[".repeat(5_000_000), '{"a":'.repeat(5_000_000), nested(5_000_000), "[{".repeat(2_500_000)]) {
    expect(decode(text, limits)).toMatchObject({ kind: "fault", fault: { error: { code: -32600 } } });
  }
});

it("nesting of closing brackets only is a parse error", () => {
  expect(decode("}".repeat(100_000))).toMatchObject({ fault: { error: { code: -32700 } } });
  expect(decode(`${"]".repeat(1000)}${"[".repeat(1000)}`)).toMatchObject({ kind: "fault" });
});

it.runIf(IS_LONG)("large and odd strings reads a message of 8 MB of backslashes, quotes, keys or tokens", () => {
  const room = 8 * 1024 * 1024;
  const around = (body: string): string => `{"jsonrpc":"2.0","id":1,"method":"m","params":{${body}}}`;
  const bodies = [
    `"x":"${"\\\\".repeat(room / 2)}"`,
    `"x":"${'\\"'.repeat(room / 2)}"`,
    `"x":[${Array(Math.floor(room / 3))
      .fill('""')
      .join(",")}]`,
    Array(Math.floor(room / 14))
      .fill('"requestId":1')
      .join(","),
    Array(Math.floor(room / 30))
      .fill('"\\u0072equestId":"\\u0041"')
      .join(","),
    Array(Math.floor(room / 12))
      .fill('"_meta":{}')
      .join(","),
  ];
  for (const body of bodies) expect(decode(around(body)).kind).toBe("message");
});

it("large and odd strings reads a batch of a hundred large messages with exact tokens", () => {
  const one = `{"jsonrpc":"2.0","id":"\\u0041","method":"m","params":{"requestId":"a","x":"${"y".repeat(40_000)}"}}`;
  const decoded = decode(`[${Array(100).fill(one).join(",")}]`);
  if (decoded.kind !== "batch") throw new Error("no batch");
  expect(decoded.items).toHaveLength(100);
});

it.runIf(IS_LONG)("large and odd strings refuses a batch of a million with one error", () => {
  const decoded = decode(`[${"{},".repeat(1_000_000)}{}]`);
  expect(decoded).toMatchObject({ kind: "fault", fault: { id: null, error: { code: -32600 } } });
});

it("large and odd strings reads 1e400 as JSON.parse does, and U+2028, NUL and odd surrogates as data", () => {
  const text = '{"jsonrpc":"2.0","method":"m","params":{"n":1e400,"s":"\u2028\u2029\\u0000\\ud800","\\u0000":1}}';
  expect(decode(text)).toEqual({ kind: "message", message: JSON.parse(text) });
  expect(decode('{"jsonrpc":"2.0","method":"\u0000"}')).toMatchObject({ fault: { error: { code: -32700 } } });
  expect(decode("\u0000")).toMatchObject({ fault: { error: { code: -32700 } } });
});

it("large and odd strings never writes a newline", () => {
  const params = { "a\nb": "c\r\nd\u2028\u0085", id: new ExactId('"\\n"', "\n") };
  const messages: Message[] = [
    { jsonrpc: "2.0", id: "x\ny", method: "m\n", params },
    { jsonrpc: "2.0", id: null, error: { code: 1, message: "\n", data: "\r" } },
  ];
  for (const one of messages) expect(encode(one)).not.toMatch(/[\n\r]/);
});

it("a message of very many small values is refused before it is parsed", () => {
  const many = `[${"{},".repeat(1_100_000)}{}]`;
  const request = decode(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":${many}}`);
  expect(request).toMatchObject({ kind: "fault", answerable: true, fault: { id: 7, error: { code: -32600 } } });
  expect(decode(`{"jsonrpc":"2.0","id":7,"result":{"text":${JSON.stringify(many)}}}`)).toMatchObject({
    kind: "message",
  });
});
