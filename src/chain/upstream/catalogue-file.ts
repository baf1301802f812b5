// Catalogues between two lives of this process: one file for each end and kind of caller, in the cache folder. What
// cannot be read or written is simply not remembered. The name of a file is a digest, so that nothing of a command's
// arguments or environment can be read from it; its content is what the end shows to its callers.

import { createHash, randomUUID } from "node:crypto";
import { readdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { isObject } from "../../core/objects.ts";
import { cacheFolder, makeFolder } from "../../core/files.ts";
import { LISTS, type Catalogue } from "./catalogue.ts";

/** Raised when what is written here means something else than before. */
const FORM = 1;
const MOST_BYTES = 4 * 1024 * 1024;
/** Files in the folder; when there are more, the oldest go. Callers choose what they declare, and each kind has its own. */
const MOST_FILES = 1_000;

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
      if ((await stat(this.#path)).size > MOST_BYTES) return undefined;
      const kept: unknown = JSON.parse(await readFile(this.#path, "utf8"));
      return isCatalogue(kept) ? kept : undefined;
    } catch {
      return undefined;
    }
  }

  async write(catalogue: Catalogue): Promise<void> {
    const text = JSON.stringify(catalogue);
    if (Buffer.byteLength(text) > MOST_BYTES) return;
    const draft = `${this.#path}.${randomUUID()}`;
    try {
      await makeFolder(this.#folder);
      await writeFile(draft, text, { mode: 0o600 });
      // Another process may write the same: whoever is last has written a whole file.
      await rename(draft, this.#path);
      await makeRoom(this.#folder);
    } catch {
      await rm(draft, { force: true }).catch(() => undefined);
    }
  }
}

async function makeRoom(folder: string): Promise<void> {
  const paths = (await readdir(folder)).map((name) => join(folder, name));
  if (paths.length <= MOST_FILES) return;
  const times = await Promise.all(paths.map(async (path) => (await stat(path).catch(() => undefined))?.mtimeMs ?? 0));
  const byAge = paths.map((path, index) => ({ path, at: times[index] ?? 0 })).toSorted((a, b) => a.at - b.at);
  // Some more than need be, so that it is not done again at once.
  const gone = byAge.slice(0, paths.length - Math.floor(MOST_FILES * 0.9));
  await Promise.all(gone.map(({ path }) => rm(path, { force: true }).catch(() => undefined)));
}

/** Whether an end could have said it: what others wrote here must not be shown, nor keep the end from being started. */
function isCatalogue(kept: unknown): kept is Catalogue {
  if (!isObject(kept) || !isObject(kept["discovered"]) || !isObject(kept["lists"])) return false;
  const { discovered, lists } = kept;
  const { resultType, capabilities = {} } = discovered;
  const isSaid = resultType === "complete" && isObject(capabilities);
  return isSaid && LISTS.every(({ method }) => lists[method] === undefined || isListOfObjects(lists[method]));
}

function isListOfObjects(list: unknown): boolean {
  return Array.isArray(list) && list.every((item) => isObject(item));
}
