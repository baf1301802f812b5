// Tokens in memory, and the mutex that every store uses within a process.

import { expect, it } from "vitest";
import { memoryTokens } from "./stored-tokens.ts";

it("tokens in memory are stored, replaced and deleted by key", async () => {
  const store = memoryTokens();
  expect(await store.get("a")).toBeUndefined();
  await store.set("a", "1");
  await store.set("b", "2");
  await store.set("a", "3");
  expect([await store.get("a"), await store.get("b")]).toEqual(["3", "2"]);
  await store.set("a", undefined);
  expect([await store.get("a"), await store.get("b")]).toEqual([undefined, "2"]);
});

it("tokens in memory are not shared between stores", async () => {
  await memoryTokens().set("a", "1");
  expect(await memoryTokens().get("a")).toBeUndefined();
});

it("the mutex runs work in order, one at a time for each key", async () => {
  const store = memoryTokens();
  const events: string[] = [];
  const work = (name: string) => async () => {
    events.push(`${name} begins`);
    await new Promise((resolve) => setImmediate(resolve));
    events.push(`${name} ends`);
    return name;
  };
  const done = await Promise.all(["a1", "a2", "a3"].map((name) => store.exclusively("a", work(name))));
  expect(done).toEqual(["a1", "a2", "a3"]);
  expect(events).toEqual(["a1 begins", "a1 ends", "a2 begins", "a2 ends", "a3 begins", "a3 ends"]);
  events.length = 0;
  await Promise.all(["a", "b"].map((name) => store.exclusively(name, work(name))));
  expect(events.slice(0, 2)).toEqual(["a begins", "b begins"]);
});

it("the mutex is released by work that fails, at once or later", async () => {
  const store = memoryTokens();
  const failed = [
    store.exclusively("a", () => Promise.reject(new Error("later"))),
    store.exclusively("a", () => {
      throw new Error("at once");
    }),
  ];
  const good = store.exclusively("a", () => Promise.resolve("good"));
  await expect(failed[0]).rejects.toThrow("later");
  await expect(failed[1]).rejects.toThrow("at once");
  expect(await good).toBe("good");
});

it("the mutex is left by an aborted caller, and the others move up", async () => {
  const store = memoryTokens();
  const stop = new AbortController();
  let release!: () => void;
  const first = store.exclusively("a", () => new Promise<void>((resolve) => (release = resolve)));
  const second = store.exclusively("a", () => Promise.resolve("never"), stop.signal);
  const third = store.exclusively("a", () => Promise.resolve("third"));
  stop.abort(new Error("no longer wanted"));
  await expect(second).rejects.toThrow("no longer wanted");
  release();
  await first;
  expect(await third).toBe("third");
  await expect(store.exclusively("a", () => Promise.resolve(), stop.signal)).rejects.toThrow("no longer wanted");
});

it("the mutex is released by a caller that is aborted just after acquiring it", async () => {
  const store = memoryTokens();
  const stop = new AbortController();
  let release!: () => void;
  const first = store.exclusively("a", () => new Promise<void>((resolve) => (release = resolve)));
  const second = store.exclusively("a", () => Promise.resolve("had it"), stop.signal);
  void first.then(() => stop.abort());
  release();
  expect(await second).toBe("had it");
  expect(await store.exclusively("a", () => Promise.resolve("next"))).toBe("next");
});
