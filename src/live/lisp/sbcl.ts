// Where SBCL is, and how it is called: the options of its runtime come before those of its toplevel, or it does not
// start. Nothing here starts it.

import { constants } from "node:fs";
import { access, realpath, stat, readdir, readFile } from "node:fs/promises";
import { delimiter, join, resolve } from "node:path";
import { ConnectionError } from "../../core/errors.ts";
import { createHash } from "node:crypto";
import { fileURLToPath } from "node:url";

export interface Sbcl {
  readonly command: string;
  /** What makes it another than others: a core is good for one build of SBCL alone. */
  readonly identity: string;
}

/** Less than this, and SBCL cannot hold its own core and copy it. */
const LEAST_MEMORY_MB = 128;
const STACK_MB = 2;

const INSTALL = "install it (Debian and Ubuntu: apt-get install sbcl; macOS: brew install sbcl)";

/** Rejects with a ConnectionError that says what to install where there is none. */
export async function findSbcl(command = "sbcl", path: string = process.env["PATH"] ?? ""): Promise<Sbcl> {
  const places = command.includes("/")
    ? [resolve(command)]
    : path.split(delimiter).map((folder) => join(resolve(folder), command));
  for (const place of places) {
    const sbcl = await inspect(place);
    if (sbcl !== undefined) return sbcl;
  }
  const where = command.includes("/") ? "is no program" : "is not on the PATH";
  throw new ConnectionError(
    "spawn",
    `Common Lisp sessions need SBCL, and ${command} ${where}; ${INSTALL}, or name its program`,
    {
      mayHaveRun: false,
    },
  );
}

async function inspect(place: string): Promise<Sbcl | undefined> {
  try {
    await access(place, constants.X_OK);
    const real = await realpath(place);
    const file = await stat(real);
    if (!file.isFile()) return undefined;
    const { SBCL_HOME: home, SBCL_CORE: core } = process.env;
    return { command: place, identity: JSON.stringify([real, file.size, file.mtimeMs, home ?? "", core ?? ""]) };
  } catch {
    return undefined;
  }
}

export function runtimeOptions(memoryMb?: number): readonly string[] {
  const heap = memoryMb === undefined ? [] : ["--dynamic-space-size", `${Math.max(LEAST_MEMORY_MB, memoryMb)}MB`];
  // Never --lose-on-corruption, nor --script, which has it in it: a full stack would end the process.
  return ["--noinform", ...heap, "--control-stack-size", `${STACK_MB}MB`, "--disable-ldb", "--end-runtime-options"];
}

/** The toplevel's part when no core is used: load the starter, which reads the words after it. */
export function startOptions(start: string, words: readonly string[]): readonly string[] {
  return ["--no-sysinit", "--no-userinit", "--load", start, "--end-toplevel-options", ...words];
}

// The Lisp sources of the guest: where they are, in which order SBCL loads them, and a digest of all that they say, by
// which what was compiled from them is known. They ship with the package as they are. Nothing here starts SBCL.

/** The same folder, whether this file runs from src or from dist. */
const FOLDER = fileURLToPath(new URL("./", import.meta.url));

/** Each needs those before it. The tools come after, by their names; what they share is in tools.lisp. */
const GUEST = [
  "package",
  "json",
  "wire",
  "request",
  "streams",
  "place",
  "frames",
  "guard",
  "heap",
  "evaluate",
  "tools",
  "job",
  "desk",
  "main",
  "warm",
].map((name) => `guest-${name}.lisp`);

export interface LispSources {
  /** What SBCL is given to load; it is told of the others. */
  readonly start: string;
  readonly files: readonly string[];
  readonly digest: string;
}

let found: Promise<LispSources> | undefined;

/** Read once: a process that runs does not see them change. */
export function lispSources(): Promise<LispSources> {
  found ??= look();
  return found;
}

async function look(): Promise<LispSources> {
  const tools = (await readdir(FOLDER)).filter((name) => /^tools-.*\.lisp$/.test(name)).toSorted();
  const names = [...GUEST, "tools.lisp", ...tools];
  const texts = await Promise.all(["start.lisp", ...names].map((name) => readFile(join(FOLDER, name))));
  const digest = createHash("sha256");
  for (const text of texts) digest.update(`${text.length}\n`).update(text);
  return {
    start: join(FOLDER, "start.lisp"),
    files: names.map((name) => join(FOLDER, name)),
    digest: digest.digest("hex"),
  };
}
