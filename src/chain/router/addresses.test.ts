// Addresses of many ends: whatever they are and whatever ends are called, each that was shown leads back to the end
// that has it, in a list or not, and no two ends' are shown as one.

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { labelsOf } from "./labels.ts";
import type { RoutedUpstream } from "./member.ts";
import type { NamesOption } from "./names.ts";
import { View } from "./view.ts";

const uri = fc.oneof(
  fc.constantFrom("file:///x", "a.file:///x", "b.a.file:///x", "", "a.", "a", "__proto__", "constructor", "A.x:1"),
  fc.webUrl(),
  fc.string({ maxLength: 20 }),
);
const name = fc.oneof(
  fc.constantFrom("a", "b", "A", "a.b", "file", "", "__proto__", "http", "b.a"),
  fc.string({ maxLength: 10 }),
);
const shelves = fc.dictionary(
  name,
  fc.record({ listed: fc.uniqueArray(uri, { maxLength: 5 }), named: fc.uniqueArray(uri, { maxLength: 5 }) }),
  { maxKeys: 4 },
);

function viewOf(names: readonly string[], option: NamesOption): View {
  const labels = labelsOf(names);
  const ends = names.map((end, index): RoutedUpstream => {
    return { index, name: end, label: labels[index] ?? { name: "", scheme: "" }, handler: async () => ({}) };
  });
  return new View(ends, option);
}

describe("addresses of many ends", () => {
  it("lead back to their ends, and none is that of two", () => {
    fc.assert(
      fc.property(shelves, fc.constantFrom<NamesOption>("when-needed", "always"), (given, option) => {
        const { directories, addresses } = viewOf(Object.keys(given), option);
        const all = Object.values(given);
        for (const [end, { listed }] of all.entries()) directories.resources.note(end, listed);
        const taken = new Map<string, string>();
        for (const [end, { listed, named }] of all.entries()) {
          for (const own of [...listed, ...named]) {
            const shown = addresses.shown(end, own);
            const place = JSON.stringify({ end, name: own });
            expect(taken.get(shown) ?? place).toBe(place);
            taken.set(shown, place);
            if (all.length > 1 || option === "always") {
              expect(addresses.places(shown).targets[0]).toEqual({ end, name: own });
            }
          }
        }
      }),
      { numRuns: 500 },
    );
  });

  it("stay as they are where one end alone has them, unless they read as another's", () => {
    const { directories, addresses } = viewOf(["a", "b"], "when-needed");
    directories.resources.note(0, ["file:///x", "file:///y"]);
    directories.resources.note(1, ["file:///y", "a.file:///z"]);
    expect(["file:///x", "file:///y"].map((own) => addresses.shown(0, own))).toEqual(["file:///x", "a.file:///y"]);
    expect(addresses.shown(1, "a.file:///z")).toBe("b.a.file:///z");
  });

  it("are remembered up to a bound", () => {
    const { addresses } = viewOf(["a", "b"], "when-needed");
    for (let count = 0; count <= 1_000; count += 1) addresses.shown(1, `x:${count}`);
    expect(addresses.places("x:0").targets).toEqual([]);
    expect(addresses.places("x:1").targets).toEqual([{ end: 1, name: "x:1" }]);
  });
});
