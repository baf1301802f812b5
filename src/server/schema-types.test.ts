// What the compiler refuses of schemas. The comments with `@ts-expect-error` are checked by the compiler.

import { expect, it } from "vitest";
import { type } from "arktype";
import { z } from "zod";
import { createServer, defineTool } from "./index.ts";

const create = () => createServer({ name: "test", version: "1" });
const run = () => "x";

it("accepts schemas of objects, and vendor keywords", () => {
  const elsewhere: Record<string, unknown> = { type: "object" };
  create()
    .tool("zod", { input: z.object({ a: z.string() }), output: z.array(z.string()) }, () => ["x"])
    .tool("changed", { input: z.object({ a: z.string() }).transform(({ a }) => a) }, run)
    .tool("union", { input: z.object({ a: z.string() }).or(z.object({ b: z.string() })), inputSchema: elsewhere }, run)
    .tool("arktype", { input: type({ a: "string" }) }, ({ a }) => a.toUpperCase())
    .tool("elsewhere", { input: elsewhere, output: elsewhere }, () => ({}))
    .tool(
      "literal",
      {
        input: {
          $schema: "https://json-schema.org/draft/2020-12/schema",
          type: "object",
          properties: {
            requried: { type: "string", "x-order": 1, nullable: true },
            list: { type: "array", items: { anyOf: [{ type: "string", minLength: 1 }, { const: { typ: 1 } }] } },
          },
          required: ["requried"],
          additionalProperties: false,
          "x-vendor": { any: "thing" },
        },
      },
      ({ requried }) => requried.toUpperCase(),
    )
    .prompt("zod", { arguments: z.object({ a: z.string() }) }, ({ a }) => a.toUpperCase())
    .prompt("plain", { arguments: { a: { required: true } } }, ({ a }) => a.toUpperCase());
});

it("refuses schemas of arguments that are not objects", () => {
  const what = "must be an object schema";
  // @ts-expect-error -- not an object
  expect(() => create().tool("a", { input: z.string() }, run)).toThrow(what);
  // @ts-expect-error -- not an object
  expect(() => create().tool("a", { input: z.array(z.string()) }, run)).toThrow(what);
  // @ts-expect-error -- not an object
  expect(() => create().tool("a", { input: { type: "string" } }, run)).toThrow(what);
  // @ts-expect-error -- not an object
  expect(() => create().prompt("a", { arguments: z.string() }, run)).toThrow(what);
  // @ts-expect-error -- not an object
  defineTool({ name: "a", input: z.string(), handler: run });
  // @ts-expect-error -- not an object
  create().method("acme/a", { input: z.string() }, () => ({}));
});

it("refuses misspelt keywords in literals", () => {
  // @ts-expect-error -- required
  expect(() => create().tool("a", { input: { type: "object", requried: ["a"] } }, run)).toThrow("`required`");
  // @ts-expect-error -- properties
  expect(() => create().tool("a", { input: { type: "object", proprties: {} } }, run)).toThrow("`properties`");
  const nested = { a: { type: "string", descripton: "a" } } as const;
  // @ts-expect-error -- description
  expect(() => create().tool("a", { input: { type: "object", properties: nested } }, run)).toThrow("`description`");
  // @ts-expect-error -- type
  create().tool("a", { input: { type: "object", properties: { a: { items: { typ: "string" } } } } }, run);
  // @ts-expect-error -- maximum
  defineTool({ name: "a", input: { properties: { a: { anyOf: [{ maximun: 1 }] } } }, handler: run });
  // @ts-expect-error -- required
  expect(() => create().tool("a", { output: { type: "object", requried: ["a"] } }, () => ({}))).toThrow("`required`");
  // @ts-expect-error -- required
  defineTool({ name: "a", input: { type: "object", requried: ["a"] }, handler: run });
  const wrong = { arguments: { type: "object", properties: {}, requried: ["a"] } } as const;
  // @ts-expect-error -- required
  expect(() => create().prompt("a", wrong, run)).toThrow("`required`");
});
