// How return values of tools become results, with and without an output schema. Whole calls are in tools.test.ts.

import { describe, expect, it } from "vitest";
import { InvalidResult } from "./handler-errors.ts";
import type { CallToolResult } from "../protocol/model/index.ts";
import type { SchemaCheck } from "../tools/schema-kind.ts";
import * as results from "./tool-result.ts";

/** Without what every result has. */
const fieldsOf = ({ resultType, _meta, ...fields }: CallToolResult): Partial<CallToolResult> => {
  expect(resultType).toBe("complete");
  return _meta !== undefined && Object.keys(_meta).length > 0 ? { ...fields, _meta } : fields;
};
const toolResult = (tool: string, value: unknown): Partial<CallToolResult> =>
  fieldsOf(results.toolResult(tool, value, undefined, {}) as CallToolResult);
const checkedToolResult = async (
  tool: string,
  value: unknown,
  check: SchemaCheck,
): Promise<Partial<CallToolResult>> => {
  const result = results.toolResult(tool, value, check, {});
  return fieldsOf(await result);
};

/** The message of the error for a result that cannot be sent. */
const problemOf = async (make: () => unknown): Promise<string> => {
  try {
    return `no problem: ${JSON.stringify(await make())}`;
  } catch (error) {
    if (error instanceof InvalidResult) return error.message;
    throw error;
  }
};

describe("the return value of a tool", () => {
  const text = (value: string): object[] => [{ type: "text", text: value }];

  it("the return value of a tool: a string is one text block", () => {
    expect(toolResult("t", "hi")).toEqual({ content: text("hi"), isError: false });
    expect(toolResult("t", "")).toEqual({ content: text(""), isError: false });
  });

  it("the return value of a tool: undefined is empty content", () => {
    expect(toolResult("t", undefined)).toEqual({ content: [], isError: false });
  });

  it("the return value of a tool: an array of content blocks is content", () => {
    const blocks = [
      { type: "text", text: "a", annotations: { priority: 1 } },
      { type: "image", data: "aGk=", mimeType: "image/png" },
      { type: "audio", data: "aGk=", mimeType: "audio/wav" },
      { type: "resource", resource: { uri: "x:y", text: "z" } },
      { type: "resource_link", uri: "x:y", name: "y" },
    ];
    expect(toolResult("t", blocks)).toEqual({ content: blocks, isError: false });
    for (const block of blocks) expect(toolResult("t", [block])).toEqual({ content: [block], isError: false });
  });

  it("the return value of a tool: a resource link without a name gets its URI as name", () => {
    const link = { type: "resource_link", uri: "x:y", title: "Y" };
    const named = { ...link, name: "x:y" };
    const content = [{ type: "text", text: "see" }, link, { ...link, name: "y" }];
    const whole = [content[0], named, content[2]];
    expect(toolResult("t", content)).toEqual({ content: whole, isError: false });
    expect(toolResult("t", { content, extra: 1 })).toEqual({ content: whole, extra: 1, isError: false });
    expect(link).not.toHaveProperty("name");
  });

  it("the return value of a tool: an object with a content array is the whole result", () => {
    const result = { content: text("no"), isError: true, _meta: { a: 1 }, extra: 2 };
    expect(toolResult("t", result)).toEqual(result);
    expect(toolResult("t", { content: [] })).toEqual({ content: [], isError: false });
  });

  it("the return value of a tool: anything else is structured content with its JSON as text", () => {
    const values = [
      { a: 1 },
      42,
      0,
      true,
      null,
      [],
      [1, 2],
      ["text"],
      [{ type: "unknown" }],
      [{ type: "text", text: 1 }, "b"],
      { type: "text", text: "a" },
      { content: "of a file", path: "a.txt" },
    ];
    for (const value of values) {
      const expected = { content: text(JSON.stringify(value)), structuredContent: value, isError: false };
      expect(toolResult("t", value)).toEqual(expected);
    }
  });

  it("the return value of a tool: an error is the same as if it was thrown", () => {
    expect(() => toolResult("t", new RangeError("too far"))).toThrow(new RangeError("too far"));
  });

  it.each<[unknown, string]>([
    [{ content: "oops" }, "content, which must be an array of content blocks"],
    [{ content: "oops", isError: true }, "content, which must be an array of content blocks"],
    [{ content: [null] }, 'content[0], which must be a content block such as { type: "text", text: "..." }'],
    [{ content: ["hello"] }, "content[0], which must be a content block"],
    [
      { content: [{ type: "txt", text: "hello" }] },
      "content[0].type, which is not the type of a content block; did you mean `text`?",
    ],
    [
      { content: [{ text: "hello" }] },
      "content[0].type, which is not the type of a content block; the types are text, image, audio",
    ],
    [{ content: [{ type: "text", txt: "hello" }] }, "content[0].text, which must be a string"],
    [[{ type: "txt", text: "a" }], "[0].type, which is not the type of a content block; did you mean `text`?"],
    [[{ type: "img", data: "a", mimeType: "image/png" }], "[0].type, which is not the type of a content block"],
    [
      [
        { type: "txt", text: "a" },
        { type: "text", text: "b" },
      ],
      "[0].type, which is not the type of a content block",
    ],
    [{ content: [{ type: "resource", resource: { text: "a" } }] }, "content[0].resource.uri, which must be a string"],
    [
      { content: [{ type: "resource", resource: { uri: "a:b" } }] },
      "content[0].resource, which must have a string `text`",
    ],
    [{ content: [{ type: "resource_link" }] }, "content[0].uri, which must be a string"],
    [[{ type: "image", data: "AAAA" }], "[0].mimeType, which must be a string"],
    [
      [{ type: "image", data: new Uint8Array(2), mimeType: "image/png" }],
      "[0].data, which must be a string, not bytes",
    ],
    [[{ type: "text", text: "a" }, "b"], "[1], which must be a content block"],
  ])("the return value of a tool: blocks that the protocol does not allow are an error: %j", async (value, problem) => {
    expect(await problemOf(() => toolResult("t", value))).toContain(`Tool t returned ${problem}`);
  });

  it.each<[string, unknown, string]>([
    ["a promise", { n: Promise.resolve(1) }, ", at n, a promise, which cannot be sent; return its value: await it"],
    ["promises", [1, Promise.resolve(2)], ", at [1], a promise"],
    ["a Map", { a: { b: new Map() } }, ", at a.b, a Map"],
    ["a Set", { rows: [{ tags: new Set() }] }, ", at rows[0].tags, a Set"],
    ["NaN", { rows: [1, Number.NaN] }, ", at rows[1], NaN"],
    ["bytes", { file: Buffer.from("x") }, ", at file, bytes"],
    ["an error", { failure: new Error("no") }, ", at failure, an error"],
    ["a BigInt", { a: [1n] }, ", at a[0], a BigInt"],
    ["an iterator", { all: [1].values() }, ", at all, an iterator"],
    ["an async generator", { all: (async function* () {})() }, ", at all, an async iterator"],
    ["a response", { page: new Response("x") }, ", at page, an object of the class Response without JSON fields"],
    ["a function in an array", [() => 1], ", at [0], a function"],
  ])("the return value of a tool: %s inside a value is an error that says where", async (_what, value, problem) => {
    expect(await problemOf(() => toolResult("t", value))).toContain(`Tool t returned${problem}`);
    const whole = { content: [], structuredContent: value };
    expect(await problemOf(() => toolResult("t", whole))).toContain("Tool t returned, at structuredContent");
  });

  const circle: { self?: unknown } = {};
  circle.self = circle;
  const odd: readonly (readonly [unknown, string])[] = [
    [() => 1, "a function, which cannot be sent"],
    [Symbol("s"), "a symbol, which cannot be sent"],
    [1n, "a BigInt, which cannot be sent; return a number or a string"],
    [Number.NaN, "NaN, which cannot be sent; return null or a string"],
    [-Infinity, "-Infinity, which cannot be sent; return null or a string"],
    [new Map([["a", 1]]), "a Map, which cannot be sent; return an object or an array"],
    [new Set([1]), "a Set, which cannot be sent; return an array"],
    [new Uint8Array(3), "bytes, which cannot be sent; return an image, audio or resource block"],
    [Buffer.from("x"), "bytes, which cannot be sent; return an image, audio or resource block"],
    [new ArrayBuffer(3), "bytes, which cannot be sent; return an image, audio or resource block"],
    [{ toJSON: () => undefined }, "a value that cannot be sent as JSON"],
    [circle, "a value that cannot be sent: Converting circular structure to JSON"],
    [[circle], "a value that cannot be sent: Converting circular structure to JSON"],
  ];

  it("the return value of a tool: a value that cannot be sent is an error that says why", async () => {
    const any = (value: unknown): { value: unknown } => ({ value });
    for (const [value, why] of odd) {
      expect(await problemOf(() => toolResult("odd", value))).toContain(`Tool odd returned ${why}`);
      expect(await problemOf(() => checkedToolResult("odd", value, any))).toContain(`Tool odd returned ${why}`);
      const whole = await problemOf(() => toolResult("odd", { content: [], structuredContent: value }));
      expect(whole).toMatch(/^Tool odd returned, (at|as) structuredContent, /);
      expect(whole).toContain(why);
    }
  });

  it("the return value of a tool: values that JSON converts are sent as JSON converts them", () => {
    const day = new Date(0);
    expect(toolResult("t", day)).toEqual({
      content: text(JSON.stringify(day)),
      structuredContent: day,
      isError: false,
    });
    class Point {
      x = 1;
      move(): void {}
    }
    const deep = { point: new Point(), day, none: undefined, run: () => 1, items: [undefined] };
    expect(toolResult("t", deep).content).toEqual(
      text('{"point":{"x":1},"day":"1970-01-01T00:00:00.000Z","items":[null]}'),
    );
  });
});

const pass = (value: unknown): { value: unknown } => ({ value });
const fail = (): { issues: string[] } => ({ issues: ["a: is required", "b: is wrong"] });

it("the return value of a tool with an output schema is always structured content", async () => {
  for (const value of ["text", [{ type: "text", text: "a" }], { content: [] }, null, 1]) {
    expect(await checkedToolResult("t", value, pass)).toEqual({
      content: [{ type: "text", text: JSON.stringify(value) }],
      structuredContent: value,
      isError: false,
    });
  }
});

it("the return value of a tool with an output schema is the value that the check returns", async () => {
  const result = await checkedToolResult("t", { a: 1, b: 2 }, () => ({ value: { a: 1 } }));
  expect(result.structuredContent).toEqual({ a: 1 });
  expect(result.content).toEqual([{ type: "text", text: '{"a":1}' }]);
});

it("the return value of a tool with an output schema may be a whole result with structured content", async () => {
  const whole = { content: [{ type: "text", text: "see" }], structuredContent: { a: 1 }, _meta: { b: 2 } };
  expect(await checkedToolResult("t", whole, pass)).toEqual({ ...whole, isError: false });
  expect(await problemOf(() => checkedToolResult("t", whole, fail))).toContain("does not fit its schema");
  const linked = { ...whole, content: [{ type: "resource_link", uri: "x:y" }] };
  expect(await checkedToolResult("t", linked, pass)).toMatchObject({
    content: [{ ...linked.content[0], name: "x:y" }],
  });
});

it("the return value of a tool with an output schema may be converted by the check into something that can be sent", async () => {
  const entries = (value: unknown): { value: unknown } => ({ value: [...(value as Map<string, number>)] });
  const result = await checkedToolResult("t", new Map([["a", 1]]), entries);
  expect(result).toMatchObject({ structuredContent: [["a", 1]], isError: false });
});

it("the return value of a tool with an output schema may be an error, whatever the schema", async () => {
  for (const check of [pass, fail]) {
    await expect(checkedToolResult("t", new RangeError("no"), check)).rejects.toThrow(new RangeError("no"));
  }
});

it("the return value of a tool with an output schema must not be undefined", async () => {
  const problem = await problemOf(() => checkedToolResult("t", undefined, pass));
  expect(problem).toBe("Tool t returned undefined, which cannot be sent");
});

it("the return value of a tool with an output schema may be an error result that does not fit the schema", async () => {
  const failed = { content: [{ type: "text", text: "no" }], isError: true };
  expect(await checkedToolResult("t", failed, fail)).toEqual(failed);
});

it("the return value of a tool with an output schema is replaced by the issues if it does not fit", async () => {
  expect(await problemOf(() => checkedToolResult("sum", {}, fail))).toBe(
    "The output of the tool sum does not fit its schema:\n- a: is required\n- b: is wrong",
  );
});
