// What a session of Amber holds between evaluations.

import { setImmediate as turn } from "node:timers/promises";
import { expect, it } from "vitest";
import { collectGarbage } from "../js/inspector.ts";
import { createEvaluator } from "./amber-guest.ts";

const LIMITS = { printLength: 10, printDepth: 3, outputChars: 10_000 };

/** A weak reference holds its target until the turn of the event loop ends. */
async function dropUnheld(): Promise<void> {
  await turn();
  collectGarbage();
}

it("holds a large result until the next evaluation, so that it can be inspected", async () => {
  const amber = await createEvaluator();
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
