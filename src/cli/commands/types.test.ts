// The declarations that `catenary types` writes: TypeScript accepts them, and they type a client. What a server says
// cannot leave its string or its comment.

import { expect, it } from "vitest";
import { compilerErrors } from "../../../test/support/compiler.ts";
import type { Tool } from "../../protocol/model/index.ts";
import { declarations } from "./types.ts";

const tool = (name: string, inputSchema: object, more: object = {}): Tool => ({
  name,
  inputSchema: { type: "object", ...inputSchema },
  ...more,
});

it("declarations have the arguments and the structured content of each tool", () => {
  const text = declarations(
    [
      tool(
        "get-weather",
        {
          properties: {
            city: { type: "string" },
            days: { type: "integer" },
            unit: { enum: ["C", "F"] },
            near: { type: "array", items: { $ref: "#/$defs/point" } },
          },
          required: ["city"],
          $defs: { point: { type: "object", properties: { x: { type: ["number", "null"] } }, required: ["x"] } },
        },
        {
          description: "The weather",
          outputSchema: { type: "object", properties: { ok: { const: true } }, required: ["ok"] },
        },
      ),
      tool("any", {}),
    ],
    "weather",
  );
  expect(text).toBe(`// The tools of the server "weather", written by \`catenary types\`.

export interface Tools {
  /** The weather */
  readonly "get-weather": {
    readonly input: {
      readonly city: string;
      readonly days?: number;
      readonly unit?: "C" | "F";
      readonly near?: readonly ({ readonly x: number | null })[];
    };
    readonly output: { readonly ok: true };
  };
  readonly any: {
    readonly input: { readonly [name: string]: unknown };
    readonly output: unknown;
  };
}
`);
  expect(compilerErrors(text)).toEqual([]);
});

it("declarations are valid TypeScript whatever a server says", () => {
  const node = { type: "object", properties: { next: { $ref: "#/$defs/node" } } };
  const text = declarations(
    [
      tool(
        "a */ b",
        { properties: { 'x"; }\n export const y = 1': { const: "`${1}` */ \u2028" } } },
        { description: "*/ export const evil = 1; /*\n" },
      ),
      tool("endless", { $defs: { node }, properties: { first: { $ref: "#/$defs/node" }, self: { $ref: "#" } } }),
      tool("odd", {
        properties: {
          a: { allOf: [{ type: "string" }, true] },
          b: { type: "array", prefixItems: [{ type: "string" }], items: false },
          c: { anyOf: [] },
          d: { enum: [1, null, { x: 1 }] },
          e: { type: "object", additionalProperties: { type: "number" } },
          f: { type: "object", additionalProperties: false },
          g: { $ref: "https://example.com" },
          h: { type: "nothing" },
          i: false,
        },
      }),
    ],
    'x"\n export const z = 1',
  );
  expect(compilerErrors(text)).toEqual([]);
  expect(text).not.toMatch(/^ *export const/m);
});
