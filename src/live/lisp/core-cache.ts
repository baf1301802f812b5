// What is kept between sessions so that the next is ready sooner: the compiled guest, and a core, which is SBCL's image
// with the guest in it. Both are in the cache folder under a digest of the SBCL that they are for and of the sources,
// so what is stale is never found. A core is saved by an SBCL of its own, beside the sessions; nobody waits for it.

import { createHash, randomUUID } from "node:crypto";
import { access, constants, readdir, readFile, rename, rm, stat, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { cacheFolder, makeFolder } from "../../core/files.ts";
import { errorMessage } from "../../core/text.ts";
import { startChild, type Child } from "../../process/child.ts";
import { runtimeOptions, startOptions, type Sbcl, type LispSources } from "./sbcl.ts";

/** Cores of other SBCLs and of other sources that are kept, the last used first; one has about 45 MB. */
const OTHERS_KEPT = 2;
/** What another process has begun to write is its own for so long. */
const DRAFT_MS = 3_600_000;

export class CoreCache {
  readonly core: string;
  readonly fasl: string;
  readonly #note: string;
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
    this.#note = join(this.#folder, `${this.#key}.json`);
  }

  /** The words for the starter. */
  words(what: "guest" | "core", core = "-"): readonly string[] {
    return [what, this.fasl, core, ...this.#sources.files];
  }

  /** Why nothing can be kept, where that is so: every session begins from the sources then. */
  async prepare(): Promise<Error | undefined> {
    try {
      await makeFolder(this.#folder);
      await access(this.#folder, constants.W_OK);
      return undefined;
    } catch (error) {
      return new Error(
        `Lisp sessions start slowly, because nothing can be kept for them (${errorMessage(error)}); ` +
          "CATENARY_CACHE may name a folder that can be written",
        { cause: error },
      );
    }
  }

  /** Whether there is a whole core. One that is damaged inside is found out by the guest that does not get ready. */
  async hasCore(): Promise<boolean> {
    try {
      const [file, note] = await Promise.all([stat(this.core), readFile(this.#note, "utf8")]);
      return (JSON.parse(note) as { size?: unknown }).size === file.size;
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

  /** Saves a core; rejects with what SBCL said when it could not. */
  async save(): Promise<void> {
    const fault = await this.prepare();
    if (fault !== undefined) throw fault;
    const draft = join(this.#folder, `${this.#key}.${randomUUID()}.tmp`);
    try {
      const { start } = this.#sources;
      const args = [...runtimeOptions(), ...startOptions(start, this.words("core", draft))];
      const child = await startChild({ command: this.#sbcl.command, args });
      this.#saver = child;
      child.stdout.resume();
      if (this.#isClosed) await child.close(0);
      const { code, signal } = await child.finished;
      if (code !== 0) throw new Error(`SBCL ended with ${signal ?? code}: ${child.stderrTail().trim()}`);
      const { size } = await stat(draft);
      await rename(draft, this.core);
      await writeFile(this.#note, JSON.stringify({ size }), { mode: 0o600 });
      await this.#makeRoom();
    } finally {
      this.#saver = undefined;
      await rm(draft, { force: true }).catch(() => undefined);
    }
  }

  /** The core was of use: it is not among the oldest. */
  async touch(): Promise<void> {
    const now = new Date();
    await utimes(this.core, now, now).catch(() => undefined);
  }

  /** The core is not to be trusted. The compiled guest looks after itself. */
  async drop(): Promise<void> {
    await Promise.all([this.#note, this.core].map((path) => rm(path, { force: true }).catch(() => undefined)));
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#saver?.close(0);
  }

  async #makeRoom(): Promise<void> {
    const names = (await readdir(this.#folder)).filter((name) => !name.startsWith(this.#key) || name.endsWith(".tmp"));
    const files = await Promise.all(names.map((name) => this.#aged(name)));
    const old = files.filter(({ name, at }) => name.endsWith(".tmp") && Date.now() - at > DRAFT_MS);
    const cores = files.filter(({ name }) => name.endsWith(".core")).toSorted((a, b) => b.at - a.at);
    const kept = new Set(cores.slice(0, OTHERS_KEPT).map(({ name }) => name.slice(0, 32)));
    const stale = files.filter(({ name, at }) => {
      const isOurs = /^[0-9a-f]{32}\.(core|fasl|json)$/.test(name);
      return isOurs && !kept.has(name.slice(0, 32)) && Date.now() - at > (name.endsWith(".core") ? 0 : DRAFT_MS);
    });
    await Promise.all([...old, ...stale].map(({ name }) => rm(join(this.#folder, name), { force: true })));
  }

  async #aged(name: string): Promise<{ readonly name: string; readonly at: number }> {
    const file = await stat(join(this.#folder, name)).catch(() => undefined);
    return { name, at: file?.mtimeMs ?? 0 };
  }
}
