// A session that the server has forgotten: one handshake for all waiting requests, and the outcome for each.

import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { ConnectionError } from "../../core/errors.ts";
import { SessionLost } from "../../transport/transport.ts";
import { SessionRenewal } from "./handshake.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const forever = new AbortController().signal;

test("all requests that find the session lost wait for one handshake, and each is sent once more", async () => {
  let begun = 0;
  const renewal = new SessionRenewal(async () => {
    await Promise.resolve();
    begun += 1;
  }, forever);
  const work = async (): Promise<number> => {
    if (begun === 0) throw new SessionLost("gone");
    return begun;
  };
  expect(await Promise.all([renewal.run(work), renewal.run(work), renewal.run(work)])).toEqual([1, 1, 1]);
});

test("a request that learns late of the lost session does not begin a third one", async () => {
  let begun = 0;
  let late: (error: Error) => void = () => undefined;
  const renewal = new SessionRenewal(async () => void (begun += 1), forever);
  const slow = renewal.run(() =>
    begun === 0 ? new Promise<number>((_, reject) => (late = reject)) : Promise.resolve(begun),
  );
  await renewal.run(async () => {
    if (begun === 0) throw new SessionLost("gone");
  });
  late(new SessionLost("gone"));
  expect(await slow).toBe(1);
});

test("a request fails if the session is lost twice", async () => {
  const renewal = new SessionRenewal(async () => undefined, forever);
  const lost = new SessionLost("gone");
  await expect(renewal.run(() => Promise.reject(lost))).rejects.toBe(lost);
});

test("a failed handshake is retried by the next request, or with backoff if the transport reported the loss", async () => {
  let begun = 0;
  const begin = async (): Promise<void> => {
    begun += 1;
    if (begun < 3) throw new ConnectionError("refused", "not there");
  };
  const renewal = new SessionRenewal(begin, forever);
  renewal.lost();
  await expect(renewal.run(async () => "done")).rejects.toThrow("not there");
  await vi.runAllTimersAsync();
  expect(begun).toBe(3);
  expect(await renewal.run(async () => "done")).toBe("done");
  expect(begun).toBe(3);
});

test("no session is begun after the connection is closed", async () => {
  let begun = 0;
  const over = new AbortController();
  const renewal = new SessionRenewal(async () => {
    begun += 1;
    throw new ConnectionError("refused", "not there");
  }, over.signal);
  renewal.lost();
  over.abort(new ConnectionError("closed", "closed"));
  await vi.runAllTimersAsync();
  expect(begun).toBeLessThanOrEqual(1);
});

test("a request that is cancelled during the renewal does not wait for it, and was not sent", async () => {
  const renewal = new SessionRenewal(() => new Promise(() => undefined), forever);
  const lost = (): Promise<never> => Promise.reject(new SessionLost("gone"));
  const leaving = new AbortController();
  const outcomes = [renewal.run(lost, leaving), renewal.run(lost, leaving)];
  for (const outcome of outcomes) outcome.catch(() => undefined);
  await vi.advanceTimersByTimeAsync(0);
  leaving.abort(new Error("enough"));
  for (const outcome of outcomes) {
    await expect(outcome).rejects.toMatchObject({ kind: "cancelled", mayHaveRun: false, message: "Cancelled: enough" });
  }
});

test("a failed sign-in is not repeated without a request", async () => {
  let begun = 0;
  const renewal = new SessionRenewal(async () => {
    begun += 1;
    if (begun === 1) throw new ConnectionError("unauthorized", "who are you?");
  }, forever);
  renewal.lost();
  await vi.runAllTimersAsync();
  expect(begun).toBe(1);
  expect(await renewal.run(async () => "done")).toBe("done");
  expect(begun).toBe(2);
});
