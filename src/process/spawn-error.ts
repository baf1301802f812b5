// Explains why a program cannot be started and what to do about it. The system's own error names neither the cause
// (ENOENT may mean the command, its folder or the interpreter in its first line) nor the remedy. Nothing here starts
// a process: `findSpawnProblem` and `findProgram` look a program up the way the system would.

import { constants } from "node:fs";
import { access, stat } from "node:fs/promises";
import { delimiter, resolve } from "node:path";

interface Program {
  readonly command: string;
  readonly cwd?: string | undefined;
  /** Added to our own environment. */
  readonly env?: Readonly<Record<string, string>>;
}

/** The error for a start that failed with `cause`. */
export async function spawnError(program: Program, cause: unknown): Promise<Error> {
  return new Error(`cannot start ${JSON.stringify(program.command)}: ${await reason(program, cause)}`, { cause });
}

/** Returns the error that a start would give, with the system's code on its cause; undefined if it finds no problem. */
export async function findSpawnProblem(program: Program): Promise<Error | undefined> {
  const found = (await findFiles(program)).map(({ kind }) => kind);
  if ((await typeOf(program.cwd ?? ".")) === "folder" && found.includes("executable")) return undefined;
  return spawnError(program, { code: found.includes("other") ? "EACCES" : "ENOENT" });
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

async function reason(program: Program, cause: unknown): Promise<string> {
  const { command, cwd } = program;
  let code = (cause as NodeJS.ErrnoException | null)?.code;
  if (cwd !== undefined) {
    const folder = await typeOf(cwd);
    if (folder === "nothing") return `its folder ${cwd} does not exist; create it or change "cwd"`;
    if (folder === "file") return `${cwd} is not a folder; change "cwd"`;
  }
  const isPath = command.includes("/");
  // The system also reports EACCES for a missing command if it may not read a folder of the PATH.
  if (code === "EACCES" && !isPath && !(await findFiles(program)).some(({ kind }) => kind === "other")) code = "ENOENT";
  const file = resolve(cwd ?? ".", command);
  if (code === "ENOENT" && !isPath) {
    return /\s/.test(command)
      ? 'there is no command of that name; put the program alone into "command" and its arguments into "args"'
      : 'there is no command of that name on the PATH; install it, or give its full path as "command"';
  }
  if (code === "ENOENT") {
    const hint = /\s/.test(command) ? ', and put its arguments into "args"' : "";
    return (await typeOf(file)) === "nothing"
      ? `there is no file ${file}; check "command"${hint}`
      : `the interpreter that the first line of ${file} names does not exist; install it, or name it as "command"`;
  }
  if (code === "EACCES") {
    if (!isPath) return "the command of that name on the PATH is not executable; check its permissions";
    return (await typeOf(file)) === "folder"
      ? `${file} is a folder; name the program in it`
      : `${file} is not executable; run chmod +x on it, or start it with its interpreter, with the file in "args"`;
  }
  if (code === "ENOEXEC")
    return "it is not a program for this machine; if it is a script, start it with its interpreter";
  if (code === "E2BIG") return 'its arguments and environment are too long; shorten "args" or "env"';
  if (code === "EMFILE" || code === "ENFILE") return "too many files are open; raise the limit (ulimit -n)";
  if (code === "EAGAIN" || code === "ENOMEM")
    return "the system has no resources for another process; stop some other processes";
  return cause instanceof Error ? cause.message : String(cause);
}

async function typeOf(path: string): Promise<"folder" | "file" | "nothing"> {
  const found = await stat(path).catch(() => undefined);
  return found === undefined ? "nothing" : found.isDirectory() ? "folder" : "file";
}

async function programAt(file: string): Promise<FoundFile["kind"]> {
  const type = await typeOf(file);
  if (type !== "file") return type === "nothing" ? "nothing" : "other";
  return access(file, constants.X_OK).then(
    () => "executable",
    () => "other",
  );
}
