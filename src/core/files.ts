// Finds the cache directory and the files of this package, creates directories with their parents, and replaces files.

import { randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, rename, rm, stat, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { dirname, isAbsolute, join } from "node:path";
import { fileURLToPath } from "node:url";

/** A file or folder of this package. The build moves code to other files, so the nearest package.json tells the root. */
export function packageFile(path: string): string {
  let folder = dirname(fileURLToPath(import.meta.url));
  while (!existsSync(join(folder, "package.json")) && dirname(folder) !== folder) folder = dirname(folder);
  return join(folder, path);
}

/** `$CATENARY_CACHE`, else `$XDG_CACHE_HOME/catenary`, else `~/.cache/catenary`. */
export function cacheFolder(env: Readonly<Record<string, string | undefined>> = process.env): string {
  const { CATENARY_CACHE: own, XDG_CACHE_HOME: xdg } = env;
  if (own !== undefined && own !== "") return own;
  // The XDG specification: a relative path must be ignored.
  const base = xdg !== undefined && isAbsolute(xdg) ? xdg : join(homedir(), ".cache");
  return join(base, "catenary");
}

/**
 * Creates a directory and its parents, one by one. Node's `recursive` option never returns for a path such as /proc/x,
 * whose parent exists but accepts no directories. This function rejects.
 */
export async function makeDirectory(path: string, mode = 0o700): Promise<void> {
  if (await tryToMake(path, mode)) return;
  await makeDirectory(dirname(path), mode);
  if (!(await tryToMake(path, mode))) throw new Error(`Cannot create ${path}: its parent accepts no directories`);
}

/** False if the parent is missing, or accepts no directories. */
async function tryToMake(path: string, mode: number): Promise<boolean> {
  try {
    await mkdir(path, { mode });
    return true;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" && dirname(path) !== path) return false;
    // For the root, some systems fail with a code other than EEXIST.
    if (await isDirectory(path)) return true;
    throw error;
  }
}

async function isDirectory(path: string): Promise<boolean> {
  return stat(path).then(
    (found) => found.isDirectory(),
    () => false,
  );
}

/**
 * Writes a whole file, so that readers see the old or the new content, even after a crash. If there is a symbolic link at
 * the path, the link is replaced, and the file that it points to stays as it is.
 */
export async function replaceFile(path: string, content: string | Uint8Array, mode = 0o666): Promise<void> {
  const draft = `${path}.${randomUUID()}`;
  try {
    await writeFile(draft, content, { flag: "wx", mode, flush: true });
    await rename(draft, path);
  } catch (error) {
    await rm(draft, { force: true }).catch(() => undefined);
    throw error;
  }
}
