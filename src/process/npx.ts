// Starts servers by `npx` without keeping npm in memory: under npx, two more processes (npm and a shell) wait for the
// server to end, and npm alone takes more memory than most servers. The work is done by npx.sh. Everything that is not
// plainly the npx of npm is started as it is.

import { randomBytes } from "node:crypto";
import { constants } from "node:fs";
import { access, readFile, realpath } from "node:fs/promises";
import { basename, delimiter, join, resolve } from "node:path";
import { packageFile } from "../core/files.ts";
import { inheritedEnvironment, type InheritEnv } from "./program.ts";

interface Program {
  readonly command: string;
  readonly args?: readonly string[] | undefined;
  readonly cwd?: string | undefined;
  /** Added to the environment that it inherits. */
  readonly env?: Readonly<Record<string, string>> | undefined;
  readonly inheritEnv?: InheritEnv | undefined;
}

/** The first version of npm whose npx is `npm exec`. */
const MIN_NPM = 7;

/** The command and the arguments to start instead of these. */
export async function withoutNpm({ command, args = [], cwd = ".", env, inheritEnv }: Program): Promise<{
  readonly command: string;
  readonly args: readonly string[];
}> {
  const unchanged = { command, args };
  if (basename(command) !== "npx" || process.platform === "win32") return unchanged;
  // With --call, npm runs a shell command and not a program.
  if (args.some((word) => /^(?:-c|--call)(?:=|$)/.test(word))) return unchanged;
  const all = { ...(inheritEnv === undefined ? process.env : inheritedEnvironment(inheritEnv)), ...env };
  // The user has a shell of their own for npm.
  if (Object.keys(all).some((name) => name.toLowerCase() === "npm_config_script_shell")) return unchanged;
  const isKnown = await isNpxOfNpm(command, cwd, all["PATH"] ?? "");
  if (!isKnown) return unchanged;
  const mark = `found-${randomBytes(16).toString("hex")}`;
  return { command: "/bin/sh", args: [packageFile("src/process/npx.sh"), mark, command, ...args] };
}

async function isNpxOfNpm(command: string, cwd: string, path: string): Promise<boolean> {
  const folders = command.includes("/") ? [cwd] : path.split(delimiter).map((folder) => resolve(cwd, folder));
  for (const folder of folders) {
    const file = resolve(folder, command);
    const isExecutable = await access(file, constants.X_OK).then(
      () => true,
      () => false,
    );
    if (isExecutable) return isNpmFile(file);
  }
  return false;
}

async function isNpmFile(file: string): Promise<boolean> {
  try {
    const real = await realpath(file);
    if (basename(real) !== "npx-cli.js") return false;
    const { name, version } = JSON.parse(await readFile(join(real, "../../package.json"), "utf8")) as {
      readonly name?: unknown;
      readonly version?: unknown;
    };
    return name === "npm" && Number.parseInt(String(version), 10) >= MIN_NPM;
  } catch {
    return false;
  }
}
