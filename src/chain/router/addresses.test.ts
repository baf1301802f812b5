// Addresses of many upstreams: each one that is shown leads back to its upstream, listed or not, and two upstreams never
// have the same.

import fc from "fast-check";
import { expect, it } from "vitest";
import { createLabels } from "./labels.ts";
import type { NamesOption, RoutedUpstream } from "./names.ts";
import { createNaming } from "./naming.ts";
import { View } from "./view.ts";
import { runs } from "../../../test/support/thoroughness.ts";

const uri = fc.oneof(
  fc.constantFrom("file:///x", "a.file:///x", "b.a.file:///x", "", "a.", "a", "__proto__", "constructor", "A.x:1"),
  fc.webUrl(),
  fc.string({ maxLength: 20 }),
);
const name = fc.oneof(
  fc.constantFrom("a", "b", "A", "a.b", "file", "", "__proto__", "http", "b.a"),
  fc.string({ maxLength: 10 }),
);
const upstreams = fc.dictionary(
  name,
  fc.record({ listed: fc.uniqueArray(uri, { maxLength: 5 }), named: fc.uniqueArray(uri, { maxLength: 5 }) }),
  { maxKeys: 4 },
);

const handler = async () => ({});

function viewOf(names: readonly string[], option: NamesOption): View {
  const labels = createLabels(names);
  const upstreams = names.map((upstream, index): RoutedUpstream => {
    return { index, name: upstream, label: labels[index] ?? { name: "", scheme: "" }, names: option, handler };
  });
  return new View(upstreams, createNaming(names, {}));
}

it("addresses of many upstreams lead back to their upstreams, and two never have the same", () => {
  fc.assert(
    fc.property(upstreams, fc.constantFrom<NamesOption>("when-needed", "always"), (given, option) => {
      const { indexes, addresses } = viewOf(Object.keys(given), option);
      const all = Object.values(given);
      for (const [upstream, { listed }] of all.entries()) indexes.resources.setList(upstream, listed);
      const taken = new Map<string, string>();
      for (const [upstream, { listed, named }] of all.entries()) {
        for (const own of [...listed, ...named]) {
          const shown = addresses.shownUri(upstream, own);
          const route = JSON.stringify({ upstream, name: own });
          expect(taken.get(shown) ?? route).toBe(route);
          taken.set(shown, route);
          if (all.length > 1 || option === "always") {
            expect(addresses.routes(shown).routes[0]).toEqual({ upstream, name: own });
          }
        }
      }
    }),
    { numRuns: runs(500) },
  );
});

it("addresses of many upstreams stay unchanged if one upstream alone has them, unless they look like another's", () => {
  const { indexes, addresses } = viewOf(["a", "b"], "when-needed");
  indexes.resources.setList(0, ["file:///x", "file:///y"]);
  indexes.resources.setList(1, ["file:///y", "a.file:///z"]);
  expect(["file:///x", "file:///y"].map((own) => addresses.shownUri(0, own))).toEqual(["file:///x", "a.file:///y"]);
  expect(addresses.shownUri(1, "a.file:///z")).toBe("b.a.file:///z");
});

it("addresses of many upstreams are remembered up to a limit", () => {
  const { addresses } = viewOf(["a", "b"], "when-needed");
  for (let count = 0; count <= 1_000; count += 1) addresses.shownUri(1, `x:${count}`);
  expect(addresses.routes("x:0").routes).toEqual([]);
  expect(addresses.routes("x:1").routes).toEqual([{ upstream: 1, name: "x:1" }]);
});
