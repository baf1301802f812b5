// Finds the cache directory and the files of this package, creates directories with their parents, reads files within a
// bound, replaces whole files, and checks that no other user can read or change what is ours.

import { randomUUID } from "node:crypto";
import { closeSync, constants, existsSync, fstatSync, openSync, readFileSync, readSync, type Stats } from "node:fs";
import { lstat, mkdir, rename, rm, stat, writeFile } from "node:fs/promises";
import { homedir, userInfo } from "node:os";
import { dirname, isAbsolute, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { fieldsOf, systemErrorCode } from "./values.ts";

/** A file or folder of this package. The build moves code to other files, so the nearest package.json tells the root. */
export function packageFile(path: string): string {
  let folder = dirname(fileURLToPath(import.meta.url));
  while (!existsSync(join(folder, "package.json")) && dirname(folder) !== folder) folder = dirname(folder);
  return join(folder, path);
}

/** The version of this package; "0.0.0" if package.json is missing, as it may be in a bundle. */
export function packageVersion(): string {
  try {
    const { version } = fieldsOf(JSON.parse(readFileSync(packageFile("package.json"), "utf8")));
    return typeof version === "string" ? version : "0.0.0";
  } catch {
    return "0.0.0";
  }
}

/** The user's folder. An empty or relative `$HOME` is ignored: files of the user would be written where the command runs. */
export function homeFolder(): string {
  const home = homedir();
  return isAbsolute(home) ? home : userInfo().homedir;
}

/** `$CATENARY_CACHE`, else `$XDG_CACHE_HOME/catenary`, else `~/.cache/catenary`. */
export function cacheFolder(env: Readonly<Record<string, string | undefined>> = process.env): string {
  const { CATENARY_CACHE: cache, XDG_CACHE_HOME: xdg } = env;
  if (cache !== undefined && cache !== "") return cache;
  // The XDG specification: a relative path must be ignored.
  const base = xdg !== undefined && isAbsolute(xdg) ? xdg : join(homeFolder(), ".cache");
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
    if (systemErrorCode(error) === "ENOENT" && dirname(path) !== path) return false;
    // For the root, some systems fail with a code other than EEXIST.
    if (await isDirectory(path)) return true;
    throw error;
  }
}

export interface OwnerCheck {
  /** The permissions that other users must not have. */
  readonly bits: number;
  /** The command that takes these permissions away. */
  readonly remedy: string;
  /** Whether a file of root is as good as our own. */
  readonly mayBeRoot?: boolean;
}

/** Why other users could read or change a file, and what to do; undefined if they cannot. */
export function ownerProblem(
  path: string,
  { uid, mode }: Pick<Stats, "uid" | "mode">,
  check: OwnerCheck,
): string | undefined {
  const ownUid = process.getuid?.();
  // Some systems have no such permissions.
  if (ownUid === undefined) return undefined;
  if (uid !== ownUid && !(check.mayBeRoot === true && uid === 0)) {
    return `${path} belongs to another user (uid ${uid}); remove it, or use another path`;
  }
  if ((mode & check.bits) === 0) return undefined;
  const bits = (mode & 0o777).toString(8).padStart(3, "0");
  return `${path} is accessible to other users (mode ${bits}): run "${check.remedy} ${path}"`;
}

const CACHE_CHECK: OwnerCheck = { bits: 0o022, remedy: "chmod go-w", mayBeRoot: true };
const WRITE_BY_ALL = 0o002;
const STICKY = 0o1000;

/**
 * Throws if another user could have put files into a cache folder: it, or the folder of caches that it is in, belongs to
 * another user or is writable by others; or one further up lets everybody replace it. In a folder with the sticky bit,
 * such as /tmp, no other user can replace what is ours.
 */
export async function checkCacheFolder(path: string): Promise<void> {
  if (process.getuid === undefined) return;
  for (let folder = resolve(path), depth = 0; ; folder = dirname(folder), depth += 1) {
    const stats = await stat(folder);
    const isSticky = depth > 0 && (stats.mode & STICKY) !== 0;
    const bits = isSticky ? 0 : depth < 2 ? CACHE_CHECK.bits : WRITE_BY_ALL;
    // Further up, the owner is not checked: in a container, it may have any number.
    const problem = ownerProblem(folder, depth < 2 ? stats : { mode: stats.mode, uid: 0 }, { ...CACHE_CHECK, bits });
    if (problem !== undefined) throw new Error(problem);
    if (dirname(folder) === folder) return;
  }
}

/** Whether a file in a cache folder exists and can only come from us. */
export async function isOwnCacheFile(path: string): Promise<boolean> {
  try {
    await checkCacheFolder(dirname(path));
    const stats = await lstat(path);
    return stats.isFile() && ownerProblem(path, stats, CACHE_CHECK) === undefined;
  } catch {
    return false;
  }
}

async function isDirectory(path: string): Promise<boolean> {
  return stat(path).then(
    (stats) => stats.isDirectory(),
    () => false,
  );
}

/**
 * The one atomic write: lets `write` create a file under another name and moves it to `path`, so that readers see the old
 * or the new content, even after a crash. If there is a symbolic link at the path, the link is replaced, and the file that
 * it points to stays as it is.
 */
export async function replaceBy<T>(
  path: string,
  write: (draft: string) => Promise<T>,
  draft = `${path}.${randomUUID()}`,
): Promise<T> {
  try {
    const written = await write(draft);
    await rename(draft, path);
    return written;
  } catch (error) {
    await rm(draft, { force: true }).catch(() => undefined);
    throw error;
  }
}

/** Writes a whole file, as `replaceBy`, and waits until it is on the disk. */
export function replaceFile(path: string, content: string | Uint8Array, mode = 0o666, draft?: string): Promise<void> {
  return replaceBy(path, (file) => writeFile(file, content, { flag: "wx", mode, flush: true }), draft);
}

/**
 * Reads a file that a config or a user names. Throws if it is not a regular file, since a pipe or a device may never end,
 * and if it is too long.
 */
export function readBoundedSync(path: string, maxBytes: number): Buffer {
  // O_NONBLOCK: opening a named pipe would otherwise wait for a writer. Browsers have no constants.
  const file = openSync(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
  try {
    const stats = fstatSync(file);
    if (!stats.isFile()) throw new Error(`${path} is not a regular file`);
    // The files of /proc say that they are empty. With room for one byte more than is allowed.
    const bytes = Buffer.alloc(Math.min(stats.size === 0 ? PROC_BYTES : stats.size, maxBytes) + 1);
    let length = 0;
    for (let read = -1; read !== 0 && length < bytes.length; length += read) {
      read = readSync(file, bytes, length, bytes.length - length, null);
    }
    if (length > maxBytes) throw new Error(`${path} is longer than ${maxBytes} bytes`);
    return bytes.subarray(0, length);
  } finally {
    closeSync(file);
  }
}

const PROC_BYTES = 65_536;

/** The same as a promise. Not read in parts: such files are short. */
export function readBounded(path: string, maxBytes: number): Promise<Buffer> {
  return new Promise((resolve) => resolve(readBoundedSync(path, maxBytes)));
}
