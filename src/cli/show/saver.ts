// Saves content to files. With --save, the name is reduced to safe characters, and the extension depends only on the
// media type. An existing file is replaced only with --force.

import { stat, writeFile } from "node:fs/promises";
import { join, parse } from "node:path";
import { boolean } from "../../core/fields.ts";
import { makeDirectory, replaceFile } from "../../core/files.ts";
import { errorMessage } from "../../core/values.ts";
import { UsageError } from "../command.ts";
import { flag, type FlagValues, section } from "../flags.ts";

export interface Destination {
  /** Each saved part goes to a file of its own in this folder. */
  readonly folder?: string | undefined;
  /** The first saved part goes to this file; others go beside it, with a number. */
  readonly file?: string | undefined;
  readonly force: boolean;
}

/** The flags that say where content is saved. */
export const SAVE_FLAGS = section("Files", {
  save: flag("DIR", "Writes images, audio and other bytes to files in this folder."),
  output: flag("FILE", "Writes the first of them to this file. Others get a number in the name."),
  force: boolean("Replaces existing files."),
});

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

/** Numbers to try for a free name. */
const MAX_NUMBER = 10_000;
const MAX_STEM_LENGTH = 60;
/** Device names on Windows. */
const RESERVED = /^(?:con|prn|aux|nul|com\d|lpt\d)$/i;

/** Checks the destination before anything is sent to the server. */
export async function checkDestination(
  values: FlagValues<typeof SAVE_FLAGS> & { readonly json?: true },
): Promise<Destination> {
  const { save: folder, output: file, force = false, json } = values;
  if (json === true && (folder ?? file) !== undefined) {
    throw new UsageError(`Give --json or --${file === undefined ? "save" : "output"}, not both: --json has everything`);
  }
  if (folder !== undefined && file !== undefined) throw new UsageError("Give --save or --output, not both");
  if (force && folder === undefined && file === undefined) throw new UsageError("--force needs --save or --output");
  const stats = await stat(folder ?? file ?? ".").catch(() => undefined);
  if (folder !== undefined && stats?.isDirectory() === false) throw new UsageError(`--save ${folder} is not a folder`);
  if (file !== undefined && stats?.isDirectory() === true) {
    throw new UsageError(`--output ${file} is a folder; use --save to write into a folder`);
  }
  if (file !== undefined && stats !== undefined && !force) {
    throw new UsageError(`${file} already exists; use --force to replace it`);
  }
  return { folder, file, force };
}

export class Saver {
  readonly #destination: Destination;
  readonly #written = new Set<string>();

  constructor(destination: Destination) {
    this.#destination = destination;
  }

  get isEnabled(): boolean {
    return this.#destination.folder !== undefined || this.#destination.file !== undefined;
  }

  /** The number of files written. */
  get count(): number {
    return this.#written.size;
  }

  /** Returns the path of the file. `hint` is a word or a URI to name it after. */
  async save(bytes: Uint8Array, hint: string, mimeType?: unknown): Promise<string> {
    const { folder = ".", file } = this.#destination;
    const { dir, name, ext } =
      file === undefined ? { dir: folder, name: fileStem(hint), ext: `.${fileExtension(mimeType)}` } : parse(file);
    await makeDirectory(dir === "" ? "." : dir, 0o777);
    for (let number = 1; number <= MAX_NUMBER; number += 1) {
      const path = join(dir, `${name}${number === 1 ? "" : `-${number}`}${ext}`);
      // Even --force does not replace a file that this run has written.
      if (this.#written.has(path) || !(await write(path, bytes, this.#destination))) continue;
      this.#written.add(path);
      return path;
    }
    throw new UsageError(`${dir} has ${MAX_NUMBER} files called ${name}; use another folder`);
  }
}

/** False if the file exists already. */
async function write(path: string, bytes: Uint8Array, { force, file }: Destination): Promise<boolean> {
  try {
    // The server has a say in the name of a file in a folder, so a symbolic link there is not followed but replaced.
    if (force && file === undefined) await replaceFile(path, bytes);
    // Without --force, "x" fails on an existing file and does not follow a symbolic link.
    else await writeFile(path, bytes, { flag: force ? "w" : "wx" });
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw new UsageError(`Cannot write ${path}: ${errorMessage(error)}`);
  }
}

/** A safe file name from a word or the last segment of a URI. */
export function fileStem(hint: string): string {
  const parts = hint.split(/[?#]/, 1).flatMap((path) => path.split("/"));
  const stem = (parts.findLast((part) => part !== "") ?? "")
    .replace(/\.[A-Za-z0-9]{1,8}$/, "")
    .replaceAll(/[^A-Za-z0-9_-]+/g, "-")
    .replaceAll(/^-+|-+$/g, "")
    .slice(0, MAX_STEM_LENGTH);
  return stem === "" || RESERVED.test(stem) ? "content" : stem;
}

export function fileExtension(mimeType: unknown): string {
  const type = typeof mimeType === "string" ? (mimeType.split(";", 1)[0] ?? "").trim().toLowerCase() : "";
  return Object.hasOwn(EXTENSIONS, type) ? (EXTENSIONS[type] ?? "bin") : "bin";
}
