// Conversion of arguments by the schema of a tool, and the errors before anything is sent.

import { expect, it } from "vitest";
import type { Tool } from "../../protocol/model/index.ts";
import { UsageError } from "../command.ts";
import { promptArguments, toolArguments, type Argument } from "./arguments.ts";
import { argumentTable, readProperties, signature } from "./properties.ts";

const tool = (properties: Record<string, unknown>, more: Record<string, unknown> = {}): Tool => ({
  name: "try",
  inputSchema: { type: "object", properties, ...more },
});

const strings = (...pairs: readonly string[]): Argument[] =>
  pairs.map((pair) => {
    const [key = "", ...rest] = pair.split("=");
    return { key, value: { text: rest.join("=") } };
  });

const STRINGS = { type: "array", items: { type: "string" } };

it.each([
  [{ type: "string" }, ["12"], "12"],
  [{}, ["12"], "12"],
  [{ type: ["string", "number"] }, ["12"], "12"],
  [{ type: "integer" }, ["-12"], -12],
  [{ type: "integer" }, ["1e3"], 1000],
  [{ type: "number" }, [" .5 "], 0.5],
  [{ type: ["number", "null"] }, ["null"], null],
  [{ anyOf: [{ type: "integer" }, { type: "null" }] }, ["3"], 3],
  [{ anyOf: [{ type: "integer" }, {}] }, ["3"], "3"],
  [{ oneOf: [{ const: "a" }, { const: 2 }] }, ["2"], 2],
  [{ type: "boolean" }, ["true"], true],
  [{ type: "boolean" }, ["false"], false],
  [{ enum: ["1", 1] }, ["1"], "1"],
  [{ enum: ["a", 1, null] }, ["1"], 1],
  [{ type: "object" }, ['{"a":1}'], { a: 1 }],
  [STRINGS, ["a"], ["a"]],
  [STRINGS, ["a", "b"], ["a", "b"]],
  [STRINGS, ['["a","b"]'], ["a", "b"]],
  [{ type: "array", items: { type: "integer" } }, ["1", "2"], [1, 2]],
  [{ type: "array" }, ["x"], ["x"]],
  [{ $ref: "#/$defs/size" }, ["3"], 3],
  [{ $ref: "#/$defs/loop" }, ["3"], "3"],
  [{ $ref: "https://elsewhere.example/schema" }, ["3"], "3"],
  [true, ["3"], "3"],
  [{ allOf: [{ description: "x" }, { $ref: "#/$defs/size" }] }, ["3"], 3],
])("a string for %j, given %j", (schema, given, value) => {
  const $defs = { size: { type: "integer" }, loop: { $ref: "#/$defs/loop" } };
  const { args } = toolArguments(tool({ it: schema }, { $defs }), strings(...given.map((text) => `it=${text}`)));
  expect(args).toEqual({ it: value });
});

it.each([
  [{ type: "integer" }, "abc", "count must be an integer: abc"],
  [{ type: "integer" }, "1.5", "count must be an integer: 1.5"],
  [{ type: "integer" }, "", "count must be an integer: "],
  [{ type: "integer" }, "12345678901234567890", "count must be between -(2^53 - 1) and 2^53 - 1"],
  [{ type: "number" }, "0x10", "count must be a number: 0x10"],
  [{ type: "number" }, "1e999", "count must be a number: 1e999"],
  [{ type: ["number", "null"] }, "nul", "count must be a number or null: nul"],
  [{ type: "boolean" }, "yes", "count must be true or false: yes"],
  [{ type: "object" }, "abc", "count must be a JSON object: abc"],
  [{ type: "object" }, "{abc", "count must be a JSON object: {abc"],
  [{ type: "array" }, "[abc", "count must be a JSON array: [abc"],
  [{ type: "array", items: { type: "integer" } }, "x", "count must be an integer: x"],
  [{ enum: ["fast", "slow"] }, "quick", "count must be one of fast, slow: quick"],
])("a string that does not fit %j: %j", (schema, text, message) => {
  const convert = (): unknown => toolArguments(tool({ count: schema }), strings(`count=${text}`));
  expect(convert).toThrow(UsageError);
  expect(convert).toThrow(message);
});

it("arguments of a tool that are missing are listed with all others, before anything is sent", () => {
  const properties = {
    text: { type: "string", description: "What to\nsay" },
    times: { type: "integer", default: 1 },
  };
  expect(() => toolArguments(tool(properties, { required: ["text", "other"] }), [])).toThrow(
    new UsageError(
      "try needs text, other\nArguments of try:\n  text   string   required; What to say\n  times  integer  default 1\n  other  any      required",
    ),
  );
});

it("arguments of a tool may not be given twice, unless they are an array", () => {
  expect(() => toolArguments(tool({ a: { type: "string" } }), strings("a=1", "a=2"))).toThrow("a is given twice");
  expect(() => toolArguments(tool({ a: STRINGS }), strings("a=1", 'a=["2"]'))).toThrow("a is given twice");
});

it("arguments of a tool that are JSON are not converted, and undeclared ones are reported", () => {
  const given: Argument[] = [
    { key: "a", value: { json: "not converted" } },
    { key: "__proto__", value: { text: "x" } },
  ];
  const { args, unknown } = toolArguments(tool({ a: { type: "integer" } }), given);
  expect(Object.entries(args)).toEqual([
    ["a", "not converted"],
    ["__proto__", "x"],
  ]);
  expect(unknown).toEqual(["__proto__"]);
});

it("arguments of a tool are read from any value that a server sends as a schema", () => {
  for (const schema of [undefined, null, 3, [], { properties: 3, required: "x" }, { properties: { a: null } }]) {
    expect(readProperties(schema).every(({ name }) => name === "a")).toBe(true);
  }
});

const size = { type: "integer" };
it.each([
  [
    "a reference",
    { $ref: "#/$defs/all", $defs: { all: { properties: { size }, required: ["size"] } } },
    "size=integer",
  ],
  ["allOf", { properties: { a: {} }, allOf: [{ properties: { size }, required: ["size"] }] }, "[a=any] size=integer"],
  [
    "alternatives with different requirements",
    {
      oneOf: [
        { properties: { kind: { const: "round" }, size }, required: ["kind", "size"] },
        { properties: { kind: { const: "flat" }, name: { type: "string" } }, required: ["kind"] },
      ],
    },
    "kind=round|flat [size=integer] [name=string]",
  ],
])("the schema of a whole tool may consist of %s", (_, schema, expected) => {
  expect(signature(readProperties(schema))).toBe(expected);
});

it("the schema of a whole tool with many circular references is left after a limited number of steps", () => {
  const again = Array.from({ length: 50 }, () => ({ $ref: "#/$defs/it" }));
  const $defs = { it: { anyOf: again, allOf: again, properties: { a: { anyOf: again } } } };
  expect(readProperties({ $ref: "#/$defs/it", $defs }).map(({ name }) => name)).toEqual(["a"]);
});

it("a signature shows arguments as they are written", () => {
  const properties = readProperties({
    properties: {
      text: { type: "string" },
      mode: { enum: ["fast", "slow"] },
      tags: STRINGS,
      filter: { type: "object" },
      any: {},
      maybe: { type: ["integer", "null"] },
      "odd\u001bname": { type: "boolean" },
    },
    required: ["text"],
  });
  expect(signature(properties)).toBe(
    "text=string [mode=fast|slow] [tags=string ...] [filter:=object] [any=any] [maybe=integer] [odd\\x1bname=boolean]",
  );
  expect(argumentTable(properties)).toContain("  odd\\x1bname  boolean\n");
});

const prompt = {
  name: "greet",
  arguments: [
    { name: "name", required: true },
    { name: "tone", description: "How" },
  ],
};

it("arguments of a prompt are strings", () => {
  expect(promptArguments(prompt, strings("name=12"))).toEqual({ name: "12" });
  expect(promptArguments(prompt, [{ key: "name", value: { json: "x" } }])).toEqual({ name: "x" });
  expect(() => promptArguments(prompt, [{ key: "name", value: { json: 1 } }])).toThrow("name must be a string");
  expect(() => promptArguments(prompt, strings("name=a", "name=b"))).toThrow("name is given twice");
});

it("arguments of a prompt that are missing are listed", () => {
  expect(() => promptArguments(prompt, strings("tone=kind"))).toThrow(
    "greet needs name\nArguments of greet:\n  name  string  required\n  tone  string  How",
  );
});

it("an argument that the tool does not declare comes with the nearest one", () => {
  const schema = { query: { type: "string" } };
  expect(toolArguments(tool(schema), strings("qery=1")).unknown).toEqual(["qery (did you mean query?)"]);
  expect(() => toolArguments(tool(schema, { required: ["query"] }), strings("qery=1"))).toThrow(
    /needs query, and does not declare qery \(did you mean query\?\)/,
  );
});
