// Brings the official suite here: what suite/package-lock.json names, into suite/node_modules, by `npm ci` without
// install scripts. It is staged elsewhere and moved in whole, so that two tests that want it at once, or one that is
// interrupted, leave either the whole suite or none. The suite needs a newer Node than we promise to run on, so one
// comes with it; it stands in that folder alone, because a `node` in the root's node_modules would take the place
// of the machine's own in every script.

import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { copyFile, mkdir, mkdtemp, readFile, realpath, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const run = promisify(execFile);

const SUITE = fileURLToPath(new URL("suite/", import.meta.url));
const STAGING = fileURLToPath(new URL("../../node_modules/.cache/", import.meta.url));
const MODULES = join(SUITE, "node_modules");
/** Says which lock file the folder was filled from. */
const STAMP = ".filled-from";
const LEAST_NODE = 22;
const INSTALL_MS = 180_000;
/** Where there is no network, npm would try for minutes. */
const HOW = ["--ignore-scripts", "--no-audit", "--no-fund", "--fetch-retries=1"];
/** What npm says where it found no way to a registry; anything else is a fault of ours, or of the registry. */
const UNREACHABLE = /\b(?:ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|EHOSTUNREACH)\b/;

export interface Installed {
  /** The Node that runs the suite. */
  readonly node: string;
  readonly script: string;
}

/** The suite, ready to be run; the reason as a text where it is not here and no registry can be reached. */
export async function installedSuite(): Promise<Installed | string> {
  const wanted = createHash("sha256")
    .update(await readFile(join(SUITE, "package-lock.json")))
    .digest("hex");
  if ((await stampIn(MODULES)) !== wanted) {
    const reason = await install(wanted);
    if (reason !== undefined) return reason;
  }
  return { node: suiteNode(), script: join(MODULES, "@modelcontextprotocol/conformance/dist/index.js") };
}

async function stampIn(modules: string): Promise<string | undefined> {
  return readFile(join(modules, STAMP), "utf8").catch(() => undefined);
}

async function install(wanted: string): Promise<string | undefined> {
  await mkdir(STAGING, { recursive: true });
  // By its real path: npm takes a folder behind a link for a package of its own.
  const stage = await mkdtemp(join(await realpath(STAGING), "conformance-"));
  try {
    await Promise.all(
      ["package.json", "package-lock.json"].map((name) => copyFile(join(SUITE, name), join(stage, name))),
    );
    await run("npm", ["ci", ...HOW, "--prefix", stage], { cwd: stage, timeout: INSTALL_MS });
    await writeFile(join(stage, "node_modules", STAMP), wanted);
    if (existsSync(MODULES)) await rename(MODULES, join(stage, "before"));
    await rename(join(stage, "node_modules"), MODULES);
    return undefined;
  } catch (error) {
    // Another test may have been quicker.
    if ((await stampIn(MODULES)) === wanted) return undefined;
    const [unreachable] = UNREACHABLE.exec((error as { readonly stderr?: string }).stderr ?? "") ?? [];
    if (unreachable === undefined) throw error;
    return `npm reaches no registry (${unreachable})`;
  } finally {
    await rm(stage, { recursive: true, force: true });
  }
}

function suiteNode(): string {
  const own = join(MODULES, `node-${process.platform}-${process.arch}/bin/node`);
  if (existsSync(own)) return own;
  if (Number.parseInt(process.versions.node, 10) >= LEAST_NODE) return process.execPath;
  throw new Error(`The conformance suite needs Node ${LEAST_NODE}, and there is none for ${process.platform}`);
}
