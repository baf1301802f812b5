// The codec against three oracles: its own input, JSON.parse, and a model of JSON that keeps the source of every token.
// fast-check prints the seed when a property fails.
import { deepStrictEqual, match } from "node:assert/strict";
import * as fc from "fast-check";
import { it } from "vitest";
import { DEFAULT_LIMITS, decode, encode, type Decoded } from "./codec.ts";
import { ExactId } from "./message.ts";
import type { Message } from "./message.ts";
import { runs } from "../../test/support/thoroughness.ts";

const STREAM = "io.modelcontextprotocol/subscriptionId";
const NAMES = ["id", "jsonrpc", "method", "params", "result", "error", "code", "message", "_meta"];
const TOKENS = ["requestId", "progressToken", STREAM];
const HOSTILE = ["__proto__", "constructor", "prototype", "toString", "hasOwnProperty", "toJSON", "", "Id", "i\u0000d"];
const EXACT = new Set(
  [
    ["id"],
    ["params", "requestId"],
    ["params", "progressToken"],
    ["params", "_meta", "progressToken"],
    ["params", "_meta", STREAM],
    ["result", "_meta", "progressToken"],
    ["result", "_meta", STREAM],
  ].map((path) => path.join("\n")),
);

// A model of JSON: every token keeps its source, every object all its entries.
type Node = { raw: string } | { items: Node[] } | { entries: [key: string, value: Node][]; space: string };

const escaped = (text: string): string =>
  Array.from({ length: text.length }, (_, at) => `\\u${text.charCodeAt(at).toString(16).padStart(4, "0")}`).join("");
const stringRaw = fc.oneof(
  fc.string({ unit: "binary", maxLength: 6 }).map((text) => JSON.stringify(text)),
  fc.string({ unit: "grapheme", maxLength: 6 }).map((text) => JSON.stringify(text)),
  fc.string({ maxLength: 4 }).map((text) => `"${escaped(text)}"`),
  fc.constantFrom('"\\\\"', '"\\""', '"\\\\\\""', '"{\\"id\\":"', '"]}"', '"\\/"', '"a,b:c"', '"\\ud800"', '"\\uD83D"'),
);
const numberRaw = fc.oneof(
  fc.integer().map(String),
  fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => JSON.stringify(value)),
  fc.bigInt({ min: -(10n ** 25n), max: 10n ** 25n }).map(String),
  fc.constantFrom("-0", "0", "1.0", "1e3", "1E+3", "-0.0", "1e400", "0e0", "9007199254740993", "123456789012345678"),
);
/**
 * Without backslashes, which JSON.parse of Node 24 (V8 13.6) gets wrong: once an object has had the key `\`, it takes an
 * escaped character as a key at the same position, such as "\n", for that key.
 */
const otherKeyRaw = stringRaw.filter((raw) => !(JSON.parse(raw) as string).includes("\\"));
const keyRaw = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom(...NAMES, ...TOKENS).map((key) => `"${key}"`) },
  { weight: 1, arbitrary: fc.constantFrom(...NAMES, ...TOKENS).map((key) => `"${escaped(key)}"`) },
  { weight: 1, arbitrary: fc.constantFrom(...HOSTILE).map((key) => JSON.stringify(key)) },
  { weight: 1, arbitrary: otherKeyRaw },
);
const space = fc.constantFrom("", "", "", " ", "\t", "\r\n ");
const leaf: fc.Arbitrary<Node> = fc
  .oneof(stringRaw, numberRaw, fc.constantFrom("true", "false", "null", '"2.0"'))
  .map((raw) => ({ raw }));

function tree(depth: number): fc.Arbitrary<Node> {
  if (depth === 0) return leaf;
  const below = tree(depth - 1);
  return fc.oneof(
    { weight: 2, arbitrary: leaf },
    { weight: 1, arbitrary: fc.array(below, { maxLength: 3 }).map((items) => ({ items })) },
    { weight: 3, arbitrary: object(below) },
  );
}

function object(value: fc.Arbitrary<Node>): fc.Arbitrary<Node> {
  return fc
    .tuple(fc.array(fc.tuple(keyRaw, value), { maxLength: 5 }), space)
    .map(([entries, gap]) => ({ entries, space: gap }));
}

/** An object that is probably a message. */
const nearMessage: fc.Arbitrary<Node> = fc
  .tuple(tree(3), tree(3), object(tree(3)), object(tree(2)), fc.shuffledSubarray([0, 1, 2, 3, 4, 5], { minLength: 2 }))
  .map(([id, result, params, inner, order]): Node => {
    const meta: Node = "entries" in params ? { ...params, entries: [...params.entries, ['"_meta"', inner]] } : params;
    const all: [string, Node][] = [
      ['"jsonrpc"', { raw: '"2.0"' }],
      ['"id"', id],
      ['"method"', { raw: '"m"' }],
      ['"params"', meta],
      ['"id"', { raw: "1.0" }],
      ['"result"', result],
    ];
    return { entries: order.map((at) => all[at]!), space: "" };
  });

function source(node: Node): string {
  if ("raw" in node) return node.raw;
  if ("items" in node) return `[${node.items.map(source).join(", ")}]`;
  const gap = node.space;
  return `{${gap}${node.entries.map(([key, value]) => `${key}${gap}:${gap}${source(value)}${gap}`).join(`,${gap}`)}}`;
}

/** The value of a model, with an ExactId at each exact path that JavaScript would write differently. */
function valueOf(node: Node, path: readonly string[] | undefined): unknown {
  if ("raw" in node) {
    const value: unknown = JSON.parse(node.raw);
    const kept =
      path !== undefined && EXACT.has(path.join("\n")) && (typeof value === "string" || typeof value === "number");
    return kept && JSON.stringify(value) !== node.raw ? new ExactId(node.raw, value) : value;
  }
  if ("items" in node) return node.items.map((item) => valueOf(item, undefined));
  const object = {};
  for (const [raw, value] of node.entries) {
    const key = JSON.parse(raw) as string;
    const at = path === undefined ? undefined : [...path, key];
    const descriptor = { value: valueOf(value, at), enumerable: true, writable: true, configurable: true };
    Object.defineProperty(object, key, descriptor);
  }
  return object;
}

/** An error without an id gets null; nothing else is ever added. */
function withId(value: unknown): unknown {
  if (typeof value !== "object" || value === null || Object.hasOwn(value, "id") || Object.hasOwn(value, "method"))
    return value;
  return Object.hasOwn(value, "error") ? { ...value, id: null } : value;
}

/** The definition of a message, stated plainly. */
function isMessage(value: unknown): boolean {
  if (!isRecord(value) || value["jsonrpc"] !== "2.0") return false;
  const has = (key: string): boolean => Object.hasOwn(value, key);
  const named = ["string", "number"].includes(typeof value["id"]) || value["id"] instanceof ExactId;
  if (has("method")) {
    const rest = !has("result") && !has("error") && (!has("params") || isRecord(value["params"]));
    return typeof value["method"] === "string" && rest && (!has("id") || named);
  }
  if (has("result")) return !has("error") && named && isRecord(value["result"]);
  const error = value["error"];
  const answered = named || !has("id") || value["id"] === null;
  return isRecord(error) && answered && Number.isInteger(error["code"]) && typeof error["message"] === "string";
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof ExactId);
}

function isFault(decoded: Extract<Decoded, { fault: unknown }>, code: number): void {
  const { jsonrpc, id, error, ...rest } = decoded.fault;
  deepStrictEqual([jsonrpc, error.code, rest], ["2.0", code, {}]);
  deepStrictEqual(Object.keys(error), ["code", "message", "data"]);
  if (typeof error.data === "string") match(error.data, /^Missing required field: (jsonrpc|method)$/);
  else {
    const { kind, details, ...more } = error.data as Record<string, unknown>;
    deepStrictEqual([kind, typeof details, more], [code === -32700 ? "parse_error" : "invalid_request", "string", {}]);
  }
  deepStrictEqual(id === null || ["string", "number"].includes(typeof id) || id instanceof ExactId, true);
}

/** Checks the result for any string. `exact` is the value with its ExactIds, if it is known. */
function judge(text: string, exact?: { value: unknown }): void {
  const decoded = decode(text);
  let value: unknown;
  try {
    value = JSON.parse(text.replace(/^\ufeff/, ""));
  } catch {
    deepStrictEqual(decoded.kind, "fault");
    if (decoded.kind === "fault") isFault(decoded, decoded.fault.error.code === -32600 ? -32600 : -32700);
    return;
  }
  const same = (message: Message, plain: unknown, known: unknown): void => {
    if (exact === undefined) deepStrictEqual(plainly(message), withId(plain));
    else deepStrictEqual(message, withId(known));
  };
  if (decoded.kind === "fault") {
    isFault(decoded, -32600);
    deepStrictEqual(Array.isArray(value) ? value.length === 0 || value.length > 100 : !isMessage(value), true);
    deepStrictEqual(decoded.fault.id, readableId(exact === undefined ? value : exact.value, decoded.fault.id));
  } else if (decoded.kind === "message") {
    deepStrictEqual(isMessage(value), true);
    same(decoded.message, value, exact?.value);
  } else {
    const values = value as unknown[];
    deepStrictEqual(decoded.items.length, values.length);
    decoded.items.forEach((item, at) => {
      deepStrictEqual("message" in item, isMessage(values[at]));
      if ("message" in item) same(item.message, values[at], (exact?.value as unknown[])?.[at]);
    });
  }
}

function readableId(value: unknown, got: unknown): unknown {
  if (!isRecord(value) || !Object.hasOwn(value, "id")) return null;
  const id = value["id"];
  if (got instanceof ExactId && got.value === id) return got;
  return typeof id === "string" || typeof id === "number" || id instanceof ExactId ? id : null;
}

/** The value with each ExactId replaced by its plain value. */
function plainly(value: unknown): unknown {
  if (value instanceof ExactId) return value.value;
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(plainly);
  const object = {};
  for (const [key, one] of Object.entries(value)) {
    Object.defineProperty(object, key, { value: plainly(one), enumerable: true, writable: true, configurable: true });
  }
  return object;
}

it("codec properties agrees with the model: values, duplicate keys and the source of exact tokens (8,000)", () => {
  const batch = fc.array(nearMessage, { maxLength: 3 }).map((items): Node => ({ items }));
  const any = fc.oneof(
    { weight: 4, arbitrary: nearMessage },
    { weight: 1, arbitrary: batch },
    { weight: 1, arbitrary: tree(3) },
  );
  const property = fc.property(any, fc.boolean(), (node, bom) => {
    const value = "items" in node ? node.items.map((item) => valueOf(item, [])) : valueOf(node, []);
    judge((bom ? "\ufeff" : "") + source(node), { value });
  });
  fc.assert(property, { numRuns: runs(8_000) });
});

it("codec properties decodes what it encoded (8,000)", () => {
  const inner = (node: Node, at: string): Record<string, unknown> => {
    const value = valueOf(node, [at]);
    return isRecord(value) ? value : {};
  };
  const id = fc.oneof(stringRaw, numberRaw).map((raw) => valueOf({ raw }, ["id"]) as string | number | ExactId);
  const method = fc.string({ unit: "binary", maxLength: 8 });
  const body = object(tree(3));
  const error = fc.record({
    code: fc.integer(),
    message: method,
    data: tree(2).map((node) => valueOf(node, undefined)),
  });
  const message: fc.Arbitrary<Message> = fc.oneof(
    fc.tuple(id, method, body).map(([one, name, node]): Message => {
      return { jsonrpc: "2.0", id: one, method: name, params: inner(node, "params") };
    }),
    fc.tuple(id, method).map(([one, name]): Message => ({ jsonrpc: "2.0", id: one, method: name })),
    fc
      .tuple(method, body)
      .map(([name, node]): Message => ({ jsonrpc: "2.0", method: name, params: inner(node, "params") })),
    fc.tuple(id, body).map(([one, node]): Message => ({ jsonrpc: "2.0", id: one, result: inner(node, "result") })),
    fc.tuple(id, error).map(([one, what]): Message => ({ jsonrpc: "2.0", id: one, error: what })),
    error.map((what): Message => ({ jsonrpc: "2.0", id: null, error: what })),
  );
  const property = fc.property(fc.array(message, { minLength: 1, maxLength: 3 }), (messages) => {
    for (const one of messages) deepStrictEqual(decode(encode(one)), { kind: "message", message: asJson(one) });
    const items = messages.map((one) => ({ message: asJson(one) }));
    deepStrictEqual(decode(encode(messages)), { kind: "batch", items });
  });
  fc.assert(property, { numRuns: runs(8_000) });
});

it("codec properties handles a message with random edits (8,000)", () => {
  const bit = fc.oneof(
    fc.constantFrom(
      ...'{}[]",:\\ \n\t0-1.eE'.split(""),
      "\ufeff",
      "\ud800",
      "\u0000",
      "null",
      "true",
      '"id":',
      '"2.0"',
      "\\u0041",
    ),
    fc.string({ unit: "binary", maxLength: 2 }),
  );
  const edit = fc.tuple(fc.double({ min: 0, max: 1, noNaN: true }), fc.integer({ min: 0, max: 3 }), bit);
  const property = fc.property(nearMessage, fc.array(edit, { minLength: 1, maxLength: 4 }), (node, edits) => {
    let text = source(node);
    for (const [where, cut, put] of edits) {
      const at = Math.floor(where * text.length);
      text = text.slice(0, at) + put + text.slice(at + cut);
    }
    judge(text);
  });
  fc.assert(property, { numRuns: runs(8_000) });
});

it("codec properties handles any string (8,000)", () => {
  const pieces = fc.array(fc.constantFrom(...'{}[]",:\\ 01.e-'.split(""), '"id"', '"params"', '{"', "[[", "true"), {
    maxLength: 30,
  });
  const text = fc.oneof(
    fc.string({ unit: "binary" }),
    pieces.map((all) => all.join("")),
    fc.json(),
  );
  fc.assert(
    fc.property(text, (one) => judge(one)),
    { numRuns: runs(8_000) },
  );
});

it("codec properties measures depth by the open brackets outside strings (4,000)", () => {
  const levels = fc.tuple(fc.integer({ min: 1, max: 12 }), tree(5));
  const property = fc.property(levels, ([depth, node]) => {
    const text = source(node);
    const decoded = decode(text, { ...DEFAULT_LIMITS, depth });
    const refused = decoded.kind === "fault" && JSON.stringify(decoded.fault.error.data).includes("limits.depth");
    deepStrictEqual(refused, depthOf(node) > depth);
  });
  fc.assert(property, { numRuns: runs(4_000) });
});

/** Levels of the source, including values that a later duplicate key replaces. */
function depthOf(node: Node): number {
  if ("raw" in node) return 0;
  const below = "items" in node ? node.items : node.entries.map(([, one]) => one);
  return 1 + Math.max(0, ...below.map((one) => depthOf(one)));
}

/** The value as JSON expresses it: no negative zero and no infinity outside an ExactId. */
function asJson(value: unknown): unknown {
  if (value instanceof ExactId) return value;
  if (typeof value === "number") return Number.isFinite(value) ? value + 0 : null;
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(asJson);
  const object = {};
  for (const [key, one] of Object.entries(value)) {
    Object.defineProperty(object, key, { value: asJson(one), enumerable: true, writable: true, configurable: true });
  }
  return object;
}
