// Where what can be had again is kept: `$CATENARY_CACHE`, else the XDG cache folder, else `~/.cache/catenary`.

import { homedir } from "node:os";
import { isAbsolute, join, dirname } from "node:path";
import { mkdir, stat } from "node:fs/promises";

export function cacheFolder(env: Readonly<Record<string, string | undefined>> = process.env): string {
  const { CATENARY_CACHE: own, XDG_CACHE_HOME: xdg } = env;
  if (own !== undefined && own !== "") return own;
  // The XDG page: a path that is not absolute is to be passed over.
  const base = xdg !== undefined && isAbsolute(xdg) ? xdg : join(homedir(), ".cache");
  return join(base, "catenary");
}

// A folder, made wherever a person says that it is to be: not by Node's `recursive`, which never returns where a folder
// is there and nothing can be made in it, as in /proc.


/** Makes a folder with those above it, one by one; rejects where one of them cannot be made. */
export async function makeFolder(path: string, mode = 0o700): Promise<void> {
  if (await isMade(path, mode)) return;
  await makeFolder(dirname(path), mode);
  if (!(await isMade(path, mode))) throw new Error(`${path} cannot be made: its parent takes no folders`);
}

/** False where what is above it is missing, or is no place for folders. */
async function isMade(path: string, mode: number): Promise<boolean> {
  try {
    await mkdir(path, { mode });
    return true;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" && dirname(path) !== path) return false;
    // Some systems say so of a root rather than that it is there.
    if (await isFolder(path)) return true;
    throw error;
  }
}

async function isFolder(path: string): Promise<boolean> {
  return stat(path).then(
    (found) => found.isDirectory(),
    () => false,
  );
}
