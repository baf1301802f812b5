// Finds SBCL and the Lisp sources of the guest, and caches what makes sessions start faster: the compiled guest, and a
// core (an SBCL image with the guest loaded), which a separate SBCL process saves in the background. File names contain
// a digest of the SBCL build and of the sources, so a stale file is never used.

import { createHash, randomUUID } from "node:crypto";
import { constants } from "node:fs";
import { access, readdir, readFile, realpath, rm, stat, utimes } from "node:fs/promises";
import { delimiter, join, resolve } from "node:path";
import { ConnectionError } from "../../core/errors.ts";
import {
  cacheFolder,
  checkCacheFolder,
  isOwnCacheFile,
  makeDirectory,
  packageFile,
  replaceBy,
} from "../../core/files.ts";
import { errorMessage } from "../../core/values.ts";
import { startChild, type Child } from "../../process/child.ts";

interface Sbcl {
  readonly command: string;
  /** Identifies the build: a core works with one build of SBCL only. */
  readonly identity: string;
}

/** With less, SBCL cannot hold its own core and copy it during a garbage collection. */
const MIN_MEMORY_MB = 128;
/** SBCL's own default is 2; code that keeps the frames of tail calls needs more. */
const STACK_MB = 16;
/** How many cores of other builds and sources are kept: the most recently used ones. A core takes about 45 MB. */
const MAX_OTHER_CORES = 2;
/** A younger draft of a core is not deleted, since another process may be writing it. */
const MIN_DRAFT_AGE_MS = 3_600_000;

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
  const hint = { text: `${INSTALL}, or give the path of the program` };
  const message = `Common Lisp sessions need SBCL, but ${command} ${problem}`;
  throw new ConnectionError("spawn", message, { mayHaveRun: false, hint });
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
function runtimeOptions(memoryMb?: number): readonly string[] {
  const heap = memoryMb === undefined ? [] : ["--dynamic-space-size", `${Math.max(MIN_MEMORY_MB, memoryMb)}MB`];
  // With --lose-on-corruption, which --script implies, a stack overflow would end the process, so neither is used.
  return ["--noinform", ...heap, "--control-stack-size", `${STACK_MB}MB`, "--disable-ldb", "--end-runtime-options"];
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
  "handles",
  "backtrace",
  "guard",
  "heap",
  "evaluate",
  "tools",
  "calls",
  "job",
  "handoff",
  "hold",
  "main",
  "prewarm",
].map((name) => `guest-${name}.lisp`);

/** A path that no file can have. SBCL then loads the sources. */
const NOWHERE = "/dev/null/guest.fasl";

/** The file that SBCL loads; it gets the paths of the other files as arguments. */
const START = "start.lisp";

/** The names of the sources in the order in which they are loaded, and a digest of their content. */
async function readSources(): Promise<{ readonly names: readonly string[]; readonly digest: string }> {
  const tools = (await readdir(FOLDER)).filter((name) => /^tools-.*\.lisp$/.test(name)).toSorted();
  const names = [...GUEST_FILES, "tools.lisp", ...tools];
  const contents = await Promise.all([START, ...names].map((name) => readFile(join(FOLDER, name))));
  const digest = createHash("sha256");
  for (const content of contents) digest.update(`${content.length}\n`).update(content);
  return { names, digest: digest.digest("hex") };
}

/** An installed SBCL with the guest's sources, and the cache for this pair. */
export class Installation {
  readonly command: string;
  readonly #core: string;
  readonly #fasl: string;
  readonly #folder: string = join(cacheFolder(), "lisp");
  readonly #key: string;
  readonly #files: readonly string[];
  #saver: Child | undefined;
  #isClosed = false;
  /** Whether no other user can have put a file into the folder. */
  #isTrusted = false;

  private constructor({ command, identity }: Sbcl, names: readonly string[], digest: string) {
    this.command = command;
    this.#files = names.map((name) => join(FOLDER, name));
    this.#key = createHash("sha256")
      .update(JSON.stringify([identity, digest]))
      .digest("hex")
      .slice(0, 32);
    this.#core = join(this.#folder, `${this.#key}.core`);
    this.#fasl = join(this.#folder, `${this.#key}.fasl`);
  }

  /** Rejects with a ConnectionError that says what to install if SBCL is not found. */
  static async find(command: string | undefined, path: string | undefined): Promise<Installation> {
    const [sbcl, { names, digest }] = await Promise.all([findSbcl(command, path), readSources()]);
    return new Installation(sbcl, names, digest);
  }

  /** The files that a guest reads at its start. */
  get files(): readonly string[] {
    const { SBCL_HOME: home, SBCL_CORE: core } = process.env;
    return [FOLDER, this.#core, this.#fasl, home, core].filter((path) => path !== undefined && path !== "") as string[];
  }

  /** The arguments that start a guest from the core. */
  coreArguments(memoryMb: number, core: string = this.#core): readonly string[] {
    return ["--core", core, ...runtimeOptions(memoryMb)];
  }

  /** The arguments that start a guest from the compiled guest or the sources, or save a core in the file `draft`. */
  sourceArguments(memoryMb: number | undefined, draft?: string): readonly string[] {
    const start = ["--no-sysinit", "--no-userinit", "--load", join(FOLDER, START), "--end-toplevel-options"];
    const fasl = this.#isTrusted ? this.#fasl : NOWHERE;
    const mode = draft === undefined ? ["guest", fasl, "-"] : ["core", fasl, draft];
    return [...runtimeOptions(memoryMb), ...start, ...mode, ...this.#files];
  }

  /** Creates the folder. Resolves to an error if nothing can be cached; then every session starts from the sources. */
  async prepare(): Promise<Error | undefined> {
    try {
      this.#isTrusted = false;
      await makeDirectory(this.#folder);
      await checkCacheFolder(this.#folder);
      this.#isTrusted = !(await exists(this.#fasl)) || (await isOwnCacheFile(this.#fasl));
      if (!this.#isTrusted) await rm(this.#fasl);
      this.#isTrusted = true;
      await access(this.#folder, constants.W_OK);
      return undefined;
    } catch (error) {
      return new Error(
        `Lisp sessions start slowly, because the cache folder cannot be used (${errorMessage(error)}); ` +
          "set CATENARY_CACHE to a folder that only you can write to",
        { cause: error },
      );
    }
  }

  /** If its content is damaged, the guest that starts from it will fail. A core of another user is not used. */
  hasCore(): Promise<boolean> {
    return isOwnCacheFile(this.#core);
  }

  hasCompiled(): Promise<boolean> {
    return isOwnCacheFile(this.#fasl);
  }

  /** Saves a core, or marks it as recently used; rejects with SBCL's stderr if that fails. */
  async save(): Promise<void> {
    const now = new Date();
    if (await this.hasCore()) return utimes(this.#core, now, now).catch(() => undefined);
    const problem = await this.prepare();
    if (problem !== undefined) throw problem;
    const draft = join(this.#folder, `${this.#key}.${randomUUID()}.tmp`);
    await replaceBy(this.#core, () => this.#saveTo(draft), draft);
    await this.#deleteOld();
  }

  async #saveTo(draft: string): Promise<void> {
    try {
      const child = await startChild({ command: this.command, args: this.sourceArguments(undefined, draft) });
      this.#saver = child;
      child.stdout.resume();
      if (this.#isClosed) await child.close(0);
      const { code, signal } = await child.finished;
      if (code !== 0) throw new Error(`SBCL exited with ${signal ?? code}: ${child.stderrTail().trim()}`);
    } finally {
      this.#saver = undefined;
    }
  }

  /** Deletes a core that does not start. A damaged compiled guest needs no such step: start.lisp replaces it. */
  async drop(): Promise<void> {
    await rm(this.#core, { force: true }).catch(() => undefined);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#saver?.close(0);
  }

  async #deleteOld(): Promise<void> {
    const names = (await readdir(this.#folder)).filter((name) => /^[0-9a-f]{32}\.(?:core|fasl|.*tmp)$/.test(name));
    const cores = await Promise.all(
      names.map(async (name) => {
        const file = await stat(join(this.#folder, name)).catch(() => undefined);
        return { name, key: name.slice(0, 32), ageMs: Date.now() - (file?.mtimeMs ?? 0) };
      }),
    );
    const others = cores.filter(({ key }) => key !== this.#key).toSorted((one, other) => one.ageMs - other.ageMs);
    const kept = [this.#key, ...new Set(others.map(({ key }) => key))].slice(0, MAX_OTHER_CORES + 1);
    const old = cores.filter(({ name, key, ageMs }) =>
      name.endsWith(".tmp") ? ageMs > MIN_DRAFT_AGE_MS : !kept.includes(key),
    );
    await Promise.all(old.map(({ name }) => rm(join(this.#folder, name), { force: true })));
  }
}

function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
