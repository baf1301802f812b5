// Header parameters of schemas: valid ones, invalid ones, and hostile schemas.

import { expect, it } from "vitest";
import { headerParams } from "./header-params.ts";

const annotated = (name: unknown, type: unknown = "string"): object => ({ type, "x-mcp-header": name });
const of = (properties: object): object => ({ type: "object", properties });

it("headerParams finds nothing without annotations", () => {
  expect(headerParams({})).toEqual({ params: [] });
  expect(headerParams({ ...of({ a: { type: "string" }, b: true }), required: ["a"] })).toEqual({ params: [] });
});

it("headerParams finds the path and header of each annotation, at any depth", () => {
  const schema = of({
    region: annotated("Region"),
    where: of({ zone: annotated("X-Zone", "integer"), more: of({ dry: annotated("dry_RUN", "boolean") }) }),
  });
  expect(headerParams(schema)).toEqual({
    params: [
      { path: ["region"], header: "mcp-param-region" },
      { path: ["where", "zone"], header: "mcp-param-x-zone" },
      { path: ["where", "more", "dry"], header: "mcp-param-dry_run" },
    ],
  });
});

it("headerParams accepts every character of a token, and any argument name", () => {
  const schema = of({ "x-mcp-header": annotated("!#$%&'*+-.^_`|~09AZaz"), properties: annotated("p") });
  expect(headerParams(schema).params).toEqual([
    { path: ["x-mcp-header"], header: "mcp-param-!#$%&'*+-.^_`|~09azaz" },
    { path: ["properties"], header: "mcp-param-p" },
  ]);
  const wild = JSON.parse(`{"properties":{"__proto__":{"type":"string","x-mcp-header":"a"}}}`) as object;
  expect(headerParams(wild).params).toEqual([{ path: ["__proto__"], header: "mcp-param-a" }]);
});

it.each([["patternProperties"], ["$defs"], ["definitions"], ["dependentSchemas"], ["dependencies"]])(
  "headerParams is not read out of names in %s, whatever they are",
  (keyword) => {
    expect(headerParams({ [keyword]: { "x-mcp-header": { type: "string" } } })).toEqual({ params: [] });
    expect(headerParams({ [keyword]: { const: annotated("A") } }).problem).toContain("only once");
  },
);

it("headerParams ignores values that are not schemas", () => {
  const odd = { properties: null, items: null, title: null, minimum: 7, anyOf: [null, true], $defs: { a: null } };
  expect(headerParams(odd)).toEqual({ params: [] });
  expect(headerParams(of({ a: null, b: odd, c: annotated("C") })).params).toHaveLength(1);
});

it("headerParams ignores annotations in data", () => {
  const data = { "x-mcp-header": "a" };
  const schema = of({ a: { const: data, default: data, enum: [data], example: data, examples: [data] } });
  expect(headerParams({ ...schema, default: { a: data }, items: schema, anyOf: [schema] })).toEqual({ params: [] });
  expect(headerParams({ items: { default: data, enum: [data] } })).toEqual({ params: [] });
});

it.each([
  ["empty", ""],
  ["with a space", "a b"],
  ["with a colon", "a:"],
  ["with a line break", "a\r\nb"],
  ["with a line break at the end", "a\n"],
  ["with NUL", "a\0"],
  ["beyond ASCII", "é"],
  ["in brackets", "(a)"],
  ["a number", 7],
  ["null", null],
  ["an object", {}],
])("headerParams reports a name that is %s", (_, name) => {
  const { params, problem } = headerParams(of({ a: annotated(name) }));
  expect(params).toEqual([]);
  expect(problem).toBe("x-mcp-header of a must be a name for an HTTP header");
});

it.each([["number"], ["object"], ["array"], ["null"], [undefined], [["string", "null"]], [["string"]]])(
  "headerParams has a problem with the type %j",
  (type) => {
    const { problem } = headerParams(of({ a: { type, "x-mcp-header": "A" } }));
    expect(problem).toBe(`x-mcp-header of a needs the type "string", "integer" or "boolean"`);
  },
);

it("headerParams reports one header for two arguments, also in different case", () => {
  const schema = of({ a: annotated("Region"), b: of({ c: annotated("REGION") }) });
  expect(headerParams(schema)).toEqual({ params: [], problem: "mcp-param-region is the header of two arguments" });
});

it("headerParams reports one object in two places", () => {
  const shared = annotated("A");
  expect(headerParams(of({ a: shared, b: shared })).problem).toContain("only once");
  const plain = { type: "string" };
  expect(headerParams(of({ a: plain, b: plain, c: annotated("C") }))).toEqual({
    params: [{ path: ["c"], header: "mcp-param-c" }],
  });
});

it.each<[string, object]>([
  ["the root", { ...of({}), ...annotated("A") }],
  ["items", of({ a: { items: annotated("A") } })],
  ["prefixItems", of({ a: { prefixItems: [annotated("A")] } })],
  ["contains", of({ a: { contains: annotated("A") } })],
  ["unevaluatedItems", of({ a: { unevaluatedItems: annotated("A") } })],
  ["additionalItems", of({ a: { additionalItems: annotated("A") } })],
  ["additionalProperties", { additionalProperties: annotated("A") }],
  ["unevaluatedProperties", { unevaluatedProperties: annotated("A") }],
  ["patternProperties", { patternProperties: { "^a": annotated("A") } }],
  ["propertyNames", { propertyNames: annotated("A") }],
  ["dependentSchemas", { dependentSchemas: { a: of({ b: annotated("A") }) } }],
  ["dependencies", { dependencies: { a: of({ b: annotated("A") }), c: ["d"] } }],
  ["oneOf", { oneOf: [of({ a: annotated("A") })] }],
  ["anyOf", of({ a: { anyOf: [annotated("A"), { type: "null" }] } })],
  ["allOf", { allOf: [{}, of({ a: annotated("A") })] }],
  ["not", { not: of({ a: annotated("A") }) }],
  ["if", { if: of({ a: annotated("A") }) }],
  ["then", JSON.parse(JSON.stringify({ if: of({ a: annotated("A") }) }).replace("if", "then")) as object],
  ["else", { else: of({ a: annotated("A") }) }],
  ["$defs", { ...of({ a: { $ref: "#/$defs/a" } }), $defs: { a: annotated("A") } }],
  ["definitions", { definitions: { a: annotated("A") } }],
  ["contentSchema", of({ a: { contentSchema: annotated("A") } })],
  ["an unknown keyword", { "x-mine": { deep: [[annotated("A")]] } }],
  ["properties that are an array", { properties: [annotated("A")] }],
  ["properties below such a place", of({ a: { items: of({ b: annotated("A") }) } })],
])("headerParams reports an annotation in %s", (_, schema) => {
  const { params, problem } = headerParams(schema);
  expect(params).toEqual([]);
  expect(problem).toMatch(/^x-mcp-header of .+ must be on a property that is reached only through `properties`/);
});

it("headerParams names the path", () => {
  const schema = of({ list: { items: of({ id: annotated("Id") }) } });
  expect(headerParams(schema).problem).toMatch(/^x-mcp-header of list\.items\.id must/);
  expect(headerParams(annotated("A")).problem).toMatch(/^x-mcp-header of its input must/);
});

it("headerParams handles schemas with cycles, great depth or many references", () => {
  const circle: Record<string, unknown> = { type: "object" };
  circle["properties"] = { self: circle, a: annotated("A") };
  circle["items"] = circle;
  expect(headerParams(circle).problem).toContain("only once");
  const harmless: Record<string, unknown> = { type: "object" };
  harmless["properties"] = { self: harmless };
  harmless["anyOf"] = [harmless];
  expect(headerParams(harmless)).toEqual({ params: [] });
  let deep = of({ a: annotated("A") });
  let bushy = of({});
  for (let level = 0; level < 50_000; level++) deep = of({ n: deep });
  for (let level = 0; level < 200; level++) bushy = { ...of({ a: bushy, b: bushy }), anyOf: [bushy, bushy] };
  expect(headerParams(deep).params[0]?.path).toHaveLength(50_001);
  expect(headerParams(bushy)).toEqual({ params: [] });
});
