// Calls that run one after the other: in the order of arrival, also if one gives up, and with a timeout.

import { afterEach, describe, expect, it, vi } from "vitest";
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

describe("queued calls", () => {
  it("run one after the other", async () => {
    const queue = new AskableCallQueue();
    const works = [work(), work(), work()];
    const taken = works.map(({ run }) => queue.run(signal, "The upstream", run));
    for (const [at, { end }] of works.entries()) {
      await vi.waitFor(() => expect(works.map(({ begun }) => begun)).toEqual(works.map((_, index) => index <= at)));
      end();
      await taken[at];
    }
  });

  it("go on if one fails, and if one that waits gives up", async () => {
    const queue = new AskableCallQueue();
    const first = work();
    const failing = queue.run(signal, "The upstream", async () => {
      await first.run();
      throw new Error("failed");
    });
    const leaving = new AbortController();
    const given = queue.run(leaving.signal, "The upstream", async () => "never");
    const third = queue.run(signal, "The upstream", async () => "third");
    leaving.abort(new Error("left"));
    await expect(given).rejects.toThrow("left");
    first.end();
    await expect(failing).rejects.toThrow("failed");
    expect(await third).toBe("third");
  });

  it("wait for a caller that answers soon", async () => {
    const queue = new AskableCallQueue();
    const program = work();
    const asked = queue.run(signal, "The upstream", () => queue.asking(program.run));
    const waited = queue.run(signal, "The upstream", async () => "next");
    expect(queue.isParked).toBe(false);
    program.end();
    expect(await Promise.all([asked, waited])).toEqual(["done", "next"]);
  });

  it("need another session once the running call is parked", async () => {
    vi.useFakeTimers();
    const queue = new AskableCallQueue();
    const person = work();
    const asked = queue.run(signal, "The upstream", () => queue.asking(person.run));
    const waited = queue.run(signal, "The upstream", async () => "never");
    const sent = expect(waited).rejects.toBe(SESSION_BUSY);
    await vi.advanceTimersByTimeAsync(2_000);
    await sent;
    expect(queue.isParked).toBe(true);
    await expect(queue.run(signal, "The upstream", async () => "never")).rejects.toBe(SESSION_BUSY);
    person.end();
    expect(await asked).toBe("done");
    expect(queue.isParked).toBe(false);
    expect(await queue.run(signal, "The upstream", async () => "next")).toBe("next");
  });

  it("wait for a limited time, and do not block the queue after that", async () => {
    vi.useFakeTimers();
    const queue = new AskableCallQueue();
    const first = work();
    const held = queue.run(signal, "The upstream notes", first.run);
    const late = queue.run(signal, "The upstream notes", async () => "late");
    const refused = expect(late).rejects.toThrow(/The upstream notes was busy for 60 s: .*share.*per-request/);
    await vi.advanceTimersByTimeAsync(60_000);
    await refused;
    const next = queue.run(signal, "The upstream notes", async () => "next");
    first.end();
    expect(await held).toBe("done");
    expect(await next).toBe("next");
  });
});
