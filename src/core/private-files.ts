// Files that only their owner may access. They are created with owner-only permissions, and refused if another user could
// access them. The open file is checked, so it cannot be swapped between check and read.

import { constants, type Stats } from "node:fs";
import { lstat, open, rm } from "node:fs/promises";
import { isAbsolute, join } from "node:path";
import { refused } from "./errors.ts";
import { homeFolder, makeDirectory, ownerProblem, replaceFile } from "./files.ts";
import { errorMessage, systemErrorCode } from "./values.ts";

/** The XDG state folder for catenary. A relative `$XDG_STATE_HOME` is ignored, as XDG requires. */
export function stateDirectory(): string {
  const configured = process.env["XDG_STATE_HOME"];
  const base = configured !== undefined && isAbsolute(configured) ? configured : join(homeFolder(), ".local", "state");
  return join(base, "catenary");
}

/** Creates the directory and its parents if missing. Throws if other users can access it. */
export async function makePrivateDirectory(path: string): Promise<void> {
  await withContext(`The directory ${path} could not be created`, () => makeDirectory(path));
  const stats = await withContext(`The directory ${path} could not be checked`, () => lstat(path));
  if (!stats.isDirectory()) throw refused(`${path} is not a directory; remove it, or use another path`);
  checkOwner(path, stats, "chmod 700");
}

/** Returns the content, or undefined if there is no such file. */
export async function readPrivate(path: string): Promise<string | undefined> {
  let file;
  try {
    // O_NONBLOCK: opening a named pipe would otherwise wait for a writer.
    file = await open(path, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0));
  } catch (error) {
    if (systemErrorCode(error) === "ENOENT") return undefined;
    if (systemErrorCode(error) === "ELOOP") {
      throw refused(`${path} is a symbolic link, which is not allowed for secrets; use the path of the file itself`);
    }
    throw refused(`${path} could not be opened: ${errorMessage(error)}`, error);
  }
  try {
    const stats = await file.stat();
    if (!stats.isFile()) throw refused(`${path} is not a regular file; remove it, or use another path`);
    checkOwner(path, stats, "chmod 600");
    return await file.readFile("utf8");
  } finally {
    await file.close();
  }
}

/** Callers must lock the file. */
export async function writePrivate(path: string, text: string): Promise<void> {
  const draft = `${path}.new`;
  await withContext(`${path} could not be written`, async () => {
    // A writer that crashed may have left its draft.
    await rm(draft, { force: true });
    await replaceFile(path, text, 0o600, draft);
  });
}

function checkOwner(path: string, stats: Stats, remedy: string): void {
  const problem = ownerProblem(path, stats, { bits: 0o077, remedy });
  if (problem !== undefined) throw refused(problem);
}

async function withContext<T>(what: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw refused(`${what}: ${errorMessage(error)}`, error);
  }
}
