// Catalogues between two lives of this process: one file for each end and kind of caller, in the cache folder. What
// cannot be read or written is simply not remembered. The name of a file is a digest, so that nothing of a command's
// arguments or environment can be read from it; its content is what the end shows to its callers.

import { createHash, randomUUID } from "node:crypto";
import { mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { isObject } from "../protocol/check.ts";
import { cacheFolder } from "./cache-folder.ts";
import type { Catalogue } from "./catalogue.ts";

/** Raised when what is written here means something else than before. */
const FORM = 1;
const MOST_BYTES = 4 * 1024 * 1024;

export class CatalogueFile {
  readonly #path: string;
  readonly #folder: string;

  /** `identity`: all that makes this end another than others. */
  constructor(identity: unknown) {
    const name = createHash("sha256")
      .update(JSON.stringify([FORM, identity]))
      .digest("hex")
      .slice(0, 32);
    this.#folder = join(cacheFolder(), "catalogues");
    this.#path = join(this.#folder, `${name}.json`);
  }

  async read(): Promise<Catalogue | undefined> {
    try {
      const kept: unknown = JSON.parse(await readFile(this.#path, "utf8"));
      return isObject(kept) && isObject(kept["discovered"]) && isObject(kept["lists"])
        ? (kept as unknown as Catalogue)
        : undefined;
    } catch {
      return undefined;
    }
  }

  async write(catalogue: Catalogue): Promise<void> {
    const text = JSON.stringify(catalogue);
    if (text.length > MOST_BYTES) return;
    const draft = `${this.#path}.${randomUUID()}`;
    try {
      await mkdir(this.#folder, { recursive: true, mode: 0o700 });
      await writeFile(draft, text, { mode: 0o600 });
      // Another process may write the same: whoever is last has written a whole file.
      await rename(draft, this.#path);
    } catch {
      await rm(draft, { force: true }).catch(() => undefined);
    }
  }
}
