// A task that asks its caller, and one that is cancelled.

import { describe, expect, it, vi } from "vitest";
import { desk } from "../../test/support/desk.ts";
import { gate, get, idOf, KNOWS, knowing, QUESTION, type Run, serverOf, when } from "../../test/support/task-desk.ts";
import type { Result } from "../core/handler.ts";
import { McpError } from "../protocol/errors.ts";
import { inputRequired } from "./index.ts";

describe("a task that asks", () => {
  const both: Run = async (_args, { ask }) => {
    const answers = await Promise.all([ask.elicit(QUESTION, { key: "a" }), ask.elicit(QUESTION, { key: "b" })]);
    return answers.map(({ action }) => action).join();
  };

  it("takes answers one by one, and ignores those to what it does not ask", async () => {
    const caller = knowing(serverOf(both));
    const id = await idOf(caller);
    await vi.waitFor(async () => {
      expect(Object.keys(Object((await get(caller, id))["inputRequests"]))).toEqual(["a", "b"]);
    });
    const update = (inputResponses: object): Promise<Result> =>
      caller.call("tasks/update", { taskId: id, inputResponses });
    const acknowledged = await update({ a: { action: "accept" }, unheard: 5, toString: {}, __proto__: {} });
    expect(Object.keys(acknowledged).toSorted()).toEqual(["_meta", "resultType"]);
    expect(await get(caller, id)).toMatchObject({ status: "input_required", inputRequests: { b: {} } });
    expect(Object.keys((await get(caller, id))["inputRequests"] as object)).toEqual(["b"]);
    // Answered already: not taken again.
    await update({ a: { action: "cancel" }, b: { action: "decline" } });
    expect(await when(caller, id, "completed")).toMatchObject({ result: { content: [{ text: "accept,decline" }] } });
    expect(await update({ a: { action: "accept" } })).toMatchObject({ resultType: "complete" });
  });

  it("refuses what is no answer, and takes nothing of such an update", async () => {
    const caller = knowing(serverOf(both));
    const id = await idOf(caller);
    await when(caller, id, "input_required");
    for (const junk of [5, null, "x", [], { action: "perhaps" }, {}]) {
      const inputResponses = { a: { action: "accept" }, b: junk };
      expect(await caller.refused("tasks/update", { taskId: id, inputResponses })).toMatchObject({ code: -32602 });
    }
    for (const inputResponses of [undefined, null, [], "x"]) {
      expect(await caller.refused("tasks/update", { taskId: id, inputResponses })).toMatchObject({ code: -32602 });
    }
    expect(Object.keys((await get(caller, id))["inputRequests"] as object)).toEqual(["a", "b"]);
  });

  it("never uses a key for a second question", async () => {
    const keys: string[] = [];
    const caller = knowing(
      serverOf(async (_args, { ask }) => {
        for (let n = 0; n < 3; n += 1) await ask.elicit(QUESTION, { key: "again" });
        await ask.elicit(QUESTION);
        return "done";
      }),
    );
    const id = await idOf(caller);
    for (let n = 0; n < 4; n += 1) {
      const { inputRequests } = await when(caller, id, "input_required");
      const [key = ""] = Object.keys(inputRequests as object);
      keys.push(key);
      await caller.call("tasks/update", { taskId: id, inputResponses: { [key]: { action: "accept" } } });
      await vi.waitFor(async () => {
        const { inputRequests: now } = await get(caller, id);
        expect(Object.keys(Object(now))).not.toContain(key);
      });
    }
    expect(new Set(keys).size).toBe(4);
    await when(caller, id, "completed");
  });

  it("may return its questions, to be run again with the answers", async () => {
    const run: Run = (_args, { answers, state }) => {
      const seen = Number(state ?? 0);
      if (seen === 2) return JSON.stringify(answers);
      return inputRequired({ who: { method: "elicitation/create", params: QUESTION } }, seen + 1);
    };
    const caller = knowing(serverOf(run));
    const id = await idOf(caller);
    for (const action of ["accept", "decline"]) {
      const { inputRequests } = await when(caller, id, "input_required");
      const [key = ""] = Object.keys(inputRequests as object);
      await caller.call("tasks/update", { taskId: id, inputResponses: { [key]: { action } } });
    }
    expect(await when(caller, id, "completed")).toMatchObject({
      result: { content: [{ text: '{"who":{"action":"decline"}}' }] },
    });
  });

  it("fails where its caller cannot answer such a question", async () => {
    const caller = desk(
      serverOf(() => inputRequired({ a: { method: "roots/list" } })),
      { caller: { capabilities: KNOWS } },
    );
    expect(await when(caller, await idOf(caller), "failed")).toMatchObject({ error: { code: -32021 } });
  });

  it("works on when it takes its question back", async () => {
    const { run, open } = gate();
    const caller = knowing(
      serverOf(async (args, context) => {
        const stop = new AbortController();
        const asked = context.ask.elicit(QUESTION, { signal: stop.signal }).catch(() => undefined);
        await vi.waitFor(() => expect(asking).toBe(true));
        stop.abort(new Error("never mind"));
        await asked;
        return run(args, context);
      }),
    );
    let asking = false;
    const id = await idOf(caller);
    await when(caller, id, "input_required");
    asking = true;
    expect(await when(caller, id, "working")).not.toHaveProperty("inputRequests");
    open();
    await when(caller, id, "completed");
  });
});

describe("a task that is cancelled", () => {
  it("ends its tool, stays cancelled, and is acknowledged each time", async () => {
    const { run, open, signals } = gate(true);
    const caller = knowing(serverOf(run));
    const id = await idOf(caller);
    const acknowledged = await caller.call("tasks/cancel", { taskId: id });
    expect(Object.keys(acknowledged).toSorted()).toEqual(["_meta", "resultType"]);
    expect(signals[0]?.aborted).toBe(true);
    const state = await get(caller, id);
    expect(state).toMatchObject({ status: "cancelled", statusMessage: expect.stringContaining("cancelled") });
    // A tool that is deaf to its signal changes nothing more.
    open();
    await new Promise((resolve) => setImmediate(resolve));
    expect(await caller.call("tasks/cancel", { taskId: id })).toEqual(acknowledged);
    expect(await get(caller, id)).toEqual(state);
  });

  it("lets go of what it asks", async () => {
    const rejected: unknown[] = [];
    const caller = knowing(
      serverOf((_args, { ask }) => ask.elicit(QUESTION).catch((error: unknown) => void rejected.push(error))),
    );
    const id = await idOf(caller);
    await when(caller, id, "input_required");
    await caller.call("tasks/cancel", { taskId: id });
    expect(await get(caller, id)).not.toHaveProperty("inputRequests");
    await vi.waitFor(() => expect(rejected).toHaveLength(1));
    await caller.call("tasks/update", { taskId: id, inputResponses: { 1: { action: "accept" } } });
    expect(await get(caller, id)).toMatchObject({ status: "cancelled" });
  });

  it("stays completed where it was over before", async () => {
    const caller = knowing(serverOf(() => "done"));
    const id = await idOf(caller);
    const state = await when(caller, id, "completed");
    expect(await caller.call("tasks/cancel", { taskId: id })).toMatchObject({ resultType: "complete" });
    expect(await get(caller, id)).toEqual(state);
  });
});

describe("a task whose tool gives what cannot be shown", () => {
  class Biting extends McpError {
    override toBody(): never {
      throw new Error("bite");
    }
  }
  const runs: readonly (readonly [name: string, run: Run])[] = [
    ["a result with a BigInt in it", () => ({ content: [{ type: "text", text: "x", _meta: { n: 1n } }] })],
    ["an error that bites", () => Promise.reject(new Biting(-1, "x"))],
    ["an error with a BigInt in it", () => Promise.reject(new McpError(-1, "x", { n: 1n }))],
  ];

  it.each(runs)("has failed: %s", async (_name, run) => {
    const caller = knowing(serverOf(run));
    const state = await when(caller, await idOf(caller), "failed");
    expect(JSON.parse(JSON.stringify(state))).toMatchObject({ status: "failed", error: { code: -32603 } });
  });

  it("cannot ask what has no JSON, and goes on", async () => {
    const question = { method: "roots/list", params: { _meta: { n: 1n } } };
    const caller = knowing(serverOf(async (_args, { ask }) => ask(question).catch(() => "not asked")));
    expect(await when(caller, await idOf(caller), "completed")).toMatchObject({
      result: { content: [{ text: "not asked" }] },
    });
  });
});
