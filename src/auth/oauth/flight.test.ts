// One piece of work for all who wait: begun once, given up when the last has gone, and never inherited by who comes after.

import { expect, it } from "vitest";
import { Flight } from "./flight.ts";

const here = (): AbortController => new AbortController();

/** Work that ends when it is told to. */
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

it("begins once, and all get the outcome", async () => {
  const flight = new Flight();
  const { run, signals, end } = work();
  const all = [1, 2, 3].map(() => flight.join(here().signal, run));
  expect(flight.isUnderWay).toBe(true);
  end();
  await Promise.all(all);
  expect(signals).toHaveLength(1);
  expect(flight.isUnderWay).toBe(false);
});

it("fails for all who wait, and begins anew for the next", async () => {
  const flight = new Flight();
  const { run, signals, end } = work();
  const all = [1, 2].map(() => flight.join(here().signal, run));
  end(new Error("no"));
  for (const one of await Promise.allSettled(all)) expect(one).toMatchObject({ reason: { message: "no" } });
  const next = flight.join(here().signal, run);
  end();
  await next;
  expect(signals).toHaveLength(2);
});

it("is given up when the last has gone, and not before", async () => {
  const flight = new Flight();
  const { run, signals } = work();
  const [one, two] = [here(), here()];
  const first = flight.join(one.signal, run);
  const second = flight.join(two.signal, run);
  one.abort();
  await expect(first).rejects.toMatchObject({ kind: "cancelled", mayHaveRun: false });
  expect(signals[0]?.aborted).toBe(false);
  two.abort();
  await expect(second).rejects.toMatchObject({ kind: "cancelled" });
  expect(signals[0]?.aborted).toBe(true);
  expect(flight.isUnderWay).toBe(false);
});

it("does nothing for who is gone already, or for who has nothing to begin", async () => {
  const flight = new Flight();
  const { run, signals } = work();
  await expect(flight.join(AbortSignal.abort(), run)).rejects.toMatchObject({ kind: "cancelled" });
  await flight.join(here().signal);
  expect(signals).toEqual([]);
});
