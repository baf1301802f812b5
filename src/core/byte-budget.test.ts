// The byte budget with peers that only count: which of them are disconnected, and when.

import { expect, it, vi } from "vitest";
import { ByteBudget, type ByteHolder } from "./byte-budget.ts";

class Peer implements ByteHolder {
  heldBytes: number;
  isConnected = true;

  constructor(bytes: number) {
    this.heldBytes = bytes;
  }

  disconnect(): void {
    this.isConnected = false;
    this.heldBytes = 0;
  }
}

it("a byte budget gives a peer more only while it holds no more than its share", () => {
  const budget = new ByteBudget({ peerBytes: 10, totalBytes: 100 });
  expect([0, 10, 11].map((bytes) => budget.admits(new Peer(bytes)))).toEqual([true, true, false]);
});

it("a byte budget disconnects the largest peer if all together hold too much", () => {
  const budget = new ByteBudget({ peerBytes: 100, totalBytes: 100 });
  const [small, large, last] = [new Peer(30), new Peer(60), new Peer(20)];
  for (const peer of [small, large]) budget.update(peer);
  expect(budget.bytes).toBe(90);
  budget.update(last);
  expect([small, large, last].map(({ isConnected }) => isConnected)).toEqual([true, false, true]);
  expect(budget.bytes).toBe(50);
});

it("a byte budget disconnects a peer that has held much for long before a larger one that came just now", () => {
  const clock = vi.spyOn(performance, "now").mockReturnValue(0);
  const budget = new ByteBudget({ peerBytes: 100, totalBytes: 100 });
  const [slow, fresh] = [new Peer(50), new Peer(60)];
  budget.update(slow);
  clock.mockReturnValue(5_000);
  budget.update(fresh);
  clock.mockRestore();
  expect([slow.isConnected, fresh.isConnected]).toEqual([false, true]);
});

it("a byte budget looks again at what peers hold before it disconnects any", () => {
  const budget = new ByteBudget({ peerBytes: 100, totalBytes: 100 });
  const [reader, other] = [new Peer(90), new Peer(90)];
  budget.update(reader);
  reader.heldBytes = 5;
  budget.update(other);
  expect([reader.isConnected, other.isConnected, budget.bytes]).toEqual([true, true, 95]);
});

it("a byte budget holds nothing when all peers are released or hold nothing", () => {
  const budget = new ByteBudget({ peerBytes: 100, totalBytes: 100 });
  const [one, two] = [new Peer(10), new Peer(20)];
  for (const peer of [one, two]) budget.update(peer);
  one.heldBytes = 0;
  budget.update(one);
  budget.release(two);
  budget.release(two);
  expect(budget.bytes).toBe(0);
});
