// The notice about a lost process.

import { expect, it } from "vitest";
import { StateLoss } from "./state-loss.ts";

it("lists the first of many definitions, once", () => {
  const loss = new StateLoss("main");
  loss.addDefinitions(Array.from({ length: 25 }, (_, index) => ({ type: "function", name: `f${index}` })));
  loss.notice = loss.describe("its process ended (exit code 3)");
  expect(loss.takeNotice()).toMatch(
    /^The state of session main was lost: its process ended \(exit code 3\); lost definitions: f0, .*, f19 and 5 more$/,
  );
  expect(loss.takeNotice()).toBeUndefined();
  expect(loss.describe("")).toBe("The state of session main was lost; nothing was defined in it");
});

it("ignores names that are not strings, and cuts long ones", () => {
  const loss = new StateLoss("main");
  const odd = [null, 1, {}, { name: { toString: 1 } }, { name: "x".repeat(1_000) }];
  loss.addDefinitions(odd);
  expect(loss.describe("")).toBe(`The state of session main was lost; lost definitions: ${"x".repeat(200)}`);
});
