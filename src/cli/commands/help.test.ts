// The help of each command names every option that it takes, and no other.

import { describe, expect, it } from "vitest";
import { SAVE_FLAGS } from "../saving.ts";
import { TARGET_FLAGS } from "../target.ts";
import { callCommand } from "./call.ts";
import { promptCommand } from "./prompt.ts";
import { promptsCommand } from "./prompts.ts";
import { readCommand } from "./read.ts";
import { resourcesCommand } from "./resources.ts";
import { toolsCommand } from "./tools.ts";

const COMMON = Object.keys(TARGET_FLAGS);
const SAVING = Object.keys(SAVE_FLAGS);

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
    const options = new Set([...help.matchAll(/(?<=[\s`])--([a-z][a-z-]*)/g)].map(([, option]) => String(option)));
    expect([...options].toSorted()).toEqual(flags.toSorted());
    expect(help.split("\n").filter((line) => line.length > 100)).toEqual([]);
    expect(help).toContain("Exit codes: 0;");
  });
});
