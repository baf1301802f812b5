// A session that the end has forgotten: one handshake for all who wait, and what each of them gets.

import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { ConnectionError } from "../../core/errors.ts";
import { SessionLost } from "../../transport/transport.ts";
import { SessionRenewal } from "./handshake.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const forever = new AbortController().signal;

test("all that find the session lost wait for one handshake, and each is done once more", async () => {
  let begun = 0;
  const renewal = new SessionRenewal(async () => {
    await Promise.resolve();
    begun += 1;
  }, forever);
  const work = async (): Promise<number> => {
    if (begun === 0) throw new SessionLost("gone");
    return begun;
  };
  expect(await Promise.all([renewal.within(work), renewal.within(work), renewal.within(work)])).toEqual([1, 1, 1]);
});

test("who finds out late that the session before was lost does not begin a third", async () => {
  let begun = 0;
  let late: (error: Error) => void = () => undefined;
  const renewal = new SessionRenewal(async () => void (begun += 1), forever);
  const slow = renewal.within(() =>
    begun === 0 ? new Promise<number>((_, reject) => (late = reject)) : Promise.resolve(begun),
  );
  await renewal.within(async () => {
    if (begun === 0) throw new SessionLost("gone");
  });
  late(new SessionLost("gone"));
  expect(await slow).toBe(1);
});

test("a session that is lost twice in one request is an error", async () => {
  const renewal = new SessionRenewal(async () => undefined, forever);
  const lost = new SessionLost("gone");
  await expect(renewal.within(() => Promise.reject(lost))).rejects.toBe(lost);
});

test("a handshake that fails is tried again by the next request, and by itself where the end said so", async () => {
  let begun = 0;
  const begin = async (): Promise<void> => {
    begun += 1;
    if (begun < 3) throw new ConnectionError("refused", "not there");
  };
  const renewal = new SessionRenewal(begin, forever);
  renewal.lost();
  await expect(renewal.within(async () => "done")).rejects.toThrow("not there");
  await vi.runAllTimersAsync();
  expect(begun).toBe(3);
  expect(await renewal.within(async () => "done")).toBe("done");
  expect(begun).toBe(3);
});

test("nothing is begun when nobody needs it any more", async () => {
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

test("who goes while a session is begun anew does not wait for it, and has sent nothing", async () => {
  const renewal = new SessionRenewal(() => new Promise(() => undefined), forever);
  const lost = (): Promise<never> => Promise.reject(new SessionLost("gone"));
  const leaving = new AbortController();
  const outcomes = [renewal.within(lost, leaving), renewal.within(lost, leaving)];
  for (const outcome of outcomes) outcome.catch(() => undefined);
  await vi.advanceTimersByTimeAsync(0);
  leaving.abort(new Error("enough"));
  for (const outcome of outcomes) {
    await expect(outcome).rejects.toMatchObject({ kind: "cancelled", mayHaveRun: false, message: "Cancelled: enough" });
  }
});

test("nobody is asked again and again to sign in where nobody has called anything", async () => {
  let begun = 0;
  const renewal = new SessionRenewal(async () => {
    begun += 1;
    if (begun === 1) throw new ConnectionError("unauthorized", "who are you?");
  }, forever);
  renewal.lost();
  await vi.runAllTimersAsync();
  expect(begun).toBe(1);
  expect(await renewal.within(async () => "done")).toBe("done");
  expect(begun).toBe(2);
});
