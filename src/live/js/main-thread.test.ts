// Stopping a main thread that neither answers nor pauses, with a fake inspector: no listeners leak.
// interruption.test.ts stops real threads.

import { EventEmitter } from "node:events";
import { afterEach, expect, it, vi } from "vitest";
import { MainThread } from "./main-thread.ts";

const counts: number[] = [];

vi.mock("node:inspector", () => ({
  Session: class extends EventEmitter {
    connectToMainThread(): void {}
    disconnect(): void {}
    post(): void {
      counts.push(this.listenerCount("Debugger.paused"));
    }
  },
}));
afterEach(() => vi.useRealTimers());

it("adds one listener, however often it tries", async () => {
  vi.useFakeTimers();
  const stopped = new MainThread(() => undefined).stop(1, () => false);
  await vi.advanceTimersByTimeAsync(60_000);
  expect(await stopped).toBeUndefined();
  expect(counts.length).toBeGreaterThan(20);
  expect(new Set(counts)).toEqual(new Set([1]));
});
