// The help of each command has its usage, its options and no others, and its exit codes, and fits a terminal.

import { expect, it } from "vitest";
import { TARGET_FLAGS } from "../target/target.ts";
import { COMMANDS } from "./index.ts";

const WITH_TARGET = ["tools", "resources", "prompts", "types", "call", "read", "prompt"];

function optionsIn(help: string): string[] {
  return [
    ...new Set([...help.matchAll(/(?<=[\s`[])--([a-z][a-z-]*)/g)].map(([, option]) => String(option))),
  ].toSorted();
}

it.each(Object.entries(COMMANDS))("help of %s lists its options", async (name, { load }) => {
  const command = await load();
  const help = command.help();
  expect(command.name).toBe(name);
  expect(help).toMatch(new RegExp(`^Usage: catenary ${name} `));
  // Other commands are named with their options.
  const options = optionsIn(help.replaceAll(/`catenary [^`]*`/g, ""));
  expect(options).toEqual(Object.keys(command.flags).toSorted());
  expect(help.split("\n").filter((line) => line.length > 100)).toEqual([]);
  expect(help).toContain("Exit codes: 0 ");
});

it.each(WITH_TARGET)("help of %s has the options of a target", async (name) => {
  const command = await COMMANDS[name]?.load();
  expect(command?.help()).toMatch(
    new RegExp(`^Usage: catenary ${name} TARGET .*\\n       catenary ${name} .*-- COMMAND ARGS...\\n`),
  );
  expect(Object.keys(command?.flags ?? {})).toEqual(expect.arrayContaining(Object.keys(TARGET_FLAGS)));
});

it("help fits a narrow terminal", async () => {
  const help = (await COMMANDS["check"]?.load())?.help(60) ?? "";
  expect(help.split("\n").filter((line) => line.length > 60)).toEqual([]);
});
