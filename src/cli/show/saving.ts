// Bytes of an end, written to files on request. A name is ours: what an end suggests is only looked at for letters that
// are harmless in a file name, and what kind of file it is follows from the media type alone. A file that is there is
// never replaced unless the person says so.

import { open, stat } from "node:fs/promises";
import { join, parse } from "node:path";
import { makeFolder } from "../../core/files.ts";
import { errorMessage } from "../../core/text.ts";
import { UsageError } from "../exit-codes.ts";

export interface Destination {
  /** Every binary goes into this folder, under a name of its own. */
  readonly folder?: string | undefined;
  /** The first goes into this file; those that follow, beside it with a number. */
  readonly file?: string | undefined;
  readonly force: boolean;
}

export const SAVE_FLAGS = {
  save: { type: "string" },
  output: { type: "string" },
  force: { type: "boolean" },
} as const;

export const SAVE_HELP = `Files:
  --save DIR             write images, audio and other bytes to files in this folder
  --output FILE          write them to this file; a second one goes beside it, with a number
  --force                replace files that are there already
`;

const EXTENSIONS: Readonly<Record<string, string>> = {
  "application/gzip": "gz",
  "application/json": "json",
  "application/pdf": "pdf",
  "application/xml": "xml",
  "application/zip": "zip",
  "audio/aac": "aac",
  "audio/flac": "flac",
  "audio/mp4": "m4a",
  "audio/mpeg": "mp3",
  "audio/ogg": "ogg",
  "audio/wav": "wav",
  "audio/wave": "wav",
  "audio/webm": "weba",
  "audio/x-wav": "wav",
  "image/avif": "avif",
  "image/bmp": "bmp",
  "image/gif": "gif",
  "image/jpeg": "jpg",
  "image/png": "png",
  "image/svg+xml": "svg",
  "image/tiff": "tiff",
  "image/webp": "webp",
  "text/css": "css",
  "text/csv": "csv",
  "text/html": "html",
  "text/markdown": "md",
  "text/plain": "txt",
  "video/mp4": "mp4",
  "video/webm": "webm",
};

/** Numbers that are tried for a free name. */
const MOST_TRIES = 10_000;
const LONGEST_STEM = 60;

/** Before anything is asked of an end: what is wrong with the destination is known then. */
export async function destination(values: {
  readonly save?: string;
  readonly output?: string;
  readonly force?: true;
  readonly json?: true;
}): Promise<Destination> {
  const { save: folder, output: file, force = false, json } = values;
  if (json === true && (folder ?? file) !== undefined) {
    throw new UsageError(`--json or --${file === undefined ? "save" : "output"}: the document has all that came`);
  }
  if (folder !== undefined && file !== undefined) throw new UsageError("--save or --output: one of them, not both");
  if (force && folder === undefined && file === undefined) throw new UsageError("--force goes with --save or --output");
  const found = await stat(folder ?? file ?? ".").catch(() => undefined);
  if (folder !== undefined && found?.isDirectory() === false) throw new UsageError(`--save ${folder} is no folder`);
  if (file !== undefined && found?.isDirectory() === true)
    throw new UsageError(`--output ${file} is a folder; --save writes into one`);
  if (file !== undefined && found !== undefined && !force) {
    throw new UsageError(`${file} is there already; --force replaces it`);
  }
  return { folder, file, force };
}

export class Saver {
  readonly #to: Destination;
  readonly #written = new Set<string>();

  constructor(to: Destination) {
    this.#to = to;
  }

  get isWanted(): boolean {
    return this.#to.folder !== undefined || this.#to.file !== undefined;
  }

  /** How many files were written. */
  get count(): number {
    return this.#written.size;
  }

  /** The path of the file that it is now in. `hint` is what an end calls it: a word, or an address. */
  async save(bytes: Uint8Array, hint: string, mimeType?: unknown): Promise<string> {
    const { folder = ".", file } = this.#to;
    const { dir, name, ext } =
      file === undefined ? { dir: folder, name: stemOf(hint), ext: `.${extensionOf(mimeType)}` } : parse(file);
    await makeFolder(dir === "" ? "." : dir, 0o777);
    for (let number = 1; number <= MOST_TRIES; number += 1) {
      const path = join(dir, `${name}${number === 1 ? "" : `-${number}`}${ext}`);
      // What this run has written is not replaced by this run.
      if (this.#written.has(path) || !(await write(path, bytes, this.#to.force))) continue;
      this.#written.add(path);
      return path;
    }
    throw new UsageError(`${dir} has ${MOST_TRIES} files called ${name}; name another folder`);
  }
}

/** False where there is such a file already. */
async function write(path: string, bytes: Uint8Array, force: boolean): Promise<boolean> {
  try {
    // Exclusive: neither a file nor a link that stands there is followed.
    const file = await open(path, force ? "w" : "wx");
    try {
      await file.writeFile(bytes);
    } finally {
      await file.close();
    }
    return true;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "EEXIST") return false;
    throw new UsageError(`${path} cannot be written: ${errorMessage(error)}`);
  }
}

/** From the last part of an address, or from a word: letters, digits and what is harmless between them. */
export function stemOf(hint: string): string {
  const last =
    hint
      .split(/[?#]/, 1)[0]
      ?.split("/")
      .findLast((part) => part !== "") ?? "";
  const stem = last
    .replace(/\.[A-Za-z0-9]{1,8}$/, "")
    .replaceAll(/[^A-Za-z0-9_-]+/g, "-")
    .replaceAll(/^-+|-+$/g, "")
    .slice(0, LONGEST_STEM);
  return stem === "" || RESERVED.test(stem) ? "content" : stem;
}

/** Names that some systems keep for devices. */
const RESERVED = /^(?:con|prn|aux|nul|com\d|lpt\d)$/i;

export function extensionOf(mimeType: unknown): string {
  const type = typeof mimeType === "string" ? (mimeType.split(";", 1)[0] ?? "").trim().toLowerCase() : "";
  return Object.hasOwn(EXTENSIONS, type) ? (EXTENSIONS[type] ?? "bin") : "bin";
}
