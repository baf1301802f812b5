// A file to which lines are appended, each with one write, so that lines of several processes do not mix. It is opened
// with the first line, and again after a log rotation has moved it.

import { Buffer } from "node:buffer";
import type { FileHandle } from "node:fs/promises";
import { dirname } from "node:path";
import { errorMessage } from "../../core/values.ts";

/** How often it is checked whether the file was moved. */
const CHECK_MS = 1_000;

/** Only its owner may read it. */
export class AppendFile {
  readonly #path: string;
  #file: FileHandle | undefined;
  #checkedAt = -Infinity;
  /** Whether the last write stopped within a line. */
  #isTorn = false;

  constructor(path: string) {
    this.#path = path;
  }

  /** Rejects if lines could not be written now. */
  async open(): Promise<void> {
    const { open, stat } = await import("node:fs/promises");
    const now = performance.now();
    if (this.#file !== undefined && now - this.#checkedAt < CHECK_MS) return;
    this.#checkedAt = now;
    const [ours, there] = await Promise.all([this.#file?.stat(), stat(this.#path).catch(() => undefined)]);
    if (ours !== undefined && ours.ino === there?.ino && ours.dev === there.dev) return;
    await this.close();
    this.#file = await open(this.#path, "a", 0o600).catch((error: NodeJS.ErrnoException) => {
      const hint = error.code === "ENOENT" ? `: create the folder ${dirname(this.#path)}` : "";
      throw new Error(`${errorMessage(error)}${hint}`, { cause: error });
    });
  }

  async write(line: string): Promise<void> {
    const bytes = Buffer.from(`${this.#isTorn ? "\n" : ""}${line}\n`);
    const { bytesWritten = 0 } = (await this.#file?.write(bytes)) ?? {};
    this.#isTorn ||= bytesWritten > 0;
    if (bytesWritten < bytes.length) throw new Error(`${this.#path}: only a part of a line was written`);
    this.#isTorn = false;
  }

  async close(): Promise<void> {
    const file = this.#file;
    this.#file = undefined;
    if (file === undefined) return;
    // Some files, such as pipes, cannot be flushed.
    await file.sync().catch(() => undefined);
    await file.close();
  }
}
