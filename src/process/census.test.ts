// Times are compared tick by tick: one that is read a tick too early makes a member of a family look like a stranger.

import { expect, it } from "vitest";
import { ticksIn } from "./census.ts";

it("reads every tick of an uptime as it is", () => {
  const wrong: string[] = [];
  for (let ticks = 912_000; ticks < 922_000; ticks += 1) {
    const text = `${Math.trunc(ticks / 100)}.${String(ticks % 100).padStart(2, "0")} 17000.01\n`;
    if (ticksIn(text) !== ticks) wrong.push(text);
  }
  expect(wrong).toEqual([]);
});
