// The help of each command lists exactly its options.

import { describe, expect, it } from "vitest";
import { SAVE_FLAGS } from "../show/content.ts";
import { SIGN_IN_FLAGS, TARGET_FLAGS } from "../target/target.ts";
import { SERVE_FLAGS, TOKEN_FLAGS } from "../serve/start.ts";
import { CHANGE_FLAGS } from "../setup/change-file.ts";
import { addCommand, removeCommand } from "./add.ts";
import { checkCommand } from "./check.ts";
import { completionCommand } from "./completion.ts";
import { doctorCommand } from "./doctor.ts";
import { importCommand } from "./import.ts";
import { installCommand, uninstallCommand } from "./install.ts";
import { callCommand, promptCommand, readCommand } from "./call.ts";
import { evalCommand } from "./eval.ts";
import { pinsCommand } from "./pins.ts";
import { promptsCommand, resourcesCommand, toolsCommand } from "./list.ts";
import { authCommand, loginCommand, logoutCommand } from "./login.ts";
import { runCommand } from "./run.ts";
import { serveCommand, upCommand } from "./serve.ts";
import { typesCommand } from "./types.ts";

const COMMON = Object.keys(TARGET_FLAGS);
const SAVING = Object.keys(SAVE_FLAGS);
const SERVE = Object.keys(SERVE_FLAGS);
const SIGN_IN = Object.keys(SIGN_IN_FLAGS);
const TOKEN = Object.keys(TOKEN_FLAGS);
const CHANGE = Object.keys(CHANGE_FLAGS);

function optionsIn(help: string): string[] {
  return [
    ...new Set([...help.matchAll(/(?<=[\s`[])--([a-z][a-z-]*)/g)].map(([, option]) => String(option))),
  ].toSorted();
}

const GATEWAY = ["code", "live", "log-format", "sandbox", "start", "trace", "watch", "yes"];

describe("help", () => {
  it.each([
    ["tools", toolsCommand, [...COMMON, "code"]],
    ["resources", resourcesCommand, COMMON],
    ["prompts", promptsCommand, COMMON],
    ["types", typesCommand, COMMON],
    ["call", callCommand, [...COMMON, ...SAVING, "args"]],
    ["read", readCommand, [...COMMON, ...SAVING]],
    ["prompt", promptCommand, [...COMMON, ...SAVING, "args"]],
  ])("of %s lists its options", (name, { help }, flags) => {
    expect(help).toMatch(
      new RegExp(`^Usage: catenary ${name} TARGET .*\\n       catenary ${name} .*-- COMMAND ARGS...\\n`),
    );
    expect(optionsIn(help)).toEqual(flags.toSorted());
    expect(help.split("\n").filter((line) => line.length > 100)).toEqual([]);
    expect(help).toContain("Exit codes: 0 ok;");
  });

  it.each([
    ["up", upCommand, [...SERVE, ...TOKEN, ...GATEWAY]],
    ["serve", serveCommand, [...SERVE, ...TOKEN, ...GATEWAY, "stdio", "sequential"]],
    [
      "run",
      runCommand,
      [...SERVE, ...SIGN_IN, "require-token", "header", "token", "env", "cwd", "revision", "share", "timeout"],
    ],
    ["check", checkCommand, ["json"]],
    ["pins", pinsCommand, ["file", "json"]],
    ["login", loginCommand, ["config", "json", "header", ...SIGN_IN]],
    ["logout", logoutCommand, ["all", "config", "json"]],
    ["auth", authCommand, ["json"]],
    ["eval", evalCommand, ["file", "timeout", "program", "image", "attach", "sandbox", "json"]],
    ["doctor", doctorCommand, ["timeout", "env", "cwd", "header", "token", "revision", "quiet", "json"]],
    ["add", addCommand, [...CHANGE, "config", "env", "cwd", "header", "force"]],
    ["remove", removeCommand, [...CHANGE, "config"]],
    ["import", importCommand, [...CHANGE, "config"]],
    ["install", installCommand, [...CHANGE, "code", "url", "token-env", "header", "project", "name"]],
    ["uninstall", uninstallCommand, [...CHANGE, "project", "name"]],
    ["completion", completionCommand({}), []],
  ])("of %s, which has no target, lists its options", (name, { help }, flags) => {
    expect(help).toMatch(new RegExp(`^Usage: catenary ${name} `));
    expect(optionsIn(help)).toEqual(flags.toSorted());
    expect(help.split("\n").filter((line) => line.length > 100)).toEqual([]);
    expect(help).toContain("Exit codes: 0");
  });
});
