// Whether a program can be started, found out without starting it: it is looked for as the system would do it, so that a
// command which is not there is known before anybody waits for it. Why it cannot be is explained by refusal.ts.

import { constants } from "node:fs";
import { access, stat } from "node:fs/promises";
import { delimiter, resolve } from "node:path";
import { explainRefusal } from "./refusal.ts";

interface Startable {
  readonly command: string;
  readonly cwd?: string;
  /** Added to our own environment. */
  readonly env?: Readonly<Record<string, string>>;
}

/** Why it cannot; undefined where it can, as far as one can see. The system's code is the cause's. */
export async function startProblem({ command, cwd, env }: Startable): Promise<Error | undefined> {
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
