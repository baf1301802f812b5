// How return values of tools become results, with and without an output schema. Whole calls are in tools.test.ts.

import { describe, expect, it } from "vitest";
import { checkedToolResult, toolResult } from "./tool-result.ts";

describe("the return value of a tool", () => {
  const text = (value: string): object[] => [{ type: "text", text: value }];

  it("a string is one text block", () => {
    expect(toolResult("t", "hi")).toEqual({ content: text("hi"), isError: false });
    expect(toolResult("t", "")).toEqual({ content: text(""), isError: false });
  });

  it("undefined is empty content", () => {
    expect(toolResult("t", undefined)).toEqual({ content: [], isError: false });
  });

  it("an array of content blocks is content", () => {
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

  it("a resource link without a name gets its URI as name", () => {
    const link = { type: "resource_link", uri: "x:y", title: "Y" };
    const named = { ...link, name: "x:y" };
    const content = [{ type: "text", text: "see" }, link, { ...link, name: "y" }];
    const whole = [content[0], named, content[2]];
    expect(toolResult("t", content)).toEqual({ content: whole, isError: false });
    expect(toolResult("t", { content, extra: 1 })).toEqual({ content: whole, extra: 1, isError: false });
    expect(link).not.toHaveProperty("name");
    const odd = [null, "text", { type: "resource_link" }];
    expect(toolResult("t", { content: odd })).toEqual({ content: odd, isError: false });
  });

  it("an object with a content array is the whole result", () => {
    const result = { content: text("no"), isError: true, _meta: { a: 1 }, extra: 2 };
    expect(toolResult("t", result)).toEqual(result);
    expect(toolResult("t", { content: [] })).toEqual({ content: [], isError: false });
  });

  it("anything else is structured content with its JSON as text", () => {
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
      [{ type: "text" }],
      [{ type: "text", text: "a" }, "b"],
      { type: "text", text: "a" },
      { content: "not an array" },
    ];
    for (const value of values) {
      const expected = { content: text(JSON.stringify(value)), structuredContent: value, isError: false };
      expect(toolResult("t", value)).toEqual(expected);
    }
  });

  it("an error is a result with `isError` and its message", () => {
    expect(toolResult("t", new RangeError("too far"))).toEqual({ content: text("too far"), isError: true });
    expect(toolResult("t", new RangeError())).toEqual({ content: text("RangeError"), isError: true });
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
    [{ a: [1n] }, "a value that cannot be sent: Do not know how to serialize a BigInt"],
    [circle, "a value that cannot be sent: Converting circular structure to JSON"],
    [[circle], "a value that cannot be sent: Converting circular structure to JSON"],
  ];

  it("a value that cannot be sent is an error that says why", async () => {
    const any = (value: unknown): { value: unknown } => ({ value });
    for (const [value, why] of odd) {
      const results = [toolResult("odd", value), await checkedToolResult("odd", value, any)];
      for (const result of results) {
        expect(result).toEqual({
          content: [{ type: "text", text: expect.stringMatching(/^Tool odd/) }],
          isError: true,
        });
        expect(result.content).toMatchObject([{ text: expect.stringContaining(`Tool odd returned ${why}`) }]);
      }
      const whole = toolResult("odd", { content: [], structuredContent: value });
      expect(whole.isError).toBe(true);
      expect(whole.content).toMatchObject([
        { text: expect.stringContaining(`returned, as structuredContent, ${why}`) },
      ]);
    }
  });

  it("values that JSON converts are sent as JSON converts them", () => {
    const day = new Date(0);
    expect(toolResult("t", day)).toEqual({
      content: text(JSON.stringify(day)),
      structuredContent: day,
      isError: false,
    });
    const deep = { map: new Map(), nan: Number.NaN, none: undefined };
    expect(toolResult("t", deep).content).toEqual(text('{"map":{},"nan":null}'));
  });
});

describe("the return value of a tool with an output schema", () => {
  const pass = (value: unknown): { value: unknown } => ({ value });
  const fail = (): { issues: string[] } => ({ issues: ["a: is required", "b: is wrong"] });

  it("is always structured content", async () => {
    for (const value of ["text", [{ type: "text", text: "a" }], { content: [] }, null, 1]) {
      expect(await checkedToolResult("t", value, pass)).toEqual({
        content: [{ type: "text", text: JSON.stringify(value) }],
        structuredContent: value,
        isError: false,
      });
    }
  });

  it("is the value that the check returns", async () => {
    const result = await checkedToolResult("t", { a: 1, b: 2 }, () => ({ value: { a: 1 } }));
    expect(result.structuredContent).toEqual({ a: 1 });
    expect(result.content).toEqual([{ type: "text", text: '{"a":1}' }]);
  });

  it("may be a whole result with structured content", async () => {
    const whole = { content: [{ type: "text", text: "see" }], structuredContent: { a: 1 }, _meta: { b: 2 } };
    expect(await checkedToolResult("t", whole, pass)).toEqual({ ...whole, isError: false });
    expect((await checkedToolResult("t", whole, fail)).isError).toBe(true);
    const linked = { ...whole, content: [{ type: "resource_link", uri: "x:y" }] };
    expect((await checkedToolResult("t", linked, pass)).content).toEqual([{ ...linked.content[0], name: "x:y" }]);
  });

  it("may be converted by the check into something that can be sent", async () => {
    const entries = (value: unknown): { value: unknown } => ({ value: [...(value as Map<string, number>)] });
    const result = await checkedToolResult("t", new Map([["a", 1]]), entries);
    expect(result).toMatchObject({ structuredContent: [["a", 1]], isError: false });
  });

  it("may be an error, whatever the schema", async () => {
    const expected = { content: [{ type: "text", text: "no" }], isError: true };
    expect(await checkedToolResult("t", new Error("no"), pass)).toEqual(expected);
    expect(await checkedToolResult("t", new Error("no"), fail)).toEqual(expected);
  });

  it("must not be undefined", async () => {
    const { content } = await checkedToolResult("t", undefined, pass);
    expect(content).toEqual([{ type: "text", text: "Tool t returned undefined, which cannot be sent" }]);
  });

  it("may be an error result that does not fit the schema", async () => {
    const failed = { content: [{ type: "text", text: "no" }], isError: true };
    expect(await checkedToolResult("t", failed, fail)).toEqual(failed);
  });

  it("is replaced by the issues if it does not fit", async () => {
    expect(await checkedToolResult("sum", {}, fail)).toEqual({
      content: [
        { type: "text", text: "The output of the tool sum does not fit its schema:\n- a: is required\n- b: is wrong" },
      ],
      isError: true,
    });
  });
});
