// Which schemas of other people are checked: those whose check takes bounded work.

import { expect, it } from "vitest";
import { createUntrustedCheck } from "./json-schema.ts";
import type { JsonSchema } from "../protocol/model/index.ts";
import { checkWork } from "./schema-work.ts";

const ref = (name: string): JsonSchema => ({ $ref: `#/$defs/${name}` });
const tree = (node: JsonSchema): JsonSchema => ({ $defs: { node }, ...ref("node") });
const levels = (count: number, next: (name: string) => JsonSchema): JsonSchema => ({
  ...ref("0"),
  $defs: Object.fromEntries(Array.from({ length: count }, (_, at) => [at, at + 1 < count ? next(`${at + 1}`) : {}])),
});

it.each<[string, JsonSchema]>([
  [
    "with many properties",
    { properties: Object.fromEntries(Array.from({ length: 5_000 }, (_, at) => [`p${at}`, {}])) },
  ],
  ["with a shared definition", { $defs: { text: { type: "string" } }, properties: { a: ref("text"), b: ref("text") } }],
  ["of a list of itself", tree({ properties: { children: { items: ref("node") } } })],
  ["of a tree with two branches", tree({ properties: { left: ref("node"), right: ref("node") } })],
  [
    "of any JSON value",
    tree({ anyOf: [{ type: "string" }, { items: ref("node") }, { additionalProperties: ref("node") }] }),
  ],
  [
    "of two that refer to each other",
    {
      ...ref("a"),
      $defs: { a: { properties: { b: ref("b") } }, b: { properties: { a: ref("a") } } },
    },
  ],
])("a schema is checked: %s", (_name, schema) => {
  expect(checkWork(schema)).toBeGreaterThan(0);
});

it("a value is not checked if that would take too much work", () => {
  const check = createUntrustedCheck(
    { items: { anyOf: Array.from({ length: 1_000 }, () => ({ type: "string" })) } },
    "It",
  );
  expect(() => check(Array.from({ length: 100_000 }, () => 1))).toThrow("a value this long");
});

it.each<[string, JsonSchema]>([
  ["whose levels refer twice to the next", levels(40, (next) => ({ allOf: [ref(next), ref(next)] }))],
  [
    "whose levels refer twice to the next for a property",
    levels(40, (next) => ({
      allOf: [{ properties: { a: ref(next) } }, { properties: { a: ref(next) } }],
    })),
  ],
  [
    "that refers to itself twice for the same part",
    tree({
      anyOf: [{ properties: { a: ref("node") } }, { additionalProperties: ref("node") }],
    }),
  ],
  [
    "in which two refer to each other in two ways",
    {
      ...ref("a"),
      $defs: {
        a: { properties: { x: ref("b"), y: ref("b") } },
        b: { allOf: [{ properties: { y: ref("a") } }, { properties: { y: ref("b") } }] },
      },
    },
  ],
  [
    "with two that refer to themselves, one in the other",
    tree({ properties: { a: ref("node"), b: { $id: "inner", items: { $ref: "#/$defs/node/properties/b" } } } }),
  ],
  [
    "with very many values",
    { properties: { a: { enum: [] }, b: { items: Array.from({ length: 20_000 }, () => true) } } },
  ],
  ["that is only itself", tree({ allOf: [ref("node")] })],
  ["with a dynamic reference", { $dynamicRef: "#node" }],
  ["with a reference to another document", { $ref: "https://example.com/schema" }],
  ["with a chain of very many references", levels(30_000, ref)],
])("a schema is not checked: %s", (_name, schema) => {
  expect(checkWork(schema)).toBeUndefined();
  expect(() => createUntrustedCheck(schema, "The schema")).toThrow("too much work to check");
});
