// The arguments of tools as the schema has them, and as they are without one. Values are written as guests send them.

import { expect, it } from "vitest";
import { ArgumentProblem, argumentsOf, jsonOf } from "./arguments.ts";

const key = (name: string) => ({ keyword: name });
const list = (...items: unknown[]) => ({ list: items });
const cons = (first: unknown, end: unknown) => ({ list: [first], end });
const pair = (...members: unknown[]) => ({ pair: members });
const NIL = { nil: true };

const ROWS = { type: "array", items: { type: "object", properties: { name: { type: "string" } } } };

/** What arrives if one argument, `x`, has this schema. */
function sent(value: unknown, x: unknown, more = {}): unknown {
  return argumentsOf(list(key("X"), value), { type: "object", properties: { x }, ...more })?.["x"];
}

it("arguments by the schema of the tool keep an array of objects, at any depth", () => {
  const rows = list(list(key("NAME"), "a"), list(key("NAME"), "b"));
  expect(sent(rows, ROWS)).toEqual([{ name: "a" }, { name: "b" }]);
  expect(sent(list(rows, rows), { type: "array", items: ROWS })).toEqual([
    [{ name: "a" }, { name: "b" }],
    [{ name: "a" }, { name: "b" }],
  ]);
  // One object of a list that would be an association list.
  expect(sent(list(list(key("NAME"), "a", "b")), { type: "object" })).toEqual({ name: ["a", "b"] });
  expect(sent(list(list(key("NAME"), "a")), ROWS.items)).toEqual({ name: "a" });
});

it("arguments by the schema of the tool have the names of the schema, at any depth", () => {
  const names = { entityType: {}, page_size: {}, "dry-run": {}, userID: {}, URL: {} };
  const keys = ["ENTITY-TYPE", "PAGE-SIZE", "DRY-RUN", "USER-ID", "URL", "OTHER-NAME", "asIs"];
  const object = list(...keys.flatMap((name, at) => [key(name), at]));
  const expected = { entityType: 0, page_size: 1, "dry-run": 2, userID: 3, URL: 4, "other-name": 5, asIs: 6 };
  const schema = { type: "object", properties: names };
  expect(sent(object, schema)).toEqual(expected);
  expect(sent(list(object), { type: "array", items: { $ref: "#/$defs/a" } }, { $defs: { a: schema } })).toEqual([
    expected,
  ]);
  expect(sent(object, { allOf: [{ properties: { entityType: {}, page_size: {} } }, { properties: names }] })).toEqual(
    expected,
  );
  expect(sent(object, { additionalProperties: { type: "integer" } })).toMatchObject({ "entity-type": 0 });
  // Strings are sent as they are, and so are names that could be two.
  expect(sent({ table: ["ENTITY-TYPE", 1] }, schema)).toEqual({ "ENTITY-TYPE": 1 });
  expect(sent(list(key("USER-ID"), 1), { properties: { userID: {}, USERid: {} } })).toEqual({ "user-id": 1 });
});

it.each([
  [{ type: "array" }, [], []],
  [{ type: "object" }, {}, {}],
  [{ type: "boolean" }, false, false],
  [{ type: "null" }, null, null],
  [{ type: ["array", "null"] }, [], null],
  [{ type: ["boolean", "null"] }, false, null],
  [{ type: "object", nullable: true }, {}, null],
  [{ anyOf: [{ type: "string" }, { type: "array", items: {} }] }, [], []],
  [{ enum: ["a", null] }, null, null],
  [{ items: { type: "string" } }, [], []],
  [{ properties: { a: {} } }, {}, {}],
  [{ $ref: "#/$defs/list" }, [], []],
  [{ type: "string" }, false, null],
  [{}, false, null],
  [undefined, false, null],
])(
  "arguments by the schema of the tool have %j of nil in Lisp as %j, and in Smalltalk as %j",
  (schema, lisp, smalltalk) => {
    const more = { $defs: { list: { type: "array" } } };
    expect(sent(NIL, schema, more)).toEqual(lisp);
    expect(sent(null, schema, more)).toEqual(smalltalk);
  },
);

it("arguments by the schema of the tool have the string of an enum that a symbol names", () => {
  const states = { enum: ["IN_PROGRESS", "wontFix", "done"] };
  expect(
    [key("IN-PROGRESS"), { symbol: "WONT-FIX" }, key("DONE"), key("ELSE"), "done"].map((one) => sent(one, states)),
  ).toEqual(["IN_PROGRESS", "wontFix", "done", "else", "done"]);
  expect(sent(key("TRUE"), { type: "boolean" })).toBe(true);
  expect(sent(key("TRUE"), { enum: ["true", "false"] })).toBe("true");
  expect(sent(key("NULL"), { type: ["string", "null"] })).toBeNull();
});

it("arguments by the schema of the tool take the alternative that fits", () => {
  const variants = {
    oneOf: ["a", "b"].map((sort) => ({
      properties: { sort: { const: sort }, [`${sort}Value`]: { type: "array" } },
      required: ["sort"],
    })),
  };
  expect(sent(list(key("SORT"), "b", key("B-VALUE"), NIL), variants)).toEqual({ sort: "b", bValue: [] });
  // Also by the names alone.
  const open = { anyOf: [{ properties: { first: {} } }, { properties: { secondName: {} } }] };
  expect(sent(list(key("SECOND-NAME"), 1), open)).toEqual({ secondName: 1 });
  const tuple = { type: "array", prefixItems: [{ type: "string" }, ROWS], items: false };
  expect(sent(list("x", NIL), tuple)).toEqual(["x", []]);
  const either = { if: { required: ["a"] }, else: { properties: { aList: { type: "array" } } } };
  expect(sent(list(key("A-LIST"), NIL), either)).toEqual({ aList: [] });
});

it("arguments by the schema of the tool are an object for an empty collection of Smalltalk, and for associations", () => {
  expect(argumentsOf({ items: [] }, { type: "object" })).toEqual({});
  expect(argumentsOf(null, undefined)).toEqual({});
  expect(argumentsOf({ items: [pair("a", 1), pair("b", { items: [] })] }, {})).toEqual({ a: 1, b: [] });
  expect(sent({ items: [pair("a", 1), pair("b", 2)] }, { type: "array" })).toEqual([{ a: 1 }, { b: 2 }]);
  for (const value of [3, "x", [1], { items: [1] }, list(key("A")), list(1, 2)])
    expect(argumentsOf(value, { type: "object" })).toBeUndefined();
});

it("arguments by the schema of the tool take the first of equal keys, and have no key that changes the object", () => {
  expect(argumentsOf(list(key("A"), 1, key("A"), 2), {})).toEqual({ a: 1 });
  const odd = argumentsOf({ table: ["__proto__", 1] }, { properties: {} });
  expect(Object.keys(odd ?? {})).toEqual(["__proto__"]);
});

it("arguments by the schema of the tool end for schemas without end, and refuse what would take too long", () => {
  const loop = { $defs: { a: { $ref: "#/$defs/b" }, b: { anyOf: [{ $ref: "#/$defs/a" }] } } };
  expect(sent(list(1), { $ref: "#/$defs/a" }, loop)).toEqual([1]);
  const choices = Array.from({ length: 1_000 }, (_, at) => ({ properties: { a: { const: at } } }));
  const many = list(...Array.from({ length: 40 }, () => list(key("A"), "x")));
  expect(() => sent(many, { type: "array", items: { anyOf: choices } })).toThrow(ArgumentProblem);
});

it.each([2, 3, 1_000])(
  "arguments by the schema of the tool refuse a scalar for a schema that offers itself %i times",
  (count) => {
    const self = { type: "string", anyOf: Array.from({ length: count }, () => ({ $ref: "#/$defs/self" })) };
    expect(() => sent(5, { $ref: "#/$defs/self" }, { $defs: { self } })).toThrow("in too many ways");
  },
);

it("arguments by the schema of the tool read each value of an enum once, and a long array of scalars with a choice", () => {
  let reads = 0;
  const read = (): void => void (reads += 1);
  const allowed = Array.from({ length: 100 }, (_, at) => ({ toJSON: () => (read(), { a: at }) }));
  const tables = Array.from({ length: 50 }, (_, at) => ({ table: ["a", at] }));
  expect(sent(tables, { type: "array", items: { enum: allowed } })).toEqual(tables.map((_, at) => ({ a: at })));
  expect(reads).toBe(100);
  const numbers = Array.from({ length: 100_000 }, (_, at) => at);
  const item = { anyOf: [{ type: "string" }, { type: "number" }] };
  expect(sent(numbers, { anyOf: [{ type: "null" }, { type: "array", items: item }] })).toHaveLength(100_000);
});

it.each([
  [list(key("A"), 1), { a: 1 }],
  [list(cons(key("A"), 1), list(key("B"), 2, 3)), { a: 1, b: [2, 3] }],
  [list(cons("a", 1)), { a: 1 }],
  [list(list(key("NAME"), "a"), list(key("NAME"), "b")), [{ name: "a" }, { name: "b" }]],
  [list("a", 1), ["a", 1]],
  [list(list("a", "b"), list("c")), [["a", "b"], ["c"]]],
  [
    [key("WORD"), { symbol: "Mixed" }, NIL, key("NULL"), true],
    ["word", "Mixed", false, null, true],
  ],
  [{ table: [key("A-B"), { items: [] }] }, { "a-b": [] }],
])("values without a schema: %j are %j", (value, json) => {
  expect(jsonOf(value)).toEqual(json);
});

it("values without a schema cannot be a list that ends with a dot, unless it is a pair", () => {
  expect(() => jsonOf(cons(1, 2))).toThrow("ends with a dot");
  expect(() => argumentsOf(list(key("A"), cons(1, 2)), {})).toThrow("ends with a dot");
});
