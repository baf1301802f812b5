// Completion in real shells. Those that are not installed are skipped by name.

import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { endOf, succeeds } from "../../support/blocking-program.ts";
import { catenary, CLI } from "./cli-process.ts";

let folder = "";
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "catenary-completion-"));
  writeFileSync(join(folder, "catenary"), `#!/bin/sh\nexec "${process.execPath}" "${CLI}" "$@"\n`);
  chmodSync(join(folder, "catenary"), 0o755);
  const config = '{ "mcpServers": { "memory": { "command": "a" }, "music": { "command": "b" } } } // mine\n';
  writeFileSync(join(folder, "catenary.json"), config);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const words = async (...line: string[]): Promise<string[]> => {
  const { code, out } = await catenary(["completion", "--words", "--", ...line], "", { cwd: folder });
  expect(code).toBe(0);
  return out.split("\n").filter((word) => word !== "");
};

it("the words that can come next are commands, options, servers, clients, languages", async () => {
  expect(await words("")).toEqual(expect.arrayContaining(["up", "call", "doctor", "completion", "--version"]));
  expect(await words("un")).toEqual(["uninstall"]);
  expect(await words("tools", "m")).toEqual(["memory", "music"]);
  expect(await words("remove", "mu")).toEqual(["music"]);
  expect(await words("install", "cl")).toEqual(["claude-code", "claude-desktop", "cline"]);
  expect(await words("up", "--al")).toEqual(["--allow-host", "--allow-origin"]);
  expect(await words("eval", "l")).toEqual(["lisp"]);
  expect(await words("completion", "")).toEqual(["bash", "zsh", "fish", "powershell"]);
  expect(await words("help", "rea")).toEqual(["read"]);
});

it("the words that can come next are none of ours for another program, a file or an unknown command", async () => {
  expect(await words("run", "npx", "--")).toEqual([]);
  expect(await words("tools", "--", "--al")).toEqual([]);
  expect(await words("call", "memory", "x")).toEqual([]);
  expect(await words("nothing", "")).toEqual([]);
});

/** Runs a script of the shell, in which `complete LINE` prints what it completes. */
const SHELLS = {
  bash: [
    ["bash", "--norc", "-c"],
    `source <(catenary completion bash)
complete_line() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _catenary; printf '%s\\n' "\${COMPREPLY[@]}"; }
complete_line catenary tools m; complete_line catenary up --al`,
  ],
  zsh: [
    ["zsh", "-f", "-c"],
    `compdef() { :; }; compadd() { print -l -- "\${found[@]}"; }
source <(catenary completion zsh)
words=(catenary tools m); CURRENT=3; _catenary; words=(catenary up --al); CURRENT=3; _catenary`,
  ],
  fish: [
    ["fish", "--no-config", "-c"],
    `catenary completion fish | source; complete -C "catenary tools m" | string match 'm*'; complete -C "catenary up --al"`,
  ],
} as const;

const isThere = (shell: string): boolean => succeeds(shell, ["-c", ":"]);

describe.each(Object.entries(SHELLS))("in %s", (shell, [[program, ...args], script]) => {
  it.runIf(isThere(shell))("a shell completes servers and options", () => {
    const env = { ...process.env, PATH: `${folder}${delimiter}${process.env["PATH"] ?? ""}`, HOME: folder };
    const { stdout, stderr } = endOf(program, [...args, script], { cwd: folder, env });
    expect({ stderr, words: stdout.trim().split("\n").toSorted() }).toEqual({
      stderr: "",
      words: ["--allow-host", "--allow-origin", "memory", "music"],
    });
  });
});

it("is refused for another shell", async () => {
  const refused = async (...args: string[]): Promise<string> => (await catenary(["completion", ...args])).err;
  expect(await refused("bsh")).toBe("catenary: There is no shell bsh; did you mean bash?\n");
  expect(await refused()).toContain("completion needs a shell");
  expect((await catenary(["completion", "powershell"])).out).toContain("Register-ArgumentCompleter -Native");
});
