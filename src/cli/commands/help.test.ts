// The help of each command names every option that it takes, and no other.

import { describe, expect, it } from "vitest";
import { SAVE_FLAGS } from "../show/saving.ts";
import { TARGET_FLAGS } from "../target/target.ts";
import { FRONT_FLAGS, TOKEN_FLAGS } from "../serve/front-flags.ts";
import { callCommand } from "./call.ts";
import { checkCommand } from "./check.ts";
import { evalCommand } from "./eval.ts";
import { promptCommand } from "./prompt.ts";
import { promptsCommand } from "./prompts.ts";
import { readCommand } from "./read.ts";
import { resourcesCommand } from "./resources.ts";
import { runCommand } from "./run.ts";
import { serveCommand } from "./serve.ts";
import { toolsCommand } from "./tools.ts";
import { upCommand } from "./up.ts";

const COMMON = Object.keys(TARGET_FLAGS);
const SAVING = Object.keys(SAVE_FLAGS);
const FRONT = Object.keys(FRONT_FLAGS);
const TOKEN = Object.keys(TOKEN_FLAGS);

function optionsIn(help: string): string[] {
  return [
    ...new Set([...help.matchAll(/(?<=[\s`[])--([a-z][a-z-]*)/g)].map(([, option]) => String(option))),
  ].toSorted();
}

describe("help", () => {
  it.each([
    ["tools", toolsCommand, COMMON],
    ["resources", resourcesCommand, COMMON],
    ["prompts", promptsCommand, COMMON],
    ["call", callCommand, [...COMMON, ...SAVING, "args"]],
    ["read", readCommand, [...COMMON, ...SAVING]],
    ["prompt", promptCommand, [...COMMON, ...SAVING, "args"]],
  ])("of %s is whole and true", (name, { help }, flags) => {
    expect(help).toMatch(
      new RegExp(`^Usage: catenary ${name} TARGET .*\\n       catenary ${name} .*-- COMMAND ARGS...\\n`),
    );
    expect(optionsIn(help)).toEqual(flags.toSorted());
    expect(help.split("\n").filter((line) => line.length > 100)).toEqual([]);
    expect(help).toContain("Exit codes: 0;");
  });

  it.each([
    ["up", upCommand, [...FRONT, ...TOKEN]],
    ["serve", serveCommand, [...FRONT, ...TOKEN, "stdio", "sequential"]],
    ["run", runCommand, [...FRONT, "env", "cwd", "revision", "share"]],
    ["check", checkCommand, ["json"]],
    ["eval", evalCommand, ["file", "timeout", "json"]],
  ])("of %s, which is about no target, is whole and true", (name, { help }, flags) => {
    expect(help).toMatch(new RegExp(`^Usage: catenary ${name} `));
    expect(optionsIn(help)).toEqual(flags.toSorted());
    expect(help.split("\n").filter((line) => line.length > 100)).toEqual([]);
    expect(help).toContain("Exit codes: 0");
  });
});
