// kill -9 of upstreams at fifty random moments, with callers of both styles: on an upstream that speaks both, and on three
// merged upstreams. `npm run faults` does the same at a thousand moments.

import { randomInt } from "node:crypto";
import { describe, expect, it } from "vitest";
import { canListProcesses } from "../support/processes.ts";
import { runTrial, TRIALS } from "./kill-trial.ts";

const KILLS = 25;

describe.runIf(canListProcesses)("kill -9 of an upstream at any moment", { timeout: 600_000 }, () => {
  it.each([TRIALS[0]!, TRIALS.at(-1)!])(
    "kill -9 of an upstream at any moment loses, repeats and mixes up no call: $title",
    async (trial) => {
      const seed = randomInt(2 ** 31);
      const { faults, kills, results, errors, errorDelays } = await runTrial(trial, KILLS, seed);
      // Printed and not checked, because other tests use the machine too.
      console.warn(
        `${errorDelays.length} calls were hit; the longest error delay was ${(errorDelays.at(-1) ?? 0).toFixed(0)} ms`,
      );
      expect({ seed, faults }).toEqual({ seed, faults: [] });
      expect(kills).toBe(KILLS);
      // Without both results and errors the test would show nothing.
      expect([results > 0, errors > 0]).toEqual([true, true]);
    },
  );
});
