// What a session of Amber holds between evaluations.

import { setImmediate as turn } from "node:timers/promises";
import { expect, it } from "vitest";
import { collectGarbage } from "../js/profiles.ts";
import { createEvaluator } from "./amber-guest.ts";

const LIMITS = { printLength: 10, printDepth: 3, outputChars: 10_000 };

/** A weak reference holds its target until the turn of the event loop ends. */
async function dropUnheld(): Promise<void> {
  await turn();
  collectGarbage();
}

// Amber can be loaded once in a process.
const amber = await createEvaluator();

it("holds a large result until the next evaluation, so that it can be inspected", async () => {
  const inspected = async (handle: number): Promise<unknown> => amber.perform("inspect", { handle }, LIMITS);
  expect(await amber.perform("eval", { code: "Array new: 100000" }, LIMITS)).toMatchObject({ handles: [1] });
  await dropUnheld();
  expect(await inspected(1)).toMatchObject({ text: expect.stringContaining("100000 parts") as string });
  await amber.perform("eval", { code: "3" }, LIMITS);
  await dropUnheld();
  expect(await inspected(1)).toMatchObject({
    text: expect.stringContaining("The value of handle 1 was dropped") as string,
  });
});

it("takes class definitions as Pharo writes them", async () => {
  const evaluate = async (code: string): Promise<unknown> => amber.perform("eval", { code }, LIMITS);
  const definitions = [
    "Object subclass: #One instanceVariableNames: 'a' classVariableNames: '' package: 'P'",
    "Object subclass: #One instanceVariableNames: 'a' classVariableNames: '' category: 'P'",
    "Object subclass: #One slots: { #a } classVariables: #() package: 'P'",
    "Object << #One slots: { #a }; tag: 'T'; package: 'P'",
  ];
  for (const [at, code] of definitions.entries()) {
    expect(await evaluate(code)).toMatchObject({
      values: ["One"],
      ...(at === 0 && { defined: [{ type: "class", name: "One" }] }),
    });
    expect(await evaluate("{ One superclass name. One instanceVariableNames first. One category }")).toMatchObject({
      values: ["an Array ('Object' 'a' 'P')"],
    });
  }
  const shared = "Object subclass: #Two instanceVariableNames: '' classVariableNames: 'B' package: 'P'";
  expect(await evaluate(shared)).toMatchObject({
    condition: { message: expect.stringContaining("Amber has no class variables") as string },
  });
});

it("says what its tools have defined", async () => {
  expect(await amber.perform("define-class", { name: "Three" }, LIMITS)).toMatchObject({
    defined: [{ type: "class", name: "Three" }],
  });
  expect(await amber.perform("compile-method", { class: "Three", source: "twice\n\t^ 2" }, LIMITS)).toMatchObject({
    defined: [{ type: "method", name: "Three >> #twice" }],
  });
});
