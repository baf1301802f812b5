// Which fields a form has for a schema, and what it says about their values.

import { describe, expect, it } from "vitest";
import { defaultsOf, fieldsOf, problemsIn, restOf, type Field } from "./schema.ts";
import { expandTemplate, valuesIn, variablesOf } from "./template.ts";

function typesOf(properties: object, more: object = {}): Readonly<Record<string, unknown>> {
  const fields = fieldsOf({ type: "object", properties, ...more }) ?? [];
  return Object.fromEntries(fields.map((field: Field) => [field.name, field.type]));
}

function countOf(fields: readonly Field[] = []): number {
  return fields.reduce((sum, field) => sum + 1 + (field.type === "object" ? countOf(field.fields) : 0), 0);
}

/** An object with so many properties, all with the same schema. */
function wide(size: number, property: object): { readonly type: "object"; readonly properties: object } {
  const names = Array.from({ length: size }, (_, at) => `p${at}`);
  return { type: "object", properties: Object.fromEntries(names.map((name) => [name, property])) };
}

describe("the fields of a schema", () => {
  it("follow its types, references and choices", () => {
    const types = typesOf(
      {
        text: { type: "string" },
        count: { type: "integer" },
        on: { type: "boolean" },
        kind: { enum: ["a", "b"] },
        titled: { oneOf: [{ const: "x", title: "The X" }] },
        maybe: { anyOf: [{ type: "number" }, { type: "null" }] },
        nullable: { type: ["string", "null"] },
        list: { type: "array", items: { type: "string" } },
        several: { type: "array", items: { enum: [1, 2] } },
        point: { $ref: "#/$defs/point" },
        objects: { type: "array", items: { type: "object" } },
        either: { oneOf: [{ type: "object" }, { type: "array" }] },
        anything: true,
        elsewhere: { $ref: "https://example.com/schema" },
      },
      { $defs: { point: { type: "object", properties: { x: { type: "number" } } } } },
    );
    expect(types).toEqual({
      text: "text",
      count: "number",
      on: "boolean",
      kind: "choice",
      titled: "choice",
      maybe: "number",
      nullable: "text",
      list: "list",
      several: "choices",
      point: "object",
      objects: "json",
      either: "json",
      anything: "json",
      elsewhere: "json",
    });
  });

  it("end where a schema refers to itself or is no object", () => {
    const loop = { $ref: "#/$defs/loop" };
    expect(typesOf({ loop }, { $defs: { loop } })).toEqual({ loop: "json" });
    const tree = { type: "object", properties: { child: { $ref: "#/$defs/tree" } } };
    expect(JSON.stringify(fieldsOf({ ...tree, $defs: { tree } })).length).toBeLessThan(10_000);
    for (const schema of [undefined, null, true, [], { type: "string" }]) expect(fieldsOf(schema)).toBeUndefined();
  });

  it("are JSON where an object is within itself", () => {
    const fields = fieldsOf(wide(20, { $ref: "#" }));
    expect(countOf(fields)).toBe(20);
    expect(fields?.every(({ type }) => type === "json")).toBe(true);
    // By way of another object too.
    const other = { type: "object", properties: { back: { $ref: "#" }, note: { type: "string" } } };
    const [through] = fieldsOf({ ...wide(1, { $ref: "#/$defs/other" }), $defs: { other } }) ?? [];
    expect(through?.type === "object" ? through.fields.map(({ type }) => type) : []).toEqual(["json", "text"]);
    // But not where it is only there twice.
    const point = { type: "object", properties: { x: { type: "number" } } };
    expect(countOf(fieldsOf({ ...wide(2, { $ref: "#/$defs/point" }), $defs: { point } }))).toBe(4);
  });

  it("are no more than a page can show, those of the outer objects first", () => {
    const levels = [0, 1, 2, 3].map((level) => [`l${level}`, wide(20, { $ref: `#/$defs/l${level + 1}` })]);
    const $defs = { ...Object.fromEntries(levels), l4: wide(20, { type: "string" }) };
    const deep = fieldsOf({ ...wide(20, { $ref: "#/$defs/l0" }), $defs });
    expect(deep).toHaveLength(20);
    expect(countOf(deep)).toBe(300);
    const large = fieldsOf({
      ...wide(250, { $ref: "#/$defs/large" }),
      $defs: { large: wide(20_000, { type: "string" }) },
    });
    expect(countOf(large)).toBe(250);
    expect(large?.every(({ type }) => type === "json")).toBe(true);
  });

  it("are some of very many, with all that are required", () => {
    const schema = { ...wide(5000, { type: "string" }), required: ["p4000", "p4999"] };
    const fields = fieldsOf(schema) ?? [];
    expect(countOf(fields)).toBe(300);
    expect(fields.filter(({ required }) => required).map(({ name }) => name)).toEqual(["p4000", "p4999"]);
    expect(restOf(schema, fields)).toBe(4700);
    expect(restOf(wide(300, {}), fieldsOf(wide(300, {})) ?? [])).toBe(0);
    expect(restOf(undefined, [])).toBe(0);
  });
});

it("defaults fill a form, and required switches are off", () => {
  const fields = fieldsOf({
    required: ["on"],
    properties: {
      a: { type: "string", default: "x" },
      on: { type: "boolean" },
      off: { type: "boolean" },
      inner: { type: "object", properties: { n: { type: "integer", default: 3 } } },
    },
  });
  expect(defaultsOf(fields ?? [])).toEqual({ a: "x", on: false, inner: { n: 3 } });
});

it("what is wrong is said at the path of the field", () => {
  const fields = fieldsOf({
    required: ["title", "inner"],
    properties: {
      title: { type: "string", minLength: 2 },
      count: { type: "integer", maximum: 10 },
      kind: { enum: ["a"] },
      email: { type: "string", format: "email" },
      inner: { type: "object", required: ["x"], properties: { x: { type: "number", exclusiveMinimum: 0 } } },
    },
  });
  expect(problemsIn(fields ?? [], {})).toEqual({ title: "This is required.", inner: "This is required." });
  expect(problemsIn(fields ?? [], { title: "🧵", count: 2.5, kind: "b", email: "no", inner: { x: 0 } })).toEqual({
    title: "This must have at least 2 characters.",
    count: "This must be a whole number.",
    kind: "Choose one of the values.",
    email: "This must be an email address.",
    "inner.x": "This must be more than 0.",
  });
  expect(problemsIn(fields ?? [], { title: "ok", inner: { x: 1 } })).toEqual({});
});

it.each([
  ["notes://{id}/{+path}{?q,lang}", { id: "a b", path: "x/y", q: "1&2" }, "notes://a%20b/x/y?q=1%262"],
  ["file:///{path*}{/rest}{#part}", { rest: "z", part: "p" }, "file:////z#p"],
  ["{scheme:2}://x", { scheme: "https" }, "ht://x"],
])("a template is filled in: %s", (template, values, uri) => {
  expect(expandTemplate(template, values)).toBe(uri);
  expect(variablesOf(template).length).toBeGreaterThan(0);
});

it("the variables of a query may be left out, and others must have a value", () => {
  expect(variablesOf("notes://{id}{?q}")).toEqual([
    { name: "id", required: true, minLength: 1 },
    { name: "q", required: false, minLength: 0 },
  ]);
});

it.each([
  ["notes://{id}/text", "notes://7/text", { id: "7" }],
  ["notes://{id}", "notes://", undefined],
  ["notes://{id}", "notes://7/text", undefined],
  ["notes://{id}/{part}", "notes://7/text", undefined],
])("finds the value of %s in %s", (template, uri, values) => {
  expect(valuesIn(template, uri)).toEqual(values);
});
