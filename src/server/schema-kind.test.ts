// Error messages for mistakes with schemas: bare fields, schemas in the wrong option, values that are not schemas.

import type { StandardSchemaV1 } from "@standard-schema/spec";
import { type } from "arktype";
import * as v from "valibot";
import { expect, it } from "vitest";
import { z } from "zod";
import { createServer } from "./server.ts";

const errorOf = (options: object): string => {
  try {
    createServer({ name: "test", version: "1" }).tool("t", options, () => "x");
  } catch (error) {
    if (error instanceof TypeError) return error.message;
    throw error;
  }
  return "no error";
};

it("the schemas of a tool must not be the bare fields of an object schema", () => {
  const own: StandardSchemaV1 = { "~standard": { version: 1, vendor: "mine", validate: (value) => ({ value }) } };
  const bare: readonly (readonly [object, string, string])[] = [
    [{ a: z.string() }, "zod", "z.object({ ... })"],
    [{ a: v.string() }, "valibot", "v.object({ ... })"],
    [{ a: type("string") }, "arktype", "type({ ... })"],
    [{ a: own }, "mine", "an object schema of mine"],
    [{ a: { "~standard": null } }, "an unknown library", "an object schema of an unknown library"],
  ];
  for (const [fields, vendor, wrapped] of bare) {
    for (const given of [fields, { type: "object", properties: fields }, { ...fields, b: { type: "string" } }]) {
      for (const side of ["input", "output"]) {
        const text = (field: string, place = ""): string =>
          `Tool t: the values of \`${field}\` are schemas of ${vendor}; wrap them: ${place}${wrapped}`;
        expect(errorOf({ [side]: given })).toBe(text(side));
        expect(errorOf({ [`${side}Schema`]: given })).toBe(text(`${side}Schema`, `${side}: `));
      }
    }
  }
});

it("the schemas of a tool are a compile error as bare fields, and nothing else is", () => {
  const server = createServer({ name: "test", version: "1" });
  const fields = { a: z.string() };
  // @ts-expect-error: the fields are not wrapped
  expect(() => server.tool("bare", { input: fields }, () => "x")).toThrow(TypeError);
  // @ts-expect-error: the fields are not wrapped
  expect(() => server.tool("mixed", { input: { ...fields, b: { type: "string" } } }, () => "x")).toThrow(TypeError);
  const json: { readonly [word: string]: unknown } = { type: "object" };
  const maybe: { type: "object" } | undefined = undefined;
  server
    .tool("wrapped", { input: z.object(fields) }, ({ a }) => a)
    .tool("json", { input: json, output: json }, () => ({}))
    .tool("maybe", { input: maybe }, () => "x")
    .tool("empty", { input: {} }, () => "x");
  expect(server.removeTool("empty")).toBe(true);
});

it("the schemas of a tool must be in the right option", () => {
  expect(errorOf({ inputSchema: z.object({}) })).toBe("Tool t: `inputSchema` is a schema of zod; pass it as `input`");
  expect(errorOf({ outputSchema: type("string") })).toBe(
    "Tool t: `outputSchema` is a schema of arktype; pass it as `output`",
  );
  expect(errorOf({ input: v.object({}), inputSchema: v.object({}) })).toContain("`inputSchema` is a schema of valibot");
});

it("the schemas of a tool must be objects", () => {
  for (const odd of [null, true, 7, "string", [], () => "x"]) {
    const either = "must be a Standard Schema or a JSON Schema, an object";
    expect(errorOf({ input: odd })).toBe(`Tool t: \`input\` ${either}`);
    expect(errorOf({ output: odd })).toBe(`Tool t: \`output\` ${either}`);
    expect(errorOf({ inputSchema: odd })).toBe("Tool t: `inputSchema` must be a JSON Schema, an object");
    expect(errorOf({ outputSchema: odd })).toBe("Tool t: `outputSchema` must be a JSON Schema, an object");
  }
});

it("the schemas of a tool must have schemas as properties", () => {
  for (const odd of ["string", null, 7, []]) {
    expect(errorOf({ input: { type: "object", properties: { a: {}, b: odd } } })).toBe(
      'Tool t: `input.properties.b` must be a JSON Schema, such as { type: "string" }',
    );
  }
  expect(errorOf({ input: { properties: { a: true, b: false, c: {} } } })).toBe("no error");
});
