// Names of many ends in one list: every one leads back, no two are the same, none that was made is too long, and who
// is alone with a name keeps it, whatever ends and tools are called.

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { labelsOf } from "./labels.ts";
import { Names, toolNames, type NamesOption } from "./names.ts";

/** Names that are alike in nasty ways, and any others. */
const name = fc.oneof(
  fc.constantFrom("", "a", "b", "a.a", "a.b", "b.a", "a.b.a", "A", "__proto__", "constructor", "x".repeat(200)),
  fc.constantFrom(`${"x".repeat(199)}y`, "ä", "🙂".repeat(60), `${"🙂".repeat(59)}z`, "a b", "a_b", "a-b", "\ud83d"),
  fc.string({ maxLength: 90 }),
  fc.string({ unit: "binary", maxLength: 90 }),
);
const ends = fc.dictionary(name, fc.uniqueArray(name, { maxLength: 8 }), { maxKeys: 5 });
/** Half a character. */
const HALVES = /\p{Surrogate}/u;
const option = fc.constantFrom<NamesOption>("when-needed", "always");

function named(given: Readonly<Record<string, readonly string[]>>, how: NamesOption): Names {
  const labels = labelsOf(Object.keys(given));
  return new Names(Object.values(given), how, toolNames(labels));
}

describe("labels of ends", () => {
  it("keeps a name that is fit, and tells the others apart", () => {
    expect(labelsOf(["notes", "Notes", "my notes", "my_notes", "a.b"])).toEqual([
      { name: "notes", scheme: "notes" },
      { name: "Notes", scheme: expect.stringMatching(/^notes-[a-z0-9]{7}$/) as string },
      { name: expect.stringMatching(/^my_notes-[a-z0-9]{7}$/) as string, scheme: "my-notes" },
      { name: "my_notes", scheme: expect.stringMatching(/^my-notes-[a-z0-9]{7}$/) as string },
      { name: "a_b", scheme: "a-b" },
    ]);
  });

  it("makes labels that are short, different from each other and fit, whatever the ends are called", () => {
    fc.assert(
      fc.property(fc.uniqueArray(name, { maxLength: 12 }), (given) => {
        const labels = labelsOf(given);
        expect(new Set(labels.map((label) => label.name)).size).toBe(given.length);
        expect(new Set(labels.map((label) => label.scheme)).size).toBe(given.length);
        for (const label of labels) {
          expect(label.name).toMatch(/^[A-Za-z0-9_-]{1,32}$/);
          expect(label.scheme).toMatch(/^[a-z][a-z0-9+-]{0,31}$/);
        }
      }),
    );
  });
});

describe("names of many ends", () => {
  it("lead back, are different, and at most 64 characters long where they were made", () => {
    fc.assert(
      fc.property(ends, option, (given, how) => {
        const names = named(given, how);
        const all = new Set<string>();
        for (const [end, own] of Object.values(given).entries()) {
          for (const tool of own) {
            const shown = names.shown(end, tool);
            expect(names.target(shown)).toEqual({ end, name: tool });
            expect(all.has(shown)).toBe(false);
            all.add(shown);
            if (shown !== tool) expect(shown.length).toBeLessThanOrEqual(64);
          }
        }
      }),
      { numRuns: 300 },
    );
  });

  it("are the same for the same lists, and never cut a character in two", () => {
    fc.assert(
      fc.property(ends, option, (given, how) => {
        const [first, second] = [named(given, how), named(structuredClone(given), how)];
        for (const [end, own] of Object.values(given).entries()) {
          for (const tool of own) {
            expect(second.shown(end, tool)).toBe(first.shown(end, tool));
            if (!HALVES.test(tool)) expect(first.shown(end, tool)).not.toMatch(HALVES);
          }
        }
      }),
    );
  });

  it("stay where one end alone has them, unless all are made longer", () => {
    const given = { notes: ["search", "add", "search"], mail: ["search", "send"] };
    const names = named(given, "when-needed");
    expect([names.shown(0, "search"), names.shown(0, "add")]).toEqual(["notes.search", "add"]);
    expect([names.shown(1, "search"), names.shown(1, "send")]).toEqual(["mail.search", "send"]);
    expect(names.owners("search")).toEqual([0, 1]);
    expect([names.isChanged(0), named({ notes: ["x"], mail: ["y"] }, "when-needed").isChanged(0)]).toEqual([
      true,
      false,
    ]);
    expect(named(given, "always").shown(1, "send")).toBe("mail.send");
  });

  it("do not let an end take the made name of another", () => {
    const names = named({ a: ["x"], b: ["x"], thief: ["a.x", "thief.a.x"] }, "when-needed");
    expect(names.target("a.x")).toEqual({ end: 0, name: "x" });
    expect(names.shown(2, "a.x")).toBe("thief.a.x");
    expect(names.shown(2, "thief.a.x")).toBe("thief.thief.a.x");
  });

  it("tell long ones of one end apart by their sums", () => {
    const [long, longer] = ["x".repeat(100), "x".repeat(101)];
    const names = named({ a: [long, longer], b: [long, longer] }, "when-needed");
    const shown = [0, 1].flatMap((end) => [names.shown(end, long), names.shown(end, longer)]);
    expect(new Set(shown).size).toBe(4);
    for (const one of shown) expect(one).toMatch(/^[ab]\.x{54}-[a-z0-9]{7}$/);
  });
});
