// Finds SBCL and the Lisp sources of the guest, and builds SBCL's command-line options. Nothing here starts SBCL. The
// sources ship with the package and are compiled on the user's machine.

import { createHash } from "node:crypto";
import { constants } from "node:fs";
import { access, readdir, readFile, realpath, stat } from "node:fs/promises";
import { delimiter, join, resolve } from "node:path";
import { ConnectionError } from "../../core/errors.ts";
import { packageFile } from "../../core/files.ts";

export interface Sbcl {
  readonly command: string;
  /** Identifies the build: a core works with one build of SBCL only. */
  readonly identity: string;
}

/** With less, SBCL cannot hold its own core and copy it during a garbage collection. */
const MIN_MEMORY_MB = 128;
const STACK_MB = 2;

const INSTALL = "install it (Debian and Ubuntu: apt-get install sbcl; macOS: brew install sbcl)";

/** Rejects with a ConnectionError that says what to install if SBCL is not found. */
export async function findSbcl(command = "sbcl", path: string = process.env["PATH"] ?? ""): Promise<Sbcl> {
  const files = command.includes("/")
    ? [resolve(command)]
    : path.split(delimiter).map((folder) => join(resolve(folder), command));
  for (const file of files) {
    const sbcl = await inspectFile(file);
    if (sbcl !== undefined) return sbcl;
  }
  const problem = command.includes("/") ? "is not an executable file" : "is not on the PATH";
  const message = `Common Lisp sessions need SBCL, but ${command} ${problem}; ${INSTALL}, or give the path of the program`;
  throw new ConnectionError("spawn", message, { mayHaveRun: false });
}

async function inspectFile(path: string): Promise<Sbcl | undefined> {
  try {
    await access(path, constants.X_OK);
    const real = await realpath(path);
    const file = await stat(real);
    if (!file.isFile()) return undefined;
    const { SBCL_HOME: home, SBCL_CORE: core } = process.env;
    return { command: path, identity: JSON.stringify([real, file.size, file.mtimeMs, home ?? "", core ?? ""]) };
  } catch {
    return undefined;
  }
}

/** The options of SBCL's runtime, which must come before those of its toplevel. */
export function runtimeOptions(memoryMb?: number): readonly string[] {
  const heap = memoryMb === undefined ? [] : ["--dynamic-space-size", `${Math.max(MIN_MEMORY_MB, memoryMb)}MB`];
  // With --lose-on-corruption, which --script implies, a stack overflow would end the process, so neither is used.
  return ["--noinform", ...heap, "--control-stack-size", `${STACK_MB}MB`, "--disable-ldb", "--end-runtime-options"];
}

/** The options of SBCL's toplevel for a start without a core. They load start.lisp, which reads `args`. */
export function toplevelOptions(start: string, args: readonly string[]): readonly string[] {
  return ["--no-sysinit", "--no-userinit", "--load", start, "--end-toplevel-options", ...args];
}

/** The source folder, whether this file runs from src or from dist. */
const FOLDER = packageFile("src/live/lisp/");

/** Each file needs those before it. Then tools.lisp is loaded, and last the tools-*.lisp files, which need it. */
const GUEST_FILES = [
  "package",
  "json",
  "channel",
  "request",
  "streams",
  "position",
  "backtrace",
  "guard",
  "heap",
  "evaluate",
  "tools",
  "job",
  "handoff",
  "main",
  "prewarm",
].map((name) => `guest-${name}.lisp`);

export interface LispSources {
  /** The file that SBCL loads; it gets the other files as arguments. */
  readonly start: string;
  readonly files: readonly string[];
  /** A digest of the content of all files. */
  readonly digest: string;
}

let sources: Promise<LispSources> | undefined;

/** Reads the sources once: a running process does not notice changes. */
export function lispSources(): Promise<LispSources> {
  sources ??= readSources();
  return sources;
}

async function readSources(): Promise<LispSources> {
  const tools = (await readdir(FOLDER)).filter((name) => /^tools-.*\.lisp$/.test(name)).toSorted();
  const names = [...GUEST_FILES, "tools.lisp", ...tools];
  const contents = await Promise.all(["start.lisp", ...names].map((name) => readFile(join(FOLDER, name))));
  const digest = createHash("sha256");
  for (const content of contents) digest.update(`${content.length}\n`).update(content);
  return {
    start: join(FOLDER, "start.lisp"),
    files: names.map((name) => join(FOLDER, name)),
    digest: digest.digest("hex"),
  };
}
