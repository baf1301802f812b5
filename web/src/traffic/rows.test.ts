// The rows of Traffic and the lines of a view, compared with the plain way to make them.

import fc from "fast-check";
import { expect, it } from "vitest";
import { filterRows, parseFilter, type Filter } from "../../../src/console/filter.ts";
import type { CallRow } from "../../../src/console/types.ts";
import { runs } from "../../../test/support/thoroughness.ts";
import { isUnfolded, Rows, View } from "./rows.ts";

const row = (id: number, fields: Partial<CallRow> = {}): CallRow => {
  return { id, kind: "call", at: id * 10, method: "tools/call", status: "ok", name: "echo", ...fields };
};

/** The lines that a view must have: all rows in order, each with what is nested under it. */
function plainLines(rows: readonly CallRow[], filter: Filter): number[] {
  const last = [...new Map(rows.map((one) => [one.id, one])).values()].toSorted((one, other) => one.id - other.id);
  const known = new Set(last.map(({ id }) => id));
  const placed = last.map((one) =>
    one.parent !== undefined && !known.has(one.parent) ? { ...one, parent: undefined } : one,
  );
  const shown = filterRows(placed, filter);
  return shown
    .filter(({ parent }) => parent === undefined)
    .flatMap(({ id }) => [id, ...shown.filter(({ parent }) => parent === id).map((one) => one.id)]);
}

function take(rows: Rows, view: View, batch: readonly CallRow[]): void {
  const { touched, gone } = rows.apply(batch.map((one) => ({ ...one })));
  view.update(touched, gone);
}

const linesOf = (view: View): number[] => view.lines.map(({ row: { id } }) => id);

it("has the lines of the plain way, in whatever order rows come", async () => {
  const anyRow = fc.record({
    id: fc.integer({ min: 1, max: 60 }),
    status: fc.constantFrom("running", "ok", "error" as const),
    server: fc.constantFrom("a", "b"),
  });
  // A row is nested, or not, for good: under one that began before it.
  const parentOf = (id: number): number | undefined => (id % 3 === 0 ? id - 1 - (id % 2) : undefined);
  const nestedUnderCall = (id: number): number | undefined => {
    const parent = parentOf(id);
    return parent === undefined || parent < 1 || parentOf(parent) !== undefined ? undefined : parent;
  };
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.array(anyRow, { maxLength: 12 }), { maxLength: 12 }),
      fc.constantFrom("", "server:a", "status:error", "-status:running", "-server:b status:ok"),
      async (batches, text) => {
        const rows = new Rows(1000);
        const view = new View(rows);
        const filter = parseFilter(text);
        await view.use(filter);
        const all: CallRow[] = [];
        for (const batch of batches) {
          const made = batch.map(({ id, ...rest }) => row(id, { ...rest, parent: nestedUnderCall(id) }));
          take(rows, view, made);
          all.push(...made);
          expect(linesOf(view)).toEqual(plainLines(all, filter));
        }
        const again = new View(rows);
        expect(await again.use(filter)).toBe(true);
        expect(linesOf(again)).toEqual(linesOf(view));
      },
    ),
    { numRuns: runs(300) },
  );
});

it("forgets what the gateway no longer keeps, and says how far the others have moved", async () => {
  const rows = new Rows(5000);
  const view = new View(rows);
  await view.use(undefined);
  take(
    rows,
    view,
    Array.from({ length: 6000 }, (_, index) => row(index + 1)),
  );
  expect(rows.trim()).toBeUndefined();
  take(
    rows,
    view,
    Array.from({ length: 1500 }, (_, index) => row(index + 6001)),
  );
  const first = rows.trim() ?? 0;
  expect(first).toBe(2501);
  view.trim(first);
  expect(view.lines).toHaveLength(5000);
  expect(view.base).toBe(2500);
  expect(rows.get(2500)).toBeUndefined();
});

it("counts lines that came before as moved back", async () => {
  const rows = new Rows(5000);
  const view = new View(rows);
  await view.use(undefined);
  take(rows, view, [row(11), row(12)]);
  take(rows, view, [row(8), row(9), row(10, { parent: 9, kind: "question" })]);
  expect(linesOf(view)).toEqual([8, 9, 10, 11, 12]);
  expect(view.base).toBe(-3);
});

it("folds what has many nested rows, until a person unfolds it", async () => {
  const rows = new Rows(5000);
  const view = new View(rows);
  await view.use(undefined);
  take(rows, view, [row(1), ...Array.from({ length: 30 }, (_, index) => row(index + 2, { parent: 1, kind: "code" }))]);
  const [root] = view.lines;
  expect(view.lines).toHaveLength(1);
  if (root === undefined) throw new Error("there is no line");
  expect(isUnfolded(root)).toBe(false);
  root.isOpen = true;
  view.update(new Set([root]), []);
  expect(view.lines).toHaveLength(31);
});

it("gives up a filter when another one is used", async () => {
  const rows = new Rows(100_000);
  const view = new View(rows);
  take(
    rows,
    view,
    Array.from({ length: 60_000 }, (_, index) => row(index + 1, { name: index % 2 === 0 ? "even" : "odd" })),
  );
  const first = view.use(parseFilter("even"));
  const second = view.use(parseFilter("odd"));
  // What comes meanwhile is not lost.
  take(rows, view, [row(60_001, { name: "odd" })]);
  expect(await second).toBe(true);
  await first;
  expect(view.lines).toHaveLength(30_001);
});
