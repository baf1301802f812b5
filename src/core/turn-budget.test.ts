// How much of a peer's bytes is handled in one turn of the event loop. Lines are tested in transport/.

import { PassThrough } from "node:stream";
import { afterEach, expect, it, vi } from "vitest";
import { PIECE_BYTES, readPieces, TurnBudget } from "./turn-budget.ts";

const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

afterEach(() => {
  vi.restoreAllMocks();
});

/** A clock that moves only when told to. */
function fakeClock(): { advance(ms: number): void } {
  let now = 1_000;
  vi.spyOn(performance, "now").mockImplementation(() => now);
  return { advance: (ms) => (now += ms) };
}

it("readPieces passes on all bytes in order, a few milliseconds of work in one turn", async () => {
  const clock = fakeClock();
  const input = new PassThrough({ highWaterMark: 1024 * 1024 });
  const bytes = Buffer.from(Array.from({ length: 20 * PIECE_BYTES }, (_, at) => at % 251));
  const pieces: Buffer[] = [];
  const reader = readPieces(input, (piece) => {
    pieces.push(piece);
    clock.advance(2);
  });
  input.write(bytes);
  const perTurn: number[] = [];
  while (pieces.length < 20) {
    const before = pieces.length;
    await nextTurn();
    perTurn.push(pieces.length - before);
  }
  expect(Math.max(...perTurn)).toBe(3);
  expect(Buffer.concat(pieces).equals(bytes)).toBe(true);
  expect([reader.end(), reader.end()]).toEqual([true, false]);
});

it("readPieces passes on the rest of a chunk at the end", () => {
  const clock = fakeClock();
  const input = new PassThrough();
  const pieces: Buffer[] = [];
  const reader = readPieces(input, (piece) => {
    pieces.push(piece);
    clock.advance(2);
  });
  input.emit("data", Buffer.alloc(5 * PIECE_BYTES));
  expect(pieces).toHaveLength(3);
  reader.end();
  expect(pieces).toHaveLength(5);
});

it("readPieces does not split or copy a short chunk", async () => {
  const input = new PassThrough();
  const pieces: Buffer[] = [];
  readPieces(input, (piece) => pieces.push(piece));
  const chunk = Buffer.from("a few lines\n");
  input.write(chunk);
  await nextTurn();
  expect(pieces).toHaveLength(1);
  expect(pieces[0]).toBe(chunk);
});

it("TurnBudget asks for a pause after a few milliseconds of work, and does not count time spent waiting", async () => {
  const clock = fakeClock();
  const budget = new TurnBudget();
  for (let chunk = 0; chunk < 5; chunk += 1) {
    budget.begin();
    clock.advance(1);
    expect(budget.pause()).toBeUndefined();
    clock.advance(1_000);
  }
  budget.begin();
  clock.advance(1);
  const pause = budget.pause();
  clock.advance(1_000);
  await pause;
  // The time is full again.
  clock.advance(5);
  expect(budget.pause()).toBeUndefined();
  clock.advance(1);
  expect(budget.pause()).toBeDefined();
});
