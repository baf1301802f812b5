// What callers may send to a live tool, and what they are told where it is wrong.

import { expect, it } from "vitest";
import { camel, checked } from "./tool.ts";

const { input, inputSchema } = checked({
  code: { type: "string", description: "Code", required: true },
  "capture-time": { type: "boolean", description: "Times", default: false },
  mode: { type: "string", description: "Mode", choices: ["cpu", "alloc"] },
  functions: { type: "strings", description: "Names" },
  line: { type: "integer", description: "Line" },
});

it("is said in a schema", () => {
  expect(inputSchema).toMatchObject({
    required: ["code"],
    additionalProperties: false,
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
  [{ code: "", cod: "" }, ["cod is no argument of this tool; did you mean code?"]],
  [
    { code: "", toString: "" },
    ["toString is no argument of this tool; there are code, capture-time, mode, functions, line"],
  ],
  [[], ["the arguments must be an object"]],
])("%j", async (value, expected) => {
  const { issues = [] } = await input["~standard"].validate(value);
  expect(issues.map(({ message, path = [] }) => [...path.map(String), message].join(" "))).toEqual(expected);
});

it("says so of few, and in few words, where very many are wrong or very long", async () => {
  const many = Object.fromEntries(Array.from({ length: 1_000 }, (_, index) => [`name-${index}`, 1]));
  const { issues = [] } = await input["~standard"].validate({ ["x".repeat(1_000_000)]: 1, ...many });
  expect(issues).toHaveLength(20);
  expect(JSON.stringify(issues).length).toBeLessThan(10_000);
});

it("is nothing where a tool has none", async () => {
  const { issues = [] } = await checked({}).input["~standard"].validate({ session: "main" });
  expect(issues.map(({ message }) => message)).toEqual(["is no argument of this tool; it has none"]);
});

it("is written for guests without hyphens", () => {
  expect(camel("max-samples")).toBe("maxSamples");
});
