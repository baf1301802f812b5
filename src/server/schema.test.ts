// Schemas of three libraries and plain JSON Schema: what callers see of each, what each says of a value that does
// not fit, and the types that follow.

import { type } from "arktype";
import * as v from "valibot";
import { describe, expect, expectTypeOf, it } from "vitest";
import { z } from "zod";
import { McpError } from "../protocol/errors.ts";
import type { JsonSchema } from "../protocol/model/index.ts";
import type { ToolOptions } from "./index.ts";
import { checkOf, type FromJsonSchema, jsonSchemaOf, type SchemaInput, type SchemaOutput } from "./schema.ts";
import { createServer } from "./server.ts";

const person = {
  type: "object",
  properties: {
    name: { type: "string" },
    age: { type: "integer", minimum: 0 },
    tags: { type: "array", items: { type: "string" } },
    home: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
  },
  required: ["name", "home"],
  additionalProperties: false,
} as const;

describe("the JSON Schema that callers see", () => {
  it("is what zod says, of the side that is asked for", () => {
    const schema = z.object({ a: z.string().default("x"), b: z.number().optional() });
    const input = jsonSchemaOf("T", "input", schema, undefined);
    expect(input).toEqual({
      type: "object",
      properties: { a: { type: "string", default: "x" }, b: { type: "number" } },
    });
    expect(jsonSchemaOf("T", "output", schema, undefined)).toMatchObject({ required: ["a"] });
  });

  it("is what arktype says", () => {
    expect(jsonSchemaOf("T", "input", type({ a: "string", "b?": "number" }), undefined)).toEqual({
      type: "object",
      properties: { a: { type: "string" }, b: { type: "number" } },
      required: ["a"],
    });
  });

  it("is a plain schema itself, word for word", () => {
    const plain = {
      $schema: "https://json-schema.org/draft/2020-12/schema",
      type: "object",
      $defs: { a: { $anchor: "b" } },
    };
    expect(jsonSchemaOf("T", "input", plain, undefined)).toBe(plain);
  });

  it("must be given beside a schema that cannot say it", () => {
    const schema = v.object({ a: v.string() });
    expect(() => jsonSchemaOf("Tool t", "input", schema, undefined)).toThrow(
      "Tool t: its input is a schema of valibot, which does not say itself in JSON Schema; give the JSON Schema beside it, as inputSchema",
    );
    expect(jsonSchemaOf("Tool t", "output", schema, { type: "object" })).toEqual({ type: "object" });
  });

  it("must be given beside a schema that says it cannot", () => {
    const dates = z.object({ at: z.date() });
    expect(() => jsonSchemaOf("Tool t", "output", dates, undefined)).toThrow(
      /^Tool t: its output cannot be said in JSON/,
    );
    expect(jsonSchemaOf("Tool t", "output", dates, { type: "object" })).toEqual({ type: "object" });
  });

  it("is nothing where nothing was given", () => {
    expect(jsonSchemaOf("T", "input", undefined, undefined)).toBeUndefined();
  });
});

describe("checks", () => {
  it("names each bad field, whatever the library", async () => {
    const schemas = {
      zod: z.object({ name: z.string(), home: z.object({ tags: z.array(z.number()) }) }),
      valibot: v.object({ name: v.string(), home: v.object({ tags: v.array(v.number()) }) }),
      arktype: type({ name: "string", home: { tags: "number[]" } }),
      plain: {
        type: "object",
        properties: {
          name: { type: "string" },
          home: { type: "object", properties: { tags: { type: "array", items: { type: "number" } } } },
        },
      } satisfies JsonSchema,
    };
    for (const [library, schema] of Object.entries(schemas)) {
      const { issues } = (await checkOf(schema)({ name: 1, home: { tags: [1, "x"] } })) as { issues: string[] };
      expect(issues, library).toHaveLength(2);
      expect(
        issues.filter((issue) => /^name(: | must be a string)/.test(issue)),
        library,
      ).toHaveLength(1);
      expect(
        issues.filter((issue) => /^home\.tags\[1\](: | must be a number)/.test(issue)),
        library,
      ).toHaveLength(1);
      const good = { name: "a", home: { tags: [1] } };
      expect((await checkOf(schema)(good)).issues, library).toBeUndefined();
    }
  });

  it("give the value as the schema leaves it", () => {
    const schema = z.object({ a: z.string().default("x") }).transform(({ a }) => ({ a: a.toUpperCase() }));
    expect(checkOf(schema)({ b: 1 })).toEqual({ value: { a: "X" } });
  });

  it("may take their time", async () => {
    const schema = z.object({ a: z.string().refine(async (value) => value === "x", "is not x") });
    expect(await checkOf(schema)({ a: "x" })).toMatchObject({ value: { a: "x" } });
    expect(await checkOf(schema)({ a: "y" })).toEqual({ issues: ["a: is not x"] });
  });
});

describe("checks of plain JSON Schema", () => {
  const check = (schema: JsonSchema, value: unknown): unknown => checkOf(schema)(value);

  it("names what is missing, what is unknown and what is wrong", async () => {
    expect(await check(person, { age: -1, pets: 1, home: {} })).toEqual({
      issues: ["name: is required", "pets: is not known", "age: must be >= 0", "home.city: is required"],
    });
    expect(await check({ enum: ["a", "b"] }, "c")).toEqual({ issues: ['must be one of ["a","b"]'] });
    expect(await check({ properties: { "a/b~c": { type: "null" } } }, { "a/b~c": 1 })).toEqual({
      issues: ["a/b~c: must be null"],
    });
  });

  it("answers at once after the first time", async () => {
    const once = checkOf(person);
    expect(await once({ name: "a", home: { city: "b" } })).toEqual({ value: { name: "a", home: { city: "b" } } });
    expect(once({ home: { city: "b" } })).toEqual({ issues: ["name: is required"] });
  });

  it("does not drown its reader", async () => {
    const { issues } = (await check(
      { items: { type: "string" } },
      Array.from({ length: 500 }, () => 1),
    )) as {
      issues: string[];
    };
    expect(issues).toHaveLength(21);
    expect(issues.at(-1)).toBe("and 480 more");
  });

  it("knows the words of 2020-12, and older dialects by their name", async () => {
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
      // A word that came later says nothing here.
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
  ])("refuses the dialect %o before any value comes", ($schema) => {
    const known = [
      "https://json-schema.org/draft/2020-12/schema",
      "https://json-schema.org/draft/2019-09/schema",
      "http://json-schema.org/draft-07/schema",
    ].join(", ");
    const schema: JsonSchema = { $schema, type: "object" };
    const register = (options: ToolOptions) => () =>
      createServer({ name: "test", version: "1" }).tool("t", options, () => "x");
    const text = (side: string) =>
      `Tool t: its ${side} is in the JSON Schema dialect ${JSON.stringify($schema)}; the supported ones are ${known}`;
    expect(register({ input: schema })).toThrow(new TypeError(text("input")));
    expect(register({ inputSchema: schema })).toThrow(new TypeError(text("input")));
    expect(register({ output: schema })).toThrow(new TypeError(text("output")));
    expect(register({ outputSchema: schema })).toThrow(new TypeError(text("output")));
  });

  it("follows references inside, and two schemas may share an $id", async () => {
    const schema = {
      $id: "x:y",
      $defs: { n: { $anchor: "num", type: "number" } },
      properties: { a: { $ref: "#num" } },
    };
    expect(await check(schema, { a: "1" })).toEqual({ issues: ["a: must be number"] });
    expect(await check({ ...schema }, { a: 1 })).toEqual({ value: { a: 1 } });
  });

  it("never fetches a reference", async () => {
    const away = { properties: { a: { $ref: "http://127.0.0.1:9/schema.json" } } };
    const error: unknown = await Promise.resolve(check(away, {})).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(McpError);
    expect((error as McpError).kind).toBe("internal_error");
    expect((error as McpError).message).toContain("http://127.0.0.1:9/schema.json");
  });

  it("says what is wrong with a schema that makes no sense", async () => {
    for (const schema of [{ type: "strin" }, { required: "a" }, { $ref: "#/nowhere" }, { properties: 1 }]) {
      await expect(Promise.resolve(check(schema, {}))).rejects.toThrow("A schema of this server cannot be used");
    }
  });

  it("knows its own dialect as a schema", async () => {
    const meta = { properties: { schema: { $ref: "https://json-schema.org/draft/2020-12/schema" } } };
    expect(await check(meta, { schema: { type: "string" } })).toHaveProperty("value");
    expect(await check(meta, { schema: { type: "strin" } })).toHaveProperty("issues");
  });

  it("takes formats and unknown words as notes", async () => {
    const noted = { properties: { a: { type: "string", format: "email", "x-mcp-header": "A" } } };
    expect(await check(noted, { a: "no address" })).toEqual({ value: { a: "no address" } });
  });
});

describe("types", () => {
  it("follow from a Standard Schema", () => {
    const schema = z.object({ a: z.string().default("x") });
    expectTypeOf<SchemaInput<typeof schema>>().toEqualTypeOf<{ a?: string | undefined }>();
    expectTypeOf<SchemaOutput<typeof schema>>().toEqualTypeOf<{ a: string }>();
    expect(schema.parse({})).toEqual({ a: "x" });
  });

  it("follow from a literal JSON Schema", () => {
    type Person = { name: string; home: { city: string }; age?: number; tags?: string[] };
    expectTypeOf<FromJsonSchema<typeof person>>().toEqualTypeOf<Person>();
    expectTypeOf<FromJsonSchema<{ enum: readonly ["a", "b"] }>>().toEqualTypeOf<"a" | "b">();
    expectTypeOf<FromJsonSchema<{ const: 1 }>>().toEqualTypeOf<1>();
    expectTypeOf<FromJsonSchema<JsonSchema>>().toEqualTypeOf<unknown>();
    expect(person.required).toContain("name");
  });
});
