// What is said of a process that is gone, whatever was said in its name before.

import { expect, it } from "vitest";
import { Losses } from "./state-loss.ts";

it("names what was defined, the first of many, and says it once", () => {
  const losses = new Losses("main");
  losses.defined(Array.from({ length: 25 }, (_, index) => ({ type: "function", name: `f${index}` })));
  losses.happened("its process ended (exit code 3)");
  expect(losses.take()).toMatch(
    /^The state of the session main is lost: its process ended \(exit code 3\); defined were: f0, .*, f19 and 5 more$/,
  );
  expect(losses.take()).toBeUndefined();
  expect(losses.lost("")).toBe("The state of the session main is lost; nothing was defined in it");
});

it("takes only names for names", () => {
  const losses = new Losses("main");
  const odd = [null, 1, {}, { name: { toString: 1 } }, { name: "x".repeat(1_000) }];
  losses.defined(odd as unknown as { type: string; name: string }[]);
  expect(losses.lost("")).toBe(`The state of the session main is lost; defined were: ${"x".repeat(200)}`);
});
