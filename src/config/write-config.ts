// Writes a changed config or another file with servers as a whole, and keeps the file as it was beside it.

import { readdir, rm, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { makeDirectory, readBounded, replaceFile } from "../core/files.ts";
import { MAX_CONFIG_BYTES } from "./document.ts";

/**
 * Writes the file and returns the path of the backup; undefined if there was no file. `before`: its text as it was read.
 * Throws if it has changed since, or is read-only. `real` is the path of the file itself, not of a link to it.
 */
export async function writeWithBackup(
  real: string,
  before: string | undefined,
  edited: string,
): Promise<string | undefined> {
  if (before === undefined) {
    await makeDirectory(dirname(real), 0o777);
    // Only for the user: the file may contain secrets.
    await replaceFile(real, edited, 0o600);
    return undefined;
  }
  if ((await readBounded(real, MAX_CONFIG_BYTES)).toString() !== before) {
    throw new Error("it has changed in the meantime; try again");
  }
  // The mode stays the same: the file may contain secrets.
  const mode = (await stat(real)).mode & 0o777;
  // The folder lets us replace the file, but somebody has protected it.
  if ((mode & 0o222) === 0) throw new Error("it is read-only; allow writing to it first");
  const backup = `${real}.${new Date().toISOString().replaceAll(/[:.]/g, "-")}.bak`;
  await replaceFile(backup, before, mode);
  await replaceFile(real, edited, mode);
  await removeOldBackups(real);
  return backup;
}

const MAX_BACKUPS = 3;

/** A backup that cannot be removed stays. */
async function removeOldBackups(real: string): Promise<void> {
  const start = `${basename(real)}.`;
  const isBackup = (name: string): boolean =>
    name.startsWith(start) && /^\d{4}-\d\d-\d\dT[\d-]+Z\.bak$/.test(name.slice(start.length));
  const names = (await readdir(dirname(real)).catch(() => [])).filter(isBackup).toSorted();
  const old = names.slice(0, -MAX_BACKUPS);
  await Promise.allSettled(old.map((name) => rm(join(dirname(real), name))));
}
