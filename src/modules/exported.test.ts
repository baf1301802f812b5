// Which export of a module is taken; what a command makes of it is tested with the command.

import { describe, expect, it } from "vitest";
import { exportedFunction } from "./exported.ts";

const one = (): number => 1;
const two = (): number => 2;

describe("what a module exports", () => {
  it.each([
    ["the default before the others", { server: two, default: one }],
    ["a chain before the server in it", { server: two, chain: one }],
    ["a server beside a default that is none", { default: { port: 3000 }, server: one }],
    ["what stands in the default of CommonJS", { default: { server: one } }],
  ])("is %s", (_name, module) => {
    expect(exportedFunction(module)).toBe(one);
  });

  it("may be nothing", () => {
    expect(exportedFunction({ default: null, run: one })).toBeUndefined();
  });
});
