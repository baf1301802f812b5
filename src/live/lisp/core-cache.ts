// Caches what makes sessions start faster: the compiled guest, and a core (an SBCL image with the guest loaded).
// File names contain a digest of the SBCL build and of the sources, so a stale file is never used. A separate SBCL
// process saves the core in the background.

import { createHash, randomUUID } from "node:crypto";
import { access, constants, readdir, readFile, rename, rm, stat, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { cacheFolder, makeDirectory } from "../../core/files.ts";
import { errorMessage } from "../../core/values.ts";
import { startChild, type Child } from "../../process/child.ts";
import { runtimeOptions, toplevelOptions, type LispSources, type Sbcl } from "./sbcl.ts";

/** How many cores of other builds and sources are kept: the most recently used ones. A core takes about 45 MB. */
const MAX_OTHER_CORES = 2;
/**
 * A file younger than this is not deleted, since another process may be writing or using it. The age of a core does not
 * matter: only `MAX_OTHER_CORES` of them are kept.
 */
const MIN_DELETE_AGE_MS = 3_600_000;

export class CoreCache {
  readonly core: string;
  readonly fasl: string;
  readonly #sizeFile: string;
  readonly #folder: string;
  readonly #key: string;
  readonly #sbcl: Sbcl;
  readonly #sources: LispSources;
  #saver: Child | undefined;
  #isClosed = false;

  constructor(sbcl: Sbcl, sources: LispSources) {
    this.#sbcl = sbcl;
    this.#sources = sources;
    this.#key = createHash("sha256")
      .update(JSON.stringify([sbcl.identity, sources.digest]))
      .digest("hex")
      .slice(0, 32);
    this.#folder = join(cacheFolder(), "lisp");
    this.core = join(this.#folder, `${this.#key}.core`);
    this.fasl = join(this.#folder, `${this.#key}.fasl`);
    this.#sizeFile = join(this.#folder, `${this.#key}.json`);
  }

  /** The arguments for start.lisp. */
  startArguments(mode: "guest" | "core", core = "-"): readonly string[] {
    return [mode, this.fasl, core, ...this.#sources.files];
  }

  /** Creates the folder. Resolves to an error if nothing can be cached; then every session starts from the sources. */
  async prepare(): Promise<Error | undefined> {
    try {
      await makeDirectory(this.#folder);
      await access(this.#folder, constants.W_OK);
      return undefined;
    } catch (error) {
      return new Error(
        `Lisp sessions start slowly, because the cache folder cannot be used (${errorMessage(error)}); ` +
          "set CATENARY_CACHE to a writable folder",
        { cause: error },
      );
    }
  }

  /** Whether there is a core of the right size. If its content is damaged, the guest that starts from it will fail. */
  async hasCore(): Promise<boolean> {
    try {
      const [file, json] = await Promise.all([stat(this.core), readFile(this.#sizeFile, "utf8")]);
      return (JSON.parse(json) as { size?: unknown }).size === file.size;
    } catch {
      return false;
    }
  }

  async hasCompiled(): Promise<boolean> {
    return stat(this.fasl).then(
      () => true,
      () => false,
    );
  }

  /** Saves a core; rejects with SBCL's stderr if that fails. */
  async save(): Promise<void> {
    const problem = await this.prepare();
    if (problem !== undefined) throw problem;
    const draft = join(this.#folder, `${this.#key}.${randomUUID()}.tmp`);
    try {
      const { start } = this.#sources;
      const args = [...runtimeOptions(), ...toplevelOptions(start, this.startArguments("core", draft))];
      const child = await startChild({ command: this.#sbcl.command, args });
      this.#saver = child;
      child.stdout.resume();
      if (this.#isClosed) await child.close(0);
      const { code, signal } = await child.finished;
      if (code !== 0) throw new Error(`SBCL exited with ${signal ?? code}: ${child.stderrTail().trim()}`);
      const { size } = await stat(draft);
      await rename(draft, this.core);
      await writeFile(this.#sizeFile, JSON.stringify({ size }), { mode: 0o600 });
      await this.#deleteOld();
    } finally {
      this.#saver = undefined;
      await rm(draft, { force: true }).catch(() => undefined);
    }
  }

  /** Marks the core as recently used. */
  async touch(): Promise<void> {
    const now = new Date();
    await utimes(this.core, now, now).catch(() => undefined);
  }

  /** Deletes a core that does not start. A damaged compiled guest needs no such step: start.lisp replaces it. */
  async drop(): Promise<void> {
    await Promise.all([this.#sizeFile, this.core].map((path) => rm(path, { force: true }).catch(() => undefined)));
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#saver?.close(0);
  }

  async #deleteOld(): Promise<void> {
    const names = (await readdir(this.#folder)).filter((name) => !name.startsWith(this.#key) || name.endsWith(".tmp"));
    const files = await Promise.all(names.map((name) => this.#withModifiedMs(name)));
    const drafts = files.filter(
      ({ name, modifiedMs }) => name.endsWith(".tmp") && Date.now() - modifiedMs > MIN_DELETE_AGE_MS,
    );
    const cores = files.filter(({ name }) => name.endsWith(".core")).toSorted((a, b) => b.modifiedMs - a.modifiedMs);
    const kept = new Set(cores.slice(0, MAX_OTHER_CORES).map(({ name }) => name.slice(0, 32)));
    const stale = files.filter(({ name, modifiedMs }) => {
      const isOurs = /^[0-9a-f]{32}\.(core|fasl|json)$/.test(name);
      return (
        isOurs &&
        !kept.has(name.slice(0, 32)) &&
        Date.now() - modifiedMs > (name.endsWith(".core") ? 0 : MIN_DELETE_AGE_MS)
      );
    });
    await Promise.all([...drafts, ...stale].map(({ name }) => rm(join(this.#folder, name), { force: true })));
  }

  async #withModifiedMs(name: string): Promise<{ readonly name: string; readonly modifiedMs: number }> {
    const file = await stat(join(this.#folder, name)).catch(() => undefined);
    return { name, modifiedMs: file?.mtimeMs ?? 0 };
  }
}
