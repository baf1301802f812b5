// The program behind a command line: what it is called, and whether it can be started. It is looked for as the system
// would do it, so that a command which is not there is known before anybody waits for it. Nothing is started.

import { constants } from "node:fs";
import { access, stat } from "node:fs/promises";
import { basename, delimiter, extname, resolve } from "node:path";
import { BARE_FLAGS } from "../chain/end.ts";
import type { Command } from "../client/command.ts";
import { explainRefusal } from "../process/refusal.ts";

/** Programs whose names say nothing of what they start. */
const STARTERS = new Set(["npx", "bunx", "uvx", "node", "bun", "deno", "tsx", "python", "python3", "sh", "bash"]);

/** What it may be called: "notes-mcp" of `npx -y @me/notes-mcp@1`, "server" of `node server.js`. */
export function programName({ command, args = [] }: Command): string {
  const own = basename(command);
  const started = STARTERS.has(own) ? args.find((word) => !BARE_FLAGS.has(word)) : undefined;
  const name = basename(started?.startsWith("-") === false ? started : own).replace(/(?<=.)@.*$/, "");
  return /^[\w.-]+$/.test(name) ? basename(name, extname(name)) : own;
}

/** Why it cannot; undefined where it can, as far as one can see. The system's code is the cause's. */
export async function startProblem({ command, cwd, env }: Command): Promise<Error | undefined> {
  const folder = cwd ?? ".";
  const path = env?.["PATH"] ?? process.env["PATH"] ?? "";
  const places = command.includes("/") ? [folder] : path.split(delimiter).map((place) => resolve(folder, place));
  const found = await Promise.all(places.map((place) => kindOf(resolve(place, command))));
  if ((await isFolder(folder)) && found.includes("program")) return undefined;
  const code = found.includes("other") ? "EACCES" : "ENOENT";
  return explainRefusal({ command, cwd }, { code });
}

async function kindOf(file: string): Promise<"program" | "other" | "nothing"> {
  const found = await stat(file).catch(() => undefined);
  if (found === undefined) return "nothing";
  const isAllowed = await access(file, constants.X_OK).then(
    () => true,
    () => false,
  );
  return found.isFile() && isAllowed ? "program" : "other";
}

async function isFolder(path: string): Promise<boolean> {
  return (await stat(path).catch(() => undefined))?.isDirectory() === true;
}
