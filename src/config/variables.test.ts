// Expansion of variables in a string.

import { expect, it } from "vitest";
import { Problems } from "./document.ts";
import { Variables, type Expanded } from "./variables.ts";

const env = { A: "1", B: "${A}$&", EMPTY: "", lower_9: "l", NAME: undefined };

function expand(text: string): { expanded: Expanded | undefined; problems: Problems } {
  const problems = new Problems(JSON.stringify(text));
  const variables = new Variables(env, "/home/me/work", problems);
  variables.inputs = new Map([["known", { id: "known", type: "promptString" }]]);
  return { expanded: variables.expand(text, 0), problems };
}

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
  // Values are not expanded again.
  ["${B}", "${A}$&"],
  ["${workspaceFolder}/${workspaceFolderBasename}", "/home/me/work/work"],
])("a string: %j becomes %j", (text, outcome) => {
  const { expanded, problems } = expand(text);
  expect(expanded?.text).toBe(outcome);
  expect(problems.sorted()).toEqual([]);
});

it.each(["${input:none}", "${other:x}", "${A:-${B}}"])("a string: %j has no value", (text) => {
  const { expanded, problems } = expand(text);
  expect(expanded).toBeUndefined();
  expect(problems.errors).toBe(1);
});

it.each([
  ["${NONE}", "${NONE}"],
  ["${env:NONE}", "${env:NONE}"],
  ["${NAME}", "${NAME}"],
  ["a ${A} ${NONE}", "a 1 ${NONE}"],
  ["${file:/nothing}", "${file:/nothing}"],
])("a string: %j keeps the reference whose value is missing, and cannot be checked", (text, outcome) => {
  const { expanded, problems } = expand(text);
  expect(expanded).toMatchObject({ text: outcome, isPending: true });
  expect(problems.errors).toBe(1);
});

it.each(["${", "${a b}", "${1}", "${A-x}", "${}", "x ${ y"])("a string: %j is kept, with a warning", (text) => {
  const { expanded, problems } = expand(text);
  expect(expanded).toEqual({ text, secrets: [], isPending: false });
  expect(problems.sorted()).toMatchObject([{ severity: "warning", column: text.indexOf("$") + 2 }]);
});

it("a string reports values from the environment as secrets, but not defaults", () => {
  expect(expand("${A} ${NONE:-x} ${userHome} ${env:A:-y}").expanded?.secrets).toEqual([
    { value: "1", reference: "${A}" },
    { value: "1", reference: "${env:A:-y}" },
  ]);
});

it("a string is pending while an input in it has not been asked for", () => {
  expect(expand("a ${input:known}").expanded).toMatchObject({ isPending: true });
  expect(expand("a ${A}").expanded).toMatchObject({ isPending: false });
});
