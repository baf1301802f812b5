// Waiting under a signal: the promise, the signal, whichever comes first, and nothing left behind.

import { expect, it } from "vitest";
import { unlessAborted } from "./unless-aborted.ts";

it("gives what the promise gives, and its failure", async () => {
  const { signal } = new AbortController();
  expect(await unlessAborted(signal, Promise.resolve(1))).toBe(1);
  await expect(unlessAborted(signal, Promise.reject(new Error("no")))).rejects.toThrow("no");
});

it("waits no longer than the signal allows", async () => {
  const stop = new AbortController();
  const waiting = unlessAborted(stop.signal, new Promise(() => undefined));
  stop.abort(new Error("enough"));
  await expect(waiting).rejects.toThrow("enough");
  await expect(unlessAborted(stop.signal, Promise.resolve(1))).rejects.toThrow("enough");
});
