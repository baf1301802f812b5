// Tokens in the system's keychain: one entry for each key, under the service "catenary". The module that reaches it
// is not installed with us and is loaded at first use; where it or the keychain is missing, that is said, with what
// to do. There is no fallback to a kernel keyring, which forgets at the next boot what it was given. Keychains know
// no locks, so the lock is one of files, as beside a token file. Where a keychain takes short texts only, a long one
// is cut into pieces under names of their own, and the entry itself says which: whoever reads has the old ones or
// the new ones, never some of each.

import { createHash, randomBytes } from "node:crypto";
import { join } from "node:path";
import { ConnectionError } from "../../core/errors.ts";
import { errorMessage } from "../../core/text.ts";
import { FileLock } from "./file-lock.ts";
import { stateDirectory } from "./private-files.ts";
import type { TokenStore } from "./token-store.ts";

export interface KeychainTokensOptions {
  /** Under which name the keychain shows them; "catenary" where it is left out. */
  readonly service?: string;
  /** How long one waits for another process that holds the lock, in milliseconds; six minutes where it is left out. */
  readonly waitMs?: number;
  /** How many characters an entry takes; what the system's keychain takes where it is left out. */
  readonly entryLength?: number;
}

/** Windows takes 2560 bytes, which are half as many characters there, with the first of ours. */
const WINDOWS_LENGTH = 1_200;
/** Names of entries are shown to people; one that some keychain would refuse ends in a digest. */
const NAME_LENGTH = 200;
const WHOLE = "=";
const PIECES = "#";
/** A reader finds pieces gone when somebody wrote meanwhile; nobody writes that often. */
const READS = 5;

type Keyring = typeof import("@napi-rs/keyring");

export function keychainTokens(options: KeychainTokensOptions = {}): TokenStore {
  const service = options.service ?? "catenary";
  const entryLength = options.entryLength ?? (process.platform === "win32" ? WINDOWS_LENGTH : Number.POSITIVE_INFINITY);
  const lock = new FileLock(join(stateDirectory(), "keychain.locks"), options.waitMs);

  const use = async <T>(name: string, work: (entry: InstanceType<Keyring["AsyncEntry"]>) => Promise<T>): Promise<T> => {
    const { AsyncEntry } = await loadKeyring();
    try {
      return await work(new AsyncEntry(service, name, { linux: { store: "secret-service" } }));
    } catch (error) {
      throw unreachable(error);
    }
  };
  const read = (name: string): Promise<string | undefined> =>
    use(name, async (entry) => (await entry.getPassword()) ?? undefined);
  const write = (name: string, text: string): Promise<void> => use(name, (entry) => entry.setPassword(text));
  const remove = (name: string): Promise<boolean> => use(name, (entry) => entry.deletePassword());

  /** Undefined where a piece is missing. */
  const readAll = async (names: readonly string[]): Promise<string | undefined> => {
    const pieces = await Promise.all(names.map(read));
    return pieces.every((piece) => piece !== undefined) ? pieces.join("") : undefined;
  };

  const get = async (key: string): Promise<string | undefined> => {
    const name = nameOf(key);
    for (let times = 0; times < READS; times += 1) {
      const head = await read(name);
      if (head === undefined) return undefined;
      if (head.startsWith(WHOLE)) return head.slice(WHOLE.length);
      const pieces = piecesOf(name, head);
      // Somebody else's.
      if (pieces.length === 0) return undefined;
      const whole = await readAll(pieces);
      if (whole !== undefined) return whole;
    }
    return undefined;
  };

  const set = async (key: string, value: string | undefined): Promise<void> => {
    const name = nameOf(key);
    const old = piecesOf(name, await read(name));
    if (value === undefined) await remove(name);
    else if (value.length < entryLength) await write(name, WHOLE + value);
    else {
      const pieces = cut(value, entryLength);
      const head = `${PIECES}${pieces.length}.${randomBytes(6).toString("hex")}`;
      const names = piecesOf(name, head);
      for (const [at, piece] of pieces.entries()) await write(names[at] ?? "", piece);
      await write(name, head);
    }
    for (const piece of old) await remove(piece);
  };

  return {
    get,
    set: (key, value) => lock.exclusively(`writing ${service} ${key}`, () => set(key, value)),
    exclusively: (key, work, signal) => lock.exclusively(`key ${service} ${key}`, work, signal),
  };
}

function nameOf(key: string): string {
  if (key.length <= NAME_LENGTH) return key;
  return `${key.slice(0, NAME_LENGTH - 45)} ${createHash("sha256").update(key).digest("base64url")}`;
}

/** None where it is whole, or missing. */
function piecesOf(name: string, head: string | undefined): string[] {
  const [, count, mark] = /^#(\d+)\.([0-9a-f]+)$/.exec(head ?? "") ?? [];
  return Array.from({ length: Number(count ?? 0) }, (_piece, at) => `${name} ${mark} ${at + 1}/${count}`);
}

/** Never between the halves of one character: alone, they could not be written as UTF-8. */
function cut(value: string, length: number): string[] {
  const pieces: string[] = [];
  for (let from = 0; from < value.length;) {
    const to = from + length;
    const split = to < value.length && /[\uD800-\uDBFF]/.test(value.charAt(to - 1));
    const piece = value.slice(from, split ? to - 1 : to);
    pieces.push(piece);
    from += piece.length;
  }
  return pieces;
}

let keyring: Promise<Keyring> | undefined;

async function loadKeyring(): Promise<Keyring> {
  keyring ??= import("@napi-rs/keyring");
  try {
    return await keyring;
  } catch (cause) {
    keyring = undefined;
    const message =
      "The keychain needs a package that is not installed, or not for this system: run npm install @napi-rs/keyring, or keep tokens in a file with fileTokens()";
    throw new ConnectionError("refused", message, { cause, mayHaveRun: false });
  }
}

function unreachable(cause: unknown): ConnectionError {
  const remedy =
    process.platform === "linux"
      ? "start a Secret Service (such as gnome-keyring, in a D-Bus session) and unlock it"
      : "unlock it";
  const message = `The system's keychain could not be used (${errorMessage(cause)}); ${remedy}, or keep tokens in a file with fileTokens()`;
  return new ConnectionError("refused", message, { cause, mayHaveRun: false });
}
