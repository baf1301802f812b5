// The matcher of URI templates against hostile input. Work is counted in steps, not in time: ten times the text may take
// ten times the steps, however many ways there are to divide it.

import { describe, expect, it } from "vitest";
import { parseTemplate } from "./uri-template.ts";
import { ProgramBuilder, END, run, stopsAt } from "./uri-matcher.ts";
import type { Op, Program } from "./uri-matcher.ts";

const any = stopsAt("");

function values(build: ProgramBuilder, count: number, next: Op): Op {
  let op = next;
  for (let slot = count - 1; slot >= 0; slot--) op = build.value(slot, any, 1, op);
  return op;
}

/** `count` adjacent values before a literal that never matches: the worst case of a backtracking matcher. */
function hostile(count: number): Program {
  const build = new ProgramBuilder();
  return build.program(values(build, count, build.text("!", END)));
}

describe("run", () => {
  it("returns slots in the order of the text", () => {
    const build = new ProgramBuilder();
    const program = build.program(
      build.text("a", build.value(0, stopsAt("-"), 1, build.text("-", build.value(1, any, 0, END)))),
    );
    expect(run(program, "axy-z").found).toEqual([0, 1, 3, 1, 4, 5]);
    expect(run(program, "ax-").found).toEqual([0, 1, 2, 1, 3, 3]);
    expect(run(program, "a-").found).toBeUndefined();
    expect(run(program, "bx-y")).toEqual({ found: undefined, steps: 1 });
  });

  it("takes linear work, however many ways there are to divide the text", () => {
    for (const count of [1, 2, 5, 20]) {
      const program = hostile(count);
      const small = run(program, "a".repeat(10_000)).steps;
      const large = run(program, "a".repeat(100_000)).steps;
      expect(small).toBeGreaterThan(10_000);
      expect(large).toBeLessThan(10.1 * small);
      expect(large).toBeLessThan(6 * (program.marks + 1) * 100_000);
    }
  });

  it("handles a megabyte that templates can divide in many ways", () => {
    const size = 1_000_000;
    for (const template of ["{a}{b}/{c}!", "{+a}{+b}!", "{a*}{b*}!"]) {
      expect(parseTemplate(template).match("a".repeat(size))).toBeUndefined();
    }
    expect(parseTemplate("{+a}{+b}").match("a".repeat(size))?.["b"]).toHaveLength(size - 1);
  });

  it("handles long repetitions of every special character", () => {
    const marks = ["/", "/a", "a,", "?a=", "&b=1", "%41", ";a", ".a", "#"];
    for (const template of ["{a}{b}/{c}!", "{+a}{+b}!", "{/a*}{/b*}!", "{?a,b*}{&b*}!", "{;a*}{.b*}{#c*}!"]) {
      const parsed = parseTemplate(template);
      for (const mark of marks) expect(parsed.match(mark.repeat(20_000))).toBeUndefined();
    }
  });
});
