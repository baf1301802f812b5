// Tools as TypeScript for models: exact texts for what schemas usually say, and texts that compile whatever a schema says.

import fc from "fast-check";
import { expect, it } from "vitest";
import { compilerErrors } from "../../test/support/compiler.ts";
import { IS_LONG } from "../../test/support/thoroughness.ts";
import { declareTools } from "./declarations.ts";

const declare = (inputSchema: object, more: object = {}): string =>
  declareTools([
    { path: "notes.find", tool: { name: "find", inputSchema: { type: "object", ...inputSchema }, ...more } },
  ]);

/** The type of one property, as it is written. */
const typeOf = (schema: unknown, root: object = {}): string => {
  const text = declare({ properties: { x: schema }, required: ["x"], ...root });
  return (/x: (.*?)(?: \}\)|;\n {4}\}\)): Promise/s.exec(text)?.[1] ?? text).trim();
};

/** As a module, in which a type may have the name of one of the browser. */
const errorsIn = (text: string): string[] => compilerErrors(`${text}export {};\n`);

it("a tool is a method with its description, its arguments and its result", () => {
  const text = declare(
    {
      properties: {
        query: { type: "string", description: "Words to\nfind" },
        limit: { type: "integer", default: 10, maximum: 50 },
      },
      required: ["query"],
    },
    {
      description: "Finds notes.\nBest first.",
      outputSchema: {
        type: "object",
        properties: { hits: { type: "array", items: { type: "string" } } },
        required: ["hits"],
      },
    },
  );
  expect(text).toBe(`declare const tools: {
  notes: {
    /** Finds notes. Best first. */
    find(args: {
      /** Words to find */
      query: string;
      /** (default 10, at most 50) */
      limit?: number;
    }): Promise<{ hits: string[] }>;
  };
};
`);
});

it("a tool needs no arguments if none is required, and returns text if it declares no result", () => {
  expect(declare({})).toContain("find(args?: object): Promise<string | object>;");
  expect(declare({ properties: { a: { type: "string" } } })).toContain(
    "find(args?: { a?: string }): Promise<string | object>;",
  );
});

it("a tool is under its upstream, with other tools of it", () => {
  const tools = ["a.one", "b.delete", "a.two", "alone"].map((path) => ({ path, tool: { name: path } }));
  expect(declareTools(tools)).toBe(`declare const tools: {
  a: {
    one(args?: object): Promise<string | object>;
    two(args?: object): Promise<string | object>;
  };
  b: {
    delete(args?: object): Promise<string | object>;
  };
  alone(args?: object): Promise<string | object>;
};
`);
});

it.each([
  [{ type: "integer" }, "number"],
  [{ type: ["string", "null"] }, "string | null"],
  [{ type: "string", nullable: true }, "string | null"],
  [{ enum: ["a", 1, null] }, '"a" | 1 | null'],
  [{ const: true }, "true"],
  [{ type: "array", items: { type: ["string", "number"] } }, "(string | number)[]"],
  [{ type: "array" }, "unknown[]"],
  [{ prefixItems: [{ type: "string" }, { type: "number" }], items: false }, "[string, number]"],
  [{ type: "array", items: [{ type: "string" }], additionalItems: { type: "null" } }, "[string, ...null[]]"],
  [{ type: "object", additionalProperties: { type: "number" } }, "{ [name: string]: number }"],
  [{ type: "object", additionalProperties: false }, "{}"],
  [
    { type: "object", properties: { a: true }, additionalProperties: { type: "number" } },
    "{ a?: unknown; [name: string]: unknown }",
  ],
  [{ anyOf: [{ type: "string" }, { type: "array", items: { type: "string" } }] }, "string | string[]"],
  [{ type: "object", properties: { a: { type: "string" } }, anyOf: [{ required: ["a"] }] }, "{ a?: string }"],
  [
    { allOf: [{ properties: { a: { type: "string" } } }, { properties: { b: { type: "null" } } }] },
    "{ a?: string } & { b?: null }",
  ],
  [{ properties: { "a-b": {} }, required: ["a-b"] }, '{ "a-b": unknown }'],
  [{}, "unknown"],
  [false, "never"],
  ["odd", "unknown"],
  [{ type: "nothing" }, "unknown"],
  [{ $ref: "https://example.com/x" }, "unknown"],
])("a schema: %j is %s", (schema, type) => {
  expect(typeOf(schema)).toBe(type);
});

it("a schema that is referred to has a name, unless it is short", () => {
  const number = { type: "number" };
  const point = { type: "object", properties: { x: number, y: number, z: number }, required: ["x", "y"] };
  const text = declare({
    $defs: { "geo-point": point, id: { type: "string" } },
    properties: {
      from: { $ref: "#/$defs/geo-point" },
      to: { $ref: "#/$defs/geo-point" },
      id: { $ref: "#/$defs/id" },
    },
  });
  expect(text.split("\n")).toContain("type GeoPoint = { x: number; y: number; z?: number };");
  expect(text).toContain("{ from?: GeoPoint; to?: GeoPoint; id?: string }");
});

it("a schema may be recursive", () => {
  const node = { type: "object", properties: { children: { type: "array", items: { $ref: "#/$defs/node" } } } };
  const odd = { $defs: { a: { $ref: "#/$defs/b" }, b: { anyOf: [{ $ref: "#/$defs/a" }, { type: "string" }] } } };
  const both = [
    declare({ $defs: { node }, properties: { tree: { $ref: "#/$defs/node" }, self: { $ref: "#" } } }),
    declare({ ...odd, properties: { a: { $ref: "#/$defs/a" }, b: { type: "array", items: { $ref: "#/$defs/b" } } } }),
  ];
  expect(both[0]).toContain("type Node = { children?: Node[] };");
  expect(both.flatMap(errorsIn)).toEqual([]);
});

it("a schema has types of its own name beside those of another tool", () => {
  const of = (type: string): object => ({
    type: "object",
    $defs: { thing: { type: "object", properties: { value: { type }, other: { type } } } },
    properties: { a: { $ref: "#/$defs/thing" } },
  });
  const tool = (path: string, type: string) => ({ path, tool: { name: path, inputSchema: of(type) } });
  const text = declareTools([tool("a", "string"), tool("b", "number"), tool("c", "string")]);
  expect(text.match(/Thing\d*/g)).toEqual(["Thing", "Thing2", "Thing", "Thing2", "Thing"]);
  expect(errorsIn(text)).toEqual([]);
});

const fields = (count: number, field: unknown): object =>
  Object.fromEntries(Array.from({ length: count }, (_, at) => [`field${at}`, field]));

it("what is too long is cut, and the text says so", () => {
  const wide = declare({ properties: fields(1_000, { type: "string", description: "words ".repeat(100) }) });
  expect(wide.length).toBeLessThan(10_000);
  expect(wide).toMatch(/\/\/ 9\d\d more properties/);
  expect(declare({ properties: { a: { enum: Array.from({ length: 500 }, (_, at) => `choice ${at}`) } } })).toMatch(
    /\/\* \d+ more \*\//,
  );
  let deep: unknown = { type: "string" };
  for (let at = 0; at < 500; at += 1) deep = { type: "object", properties: { deeper: deep } };
  expect(declare({ properties: { deep } })).toContain("unknown /* shortened */");
  const long = declare({}, { description: "word ".repeat(10_000) });
  expect(long.length).toBeLessThan(2_200);
  expect(long).toContain("… */");
});

it.runIf(IS_LONG)("what is too long ends soon, however much there is", () => {
  let wide: object = { type: "object", properties: fields(50, { type: "string" }) };
  for (let at = 0; at < 6; at += 1) wide = { type: "object", properties: fields(50, wide) };
  const $defs = Object.fromEntries(
    Array.from({ length: 300 }, (_, at) => [
      `d${at}`,
      { type: "object", properties: fields(20, { $ref: `#/$defs/d${at + 1}` }) },
    ]),
  );
  const texts = [declare({ properties: { wide } }), declare({ $defs, properties: { first: { $ref: "#/$defs/d0" } } })];
  for (const text of texts) expect(text.length).toBeLessThan(20_000);
  expect(texts.flatMap(errorsIn)).toEqual([]);
});

it.runIf(IS_LONG)("compiles whatever a schema says", () => {
  const word = fc.constantFrom("a", "b-c", "*/ x", 'q"', "\u2028", "delete", "__proto__", "1", "");
  const { schema } = fc.letrec<{ schema: unknown }>((tie) => ({
    schema: fc.oneof(
      { maxDepth: 4 },
      fc.record({ type: fc.constantFrom("string", "integer", "null", ["string", "null"]), description: word }),
      fc.constantFrom<unknown>(true, false, {}, { $ref: "#/$defs/one" }, { $ref: "#/$defs/two" }, { $ref: "#" }),
      fc.record({ enum: fc.array(fc.oneof(word, fc.integer(), fc.constant({}))) }),
      fc.record({ type: fc.constant("array"), items: tie("schema") }),
      fc.record({ type: fc.constant("array"), prefixItems: fc.array(tie("schema")), items: tie("schema") }),
      fc.record({ anyOf: fc.array(tie("schema")) }),
      fc.record({ allOf: fc.array(tie("schema")), nullable: fc.boolean() }),
      fc.record({
        type: fc.constant("object"),
        properties: fc.dictionary(word, tie("schema")),
        required: fc.array(word),
        additionalProperties: tie("schema"),
      }),
    ),
  }));
  const tool = fc.record({
    description: word,
    inputSchema: fc.record({ properties: fc.dictionary(word, schema), $defs: fc.record({ one: schema, two: schema }) }),
    outputSchema: schema,
  });
  const samples = fc.sample(tool, { numRuns: 150, seed: 7 });
  const text = declareTools(samples.map((given, at) => ({ path: `a.t${at}`, tool: { name: "t", ...given } })));
  expect(errorsIn(text)).toEqual([]);
});
