// Smalltalk code on Amber that calls tools: the values it gets and sends, errors as exceptions, and an interrupt while
// the thread is blocked in a call.

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startCode, type RunningCode } from "../../../test/support/live/code-run.ts";
import { createCodeRunner } from "../code-mode.ts";
import { smalltalkLanguage } from "./index.ts";

describe("Smalltalk code on Amber that calls tools", () => {
  let code: RunningCode;

  beforeAll(async () => {
    code = await startCode(smalltalkLanguage(), { maxCalls: 10 });
  });
  afterAll(async () => code.close());

  it("Smalltalk code on Amber that calls tools gets structured content as a value, text as a string, and other content in a dictionary", async () => {
    expect(await code.text("Tools call: 'notes.add' with: #{'a' -> 1. 'b' -> 2}")).toBe("=> a Dictionary ('sum' -> 3)");
    expect(await code.text("(Tools notes add: #{'a' -> 1. 'b' -> 2}) at: 'sum'")).toBe("=> 3");
    expect(await code.text("Tools notes echo: (Dictionary new at: 'text' put: 'hi'; yourself)")).toBe("=> 'hi'");
    expect(await code.text("Tools notes said")).toBe("=> a Dictionary ('status' -> 'ok' , 'text' -> '=> 2')");
    expect(await code.text("(Tools notes everything) at: 'list'")).toMatch(/^=> an Array \(1 -2\.5 1e\+?21 /);
    const { content, structuredContent } = await code.run(`| picture |
      picture := Tools notes picture.
      Tools show: picture.
      Tools show: (picture at: 'content') second.
      { picture at: 'text'. (Tools contentOf: picture) size }`);
    const image = { type: "image", data: "AAAA", mimeType: "image/png" };
    expect(content).toMatchObject([{ text: "=> an Array ('A dot' 2)" }, { text: "A dot" }, image, image, {}]);
    expect(structuredContent.calls).toMatchObject([{ tool: "notes.picture" }]);
  });

  it("Smalltalk code on Amber that calls tools sends dictionaries, arrays, strings, numbers, booleans and nil", async () => {
    const sent = await code.text(
      "Tools notes given: #{'a' -> #(1 2.5 'x'). 'b' -> true. 'c' -> nil. 'd' -> #{'e' -> #sym}. 'f' -> (OrderedCollection with: 1)}",
    );
    expect(JSON.parse(sent.slice(4, -1))).toEqual({ a: [1, 2.5, "x"], b: true, c: null, d: { e: "sym" }, f: [1] });
    const paired = await code.text("Tools notes given: { 'a' -> 1. 'b' -> { 'c' -> {} } }");
    expect(JSON.parse(paired.slice(4, -1))).toEqual({ a: 1, b: { c: [] } });
    expect(await code.text("Tools notes given: #{'a' -> Object new}")).toContain("A Object cannot be sent to a tool");
    expect(await code.text("Tools notes given: 3")).toContain("The arguments of notes.given must be a Dictionary");
  });

  it("Smalltalk code on Amber that calls tools signals ToolError with the text of the tool, and an error for a tool that does not exist", async () => {
    expect(
      await code.text("[ Tools notes fail ] on: ToolError do: [ :e | { e messageText. e tool. e content size } ]"),
    ).toBe("=> an Array ('It is locked' 'notes.fail' 1)");
    const open = await code.text("Tools notes fail");
    expect(open).toMatch(/^\[ERROR\] ToolError\nIt is locked/);
    for (const args of ["3", "{}", "nil"])
      expect(await code.text(`Tools call: 'ehco' with: ${args}`)).toContain(
        "There is no tool ehco; did you mean notes.echo? If not, find it with Tools search: 'words'",
      );
    expect(await code.text("Tools call: 'notes.given' with: {}")).toContain("{}");
    expect(await code.text("Tools notes ehco: #{}")).toContain(
      "no tool notes.ehco; did you mean notes.echo? If not, find it with Tools search: 'words'",
    );
    expect(await code.text("Tools notes find_all: #{}")).toContain(
      "call a tool with such a name by Tools call: 'server.tool_name' with: aDictionary",
    );
  });

  it("Smalltalk code on Amber that calls tools lists and finds tools", async () => {
    expect(await code.text("Tools catalogue size")).toBe("=> 9");
    expect(await code.text("(Tools search: 'ech') first at: 'path'")).toBe("=> 'notes.echo'");
  });

  it("Smalltalk code on Amber that calls tools is interrupted while it waits for a call, with the state kept", async () => {
    expect(await code.text("kept := 7")).toContain("=> 7");
    const { content, structuredContent } = await code.run("[ Tools notes wait ] on: Error do: [ kept := 8 ]", {
      timeout: 2,
    });
    expect(content[0]?.text).toContain("[TIMEOUT]");
    expect(structuredContent.state).toBe("kept");
    await expect.poll(() => code.waits.cancelled).toBe(1);
    expect(await code.text("kept")).toBe("=> 7");
    const controller = new AbortController();
    const { signal } = controller;
    const cancelled = code.client.callTool("run-code", { code: "Tools notes wait" }, { signal });
    cancelled.catch(() => undefined);
    await code.begun(2);
    controller.abort();
    await expect(cancelled).rejects.toThrow();
    expect(await code.text("{ kept. Tools notes echo: #{'text' -> 'on'} }")).toBe("=> an Array (7 'on')");
    expect(code.waits.cancelled).toBe(2);
  });

  it("Smalltalk code on Amber that calls tools has an error for calls over the budget", async () => {
    const text = await code.text(
      "done := 0. [ [ true ] whileTrue: [ Tools notes echo: #{'text' -> 'x'}. done := done + 1 ] ] on: Error do: [ :e | { done. e messageText } ]",
    );
    expect(text).toMatch(/an Array \(10 .*maxCalls/);
    expect(await code.text("done")).toBe("=> 10");
  });
});

it("other engines cannot be used for code mode", () => {
  const tools = (): never => {
    throw new Error("Nothing is run");
  };
  for (const options of [{ command: "pharo", image: "/tmp/x.image" }, { attach: "http://127.0.0.1:8086" }]) {
    expect(() => createCodeRunner(smalltalkLanguage(options), { tools })).toThrow(/cannot call tools; use another/);
  }
});
