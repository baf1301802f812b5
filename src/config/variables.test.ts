// What is put in for variables in a text, and what is noted on the way.

import { describe, expect, it } from "vitest";
import type { TextValue } from "./document.ts";
import { Problems } from "./problems.ts";
import { Variables, withoutHidden, type Expanded } from "./variables.ts";

const env = { A: "1", B: "${A}$&", EMPTY: "", lower_9: "l", NAME: undefined };

function expand(text: string): { expanded: Expanded | undefined; problems: Problems } {
  const problems = new Problems(text);
  const inputs = { ids: ["known"], answer: () => undefined };
  const variables = new Variables({ env, folder: "/home/me/work", inputs }, problems);
  const value: TextValue = { kind: "text", offset: 0, text, offsetOf: (index) => index };
  return { expanded: variables.expand(value), problems };
}

describe("a text", () => {
  it.each([
    ["plain", "plain"],
    ["", ""],
    ["$", "$"],
    ["$A and {A}", "$A and {A}"],
    ["${A}", "1"],
    ["<${A}|${A}>", "<1|1>"],
    ["${env:A}", "1"],
    ["${lower_9}", "l"],
    ["${A:-x}", "1"],
    ["${NAME:-x}", "x"],
    ["${NONE:-}", ""],
    ["${NONE:-a:-b c$}", "a:-b c$"],
    ["${env:NONE:-x}", "x"],
    ["${EMPTY}|${EMPTY:-x}", "|x"],
    ["$${A}", "${A}"],
    ["$$${A}", "$${A}"],
    ["$${A}${A}", "${A}1"],
    // What is put in is not looked at again.
    ["${B}", "${A}$&"],
    ["${workspaceFolder}/${workspaceFolderBasename}", "/home/me/work/work"],
  ])("%j becomes %j", (text, outcome) => {
    const { expanded, problems } = expand(text);
    expect(expanded?.text).toBe(outcome);
    expect(problems.sorted()).toEqual([]);
  });

  it.each(["${NONE}", "${env:NONE}", "${NAME}", "a ${A} ${NONE}", "${input:none}", "${other:x}", "${A:-${B}}"])(
    "%j is nothing",
    (text) => {
      const { expanded, problems } = expand(text);
      expect(expanded).toBeUndefined();
      expect(problems.errors).toBe(1);
    },
  );

  it.each(["${", "${a b}", "${1}", "${A-x}", "${}", "x ${ y"])("%j is left as it is, and that is told", (text) => {
    const { expanded, problems } = expand(text);
    expect(expanded).toEqual({ text, hidden: [], isOpen: false });
    expect(problems.sorted()).toMatchObject([{ severity: "warning", column: text.indexOf("$") + 1 }]);
  });

  it("says what of it is hidden: what came from elsewhere, and not what stands in the file", () => {
    expect(expand("${A} ${NONE:-x} ${userHome} ${env:A:-y}").expanded?.hidden).toEqual([
      { value: "1", reference: "${A}" },
      { value: "1", reference: "${env:A:-y}" },
    ]);
  });

  it("is open while an input in it has not been asked for", () => {
    expect(expand("a ${input:known}").expanded).toMatchObject({ isOpen: true });
    expect(expand("a ${A}").expanded).toMatchObject({ isOpen: false });
  });
});

describe("a sentence of others", () => {
  it("is told without what is hidden", () => {
    const hidden = [
      { value: "s3cret", reference: "${KEY}" },
      { value: "", reference: "${EMPTY}" },
    ];
    expect(withoutHidden('got "s3cret" and s3crets', hidden)).toBe('got "${KEY}" and ${KEY}s');
  });
});
