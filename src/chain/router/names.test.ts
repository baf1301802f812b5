// Names of many upstreams in one list: each leads back, all are different, all are valid and short, and a name that one
// upstream alone has is kept, whatever upstreams and tools are called.

import fc from "fast-check";
import { expect, it } from "vitest";
import { NameIndex, type NamesOption, type NameTable, validName } from "./names.ts";
import { createLabels } from "./labels.ts";
import { createNaming } from "./naming.ts";
import { ShownNames } from "./shown-names.ts";

/** Names that are easily confused, and any others. */
const name = fc.oneof(
  fc.constantFrom("", "a", "b", "a_a", "a_b", "b_a", "a_b_a", "A", "__proto__", "constructor", "x".repeat(200)),
  fc.constantFrom("a.b", "_", "a_", "_b", "a__b", `${"x".repeat(199)}y`, "ä", "🙂".repeat(60), "a b", "a-b", "\ud83d"),
  fc.string({ maxLength: 90 }),
  fc.string({ unit: "binary", maxLength: 90 }),
);
const upstreams = fc.dictionary(name, fc.uniqueArray(name, { maxLength: 8 }), { maxKeys: 5 });
const option = fc.constantFrom<NamesOption>("when-needed", "always");

type Lists = Readonly<Record<string, readonly string[] | undefined>>;

/** An upstream whose list is undefined is away. */
function indexOf(given: Lists, names: NamesOption = "when-needed", shownNames = new ShownNames()): NameIndex {
  const all = Object.keys(given);
  const labels = createLabels(all);
  const routed = all.map((upstream, index) => {
    const label = labels[index] ?? { name: "", scheme: "" };
    return { index, name: upstream, label, names, handler: async () => ({}) };
  });
  const index = new NameIndex(routed, createNaming(all, { names, shownNames, onWarning: () => undefined }));
  for (const [at, list] of Object.values(given).entries()) if (list !== undefined) index.setList(at, list);
  return index;
}

const tableOf = (given: Lists, names?: NamesOption): NameTable => indexOf(given, names).names;

/** The shown names of each upstream, in the order of its list. */
function shownIn(index: NameIndex, given: Lists): string[][] {
  return Object.values(given).map((list, at) => (list ?? []).map((own) => index.names.shownName(at, own)));
}

it("labels of upstreams are the names that fit, and unique for others", () => {
  expect(createLabels(["notes", "Notes", "my notes", "my_notes", "a.b"])).toEqual([
    { name: "notes", scheme: "notes" },
    { name: "Notes", scheme: expect.stringMatching(/^notes-[a-z0-9]{7}$/) as string },
    { name: expect.stringMatching(/^my_notes-[a-z0-9]{7}$/) as string, scheme: "my-notes" },
    { name: "my_notes", scheme: expect.stringMatching(/^my-notes-[a-z0-9]{7}$/) as string },
    { name: "a_b", scheme: "a-b" },
  ]);
});

it("labels of upstreams are the prefixes that the options ask for, also if another upstream has such a name", () => {
  const labels = createLabels(["a", "b", "__proto__"], (name) => (name === "b" ? "a" : undefined));
  expect(labels.map((label) => label.name)).toEqual([expect.stringMatching(/^a-[a-z0-9]{7}$/), "a", "__proto__"]);
});

it("labels of upstreams are short, valid and unique, whatever the upstreams are called", () => {
  fc.assert(
    fc.property(fc.uniqueArray(name, { maxLength: 12 }), (given) => {
      const labels = createLabels(given);
      expect(new Set(labels.map((label) => label.name)).size).toBe(given.length);
      expect(new Set(labels.map((label) => label.scheme)).size).toBe(given.length);
      for (const label of labels) {
        expect(label.name).toMatch(/^[A-Za-z0-9_-]{1,24}$/);
        expect(label.scheme).toMatch(/^[a-z][a-z0-9+-]{0,23}$/);
      }
    }),
  );
});

it("names of many upstreams lead back, are different, valid and at most 48 characters long", () => {
  fc.assert(
    fc.property(upstreams, option, (given, how) => {
      const names = tableOf(given, how);
      const all = new Set<string>();
      for (const [upstream, own] of Object.values(given).entries()) {
        for (const tool of own) {
          const shown = names.shownName(upstream, tool);
          expect(names.route(shown)).toEqual({ upstream, name: tool });
          expect(all.has(shown)).toBe(false);
          all.add(shown);
          expect(shown).toMatch(/^[a-zA-Z0-9_-]{1,48}$/);
        }
      }
    }),
    { numRuns: 300 },
  );
});

it("names of many upstreams are the same for the same lists", () => {
  fc.assert(
    fc.property(upstreams, option, (given, how) => {
      expect(shownIn(indexOf(structuredClone(given), how), given)).toEqual(shownIn(indexOf(given, how), given));
    }),
  );
});

it("names of many upstreams stay unchanged if one upstream alone has them, unless all are prefixed", () => {
  const given = { notes: ["search", "add", "search"], mail: ["search", "send"] };
  const names = tableOf(given);
  expect([names.shownName(0, "search"), names.shownName(0, "add")]).toEqual(["notes_search", "add"]);
  expect([names.shownName(1, "search"), names.shownName(1, "send")]).toEqual(["mail_search", "send"]);
  expect(names.owners("search")).toEqual([0, 1]);
  expect([names.hasPrefixes(0), tableOf({ notes: ["x"], mail: ["y"] }).hasPrefixes(0)]).toEqual([true, false]);
  expect(tableOf(given, "always").shownName(1, "send")).toBe("mail_send");
});

it("names of many upstreams do not let an upstream take the name that another has or would have with its prefix", () => {
  const names = tableOf({ a: ["x"], b: ["x"], thief: ["a_x", "thief_a_x"] });
  expect(names.route("a_x")).toEqual({ upstream: 0, name: "x" });
  expect(names.shownName(2, "a_x")).toBe("thief_a_x");
  expect(names.shownName(2, "thief_a_x")).toBe("thief_thief_a_x");
  // `notes_search` would be the name of `search` of notes, so it is not a name of another upstream.
  expect(shownIn(indexOf({ notes: ["search"], evil: ["notes_search"] }), { n: [], e: ["notes_search"] })).toEqual([
    [],
    ["evil_notes_search"],
  ]);
  // A tool may begin with a word that is also the name of another upstream.
  const other = { git: ["status"], hub: ["git_clone", "git_status"] };
  expect(shownIn(indexOf(other), other)).toEqual([["status"], ["git_clone", "hub_git_status"]]);
  // As long as nothing is known of that upstream, the tool might be one of it.
  const away = { git: undefined, hub: ["git_clone", "clone"] };
  expect(shownIn(indexOf(away), away)).toEqual([[], ["hub_git_clone", "clone"]]);
});

it("names of many upstreams of labels that begin alike belong to the longer label, even if its upstream is away", () => {
  const given = { a: ["b_c"], a_b: ["c"] };
  const [[short], [long]] = shownIn(indexOf(given, "always"), given) as [[string], [string]];
  expect([short, long]).toEqual([expect.stringMatching(/^a_b_c-[a-z0-9]{7}$/), "a_b_c"]);
  const away = { a: ["b_c"], a_b: undefined };
  expect(shownIn(indexOf(away, "always"), away)).toEqual([[short], []]);
  expect(indexOf(away, "always").find("a_b_c")).toEqual({ upstream: 1, name: "c" });
});

it("names of many upstreams that are invalid or long get a checksum, which differs from name to name", () => {
  const [long, longer] = ["x".repeat(100), "x".repeat(101)];
  const names = tableOf({ a: [long, longer], b: [long, longer, "my tool!", "my tool?", "ü", ""] });
  const prefixed = [0, 1].flatMap((upstream) => [names.shownName(upstream, long), names.shownName(upstream, longer)]);
  expect(new Set(prefixed).size).toBe(4);
  for (const one of prefixed) expect(one).toMatch(/^[ab]_x{38}-[a-z0-9]{7}$/);
  const alone = ["my tool!", "my tool?", "ü", ""].map((own) => names.shownName(1, own));
  expect(alone).toEqual(
    [/^my_tool_-/, /^my_tool_-/, /^_-/, /^unnamed-/].map((start) => expect.stringMatching(start) as string),
  );
  expect(new Set(alone).size).toBe(4);
  expect(alone[0]).toBe(validName("my tool!"));
});

it("names of many upstreams that only look changed stay with those who have them", () => {
  const literal = validName("my tool!");
  const given = { a: ["my tool!", literal] };
  const [[changed, kept]] = shownIn(indexOf(given), given) as [[string, string]];
  expect(kept).toBe(literal);
  expect(changed).not.toBe(literal);
});

/** Shows the names of these lists to a caller. */
const show = (given: Lists, shownNames: ShownNames, how?: NamesOption): string[][] => {
  const index = indexOf(given, how, shownNames);
  index.setShown();
  return shownIn(index, given);
};

it("names that were shown before do not change when an upstream is added or removed", () => {
  const shownNames = new ShownNames();
  expect(show({ notes: ["search", "my tool!"] }, shownNames)).toEqual([["search", validName("my tool!")]]);
  const two = { mail: ["search", "my tool!"], notes: ["search", "my tool!"] };
  const [mail, notes] = show(two, shownNames);
  expect(notes).toEqual(["search", validName("my tool!")]);
  expect(mail).toEqual(["mail_search", expect.stringMatching(/^mail_my_tool_-/)]);
  expect(show({ mail: two.mail }, shownNames)).toEqual([mail]);
  expect(show({ ...two, web: ["search", "mail_search"] }, shownNames)).toEqual([
    mail,
    notes,
    ["web_search", "web_mail_search"],
  ]);
});

it("names that were shown before are never shown for another upstream, also while theirs is away", () => {
  const shownNames = new ShownNames();
  show({ notes: ["search", "add"] }, shownNames);
  const away = { notes: undefined, evil: ["search", "notes_add", "add"] };
  const index = indexOf(away, "when-needed", shownNames);
  expect(shownIn(index, away)).toEqual([[], ["evil_search", "evil_notes_add", "evil_add"]]);
  expect(index.find("search")).toBeUndefined();
  expect(index.findAway("search")).toEqual({ upstream: 0, name: "search" });
  expect(index.findAway("other")).toBeUndefined();
  // When notes is back without the tool, the name stays free.
  const back = { notes: ["add"], evil: ["search"] };
  expect(shownIn(indexOf(back, "when-needed", shownNames), back)).toEqual([["add"], ["evil_search"]]);
  // The operator has removed notes.
  expect(show({ evil: ["search"] }, shownNames)).toEqual([["search"]]);
});

it("names that were shown before are forgotten if the options change", () => {
  const shownNames = new ShownNames();
  show({ notes: ["search"] }, shownNames);
  expect(show({ notes: ["search"] }, shownNames, "always")).toEqual([["notes_search"]]);
  expect(show({ notes: ["search"] }, shownNames)).toEqual([["search"]]);
});

it("names that were shown before hold for all callers of a gateway", () => {
  const shownNames = new ShownNames();
  const given = { notes: ["search"], mail: ["search"] };
  const ada = indexOf(given, "when-needed", shownNames);
  const bob = indexOf({ notes: undefined, mail: ["search"] }, "when-needed", shownNames);
  expect(bob.names.shownName(1, "search")).toBe("search");
  ada.setList(1, []);
  ada.setShown();
  expect(bob.names.shownName(1, "search")).toBe("mail_search");
});

it("names that were shown before hold in a view with some of the upstreams, for those that it does not have too", () => {
  const shownNames = new ShownNames();
  show({ notes: ["search"], bank: ["pay"] }, shownNames);
  const all = ["notes", "bank", "evil", "a", "a_b"];
  const labels = createLabels(all);
  const label = { name: "evil", scheme: "evil" };
  const naming = createNaming(all, { shownNames, onWarning: () => undefined });
  const part = new NameIndex(
    [
      { index: 0, name: "evil", label, names: "when-needed", handler: async () => ({}) },
      { index: 1, name: "a", label: labels[3] ?? label, names: "always", handler: async () => ({}) },
    ],
    naming,
  );
  part.setList(0, ["pay", "bank_pay", "search", "own"]);
  part.setList(1, ["b_c"]);
  part.setShown();
  const shown = ["pay", "bank_pay", "search", "own"].map((own) => part.names.shownName(0, own));
  expect(shown).toEqual(["evil_pay", "evil_bank_pay", "evil_search", "own"]);
  expect(part.names.shownName(1, "b_c")).toMatch(/^a_b_c-/);
  expect(shownNames.owner("tools", "pay")).toEqual({ upstream: "bank", name: "pay" });
  expect([part.find("search"), part.findAway("search"), part.findAway("pay")]).toEqual([
    undefined,
    undefined,
    undefined,
  ]);
});

it("names that were shown before are different, whatever was shown before", () => {
  fc.assert(
    fc.property(upstreams, upstreams, option, option, (first, second, how, then) => {
      const shownNames = new ShownNames();
      const before = show(first, shownNames, how);
      const index = indexOf(second, then, shownNames);
      const all = shownIn(index, second).flat();
      expect(new Set(all).size).toBe(all.length);
      for (const [at, [upstream, own]] of Object.entries(second).entries()) {
        for (const tool of own) {
          expect(index.find(index.names.shownName(at, tool))).toEqual({ upstream: at, name: tool });
          const then_ = Object.keys(first).indexOf(upstream);
          const was = before[then_]?.[first[upstream]?.indexOf(tool) ?? -1];
          if (how === then && was !== undefined) expect(index.names.shownName(at, tool)).toBe(was);
        }
      }
    }),
    { numRuns: 300 },
  );
});
