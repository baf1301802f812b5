// Arguments of live tools: their JSON Schema, and the messages about wrong ones.

import { expect, it } from "vitest";
import { toCamelCase, toolInput } from "./tool.ts";

const { input, inputSchema } = toolInput({
  code: { type: "string", description: "Code", required: true },
  "capture-time": { type: "boolean", description: "Times", default: false },
  mode: { type: "string", description: "Mode", enum: ["cpu", "alloc"] },
  functions: { type: "array", items: { type: "string" }, description: "Names" },
  line: { type: "integer", description: "Line" },
});

it("describes the arguments in a JSON Schema", () => {
  expect(inputSchema).toMatchObject({
    required: ["code"],
    properties: { functions: { type: "array", items: { type: "string" } }, mode: { enum: ["cpu", "alloc"] } },
  });
});

it.each([
  [{ code: "1", "capture-time": true, mode: "cpu", functions: ["a"], line: 1 }, []],
  [{}, ["code is required"]],
  [{ code: 1 }, ["code must be a string"]],
  [{ code: "", mode: "gpu" }, ["mode must be one of cpu, alloc"]],
  [{ code: "", functions: [1] }, ["functions must be an array of strings"]],
  [{ code: "", line: 1.5 }, ["line must be a whole number"]],
  [{ code: "", cod: "" }, ["cod is not an argument of this tool; did you mean code?"]],
  [
    { code: "", toString: "" },
    ["toString is not an argument of this tool; the arguments are code, capture-time, mode, functions, line"],
  ],
  [[], ["the arguments must be an object"]],
])("validates %j", async (value, expected) => {
  const { issues = [] } = await input["~standard"].validate(value);
  expect(issues.map(({ message, path = [] }) => [...path.map(String), message].join(" "))).toEqual(expected);
});

it("limits the number and the length of the messages", async () => {
  const many = Object.fromEntries(Array.from({ length: 1_000 }, (_, index) => [`name-${index}`, 1]));
  const { issues = [] } = await input["~standard"].validate({ ["x".repeat(1_000_000)]: 1, ...many });
  expect(issues).toHaveLength(20);
  expect(JSON.stringify(issues).length).toBeLessThan(10_000);
});

it("refuses every argument of a tool that takes none", async () => {
  const { issues = [] } = await toolInput({}).input["~standard"].validate({ session: "main" });
  expect(issues.map(({ message }) => message)).toEqual(["is not an argument of this tool; it takes none"]);
});

it("converts names to camel case for the guest", () => {
  expect(toCamelCase("max-samples")).toBe("maxSamples");
});
