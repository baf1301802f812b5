// Token stores that outlive the process: a private file, and the system's keychain. Both use a file lock, so that
// several processes can share them.

import { createHash } from "node:crypto";
import { lstat, rename } from "node:fs/promises";
import { join, resolve } from "node:path";
import { callListener } from "../../core/listeners.ts";
import type { ConnectionError } from "../../core/errors.ts";
import { refused } from "../../core/errors.ts";
import { checkOptions, type OptionNames, optionNames } from "../../core/options.ts";
import { fileLock } from "../../core/file-lock.ts";
import { readPrivate, stateDirectory, writePrivate } from "../../core/private-files.ts";
import { errorMessage, isObject } from "../../core/values.ts";
import type { TokenStore } from "./types.ts";

/** Options of `fileTokens()`. */
export interface FileTokensOptions {
  /** Receives messages for the user, such as that a broken file was moved away. Default: a process warning. */
  readonly onNotice?: ((text: string) => void) | undefined;
  /** How long to wait for a lock that another process holds, in milliseconds. Default: six minutes. */
  readonly waitMs?: number | undefined;
}

/** A token store that can list its keys. */
export interface FileTokenStore extends TokenStore {
  /** The keys of all entries. */
  keys(): Promise<readonly string[]>;
}

const FILE_OPTIONS: OptionNames<FileTokensOptions> = optionNames("onNotice waitMs");

/** The name of the lock on the whole file. Other locks are on single keys. */
const WHOLE_FILE = "the whole file";

/**
 * Keeps tokens in one file that only its owner can read: a JSON object of strings, replaced as a whole. A file that
 * cannot be parsed is renamed, never overwritten.
 *
 * @param path Default: `tokens.json` in `$XDG_STATE_HOME/catenary` or `~/.local/state/catenary`.
 */
export function fileTokens(path?: string, options: FileTokensOptions = {}): FileTokenStore {
  checkOptions("fileTokens()", options, FILE_OPTIONS);
  const file = path === undefined ? join(stateDirectory(), "tokens.json") : resolve(path);
  const lock = fileLock(`${file}.locks`, options.waitMs);
  const onNotice = options.onNotice ?? ((text: string) => process.emitWarning(text));
  const notice = (text: string): void => callListener("onNotice", onNotice, [text]);

  /** Returns undefined if the file is broken. */
  const read = async (): Promise<Map<string, string> | undefined> => parseEntries((await readPrivate(file)) ?? "{}");

  /** What `get` has read last, and the state of the file then. `get` is called for every request. */
  let last: { readonly state: string; readonly entries: ReadonlyMap<string, string> } | undefined;

  const readIfChanged = async (): Promise<ReadonlyMap<string, string>> => {
    // Before the content, so that a change during the read is noticed by the next.
    const state = await stateOf(file);
    if (state !== undefined && state === last?.state) return last.entries;
    const entries = (await read()) ?? (await lock.exclusively(WHOLE_FILE, readOrRename));
    last = state === undefined ? undefined : { state, entries };
    return entries;
  };

  /** Call it only with the lock on the file, since another process may be renaming or replacing the file. */
  const readOrRename = async (): Promise<Map<string, string>> => {
    const entries = await read();
    if (entries !== undefined) return entries;
    const aside = `${file}.broken-${new Date().toISOString().replaceAll(/[:.]/g, "-")}`;
    await rename(file, aside);
    notice(`The token file ${file} is not valid JSON; it was renamed to ${aside}, and you may have to sign in again`);
    return new Map();
  };

  return {
    get: async (key) => (await readIfChanged()).get(key),

    async set(key, value) {
      await lock.exclusively(WHOLE_FILE, async () => {
        const entries = await readOrRename();
        if (value === undefined ? !entries.delete(key) : entries.get(key) === value) return;
        if (value !== undefined) entries.set(key, value);
        await writePrivate(file, `${JSON.stringify(Object.fromEntries(entries), undefined, 2)}\n`);
      });
    },

    keys: async () => [...((await read()) ?? [])].map(([key]) => key),

    exclusively: (key, work, signal) => lock.exclusively(`key ${key}`, work, signal),
  };
}

/** A file that was written this short a time ago may be written again without a visible difference. */
const CLOCK_TICK_MS = 100;

/** Differs if the file was changed or replaced. Returns undefined if there is no file, or if its state proves nothing. */
async function stateOf(file: string): Promise<string | undefined> {
  const stats = await lstat(file, { bigint: true }).catch(() => undefined);
  if (stats === undefined || Math.abs(Date.now() - Number(stats.ctimeMs)) < CLOCK_TICK_MS) return undefined;
  return [stats.dev, stats.ino, stats.size, stats.mtimeNs, stats.ctimeNs].join(" ");
}

/** Returns undefined unless the text is a JSON object of strings. */
function parseEntries(text: string): Map<string, string> | undefined {
  try {
    const parsed: unknown = JSON.parse(text);
    if (!isObject(parsed)) return undefined;
    const entries = Object.entries(parsed);
    const isText = (entry: [string, unknown]): entry is [string, string] => typeof entry[1] === "string";
    return entries.every(isText) ? new Map(entries) : undefined;
  } catch {
    return undefined;
  }
}

/** Options of `keychainTokens()`. */
export interface KeychainTokensOptions extends Pick<FileTokensOptions, "waitMs"> {
  /** The service name that the keychain shows. Default: "catenary". */
  readonly service?: string | undefined;
}

const KEYCHAIN_OPTIONS: OptionNames<KeychainTokensOptions> = optionNames("service waitMs");

/** Some keychains refuse longer entry names. The end of a longer name is replaced by a digest. */
const MAX_NAME_LENGTH = 200;
/** In front of each value. An entry without it was written by another program. */
const VALUE_PREFIX = "=";

type Keyring = typeof import("@napi-rs/keyring");

/**
 * Keeps tokens in the system's keychain, one entry for each key. Needs the package @napi-rs/keyring, which is loaded on
 * first use. Kernel keyrings are not used, since they are empty after a reboot.
 */
export function keychainTokens(options: KeychainTokensOptions = {}): TokenStore {
  checkOptions("keychainTokens()", options, KEYCHAIN_OPTIONS);
  const service = options.service ?? "catenary";
  const lock = fileLock(join(stateDirectory(), "keychain.locks"), options.waitMs);

  const use = async <T>(name: string, work: (entry: InstanceType<Keyring["AsyncEntry"]>) => Promise<T>): Promise<T> => {
    const { AsyncEntry } = await loadKeyring();
    try {
      return await work(new AsyncEntry(service, name, { linux: { store: "secret-service" } }));
    } catch (error) {
      throw keychainUnavailable(error);
    }
  };
  const get = (key: string): Promise<string | undefined> =>
    use(entryName(key), async (entry) => {
      const text = (await entry.getPassword()) ?? "";
      return text.startsWith(VALUE_PREFIX) ? text.slice(VALUE_PREFIX.length) : undefined;
    });
  const set = (key: string, value: string | undefined): Promise<unknown> =>
    use(entryName(key), async (entry) =>
      value === undefined ? entry.deletePassword() : entry.setPassword(VALUE_PREFIX + value),
    );

  return {
    get,
    set: (key, value) => lock.exclusively(`writing ${service} ${key}`, async () => void (await set(key, value))),
    exclusively: (key, work, signal) => lock.exclusively(`key ${service} ${key}`, work, signal),
  };
}

function entryName(key: string): string {
  if (key.length <= MAX_NAME_LENGTH) return key;
  return `${key.slice(0, MAX_NAME_LENGTH - 45)} ${createHash("sha256").update(key).digest("base64url")}`;
}

let keyring: Promise<Keyring> | undefined;

/** A constant, so that bundlers do not look for the package: few programs have it. */
const KEYRING: string = "@napi-rs/keyring";

async function loadKeyring(): Promise<Keyring> {
  keyring ??= import(/* @vite-ignore */ /* webpackIgnore: true */ KEYRING) as Promise<Keyring>;
  try {
    return await keyring;
  } catch (cause) {
    keyring = undefined;
    const why =
      "The keychain needs the package @napi-rs/keyring, which is not installed or does not support this system";
    const advice = "run npm install @napi-rs/keyring, or keep tokens in a file with fileTokens()";
    throw refused(`${why}: ${advice}`, cause);
  }
}

function keychainUnavailable(cause: unknown): ConnectionError {
  const remedy =
    process.platform === "linux"
      ? "start a Secret Service (such as gnome-keyring, in a D-Bus session) and unlock it"
      : "unlock it";
  const advice = `${remedy}, or keep tokens in a file with fileTokens()`;
  return refused(`The system's keychain could not be used (${errorMessage(cause)}); ${advice}`, cause);
}
