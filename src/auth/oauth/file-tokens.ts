// Tokens in one file of their owner's: a JSON object of texts, written whole and at once, under a lock that other
// processes keep too. Readers need no lock. A file that is no such object is put aside under another name, never
// overwritten: somebody may want what is in it.

import { rename } from "node:fs/promises";
import { join, resolve } from "node:path";
import { FileLock } from "./file-lock.ts";
import { readPrivate, stateDirectory, writePrivate } from "./private-files.ts";
import type { TokenStore } from "./token-store.ts";

export interface FileTokensOptions {
  /** Told what a person should know, such as that a broken file was put aside; a process warning where it is left out. */
  readonly onNotice?: (text: string) => void;
  /** How long one waits for another process that holds the lock, in milliseconds; six minutes where it is left out. */
  readonly waitMs?: number;
}

/** The lock on the file itself, beside those on keys. */
const WRITING = "the whole file";

/** @param path Where it is left out: `tokens.json` in `$XDG_STATE_HOME/catenary`, or in `~/.local/state/catenary`. */
export function fileTokens(path?: string, options: FileTokensOptions = {}): TokenStore {
  const file = path === undefined ? join(stateDirectory(), "tokens.json") : resolve(path);
  const lock = new FileLock(`${file}.locks`, options.waitMs);
  const notice = options.onNotice ?? ((text: string) => process.emitWarning(text));

  const read = async (): Promise<Map<string, string> | "broken"> => {
    const text = await readPrivate(file);
    return text === undefined ? new Map() : (entriesIn(text) ?? "broken");
  };

  /** Only for who holds the lock on the file: another may have put it aside already, and begun a new one. */
  const readOrPutAside = async (): Promise<Map<string, string>> => {
    const found = await read();
    if (found !== "broken") return found;
    const aside = `${file}.broken-${new Date().toISOString().replaceAll(/[:.]/g, "-")}`;
    await rename(file, aside);
    notice(
      `The token file ${file} could not be read as JSON; it was put aside as ${aside}, and you may have to sign in again`,
    );
    return new Map();
  };

  return {
    async get(key) {
      let found = await read();
      if (found === "broken") found = await lock.exclusively(WRITING, readOrPutAside);
      return found.get(key);
    },

    async set(key, value) {
      await lock.exclusively(WRITING, async () => {
        const entries = await readOrPutAside();
        if (value === undefined ? !entries.delete(key) : entries.get(key) === value) return;
        if (value !== undefined) entries.set(key, value);
        await writePrivate(file, `${JSON.stringify(Object.fromEntries(entries), undefined, 2)}\n`);
      });
    },

    exclusively: (key, work, signal) => lock.exclusively(`key ${key}`, work, signal),
  };
}

/** Undefined where it is anything but an object of texts. */
function entriesIn(text: string): Map<string, string> | undefined {
  try {
    const parsed: unknown = JSON.parse(text);
    if (typeof parsed !== "object" || parsed === null || Array.isArray(parsed)) return undefined;
    const entries = Object.entries(parsed as Record<string, unknown>);
    return entries.every(([, value]) => typeof value === "string") ? new Map(entries as [string, string][]) : undefined;
  } catch {
    return undefined;
  }
}
