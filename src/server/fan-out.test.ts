// One word to many: all hear it once, several words are heard in their order, and others get a turn in between.

import { expect, it } from "vitest";
import { FanOut } from "./subscriptions.ts";

const many = Array.from({ length: 1_000 }, (_, index) => index);

async function until(isDone: () => boolean): Promise<number> {
  let turns = 0;
  for (; !isDone(); turns += 1) await new Promise((resolve) => setImmediate(resolve));
  return turns;
}

it("reaches a few at once", () => {
  const fanOut = new FanOut<number>();
  const heard: number[] = [];
  fanOut.say([1, 2, 3], (hearer) => heard.push(hearer));
  fanOut.say([1], (hearer) => heard.push(hearer + 10));
  expect(heard).toEqual([1, 2, 3, 11]);
});

it("reaches each of many once, and lets others have a turn", async () => {
  const fanOut = new FanOut<number>();
  const heard: number[] = [];
  fanOut.say(many, (hearer) => heard.push(hearer));
  expect(heard.length).toBeLessThan(100);
  expect(await until(() => heard.length === many.length)).toBeGreaterThan(5);
  expect(heard).toEqual(many);
});

it("keeps the order of words for each, also of those that are said on the way", async () => {
  const fanOut = new FanOut<number>();
  const heard = new Map<number, string[]>(many.map((hearer) => [hearer, []]));
  const say = (word: string): void => fanOut.say(many, (hearer) => heard.get(hearer)?.push(word));
  say("one");
  say("two");
  await until(() => (heard.get(500)?.length ?? 0) > 0);
  say("three");
  await until(() => heard.get(999)?.length === 3);
  expect([...heard.values()].every((words) => words.join() === "one,two,three")).toBe(true);
});

it("is not stopped by one that cannot be told", () => {
  const fanOut = new FanOut<number>();
  const heard: number[] = [];
  fanOut.say([1, 2, 3], (hearer) => {
    if (hearer === 2) throw new Error("gone");
    heard.push(hearer);
  });
  expect(heard).toEqual([1, 3]);
});
