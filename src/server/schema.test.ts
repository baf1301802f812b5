// Schemas of three libraries and plain JSON Schema: what callers see of each, what each says of a value that does
// not fit, and the types that follow. What plain JSON Schema checks is in json-schema.test.ts.

import type { StandardSchemaV1 } from "@standard-schema/spec";
import { type } from "arktype";
import * as v from "valibot";
import { describe, expect, expectTypeOf, it } from "vitest";
import { z } from "zod";
import { person } from "../../test/support/person.ts";
import type { JsonSchema } from "../protocol/model/index.ts";
import { checkOf, type FromJsonSchema, jsonSchemaOf, type SchemaInput, type SchemaOutput } from "./schema.ts";

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
      new TypeError(
        "Tool t: its input is a schema of valibot, which does not say itself in JSON Schema; give the JSON Schema " +
          "beside it, as inputSchema, or give toStandardJsonSchema(schema) of the package @valibot/to-json-schema",
      ),
    );
    const other: StandardSchemaV1 = { "~standard": { version: 1, vendor: "mine", validate: (value) => ({ value }) } };
    expect(() => jsonSchemaOf("Tool t", "output", other, undefined)).toThrow(/ beside it, as outputSchema$/);
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
