// Mistakes in what is given as a schema, and what their authors are told: bare fields, schemas in the wrong place,
// and things that are no schema at all.

import type { StandardSchemaV1 } from "@standard-schema/spec";
import { type } from "arktype";
import * as v from "valibot";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { createServer } from "./server.ts";

const refusal = (options: object): string => {
  try {
    createServer({ name: "test", version: "1" }).tool("t", options, () => "x");
  } catch (error) {
    if (error instanceof TypeError) return error.message;
    throw error;
  }
  return "no refusal";
};

describe("schemas given to a tool", () => {
  it("are not the bare fields of an object schema", () => {
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
            `Tool t: its ${field} has schemas of ${vendor} as values; wrap them: ${place}${wrapped}`;
          expect(refusal({ [side]: given })).toBe(text(side));
          expect(refusal({ [`${side}Schema`]: given })).toBe(text(`${side}Schema`, `${side}: `));
        }
      }
    }
  });

  it("do not pass the compiler as bare fields, and all else does", () => {
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

  it("stand in the field for them", () => {
    expect(refusal({ inputSchema: z.object({}) })).toBe("Tool t: its inputSchema is a schema of zod; give it as input");
    expect(refusal({ outputSchema: type("string") })).toBe(
      "Tool t: its outputSchema is a schema of arktype; give it as output",
    );
    expect(refusal({ input: v.object({}), inputSchema: v.object({}) })).toContain(
      "its inputSchema is a schema of valibot",
    );
  });

  it("are schemas", () => {
    for (const none of [null, true, 7, "string", [], () => "x"]) {
      const either = "must be a Standard Schema or a JSON Schema, an object";
      expect(refusal({ input: none })).toBe(`Tool t: its input ${either}`);
      expect(refusal({ output: none })).toBe(`Tool t: its output ${either}`);
      expect(refusal({ inputSchema: none })).toBe("Tool t: its inputSchema must be a JSON Schema, an object");
      expect(refusal({ outputSchema: none })).toBe("Tool t: its outputSchema must be a JSON Schema, an object");
    }
  });

  it("have schemas for their properties", () => {
    for (const none of ["string", null, 7, []]) {
      expect(refusal({ input: { type: "object", properties: { a: {}, b: none } } })).toBe(
        'Tool t: properties.b of its input must be a JSON Schema, such as { type: "string" }',
      );
    }
    expect(refusal({ input: { properties: { a: true, b: false, c: {} } } })).toBe("no refusal");
  });
});
