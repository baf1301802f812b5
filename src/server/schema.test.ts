// Schemas of three libraries and plain JSON Schema: the JSON Schema that clients see, the issues of invalid values, and
// the inferred types. The checks of plain JSON Schema are in json-schema.test.ts.

import type { StandardSchemaV1 } from "@standard-schema/spec";
import { type } from "arktype";
import * as v from "valibot";
import { expect, expectTypeOf, it } from "vitest";
import { z } from "zod";
import { person } from "../../test/support/handlers/person-schema.ts";
import type { JsonSchema } from "../protocol/model/index.ts";
import { createSchemaCheck, type FromJsonSchema, toJsonSchema, type SchemaInput, type SchemaOutput } from "./schema.ts";

it.each<[unknown, string]>([
  [undefined, "undefined"],
  ["text", "a string"],
  [{}, "an object"],
  [{ issues: "wrong" }, "an object"],
])("refuses a result of `validate` that is not one: %o", async (result, kind) => {
  const problem = `T: \`validate\` must return { value } or { issues }, not ${kind}`;
  for (const validate of [() => result, async () => result]) {
    const schema = { "~standard": { version: 1, vendor: "mine", validate } } as StandardSchemaV1;
    await expect((async () => createSchemaCheck(schema, "T")(1))()).rejects.toThrow(new TypeError(problem));
  }
});

it("the JSON Schema that clients see is produced by zod, for input or output", () => {
  const schema = z.object({ a: z.string().default("x"), b: z.number().optional() });
  const input = toJsonSchema("T", "input", schema, undefined);
  expect(input).toEqual({
    type: "object",
    properties: { a: { type: "string", default: "x" }, b: { type: "number" } },
  });
  expect(toJsonSchema("T", "output", schema, undefined)).toMatchObject({ required: ["a"] });
});

it("the JSON Schema that clients see is produced by arktype", () => {
  expect(toJsonSchema("T", "input", type({ a: "string", "b?": "number" }), undefined)).toEqual({
    type: "object",
    properties: { a: { type: "string" }, b: { type: "number" } },
    required: ["a"],
  });
});

it("the JSON Schema that clients see is a plain schema unchanged", () => {
  const plain = {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    type: "object",
    $defs: { a: { $anchor: "b" } },
  };
  expect(toJsonSchema("T", "input", plain, undefined)).toBe(plain);
});

it("the JSON Schema that clients see must be given for a library that cannot produce it", () => {
  const schema = v.object({ a: v.string() });
  expect(() => toJsonSchema("Tool t", "input", schema, undefined)).toThrow(
    new TypeError(
      "Tool t: `input` is a schema of valibot, which cannot produce JSON Schema; add the JSON Schema as `inputSchema`" +
        ", or pass toStandardJsonSchema(schema) of the package @valibot/to-json-schema",
    ),
  );
  const other: StandardSchemaV1 = { "~standard": { version: 1, vendor: "mine", validate: (value) => ({ value }) } };
  expect(() => toJsonSchema("Tool t", "output", other, undefined)).toThrow(/ add the JSON Schema as `outputSchema`$/);
  expect(toJsonSchema("Tool t", "output", schema, { type: "object" })).toEqual({ type: "object" });
});

it("the JSON Schema that clients see must be given for a schema that cannot be converted", () => {
  const dates = z.object({ at: z.date() });
  expect(() => toJsonSchema("Tool t", "output", dates, undefined)).toThrow(
    /^Tool t: `output` cannot be converted to JSON Schema/,
  );
  expect(toJsonSchema("Tool t", "output", dates, { type: "object" })).toEqual({ type: "object" });
});

it("the JSON Schema that clients see is undefined without a schema", () => {
  expect(toJsonSchema("T", "input", undefined, undefined)).toBeUndefined();
});

it("checks name each invalid field, for every library", async () => {
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
    const { issues } = (await createSchemaCheck(schema)({ name: 1, home: { tags: [1, "x"] } })) as {
      issues: string[];
    };
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
    expect((await createSchemaCheck(schema)(good)).issues, library).toBeUndefined();
  }
});

it("checks return the value that the schema returns", () => {
  const schema = z.object({ a: z.string().default("x") }).transform(({ a }) => ({ a: a.toUpperCase() }));
  expect(createSchemaCheck(schema)({ b: 1 })).toEqual({ value: { a: "X" } });
});

it("checks may be asynchronous", async () => {
  const schema = z.object({ a: z.string().refine(async (value) => value === "x", "is not x") });
  expect(await createSchemaCheck(schema)({ a: "x" })).toMatchObject({ value: { a: "x" } });
  expect(await createSchemaCheck(schema)({ a: "y" })).toEqual({ issues: ["a: is not x"] });
});

it("types are inferred from a Standard Schema", () => {
  const schema = z.object({ a: z.string().default("x") });
  expectTypeOf<SchemaInput<typeof schema>>().toEqualTypeOf<{ a?: string | undefined }>();
  expectTypeOf<SchemaOutput<typeof schema>>().toEqualTypeOf<{ a: string }>();
  expect(schema.parse({})).toEqual({ a: "x" });
});

it("types are inferred from a literal JSON Schema", () => {
  type Person = { name: string; home: { city: string }; age?: number; tags?: string[] };
  expectTypeOf<FromJsonSchema<typeof person>>().toEqualTypeOf<Person>();
  expectTypeOf<FromJsonSchema<{ enum: readonly ["a", "b"] }>>().toEqualTypeOf<"a" | "b">();
  expectTypeOf<FromJsonSchema<{ const: 1 }>>().toEqualTypeOf<1>();
  expectTypeOf<FromJsonSchema<JsonSchema>>().toEqualTypeOf<unknown>();
  expect(person.required).toContain("name");
});
