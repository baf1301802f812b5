// The interpreter agrees with ajv on which values are valid, and says the frequent issues in the same words.

import fc from "fast-check";
import { expect, it } from "vitest";
import { person } from "../../test/support/handlers/person-schema.ts";
import { runs } from "../../test/support/thoroughness.ts";
import type { JsonSchema } from "../protocol/model/index.ts";
import { interpret } from "./interpreted-schema.ts";
import type { Dialect } from "./schema-kind.ts";
import { createSchemaCheck } from "../server/schema.ts";

const NEWEST: Dialect = "https://json-schema.org/draft/2020-12/schema";
const DRAFT_7: Dialect = "http://json-schema.org/draft-07/schema";

const issues = (schema: JsonSchema, value: unknown, dialect: Dialect = NEWEST): readonly string[] | undefined =>
  interpret(structuredClone(schema), dialect, true)(value);

it("interpret says the frequent issues as ajv does", async () => {
  const value = { pets: 1, home: {} };
  const { issues: known } = (await createSchemaCheck(person)(value)) as { issues: readonly string[] };
  expect(issues(person, value)?.toSorted()).toEqual(known.toSorted());
  expect(issues({ enum: ["a", "b"] }, "c")).toEqual(['must be one of ["a","b"]']);
  expect(issues({ properties: { "a/b~c ü": { type: ["null", "string"] } } }, { "a/b~c ü": 1 })).toEqual([
    "a/b~c ü: must be null,string",
  ]);
  expect(issues({ items: { type: "string" } }, ["a", 1])).toEqual(["[1]: must be string"]);
  expect(issues({ required: ['a"b'] }, {})).toEqual(['a"b: is required']);
  expect(issues({ minimum: 0 }, -1)).toEqual(["-1 is less than 0"]);
});

it.each<[JsonSchema, Dialect]>([
  [{ $defs: { n: { type: "number" } }, properties: { a: { $ref: "#/$defs/n" } } }, NEWEST],
  [
    {
      $id: "https://example.com/tree",
      $defs: { n: { $anchor: "n", type: "number" } },
      properties: { a: { $ref: "#n" } },
    },
    NEWEST,
  ],
  [{ $id: "tree", properties: { a: { type: "number" }, b: { $ref: "tree" } } }, NEWEST],
  [{ definitions: { n: { type: "number" } }, properties: { a: { $ref: "#/definitions/n" } } }, DRAFT_7],
])("interpret follows references: %j", (schema, dialect) => {
  expect(issues(schema, { a: 1 }, dialect)).toBeUndefined();
  expect(issues(schema, { a: "1" }, dialect)).toEqual(["a: must be number"]);
});

it.each(["#/nowhere", "https://example.com/other.json"])("interpret refuses a reference to %s", ($ref) => {
  expect(() => issues({ properties: { a: { $ref } } }, {})).toThrow(`it refers to ${$ref}, which is not in the schema`);
});

it("interpret reports a missing value as an issue", () => {
  expect(issues({ type: "object" }, undefined)).toEqual(["must not be undefined"]);
});

it("interpret takes properties without a value as absent, as they are when the value is sent", () => {
  const schema = { required: ["b"], properties: { a: { type: "string" }, b: { type: "array" } } };
  expect(issues(schema, { a: undefined, b: [1] })).toBeUndefined();
  expect(issues(schema, { a: 1, b: undefined })).toEqual(["b: is required", "a: must be string"]);
});

it("interpret counts only own properties", () => {
  expect(issues({ required: ["constructor"] }, {})).toEqual(["constructor: is required"]);
  expect(issues({ properties: { constructor: { type: "string" } } }, {})).toBeUndefined();
});

// ajv compiles each schema, which takes milliseconds.
it("interpret agrees with ajv on which values are valid", async () => {
  const scalar = fc.constantFrom(null, true, 0, 1, -2, 1.5, "", "a", "abc", "ü");
  const value = fc.letrec((tie) => ({
    value: fc.oneof(
      { maxDepth: 3 },
      scalar,
      fc.array(tie("value"), { maxLength: 3 }),
      fc.dictionary(fc.constantFrom("a", "b", "cc"), tie("value"), { noNullPrototype: true }),
    ),
  })).value;
  const type = fc.constantFrom("null", "boolean", "integer", "number", "string", "array", "object");
  const { schema } = fc.letrec<{ schema: JsonSchema }>((tie) => ({
    schema: fc.oneof(
      { maxDepth: 3 },
      fc.record({ type }),
      fc.record({ type: fc.uniqueArray(type, { minLength: 1, maxLength: 3 }) }),
      fc.record({ const: value }),
      fc.record({ enum: fc.uniqueArray(scalar, { minLength: 1 }) }),
      fc.record({ minimum: fc.integer({ min: -2, max: 2 }), multipleOf: fc.constantFrom(1, 0.5, 2) }),
      fc.record({ minLength: fc.nat(2), pattern: fc.constantFrom("^a", "c$", "^$") }),
      fc.record({
        properties: fc.record({ a: tie("schema"), cc: tie("schema") }),
        additionalProperties: fc.oneof(fc.boolean(), tie("schema")),
      }),
      fc.record({ required: fc.uniqueArray(fc.constantFrom("a", "b", "cc")), maxProperties: fc.nat(2) }),
      fc.record({
        prefixItems: fc.array(tie("schema"), { minLength: 1, maxLength: 2 }),
        items: fc.oneof(fc.boolean(), tie("schema")),
      }),
      fc.record({ uniqueItems: fc.boolean(), minItems: fc.nat(2), contains: tie("schema") }),
      fc.record({ anyOf: fc.array(tie("schema"), { minLength: 1, maxLength: 2 }) }),
      fc.record({ oneOf: fc.array(tie("schema"), { minLength: 1, maxLength: 2 }), not: tie("schema") }),
      fc.record({
        allOf: fc.array(tie("schema"), { minLength: 1, maxLength: 2 }),
        unevaluatedProperties: fc.boolean(),
      }),
      fc.record({ if: tie("schema"), ["then" as string]: tie("schema"), else: tie("schema") }),
      fc.record({
        patternProperties: fc.record({ "^[ab]$": tie("schema") }),
        propertyNames: fc.record({ minLength: fc.nat(2) }),
      }),
      fc.record({ dependentRequired: fc.constant({ a: ["b"] }) }),
    ),
  }));
  await fc.assert(
    fc.asyncProperty(schema, fc.array(value, { minLength: 1, maxLength: 5 }), async (given, values) => {
      const check = createSchemaCheck(given);
      const interpreted = interpret(structuredClone(given), NEWEST, false);
      for (const one of values) {
        const isValid = (await check(one)).issues === undefined;
        expect(interpreted(one) === undefined).toBe(isValid);
      }
    }),
    { numRuns: runs(3_000) },
  );
});
