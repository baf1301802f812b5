// Plain JSON Schema: issues of values, dialects, references, and errors about schemas that cannot be used.

import { expect, it } from "vitest";
import { fakeClient } from "../../test/support/handlers/fake-client.ts";
import { person } from "../../test/support/handlers/person-schema.ts";
import type { JsonSchema } from "../protocol/model/index.ts";
import type { ToolOptions } from "./index.ts";
import { createSchemaCheck } from "./schema.ts";
import { createServer } from "./server.ts";

const check = async (schema: JsonSchema, value: unknown): Promise<unknown> => createSchemaCheck(schema)(value);

it("checks of plain JSON Schema name missing, unknown and invalid fields", async () => {
  expect(await check(person, { age: -1, pets: 1, home: {} })).toEqual({
    issues: ["name: is required", "pets: is not allowed", "age: must be >= 0", "home.city: is required"],
  });
  expect(await check({ enum: ["a", "b"] }, "c")).toEqual({ issues: ['must be one of ["a","b"]'] });
  expect(await check({ properties: { "a/b~c": { type: "null" } } }, { "a/b~c": 1 })).toEqual({
    issues: ["a/b~c: must be null"],
  });
});

it("checks of plain JSON Schema are synchronous after the first value", async () => {
  const once = createSchemaCheck(person);
  const value = { name: "a", home: { city: "b" } };
  expect(await once(value)).toEqual({ value });
  expect(once(value)).toEqual({ value });
  expect(await once({ home: { city: "b" } })).toEqual({ issues: ["name: is required"] });
});

it("checks of plain JSON Schema name every issue of a value, but only the first of a huge one", async () => {
  const items = createSchemaCheck({ items: { type: "string" } });
  expect(await items([1, 2])).toEqual({ issues: ["[0]: must be string", "[1]: must be string"] });
  expect(await items(Array.from({ length: 50_000 }, () => 1))).toEqual({ issues: ["[0]: must be string"] });
});

it("checks of plain JSON Schema name the issues of a value that JSON cannot hold", async () => {
  const endless: { self?: unknown } = {};
  endless.self = endless;
  for (const value of [undefined, 1n, endless]) {
    expect(await check({ type: "string" }, value)).toEqual({ issues: ["must be string"] });
  }
  const server = createServer({ name: "s", version: "1" }).tool("sum", { output: person }, () => undefined as never);
  expect(await fakeClient(server).call("tools/call", { name: "sum" })).toMatchObject({
    isError: true,
    content: [{ text: "The output of the tool sum does not fit its schema:\n- must be object" }],
  });
});

it("checks of plain JSON Schema work for a schema with thousands of properties", async () => {
  const names = Array.from({ length: 5_000 }, (_, at) => `p${at}`);
  const properties = Object.fromEntries(names.map((name) => [name, { type: "string" }]));
  const many = createSchemaCheck({ type: "object", properties, required: ["p7"] });
  expect(await many({ p7: "a", p4999: "b" })).toEqual({ value: { p7: "a", p4999: "b" } });
  expect(await many({ p1: 1, p4999: 2 })).toEqual({
    issues: ["p7: is required", "p1: must be string", "p4999: must be string"],
  });
});

it("checks of plain JSON Schema keep the names of properties that are also keywords, in schemas of every size", async () => {
  const $schema = "http://json-schema.org/draft-07/schema#";
  const many = Object.fromEntries(Array.from({ length: 2_000 }, (_, at) => [`p${at}`, {}]));
  for (const properties of [{}, many]) {
    expect(await check({ properties, dependentRequired: { format: ["b"] } }, { format: 1 })).toHaveProperty("issues");
    for (const format of [["b"], { required: ["b"] }]) {
      expect(await check({ $schema, properties, dependencies: { format } }, { format: 1 })).toHaveProperty("issues");
    }
  }
});

it("checks of plain JSON Schema limit the number of issues", async () => {
  const { issues } = (await check(
    { items: { type: "string" } },
    Array.from({ length: 500 }, () => 1),
  )) as {
    issues: string[];
  };
  expect(issues).toHaveLength(21);
  expect(issues.at(-1)).toBe("and 480 more");
});

it("checks of plain JSON Schema support 2020-12, and older dialects by `$schema`", async () => {
  const dynamic = { $schema: "https://json-schema.org/draft/2020-12/schema#", $dynamicAnchor: "a", type: "null" };
  expect(await check(dynamic, null)).toEqual({ value: null });
  const pair = { prefixItems: [{ type: "string" }, { type: "number" }], items: false };
  expect(await check(pair, ["a", 1])).toEqual({ value: ["a", 1] });
  expect(await check(pair, ["a", 1, 2])).toHaveProperty("issues");
  const old = {
    $schema: "http://json-schema.org/draft-07/schema#",
    items: [{ type: "string" }],
    additionalItems: false,
    dependentRequired: { a: ["b"] },
  };
  for (const $schema of [
    old.$schema,
    "http://json-schema.org/draft-07/schema",
    "https://json-schema.org/draft-07/schema#",
  ]) {
    expect(await check({ ...old, $schema }, ["a"])).toEqual({ value: ["a"] });
    expect(await check({ ...old, $schema }, ["a", 1])).toHaveProperty("issues");
    // A keyword of a later dialect is ignored.
    expect(await check({ ...old, $schema }, { a: 1 })).toEqual({ value: { a: 1 } });
  }
  const middle = { ...old, $schema: "https://json-schema.org/draft/2019-09/schema" };
  expect(await check(middle, { a: 1 })).toHaveProperty("issues");
  expect(await check(middle, ["a", 1])).toHaveProperty("issues");
});

it.each([
  "http://json-schema.org/draft-04/schema#",
  "http://json-schema.org/draft-06/schema#",
  "http://json-schema.org/schema#",
  "https://json-schema.org/draft/2020-12/schema#/$defs/a",
  "https://example.com/draft-07/schema",
  "",
  7,
  null,
])("checks of plain JSON Schema refuse the dialect %o at registration", ($schema) => {
  const known = [
    "https://json-schema.org/draft/2020-12/schema",
    "https://json-schema.org/draft/2019-09/schema",
    "http://json-schema.org/draft-07/schema",
  ].join(", ");
  const schema: JsonSchema = { $schema, type: "object" };
  const register = (options: ToolOptions) => () =>
    createServer({ name: "test", version: "1" }).tool("t", options, () => "x");
  const text = (side: string) =>
    `Tool t: \`${side}\` has the JSON Schema dialect ${JSON.stringify($schema)}; supported are ${known}`;
  expect(register({ input: schema })).toThrow(new TypeError(text("input")));
  expect(register({ inputSchema: schema })).toThrow(new TypeError(text("input")));
  expect(register({ output: schema })).toThrow(new TypeError(text("output")));
  expect(register({ outputSchema: schema })).toThrow(new TypeError(text("output")));
});

it("checks of plain JSON Schema follow references inside, and two schemas may share an $id", async () => {
  const schema = {
    $id: "x:y",
    $defs: { n: { $anchor: "num", type: "number" } },
    properties: { a: { $ref: "#num" } },
  };
  expect(await check(schema, { a: "1" })).toEqual({ issues: ["a: must be number"] });
  expect(await check({ ...schema }, { a: 1 })).toEqual({ value: { a: 1 } });
});

it("checks of plain JSON Schema accept references to the meta-schema", async () => {
  const meta = { properties: { schema: { $ref: "https://json-schema.org/draft/2020-12/schema" } } };
  expect(await check(meta, { schema: { type: "string" } })).toHaveProperty("value");
  expect(await check(meta, { schema: { type: "strin" } })).toHaveProperty("issues");
  // The meta-schema itself, as an author may have copied it.
  const { default: dialect } = (await import("ajv/dist/refs/json-schema-2020-12/schema.json", {
    with: { type: "json" },
  })) as { default: JsonSchema };
  expect(await check(dialect, { properties: { a: { type: "string" } } })).toHaveProperty("value");
  expect(await check(dialect, { properties: { a: { type: "strin" } } })).toHaveProperty("issues");
});

it("checks of plain JSON Schema ignore a keyword of ajv's own", async () => {
  expect(await check({ $async: true, type: "string" }, 1)).toEqual({ issues: ["must be string"] });
});

it("checks of plain JSON Schema find duplicate items, also of long arrays", async () => {
  const unique = createSchemaCheck({ type: "array", uniqueItems: true });
  const items = Array.from({ length: 20_000 }, (_, id) => ({ id, tags: ["a"] }));
  expect(await unique(items)).toHaveProperty("value");
  expect(await unique([...items, { tags: ["a"], id: 7 }])).toEqual({
    issues: ["must NOT have duplicate items (items ## 7 and 20000 are identical)"],
  });
  expect(await unique([1, "1", [1], true, null])).toHaveProperty("value");
  expect(await check({ uniqueItems: false }, [1, 1])).toHaveProperty("value");
});

it("checks of plain JSON Schema ignore formats and unknown keywords", async () => {
  const noted = { properties: { a: { type: "string", format: "email", "x-mcp-header": "A" } } };
  expect(await check(noted, { a: "no address" })).toEqual({ value: { a: "no address" } });
});

const DRAFT_7 = "http://json-schema.org/draft-07/schema#";
const DRAFT_2019 = "https://json-schema.org/draft/2019-09/schema";
/** A linked list of numbers; `next` is the reference to the next node. */
const node = (next: JsonSchema): JsonSchema => ({ properties: { v: { type: "number" }, next } });
const good = { v: 1, next: { v: 2, next: { v: 3 } } };
const bad = { v: 1, next: { v: 2, next: { v: "3" } } };

it.each<[string, JsonSchema]>([
  ["the root", node({ $ref: "#" })],
  ["the root of draft 7", { $schema: DRAFT_7, ...node({ $ref: "#" }) }],
  ["the root that has an $id", { $id: "https://example.com/tree", ...node({ $ref: "#" }) }],
  ["the root by its $id", { $id: "https://example.com/tree", ...node({ $ref: "tree" }) }],
  ["a definition", { $defs: { n: node({ $ref: "#/$defs/n" }) }, $ref: "#/$defs/n" }],
  ["an anchor", { $defs: { n: { $anchor: "n", ...node({ $ref: "#n" }) } }, $ref: "#n" }],
  ["the root's anchor", { $anchor: "n", ...node({ $ref: "#n" }) }],
  ["the root's anchor, with an $id", { $id: "x:y", $anchor: "n", ...node({ $ref: "x:y#n" }) }],
  ["the root's anchor, if the name is taken", { $anchor: "n", $defs: { "root n": true }, ...node({ $ref: "#n" }) }],
  ["a dynamic anchor", { $dynamicAnchor: "n", ...node({ $dynamicRef: "#n" }) }],
  ["a dynamic anchor by a plain reference", { $dynamicAnchor: "n", ...node({ $ref: "#n" }) }],
  ["a dynamic anchor inside", { $defs: { n: { $dynamicAnchor: "n", ...node({ $dynamicRef: "#n" }) } }, $ref: "#n" }],
  ["the root, dynamically", node({ $dynamicRef: "#" })],
  ["a definition, dynamically", { $defs: { n: node({ $dynamicRef: "#/$defs/n" }) }, $ref: "#/$defs/n" }],
  ["two at once", { $defs: { any: true }, ...node({ $ref: "#/$defs/any", $dynamicRef: "#", allOf: [true] }) }],
  ["the root, recursively", { $schema: DRAFT_2019, ...node({ $recursiveRef: "#" }) }],
])("references of plain JSON Schema lead to %s", async (_what, schema) => {
  expect(await check(schema, good)).toEqual({ value: good });
  expect(await check(schema, bad)).toEqual({ issues: ["next.next.v: must be number"] });
});

it("references of plain JSON Schema lead to their target, not to the schema around them", async () => {
  const text = { $defs: { s: { $dynamicAnchor: "s", type: "string" } }, properties: { a: { $dynamicRef: "#s" } } };
  expect(await check(text, { a: 1 })).toEqual({ issues: ["a: must be string"] });
  const $defs = { inner: { properties: { root: { $recursiveRef: "#" } } } };
  const root = { $schema: DRAFT_2019, $defs, properties: { a: { $ref: "#/$defs/inner" }, v: { type: "number" } } };
  expect(await check(root, { a: { root: { v: "1" } } })).toEqual({ issues: ["a.root.v: must be number"] });
});

it("references of plain JSON Schema leave data alone that looks like a reference", async () => {
  const data = { $dynamicRef: "#nowhere" };
  const schema = { properties: { a: { const: data }, $dynamicRef: { enum: [data] } }, default: data };
  const value = { a: data, $dynamicRef: data };
  expect(await check(schema, value)).toEqual({ value });
  expect(await check(schema, { a: {} })).toHaveProperty("issues");
});

it("references of plain JSON Schema stay dynamic if inner schemas have an $id", async () => {
  const kids = { type: "array", items: { $dynamicRef: "#node" } };
  const tree = { $id: "tree", $dynamicAnchor: "node", properties: { data: true, kids } };
  const strict = {
    $id: "https://example.com/strict",
    $dynamicAnchor: "node",
    $ref: "tree",
    unevaluatedProperties: false,
    $defs: { tree },
  };
  expect(await check(strict, { kids: [{ data: 1 }] })).toHaveProperty("value");
  expect(await check(strict, { kids: [{ daat: 1 }] })).toHaveProperty("issues");
});

const register = (options: ToolOptions) => () =>
  createServer({ name: "test", version: "1" }).tool("t", options, () => "x");

it.each(["http://127.0.0.1:9/schema.json", "file:///etc/passwd", "other.json#/a", "#/nowhere", "#nowhere"])(
  "a plain JSON Schema that cannot be used is refused when it is registered if it refers to %s",
  (away) => {
    for (const keyword of ["$ref", "$dynamicRef"]) {
      expect(register({ input: { properties: { a: { [keyword]: away } } } })).toThrow(
        new TypeError(
          "Tool t: `input` cannot be used as a JSON Schema: at properties.a, " +
            `it refers to ${away}, which is not in the schema; references are not fetched`,
        ),
      );
    }
  },
);

it.each<[JsonSchema, string]>([
  [{ properties: { a: { type: "numbr" } } }, 'at properties.a.type, it must be a type; did you mean "number"?'],
  [{ type: ["object", "nil"] }, 'at type, it must be a type; did you mean "null"?'],
  [{ properties: { a: { items: { type: "text" } } } }, "at properties.a.items.type, it must be one of string, "],
  [{ type: "object", propertes: { a: {} } }, "at propertes, it is not a keyword; did you mean `properties`?"],
  [{ properties: { a: { types: "string" } } }, "at properties.a.types, it is not a keyword; did you mean `type`?"],
  [{ requierd: ["a"] }, "at requierd, it is not a keyword; did you mean `required`?"],
  [{ anyOf: [{}, { minimum: "3" }] }, "at anyOf[1].minimum, it must be a number"],
  [{ properties: { a: { minLength: -1 } } }, "at properties.a.minLength, it must be a whole number, 0 or more"],
  [{ properties: { a: { pattern: "(" } } }, "at properties.a.pattern, it must be a regular expression"],
  [{ patternProperties: { "(": true } }, 'at patternProperties, "(" is not a valid regular expression'],
  [{ required: "a" }, "at required, it must be an array of strings"],
  [{ properties: 1 }, "at properties, it must be an object"],
  [{ allOf: [] }, "at allOf, it must be a non-empty array of schemas"],
  [{ enum: "a" }, "at enum, it must be an array"],
  [{ properties: { a: { not: "b" } } }, "at properties.a.not, it must be a JSON Schema, not a string"],
  [{ $schema: "https://json-schema.org/draft-07/schema#", not: { type: 1 } }, "at not.type, "],
])("a plain JSON Schema that cannot be used is refused when it is registered, with the place: %j", (schema, why) => {
  for (const side of ["input", "output", "inputSchema", "outputSchema"] as const) {
    expect(register({ [side]: schema })).toThrow(`Tool t: \`${side}\` cannot be used as a JSON Schema: ${why}`);
  }
});

it.each<JsonSchema>([
  { properties: { propertes: { type: "string" }, requierd: {} }, required: ["propertes"] },
  { example: 1, nullable: true, "x-order": 2, label: "A", note: "b", when: {}, min: 1 },
  { default: { type: "numbr" }, const: { $ref: "#/nowhere" }, enum: [{ minimum: "3" }] },
  { $defs: { "a/b~c": {} }, properties: { a: { $ref: "#/$defs/a~1b~0c" } } },
  { $id: "https://example.com/a", $defs: { b: { $id: "b" } }, properties: { a: { $ref: "b" }, c: { $ref: "#/x" } } },
  { items: [{ type: "string" }], $schema: "http://json-schema.org/draft-07/schema#", dependencies: { a: ["b"] } },
])("a plain JSON Schema that cannot be used is not one with names or data that look like mistakes: %j", (schema) => {
  expect(register({ input: schema })).not.toThrow();
});

it.each<[JsonSchema, string]>([
  [{ $ref: "#" }, "it refers to itself without end"],
  [{ $defs: { a: { $ref: "#/$defs/b" }, b: { $ref: "#/$defs/a" } }, $ref: "#/$defs/a" }, "it refers to itself"],
  [{ $id: "x:y", $ref: "z" }, "it refers to x:z, which is not in the schema"],
])(
  "a plain JSON Schema that cannot be used is an error of each call if only the check of a value notices: %j",
  async (schema, why) => {
    const server = createServer({ name: "test", version: "1" })
      .tool("input", { input: schema }, () => "x")
      .tool("output", { output: schema }, () => "x");
    for (const side of ["input", "output"]) {
      const error = await fakeClient(server).callError("tools/call", { name: side, arguments: {} });
      expect(error.kind).toBe("internal_error");
      expect(error.message).toContain(`Tool ${side}: \`${side}\` cannot be used as a JSON Schema: ${why}`);
    }
  },
);

it("a plain JSON Schema that cannot be used reports the same error for every value", async () => {
  const once = createSchemaCheck({ type: "strng" }, "It");
  await expect(once({})).rejects.toThrow("It cannot be used as a JSON Schema: at type");
  await expect(once({})).rejects.toThrow("It cannot be used as a JSON Schema: at type");
});
