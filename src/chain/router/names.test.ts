// Names of many upstreams in one list: each leads back, all are different, prefixed ones are not too long, and a name that
// one upstream alone has is kept, whatever upstreams and tools are called.

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createLabels, NameTable, prefixToolName, type NamesOption } from "./names.ts";

/** Names that are easily confused, and any others. */
const name = fc.oneof(
  fc.constantFrom("", "a", "b", "a.a", "a.b", "b.a", "a.b.a", "A", "__proto__", "constructor", "x".repeat(200)),
  fc.constantFrom(`${"x".repeat(199)}y`, "ä", "🙂".repeat(60), `${"🙂".repeat(59)}z`, "a b", "a_b", "a-b", "\ud83d"),
  fc.string({ maxLength: 90 }),
  fc.string({ unit: "binary", maxLength: 90 }),
);
const upstreams = fc.dictionary(name, fc.uniqueArray(name, { maxLength: 8 }), { maxKeys: 5 });
/** Half of a surrogate pair. */
const HALVES = /\p{Surrogate}/u;
const option = fc.constantFrom<NamesOption>("when-needed", "always");

function tableOf(given: Readonly<Record<string, readonly string[]>>, how: NamesOption): NameTable {
  const labels = createLabels(Object.keys(given));
  return new NameTable(Object.values(given), how, prefixToolName(labels));
}

describe("labels of upstreams", () => {
  it("are the names that fit, and unique for others", () => {
    expect(createLabels(["notes", "Notes", "my notes", "my_notes", "a.b"])).toEqual([
      { name: "notes", scheme: "notes" },
      { name: "Notes", scheme: expect.stringMatching(/^notes-[a-z0-9]{7}$/) as string },
      { name: expect.stringMatching(/^my_notes-[a-z0-9]{7}$/) as string, scheme: "my-notes" },
      { name: "my_notes", scheme: expect.stringMatching(/^my-notes-[a-z0-9]{7}$/) as string },
      { name: "a_b", scheme: "a-b" },
    ]);
  });

  it("are short, valid and unique, whatever the upstreams are called", () => {
    fc.assert(
      fc.property(fc.uniqueArray(name, { maxLength: 12 }), (given) => {
        const labels = createLabels(given);
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

describe("names of many upstreams", () => {
  it("lead back, are different, and have at most 64 characters if they are prefixed", () => {
    fc.assert(
      fc.property(upstreams, option, (given, how) => {
        const names = tableOf(given, how);
        const all = new Set<string>();
        for (const [upstream, own] of Object.values(given).entries()) {
          for (const tool of own) {
            const shown = names.shown(upstream, tool);
            expect(names.route(shown)).toEqual({ upstream, name: tool });
            expect(all.has(shown)).toBe(false);
            all.add(shown);
            if (shown !== tool) expect(shown.length).toBeLessThanOrEqual(64);
          }
        }
      }),
      { numRuns: 300 },
    );
  });

  it("are the same for the same lists, and never cut a surrogate pair", () => {
    fc.assert(
      fc.property(upstreams, option, (given, how) => {
        const [first, second] = [tableOf(given, how), tableOf(structuredClone(given), how)];
        for (const [upstream, own] of Object.values(given).entries()) {
          for (const tool of own) {
            expect(second.shown(upstream, tool)).toBe(first.shown(upstream, tool));
            if (!HALVES.test(tool)) expect(first.shown(upstream, tool)).not.toMatch(HALVES);
          }
        }
      }),
    );
  });

  it("stay unchanged if one upstream alone has them, unless all are prefixed", () => {
    const given = { notes: ["search", "add", "search"], mail: ["search", "send"] };
    const names = tableOf(given, "when-needed");
    expect([names.shown(0, "search"), names.shown(0, "add")]).toEqual(["notes.search", "add"]);
    expect([names.shown(1, "search"), names.shown(1, "send")]).toEqual(["mail.search", "send"]);
    expect(names.owners("search")).toEqual([0, 1]);
    expect([names.hasPrefixes(0), tableOf({ notes: ["x"], mail: ["y"] }, "when-needed").hasPrefixes(0)]).toEqual([
      true,
      false,
    ]);
    expect(tableOf(given, "always").shown(1, "send")).toBe("mail.send");
  });

  it("do not let an upstream take the prefixed name of another", () => {
    const names = tableOf({ a: ["x"], b: ["x"], thief: ["a.x", "thief.a.x"] }, "when-needed");
    expect(names.route("a.x")).toEqual({ upstream: 0, name: "x" });
    expect(names.shown(2, "a.x")).toBe("thief.a.x");
    expect(names.shown(2, "thief.a.x")).toBe("thief.thief.a.x");
  });

  it("that are long differ in their checksums", () => {
    const [long, longer] = ["x".repeat(100), "x".repeat(101)];
    const names = tableOf({ a: [long, longer], b: [long, longer] }, "when-needed");
    const shown = [0, 1].flatMap((upstream) => [names.shown(upstream, long), names.shown(upstream, longer)]);
    expect(new Set(shown).size).toBe(4);
    for (const one of shown) expect(one).toMatch(/^[ab]\.x{54}-[a-z0-9]{7}$/);
  });
});
