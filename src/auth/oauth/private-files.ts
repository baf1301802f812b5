// Files and directories that are nobody else's business: made with owner-only rights from the first moment on, and
// refused where somebody widened them, or put something else in their place. Rights are looked at on what was opened,
// not on its name, so nothing can be exchanged in between. On Windows, which has no such rights, only kinds are
// looked at. Knows nothing of what stands in them.

import { constants } from "node:fs";
import { lstat, open, rename, rm } from "node:fs/promises";
import type { Stats } from "node:fs";
import { homedir } from "node:os";
import { dirname, isAbsolute, join } from "node:path";
import { makeFolder } from "../../core/files.ts";
import { ConnectionError } from "../../core/errors.ts";
import { errorMessage } from "../../core/text.ts";

const OTHERS = 0o077;

/** Where state is kept between runs, by the XDG rules: a relative path there does not count. */
export function stateDirectory(): string {
  const given = process.env["XDG_STATE_HOME"];
  const base = given !== undefined && isAbsolute(given) ? given : join(homedir(), ".local", "state");
  return join(base, "catenary");
}

/** Made where it is missing, with the directories above it; refused where others may look into it. */
export async function privateDirectory(path: string): Promise<void> {
  await told(`The directory ${path} could not be made`, () => makeFolder(path));
  const found = await told(`The directory ${path} could not be looked at`, () => lstat(path));
  if (!found.isDirectory()) throw refusal(`${path} is no directory; remove it, or name another path`);
  checkOwner(path, found, "chmod 700");
}

/** The whole text; undefined where there is no such file. */
export async function readPrivate(path: string): Promise<string | undefined> {
  let file;
  try {
    // Without waiting: a pipe in its place would otherwise hold us until somebody writes into it.
    file = await open(path, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0));
  } catch (error) {
    if (codeOf(error) === "ENOENT") return undefined;
    if (codeOf(error) === "ELOOP") {
      throw refusal(`${path} is a symbolic link; secrets are kept in plain files only: name the file itself`);
    }
    throw refusal(`${path} could not be opened: ${errorMessage(error)}`, error);
  }
  try {
    const found = await file.stat();
    if (!found.isFile()) throw refusal(`${path} is no plain file; remove it, or name another path`);
    checkOwner(path, found, "chmod 600");
    return await file.readFile("utf8");
  } finally {
    await file.close();
  }
}

/**
 * Replaces the whole file: whoever reads sees the old text or the new one, also after a crash. Only for one writer at
 * a time.
 */
export async function writePrivate(path: string, text: string): Promise<void> {
  const draft = `${path}.new`;
  await told(`${path} could not be written`, async () => {
    // Of a writer that crashed.
    await rm(draft, { force: true });
    const file = await open(draft, "wx", 0o600);
    try {
      await file.writeFile(text, "utf8");
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(draft, path);
  });
  await syncDirectory(dirname(path));
}

export function codeOf(error: unknown): string | undefined {
  return (error as NodeJS.ErrnoException | undefined)?.code;
}

/** The rename itself must reach the disk; not every system can be asked for that, and then it does by and by. */
async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path, "r").catch(() => undefined);
  await directory?.sync().catch(() => undefined);
  await directory?.close();
}

function checkOwner(path: string, found: Stats, remedy: string): void {
  const me = process.getuid?.();
  if (me === undefined) return;
  if (found.uid !== me) {
    throw refusal(`${path} belongs to another user (uid ${found.uid}); remove it, or name another path`);
  }
  if ((found.mode & OTHERS) !== 0) {
    const mode = (found.mode & 0o777).toString(8).padStart(3, "0");
    throw refusal(`${path} is open to others (mode ${mode}); it must be its owner's alone: run "${remedy} ${path}"`);
  }
}

async function told<T>(what: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw refusal(`${what}: ${errorMessage(error)}`, error);
  }
}

function refusal(message: string, cause?: unknown): ConnectionError {
  return new ConnectionError("refused", message, { mayHaveRun: false, ...(cause === undefined ? {} : { cause }) });
}
