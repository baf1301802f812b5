// The machine under URI templates, against input made to keep it busy. Work is counted in steps, not in time:
// ten times the text may cost ten times the steps, however many ways there are to divide it.

import { describe, expect, it } from "vitest";
import { parseTemplate } from "./uri-template.ts";
import { Assembler, END, run, stopsAt } from "./uri-machine.ts";
import type { Op, Program } from "./uri-machine.ts";

const any = stopsAt("");

function values(lay: Assembler, count: number, next: Op): Op {
  let place = next;
  for (let slot = count - 1; slot >= 0; slot--) place = lay.value(slot, any, 1, place);
  return place;
}

/** `count` values with nothing between them and an end that never comes: the worst case of a backtracker. */
function hostile(count: number): Program {
  const lay = new Assembler();
  return lay.program(values(lay, count, lay.text("!", END)));
}

describe("the machine", () => {
  it("gives the slots it found in the order of the text", () => {
    const lay = new Assembler();
    const program = lay.program(lay.text("a", lay.value(0, stopsAt("-"), 1, lay.text("-", lay.value(1, any, 0, END)))));
    expect(run(program, "axy-z").found).toEqual([0, 1, 3, 1, 4, 5]);
    expect(run(program, "ax-").found).toEqual([0, 1, 2, 1, 3, 3]);
    expect(run(program, "a-").found).toBeUndefined();
    expect(run(program, "bx-y")).toEqual({ found: undefined, steps: 1 });
  });

  it("does work that is linear in the text, however many ways there are to divide it", () => {
    for (const count of [1, 2, 5, 20]) {
      const program = hostile(count);
      const small = run(program, "a".repeat(10_000)).steps;
      const large = run(program, "a".repeat(100_000)).steps;
      expect(small).toBeGreaterThan(10_000);
      expect(large).toBeLessThan(10.1 * small);
      expect(large).toBeLessThan(6 * (program.marks + 1) * 100_000);
    }
  });

  it("bears a megabyte against templates with many ways to divide it", () => {
    const size = 1_000_000;
    for (const template of ["{a}{b}/{c}!", "{+a}{+b}!", "{a*}{b*}!"]) {
      expect(parseTemplate(template).match("a".repeat(size))).toBeUndefined();
    }
    expect(parseTemplate("{+a}{+b}").match("a".repeat(size))?.["b"]).toHaveLength(size - 1);
  });

  it("bears long repetitions of every mark", () => {
    const marks = ["/", "/a", "a,", "?a=", "&b=1", "%41", ";a", ".a", "#"];
    for (const template of ["{a}{b}/{c}!", "{+a}{+b}!", "{/a*}{/b*}!", "{?a,b*}{&b*}!", "{;a*}{.b*}{#c*}!"]) {
      const parsed = parseTemplate(template);
      for (const mark of marks) expect(parsed.match(mark.repeat(20_000))).toBeUndefined();
    }
  });
});
