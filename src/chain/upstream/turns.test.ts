// Turns: one after the other in the order of arrival, whoever gives up in between; and patience that has an end.

import { afterEach, describe, expect, it, vi } from "vitest";
import { ELSEWHERE, Turns } from "./turns.ts";

const signal = new AbortController().signal;

/** Work that ends when it is told to. */
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

describe("turns", () => {
  it("come one after the other", async () => {
    const turns = new Turns();
    const works = [work(), work(), work()];
    const taken = works.map(({ run }) => turns.take(signal, "The end", run));
    for (const [at, { end }] of works.entries()) {
      await vi.waitFor(() => expect(works.map(({ begun }) => begun)).toEqual(works.map((_, index) => index <= at)));
      end();
      await taken[at];
    }
  });

  it("go on when work fails, and when somebody who waits gives up", async () => {
    const turns = new Turns();
    const first = work();
    const failing = turns.take(signal, "The end", async () => {
      await first.run();
      throw new Error("failed");
    });
    const leaving = new AbortController();
    const given = turns.take(leaving.signal, "The end", async () => "never");
    const third = turns.take(signal, "The end", async () => "third");
    leaving.abort(new Error("left"));
    await expect(given).rejects.toThrow("left");
    first.end();
    await expect(failing).rejects.toThrow("failed");
    expect(await third).toBe("third");
  });

  it("wait for a caller that answers soon", async () => {
    const turns = new Turns();
    const program = work();
    const asked = turns.take(signal, "The end", () => turns.asking(program.run));
    const waited = turns.take(signal, "The end", async () => "next");
    expect(turns.isParked).toBe(false);
    program.end();
    expect(await Promise.all([asked, waited])).toEqual(["done", "next"]);
  });

  it("send all others elsewhere when the call whose turn it is has waited for its caller for a while", async () => {
    vi.useFakeTimers();
    const turns = new Turns();
    const person = work();
    const asked = turns.take(signal, "The end", () => turns.asking(person.run));
    const waited = turns.take(signal, "The end", async () => "never");
    const sent = expect(waited).rejects.toBe(ELSEWHERE);
    await vi.advanceTimersByTimeAsync(2_000);
    await sent;
    expect(turns.isParked).toBe(true);
    await expect(turns.take(signal, "The end", async () => "never")).rejects.toBe(ELSEWHERE);
    person.end();
    expect(await asked).toBe("done");
    expect(turns.isParked).toBe(false);
    expect(await turns.take(signal, "The end", async () => "next")).toBe("next");
  });

  it("are not waited for without end, and who is late takes nobody's turn away", async () => {
    vi.useFakeTimers();
    const turns = new Turns();
    const first = work();
    const held = turns.take(signal, "The end notes", first.run);
    const late = turns.take(signal, "The end notes", async () => "late");
    const told = expect(late).rejects.toThrow(/The end notes was busy for 60 s: .*share.*per-request/);
    await vi.advanceTimersByTimeAsync(60_000);
    await told;
    const next = turns.take(signal, "The end notes", async () => "next");
    first.end();
    expect(await held).toBe("done");
    expect(await next).toBe("next");
  });
});
