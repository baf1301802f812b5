// Questions without an answer: their keys, what counts as an answer, and how they come to their end.

import { describe, expect, it, vi } from "vitest";
import type { Request } from "../core/handler.ts";
import { OpenQuestions } from "./open-questions.ts";

const ROOTS: Request = { method: "roots/list", params: {} };
const FORM: Request = { method: "elicitation/create", params: { message: "?" } };

describe("open questions", () => {
  it("are shown by keys that are used once, and gone when they are answered", async () => {
    const changed = vi.fn();
    const questions = new OpenQuestions(changed);
    expect(questions.requests).toBeUndefined();
    const first = questions.ask(ROOTS);
    const named = questions.ask(FORM, { key: "name" });
    expect(questions.requests).toEqual({ 1: ROOTS, name: FORM });
    questions.answer({ 1: { roots: [] }, other: {} });
    expect(await first).toEqual({ roots: [] });
    expect(questions.requests).toEqual({ name: FORM });
    questions.answer({ name: { action: "decline" } });
    expect(await named).toEqual({ action: "decline" });
    expect(changed).toHaveBeenCalledTimes(4);
    void questions.ask(FORM, { key: "name" }).catch(() => undefined);
    void questions.ask(ROOTS).catch(() => undefined);
    expect(Object.keys(questions.requests ?? {})).toEqual(["4", "name4"]);
    questions.drop(new Error("over"));
  });

  it.each([5, null, "x", [], { action: "perhaps" }])("take no answer like %j, nor any that came with it", (answer) => {
    const questions = new OpenQuestions(() => undefined);
    void questions.ask(ROOTS).catch(() => undefined);
    void questions.ask(FORM, { key: "name" }).catch(() => undefined);
    expect(() => questions.answer({ 1: { roots: [] }, name: answer })).toThrow();
    expect(questions.size).toBe(2);
    questions.drop(new Error("over"));
  });

  it("end with their signals, with all of them, or before they began", async () => {
    const changed = vi.fn();
    const questions = new OpenQuestions(changed);
    const stop = new AbortController();
    const aborted = questions.ask(ROOTS, { signal: stop.signal });
    const dropped = questions.ask(ROOTS);
    stop.abort(new Error("enough"));
    await expect(aborted).rejects.toThrow("enough");
    expect(changed).toHaveBeenCalledTimes(3);
    questions.drop(new Error("over"));
    await expect(dropped).rejects.toThrow("over");
    await expect(questions.ask(ROOTS, { signal: stop.signal })).rejects.toThrow("enough");
    const endless: Record<string, unknown> = {};
    endless["itself"] = endless;
    await expect(questions.ask({ method: "roots/list", params: endless })).rejects.toThrow(TypeError);
    expect(questions.size).toBe(0);
  });
});
