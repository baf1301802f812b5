// What becomes of what a tool returns, value by value, with and without a declared output.
// Whole calls are in tools.test.ts.

import { describe, expect, it } from "vitest";
import { declaredResult, toolResult } from "./tool-result.ts";

describe("what a tool returns", () => {
  const text = (value: string): object[] => [{ type: "text", text: value }];

  it("a string is one text block", () => {
    expect(toolResult("hi")).toEqual({ content: text("hi"), isError: false });
    expect(toolResult("")).toEqual({ content: text(""), isError: false });
  });

  it("undefined is empty content", () => {
    expect(toolResult(undefined)).toEqual({ content: [], isError: false });
  });

  it("an array of content blocks is content", () => {
    const blocks = [
      { type: "text", text: "a", annotations: { priority: 1 } },
      { type: "image", data: "aGk=", mimeType: "image/png" },
      { type: "audio", data: "aGk=", mimeType: "audio/wav" },
      { type: "resource", resource: { uri: "x:y", text: "z" } },
      { type: "resource_link", uri: "x:y", name: "y" },
    ];
    expect(toolResult(blocks)).toEqual({ content: blocks, isError: false });
    for (const block of blocks) expect(toolResult([block])).toEqual({ content: [block], isError: false });
  });

  it("a link without a name has its address as its name", () => {
    const link = { type: "resource_link", uri: "x:y", title: "Y" };
    const named = { ...link, name: "x:y" };
    const content = [{ type: "text", text: "see" }, link, { ...link, name: "y" }];
    const whole = [content[0], named, content[2]];
    expect(toolResult(content)).toEqual({ content: whole, isError: false });
    expect(toolResult({ content, extra: 1 })).toEqual({ content: whole, extra: 1, isError: false });
    expect(link).not.toHaveProperty("name");
    const odd = [null, "text", { type: "resource_link" }];
    expect(toolResult({ content: odd })).toEqual({ content: odd, isError: false });
  });

  it("an object with a content array is the result itself", () => {
    const result = { content: text("no"), isError: true, _meta: { a: 1 }, extra: 2 };
    expect(toolResult(result)).toEqual(result);
    expect(toolResult({ content: [] })).toEqual({ content: [], isError: false });
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
      expect(toolResult(value)).toEqual(expected);
    }
  });

  it("what JSON has no word for is null, and what it cannot hold is an error", () => {
    expect(toolResult(() => 1)).toEqual({ content: text("null"), structuredContent: null, isError: false });
    expect(toolResult(Number.NaN)).toEqual({ content: text("null"), structuredContent: null, isError: false });
    expect(() => toolResult(1n)).toThrow(TypeError);
  });
});

describe("what a tool with a declared output returns", () => {
  const pass = (value: unknown): { value: unknown } => ({ value });
  const fail = (): { issues: string[] } => ({ issues: ["a: is required", "b: is wrong"] });

  it("is always structured", async () => {
    for (const value of ["text", [{ type: "text", text: "a" }], { content: [] }, null, 1]) {
      expect(await declaredResult("t", value, pass)).toEqual({
        content: [{ type: "text", text: JSON.stringify(value) }],
        structuredContent: value,
        isError: false,
      });
    }
  });

  it("is the value as the check leaves it", async () => {
    const result = await declaredResult("t", { a: 1, b: 2 }, () => ({ value: { a: 1 } }));
    expect(result.structuredContent).toEqual({ a: 1 });
    expect(result.content).toEqual([{ type: "text", text: '{"a":1}' }]);
  });

  it("may be a whole result that brings its structured content", async () => {
    const whole = { content: [{ type: "text", text: "see" }], structuredContent: { a: 1 }, _meta: { b: 2 } };
    expect(await declaredResult("t", whole, pass)).toEqual({ ...whole, isError: false });
    expect((await declaredResult("t", whole, fail)).isError).toBe(true);
    const linked = { ...whole, content: [{ type: "resource_link", uri: "x:y" }] };
    expect((await declaredResult("t", linked, pass)).content).toEqual([{ ...linked.content[0], name: "x:y" }]);
  });

  it("may fail without fitting", async () => {
    const failed = { content: [{ type: "text", text: "no" }], isError: true };
    expect(await declaredResult("t", failed, fail)).toEqual(failed);
  });

  it("says what did not fit", async () => {
    expect(await declaredResult("sum", {}, fail)).toEqual({
      content: [
        { type: "text", text: "The output of the tool sum does not fit its schema:\n- a: is required\n- b: is wrong" },
      ],
      isError: true,
    });
  });
});
