// Why a program could not be started, in words that say what to do. The system's own answer names neither
// the culprit (ENOENT is said of the command, of its folder and of the interpreter in its first line)
// nor the remedy, so the cause is looked for once the start has failed. Nothing here starts anything.

import { stat } from "node:fs/promises";
import { resolve } from "node:path";

interface Attempt {
  readonly command: string;
  readonly cwd?: string | undefined;
}

/** The error to give to whoever asked for the start; the system's error is its cause. */
export async function explainRefusal(attempt: Attempt, cause: unknown): Promise<Error> {
  return new Error(`cannot start ${JSON.stringify(attempt.command)}: ${await reason(attempt, cause)}`, { cause });
}

async function reason({ command, cwd }: Attempt, cause: unknown): Promise<string> {
  const code = (cause as NodeJS.ErrnoException | null)?.code;
  if (cwd !== undefined) {
    const folder = await kindOf(cwd);
    if (folder === "nothing") return `its folder ${cwd} does not exist; create it or change "cwd"`;
    if (folder === "file") return `${cwd} is not a folder; change "cwd"`;
  }
  const isPath = command.includes("/");
  const file = resolve(cwd ?? ".", command);
  if (code === "ENOENT" && !isPath) {
    return /\s/.test(command)
      ? 'there is no command of that name; put the program alone into "command" and its arguments into "args"'
      : 'there is no command of that name on the PATH; install it, or give its full path as "command"';
  }
  if (code === "ENOENT") {
    return (await kindOf(file)) === "nothing"
      ? `there is no file ${file}; check "command"`
      : `the interpreter that the first line of ${file} names does not exist; install it, or name it as "command"`;
  }
  if (code === "EACCES") {
    if (!isPath) return "the command of that name on the PATH is not executable; see to its permissions";
    return (await kindOf(file)) === "folder"
      ? `${file} is a folder; name the program in it`
      : `${file} is not executable; run chmod +x on it, or start it by its interpreter, with the file in "args"`;
  }
  if (code === "ENOEXEC") return "it is not a program for this machine; start a script by its interpreter";
  if (code === "E2BIG") return 'its arguments and environment are too long; shorten "args" or "env"';
  if (code === "EMFILE" || code === "ENFILE") return "too many files are open; raise the limit (ulimit -n)";
  if (code === "EAGAIN" || code === "ENOMEM") return "the machine has no room for another process; end some";
  return cause instanceof Error ? cause.message : String(cause);
}

async function kindOf(path: string): Promise<"folder" | "file" | "nothing"> {
  try {
    return (await stat(path)).isDirectory() ? "folder" : "file";
  } catch {
    return "nothing";
  }
}
