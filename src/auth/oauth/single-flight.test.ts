// Work that is shared by its callers: started once, aborted when the last caller leaves, and not inherited by later ones.

import { expect, it } from "vitest";
import { SingleFlight } from "../../core/async.ts";

const controller = (): AbortController => new AbortController();

/** Work that ends when `end` is called. */
function work(): { run: (signal: AbortSignal) => Promise<void>; signals: AbortSignal[]; end: (error?: Error) => void } {
  const signals: AbortSignal[] = [];
  let end!: (error?: Error) => void;
  const run = (signal: AbortSignal): Promise<void> => {
    signals.push(signal);
    return new Promise((resolve, reject) => {
      end = (error) => (error === undefined ? resolve() : reject(error));
    });
  };
  return { run, signals, end: (error) => end(error) };
}

it("starts once, and all callers get the outcome", async () => {
  const flight = new SingleFlight();
  const { run, signals, end } = work();
  const all = [1, 2, 3].map(() => flight.join(controller().signal, run));
  expect(flight.isRunning).toBe(true);
  end();
  await Promise.all(all);
  expect(signals).toHaveLength(1);
  expect(flight.isRunning).toBe(false);
});

it("fails for all callers, and starts again for the next", async () => {
  const flight = new SingleFlight();
  const { run, signals, end } = work();
  const all = [1, 2].map(() => flight.join(controller().signal, run));
  end(new Error("no"));
  for (const one of await Promise.allSettled(all)) expect(one).toMatchObject({ reason: { message: "no" } });
  const next = flight.join(controller().signal, run);
  end();
  await next;
  expect(signals).toHaveLength(2);
});

it("is aborted when the last caller leaves, and not before", async () => {
  const flight = new SingleFlight();
  const { run, signals } = work();
  const [one, two] = [controller(), controller()];
  const first = flight.join(one.signal, run);
  const second = flight.join(two.signal, run);
  one.abort();
  await expect(first).rejects.toMatchObject({ kind: "cancelled", mayHaveRun: false });
  expect(signals[0]?.aborted).toBe(false);
  two.abort();
  await expect(second).rejects.toMatchObject({ kind: "cancelled" });
  expect(signals[0]?.aborted).toBe(true);
  expect(flight.isRunning).toBe(false);
});

it("does nothing for an aborted caller, or without work", async () => {
  const flight = new SingleFlight();
  const { run, signals } = work();
  await expect(flight.join(AbortSignal.abort(), run)).rejects.toMatchObject({ kind: "cancelled" });
  await flight.join(controller().signal);
  expect(signals).toEqual([]);
});
