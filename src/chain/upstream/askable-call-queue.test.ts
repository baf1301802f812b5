// Calls that run one after the other: in the order of arrival, also if one gives up, or waits long for its caller.

import { afterEach, expect, it, vi } from "vitest";
import { eventually } from "../../../test/support/waiting.ts";
import { AskableCallQueue, SESSION_BUSY } from "./client-requests.ts";

const signal = new AbortController().signal;

/** Work that ends when the test says so. */
function work(): { run: () => Promise<string>; end: () => void; readonly begun: boolean } {
  let end = (): void => undefined;
  const over = new Promise<string>((resolve) => {
    end = () => resolve("done");
  });
  const state = { begun: false };
  return {
    run: () => {
      state.begun = true;
      return over;
    },
    end: () => end(),
    get begun() {
      return state.begun;
    },
  };
}

afterEach(() => vi.useRealTimers());

it("queued calls run on after a call that leaves as it would be started", async () => {
  const queue = new AskableCallQueue();
  const first = work();
  const leaving = new AbortController();
  const taken = [queue.run(signal, first.run), queue.run(leaving.signal, async () => "second")];
  first.end();
  leaving.abort(new Error("gone"));
  expect((await Promise.allSettled(taken)).map(({ status }) => status)).toEqual(["fulfilled", "rejected"]);
  expect(await queue.run(signal, async () => "third")).toBe("third");
});

it("queued calls run one after the other", async () => {
  const queue = new AskableCallQueue();
  const works = [work(), work(), work()];
  const taken = works.map(({ run }) => queue.run(signal, run));
  for (const [at, { end }] of works.entries()) {
    await eventually(() => expect(works.map(({ begun }) => begun)).toEqual(works.map((_, index) => index <= at)));
    end();
    await taken[at];
  }
});

it("queued calls go on if one fails, and if one that waits gives up", async () => {
  const queue = new AskableCallQueue();
  const first = work();
  const failing = queue.run(signal, async () => {
    await first.run();
    throw new Error("failed");
  });
  const leaving = new AbortController();
  const given = queue.run(leaving.signal, async () => "never");
  const third = queue.run(signal, async () => "third");
  leaving.abort(new Error("left"));
  await expect(given).rejects.toThrow("left");
  first.end();
  await expect(failing).rejects.toThrow("failed");
  expect(await third).toBe("third");
});

it("queued calls run at once if they need not wait, but nothing can be asked while several run", async () => {
  const queue = new AskableCallQueue();
  const [first, second] = [work(), work()];
  const running = [first, second].map(({ run }) => queue.run(signal, run, false));
  expect([first.begun, second.begun]).toEqual([true, true]);
  await expect(queue.asking(async () => "never")).rejects.toThrow(/Several calls are running/);
  second.end();
  await running[1];
  expect(await queue.asking(async () => "answer")).toBe("answer");
  first.end();
  await running[0];
});

it("queued calls can ask while several run, if all belong to one run of code", async () => {
  const queue = new AskableCallQueue();
  const [first, second, other] = [work(), work(), work()];
  const running = [first, second].map(({ run }) => queue.run(signal, run, false, "run 1"));
  expect(await queue.asking(async () => "answer")).toBe("answer");
  const mixed = queue.run(signal, other.run, false, "run 2");
  await expect(queue.asking(async () => "never")).rejects.toThrow(/Several calls are running/);
  other.end();
  await mixed;
  expect(await queue.asking(async () => "answer")).toBe("answer");
  for (const { end } of [first, second]) end();
  await Promise.all(running);
});

it("queued calls wait for a caller that answers soon", async () => {
  const queue = new AskableCallQueue();
  const program = work();
  const asked = queue.run(signal, () => queue.asking(program.run));
  const next = work();
  const waited = queue.run(signal, next.run);
  expect(next.begun).toBe(false);
  next.end();
  program.end();
  expect(await Promise.all([asked, waited])).toEqual(["done", "done"]);
});

it("queued calls need another session once the running call is parked", async () => {
  vi.useFakeTimers();
  const queue = new AskableCallQueue();
  const person = work();
  const asked = queue.run(signal, () => queue.asking(person.run));
  const waited = queue.run(signal, async () => "never");
  const sent = expect(waited).rejects.toBe(SESSION_BUSY);
  await vi.advanceTimersByTimeAsync(2_000);
  await sent;
  expect(queue.isParked).toBe(true);
  await expect(queue.run(signal, async () => "never")).rejects.toBe(SESSION_BUSY);
  person.end();
  expect(await asked).toBe("done");
  expect(queue.isParked).toBe(false);
  expect(await queue.run(signal, async () => "next")).toBe("next");
});
