// What is known of a tool when the list changes while it is read, or never has the tool.

import { expect, it } from "vitest";
import type { Context, Handler } from "../core/handler.ts";
import { ToolFacts } from "./facts.ts";

const context = { signal: new AbortController().signal } as Context;
const page = { tools: [{ name: "hold", execution: { taskSupport: "optional" } }] };

function counted(answer: (reads: number) => void): { handler: Handler; reads: () => number } {
  let reads = 0;
  const handler: Handler = async () => {
    reads += 1;
    await new Promise(setImmediate);
    answer(reads);
    return page;
  };
  return { handler, reads: () => reads };
}

it("reads the list again if it changed meanwhile", async () => {
  const facts = new ToolFacts();
  const { handler, reads } = counted((count) => {
    if (count < 3) facts.forget();
  });
  expect(await facts.find("hold", handler, context)).toMatchObject({ taskSupport: "optional" });
  expect(reads()).toBe(3);
});

it("gives up on a list that never stops changing", async () => {
  const facts = new ToolFacts();
  const { handler, reads } = counted(() => facts.forget());
  expect(await facts.find("hold", handler, context)).toBeUndefined();
  expect(reads()).toBe(5);
});

it("reads the list once for an unknown tool", async () => {
  const facts = new ToolFacts();
  const { handler, reads } = counted(() => undefined);
  expect(await facts.find("none", handler, context)).toBeUndefined();
  expect(await facts.find("none", handler, context)).toBeUndefined();
  expect(reads()).toBe(1);
});
