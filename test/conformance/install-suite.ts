// Installs the official suite from suite/package-lock.json into suite/node_modules, by `npm ci` without install scripts.
// It is staged elsewhere and then renamed, so that concurrent or interrupted tests leave either a whole suite or none.
// The suite needs a newer Node than we support, so one is installed with it, in a folder of its own: a `node` in the root's
// node_modules would replace that of the machine in every npm script.

import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { copyFile, mkdir, mkdtemp, readFile, realpath, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { FileLock } from "../../src/auth/oauth/file-lock.ts";

const run = promisify(execFile);

const SUITE = fileURLToPath(new URL("suite/", import.meta.url));
const STAGING = fileURLToPath(new URL("../../node_modules/.cache/", import.meta.url));
const MODULES = join(SUITE, "node_modules");
/** Contains the hash of the lock file that was installed. */
const STAMP = ".filled-from";
const MIN_NODE = 22;
const INSTALL_TIMEOUT_MS = 180_000;
/** Few retries: without a network npm would try for minutes. */
const NPM_OPTIONS = ["--ignore-scripts", "--no-audit", "--no-fund", "--fetch-retries=1"];
/** The errors of npm without a network. Any other error fails the tests. */
const UNREACHABLE = /\b(?:ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|EHOSTUNREACH)\b/;

export interface InstalledSuite {
  /** The Node that runs the suite. */
  readonly node: string;
  readonly script: string;
}

/** Returns the installed suite, or the reason where it is missing and no registry can be reached. */
export async function installSuite(): Promise<InstalledSuite | string> {
  const hash = createHash("sha256")
    .update(await readFile(join(SUITE, "package-lock.json")))
    .digest("hex");
  if ((await readStamp(MODULES)) !== hash) {
    // Several test files need the suite at the same time; one of them installs it.
    const reason = await new FileLock(join(STAGING, "catenary-locks")).exclusively("suite", async () =>
      (await readStamp(MODULES)) === hash ? undefined : install(hash),
    );
    if (reason !== undefined) return reason;
  }
  return { node: suiteNode(), script: join(MODULES, "@modelcontextprotocol/conformance/dist/index.js") };
}

async function readStamp(modules: string): Promise<string | undefined> {
  return readFile(join(modules, STAMP), "utf8").catch(() => undefined);
}

async function install(hash: string): Promise<string | undefined> {
  await mkdir(STAGING, { recursive: true });
  // The real path, because npm takes a symbolic link to a folder for a linked package.
  const staging = await mkdtemp(join(await realpath(STAGING), "conformance-"));
  try {
    await Promise.all(
      ["package.json", "package-lock.json"].map((name) => copyFile(join(SUITE, name), join(staging, name))),
    );
    await run("npm", ["ci", ...NPM_OPTIONS, "--prefix", staging], { cwd: staging, timeout: INSTALL_TIMEOUT_MS });
    await writeFile(join(staging, "node_modules", STAMP), hash);
    if (existsSync(MODULES)) await rename(MODULES, join(staging, "before"));
    await rename(join(staging, "node_modules"), MODULES);
    return undefined;
  } catch (error) {
    // Another test may have installed it meanwhile.
    if ((await readStamp(MODULES)) === hash) return undefined;
    const [unreachable] = UNREACHABLE.exec((error as { readonly stderr?: string }).stderr ?? "") ?? [];
    if (unreachable === undefined) throw error;
    return `npm cannot reach the registry (${unreachable})`;
  } finally {
    await rm(staging, { recursive: true, force: true });
  }
}

function suiteNode(): string {
  const installed = join(MODULES, `node-${process.platform}-${process.arch}/bin/node`);
  if (existsSync(installed)) return installed;
  if (Number.parseInt(process.versions.node, 10) >= MIN_NODE) return process.execPath;
  throw new Error(`The conformance suite needs Node ${MIN_NODE}, which it does not bring for ${process.platform}`);
}
