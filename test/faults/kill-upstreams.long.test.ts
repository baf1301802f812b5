// kill -9 of ends at fifty random moments, as `npm run faults` does it at a thousand: with callers of both styles at an
// end that speaks both, and at three ends merged.

import { randomInt } from "node:crypto";
import { describe, expect, it } from "vitest";
import { canListProcesses } from "../support/processes.ts";
import { tryOut, TRIALS } from "./kill-trial.ts";

const KILLS = 25;

describe.runIf(canListProcesses)("kill -9 of an end at any moment", { timeout: 120_000 }, () => {
  it.each([TRIALS[0]!, TRIALS.at(-1)!])("breaks no promise: $title", async (trial) => {
    const seed = randomInt(2 ** 31);
    const { faults, kills, results, errors, struck } = await tryOut(trial, KILLS, seed);
    // Told and not judged: how long it takes is for the command, which has the machine to itself.
    console.warn(`${struck.length} calls were hit; the last was told after ${(struck.at(-1) ?? 0).toFixed(0)} ms`);
    expect({ seed, faults }).toEqual({ seed, faults: [] });
    expect(kills).toBe(KILLS);
    // Some calls were spared and some were hit, or nothing has been shown.
    expect([results > 0, errors > 0]).toEqual([true, true]);
  });
});
