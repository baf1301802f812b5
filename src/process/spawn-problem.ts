// Explains why a program cannot be started and what to do about it. The system's own error names neither the cause
// (ENOENT may mean the command, its folder or the interpreter in its first line) nor the remedy. Nothing here starts
// a process: `findSpawnProblem` and `findProgram` look a program up the way the system would.

import { constants } from "node:fs";
import { access, stat } from "node:fs/promises";
import { delimiter, resolve } from "node:path";
import { ConnectionError, type Hint } from "../core/errors.ts";

interface Program {
  readonly command: string;
  readonly cwd?: string | undefined;
  /** Added to our own environment. */
  readonly env?: Readonly<Record<string, string>> | undefined;
}

/** Why a program cannot be started. Its cause is the error of the system. */
export class SpawnError extends ConnectionError {
  /** What to do if the file is there and is only not executable. */
  readonly fix: string | undefined;

  constructor(command: string, { problem, hint, fix }: SpawnProblem, cause: unknown) {
    super("spawn", `cannot start ${JSON.stringify(command)}: ${problem}`, { cause, hint, mayHaveRun: false });
    this.fix = fix;
  }
}

interface SpawnProblem {
  readonly problem: string;
  readonly hint?: Hint;
  readonly fix?: string;
}

/** The error for a start that failed with `cause`. */
export async function spawnError(program: Program, cause: unknown): Promise<SpawnError> {
  return new SpawnError(program.command, await explain(program, cause), cause);
}

/** Returns the error that a start would give, with the system's code on its cause; undefined if it finds no problem. */
export async function findSpawnProblem(program: Program): Promise<SpawnError | undefined> {
  const kinds = (await findFiles(program)).map(({ kind }) => kind);
  if ((await typeOf(program.cwd ?? ".")) === "folder" && kinds.includes("executable")) return undefined;
  return spawnError(program, { code: kinds.includes("other") ? "EACCES" : "ENOENT" });
}

/** The file that the system would start; undefined if there is none. */
export async function findProgram(program: Program): Promise<string | undefined> {
  return (await findFiles(program)).find(({ kind }) => kind === "executable")?.file;
}

interface FoundFile {
  readonly file: string;
  readonly kind: "executable" | "other" | "nothing";
}

/** What is at each place where the system would look for the program. */
async function findFiles({ command, cwd = ".", env }: Program): Promise<FoundFile[]> {
  const path = env?.["PATH"] ?? process.env["PATH"] ?? "";
  const folders = command.includes("/") ? [cwd] : path.split(delimiter).map((entry) => resolve(cwd, entry));
  const files = folders.map((folder) => resolve(folder, command));
  return Promise.all(files.map(async (file) => ({ file, kind: await programAt(file) })));
}

async function explain(program: Program, cause: unknown): Promise<SpawnProblem> {
  const { command, cwd } = program;
  let code = (cause as NodeJS.ErrnoException | null)?.code;
  if (cwd !== undefined) {
    const folder = await typeOf(cwd);
    if (folder === "nothing")
      return because(`its folder ${cwd} does not exist`, 'create it or change "cwd"', "create it or change --cwd");
    if (folder === "file") return because(`${cwd} is not a folder`, 'change "cwd"', "change --cwd");
  }
  const isPath = command.includes("/");
  // The system also reports EACCES for a missing command if it may not read a folder of the PATH.
  if (code === "EACCES" && !isPath && !(await findFiles(program)).some(({ kind }) => kind === "other")) code = "ENOENT";
  const file = resolve(cwd ?? ".", command);
  const hasSpace = /\s/.test(command);
  if (code === "ENOENT" && !isPath) {
    const quoted = 'put the program alone into "command" and its arguments into "args"';
    if (hasSpace)
      return because("there is no command of that name", quoted, "do not quote it together with its arguments");
    const install = "install it, or give its full path";
    return because("there is no command of that name on the PATH", `${install} as "command"`, install);
  }
  if (code === "ENOENT") {
    if ((await typeOf(file)) === "nothing")
      return hasSpace
        ? because(`there is no file ${file}`, 'check "command", and put its arguments into "args"')
        : because(`there is no file ${file}`, 'check "command"', "");
    return because(
      `the interpreter that the first line of ${file} names does not exist`,
      'install it, or name it as "command"',
      "install it, or start the file by another one",
    );
  }
  if (code === "EACCES") {
    if (!isPath) return because("the command of that name on the PATH is not executable", "check its permissions");
    if ((await typeOf(file)) === "folder") return because(`${file} is a folder`, "name the program in it");
    const start = "run chmod +x on it, or start it with its interpreter";
    const problem = because(`${file} is not executable`, `${start}, with the file in "args"`, start);
    return { ...problem, fix: `make it executable: chmod +x ${file}` };
  }
  if (code === "ENOEXEC")
    return because("it is not a program for this machine", "if it is a script, start it with its interpreter");
  if (code === "E2BIG")
    return because("its arguments and environment are too long", 'shorten "args" or "env"', "shorten them");
  if (code === "EMFILE" || code === "ENFILE") return because("too many files are open", "raise the limit (ulimit -n)");
  if (code === "EAGAIN" || code === "ENOMEM")
    return because("the system has no resources for another process", "stop some other processes");
  return { problem: cause instanceof Error ? cause.message : String(cause) };
}

function because(problem: string, text: string, flags: string = text): SpawnProblem {
  return { problem, hint: { text, flags } };
}

async function typeOf(path: string): Promise<"folder" | "file" | "nothing"> {
  const stats = await stat(path).catch(() => undefined);
  return stats === undefined ? "nothing" : stats.isDirectory() ? "folder" : "file";
}

async function programAt(file: string): Promise<FoundFile["kind"]> {
  const type = await typeOf(file);
  if (type !== "file") return type === "nothing" ? "nothing" : "other";
  return access(file, constants.X_OK).then(
    () => "executable",
    () => "other",
  );
}
