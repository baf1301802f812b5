// Installs the packages of a folder's package-lock.json into its node_modules, by `npm ci` without install scripts. They
// are staged elsewhere and then renamed, so that concurrent or interrupted runs leave either all of them or none. For
// packages that are too heavy, or too much like ours, to be dependencies of the project.

import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { copyFile, mkdir, mkdtemp, readFile, realpath, rename, rm, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { fileLock } from "../../src/core/file-lock.ts";

const run = promisify(execFile);

const STAGING = fileURLToPath(new URL("../../node_modules/.cache/", import.meta.url));
/** Contains the hash of the lock file that was installed. */
const STAMP = ".filled-from";
const INSTALL_TIMEOUT_MS = 180_000;
/** Few retries: without a network npm would try for minutes. */
const NPM_OPTIONS = ["--ignore-scripts", "--no-audit", "--no-fund", "--fetch-retries=1"];
/** The errors of npm without a network. Any other error is thrown. */
const UNREACHABLE = /\b(?:ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|EHOSTUNREACH)\b/;

/** Resolves to the reason where the packages are missing and no registry can be reached. */
export async function installPackages(folder: string): Promise<string | undefined> {
  const hash = createHash("sha256")
    .update(await readFile(join(folder, "package-lock.json")))
    .digest("hex");
  const isInstalled = async (): Promise<boolean> => (await readStamp(folder)) === hash;
  if (await isInstalled()) return undefined;
  // Several test files need the same packages at the same time; one of them installs them.
  return fileLock(join(STAGING, "catenary-locks")).exclusively(basename(folder), async () =>
    (await isInstalled()) ? undefined : install(folder, hash),
  );
}

/** The reason why npm failed, if that is the network. Throws any other error. */
export function unreachableRegistry(error: unknown): string {
  const [unreachable] = UNREACHABLE.exec((error as { readonly stderr?: string }).stderr ?? "") ?? [];
  if (unreachable === undefined) throw error;
  return `npm cannot reach the registry (${unreachable})`;
}

async function readStamp(folder: string): Promise<string | undefined> {
  return readFile(join(folder, "node_modules", STAMP), "utf8").catch(() => undefined);
}

async function install(folder: string, hash: string): Promise<string | undefined> {
  await mkdir(STAGING, { recursive: true });
  // The real path, because npm takes a symbolic link to a folder for a linked package.
  const staging = await mkdtemp(join(await realpath(STAGING), `${basename(folder)}-`));
  const modules = join(folder, "node_modules");
  try {
    await Promise.all(
      ["package.json", "package-lock.json"].map((name) => copyFile(join(folder, name), join(staging, name))),
    );
    await run("npm", ["ci", ...NPM_OPTIONS, "--prefix", staging], { cwd: staging, timeout: INSTALL_TIMEOUT_MS });
    await writeFile(join(staging, "node_modules", STAMP), hash);
    if (existsSync(modules)) await rename(modules, join(staging, "before"));
    await rename(join(staging, "node_modules"), modules);
    return undefined;
  } catch (error) {
    // Another process may have installed them meanwhile.
    if ((await readStamp(folder)) === hash) return undefined;
    return unreachableRegistry(error);
  } finally {
    await rm(staging, { recursive: true, force: true });
  }
}
