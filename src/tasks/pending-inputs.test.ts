// The requests that a task waits for: their keys, their answers, and when they are withdrawn.

import { expect, it, vi } from "vitest";
import type { Request } from "../core/handler.ts";
import { PendingInputs } from "./pending-inputs.ts";

const ROOTS_REQUEST: Request = { method: "roots/list", params: {} };
const FORM_REQUEST: Request = { method: "elicitation/create", params: { message: "?" } };

it("PendingInputs has keys that are never reused, and drops answered requests", async () => {
  const onChange = vi.fn();
  const inputs = new PendingInputs(onChange);
  expect(inputs.requests).toBeUndefined();
  const first = inputs.ask(ROOTS_REQUEST);
  const named = inputs.ask(FORM_REQUEST, { key: "name" });
  expect(inputs.requests).toEqual({ 1: ROOTS_REQUEST, name: FORM_REQUEST });
  inputs.answer({ 1: { roots: [] }, other: {} });
  expect(await first).toEqual({ roots: [] });
  expect(inputs.requests).toEqual({ name: FORM_REQUEST });
  inputs.answer({ name: { action: "decline" } });
  expect(await named).toEqual({ action: "decline" });
  expect(onChange).toHaveBeenCalledTimes(4);
  void inputs.ask(FORM_REQUEST, { key: "name" }).catch(() => undefined);
  void inputs.ask(ROOTS_REQUEST).catch(() => undefined);
  expect(Object.keys(inputs.requests ?? {})).toEqual(["4", "name4"]);
  inputs.drop(new Error("over"));
});

it.each([5, null, "x", [], { action: "perhaps" }])(
  "PendingInputs refuses a result such as %j, and all others with it",
  (answer) => {
    const inputs = new PendingInputs(() => undefined);
    void inputs.ask(ROOTS_REQUEST).catch(() => undefined);
    void inputs.ask(FORM_REQUEST, { key: "name" }).catch(() => undefined);
    expect(() => inputs.answer({ 1: { roots: [] }, name: answer })).toThrow();
    expect(inputs.size).toBe(2);
    inputs.drop(new Error("over"));
  },
);

it("PendingInputs rejects a request when its signal is aborted, before or after it starts, or when all are dropped", async () => {
  const onChange = vi.fn();
  const inputs = new PendingInputs(onChange);
  const stop = new AbortController();
  const aborted = inputs.ask(ROOTS_REQUEST, { signal: stop.signal });
  const dropped = inputs.ask(ROOTS_REQUEST);
  stop.abort(new Error("enough"));
  await expect(aborted).rejects.toThrow("enough");
  expect(onChange).toHaveBeenCalledTimes(3);
  inputs.drop(new Error("over"));
  await expect(dropped).rejects.toThrow("over");
  await expect(inputs.ask(ROOTS_REQUEST, { signal: stop.signal })).rejects.toThrow("enough");
  const endless: Record<string, unknown> = {};
  endless["itself"] = endless;
  await expect(inputs.ask({ method: "roots/list", params: endless })).rejects.toThrow(TypeError);
  expect(inputs.size).toBe(0);
});
