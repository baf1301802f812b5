// Defines what all commands share: the exit codes, errors that have an exit code, and Ctrl-C.

import { nearest } from "../core/options.ts";
import { isObject } from "../core/values.ts";

export const EXIT = { ok: 0, usage: 1, notFound: 2, auth: 3, unreachable: 4, toolFailed: 5, interrupted: 130 } as const;

/** The command line, or a file that it names, is not valid. */
export class UsageError extends Error {
  readonly exit: number = EXIT.usage;
}

/** Something that the command line names does not exist. */
export class NotFoundError extends Error {
  readonly exit: number = EXIT.notFound;
}

/** An address cannot be reached, or cannot be listened on. */
export class UnreachableError extends Error {
  readonly exit: number = EXIT.unreachable;
}

/** "did you mean X?" if a name is near, otherwise what the names are. */
export function suggest(name: string, names: readonly string[], otherwise: string): string {
  const [near] = nearest(name, names);
  return near === undefined ? otherwise : `did you mean ${near}?`;
}

/** The items whose value under this key is a string. A list from a server may contain anything. */
export function withKey<T>(list: unknown, key: keyof T & string): T[] {
  if (!Array.isArray(list)) return [];
  return list.filter((item: unknown): item is T => isObject(item) && typeof item[key] === "string");
}

/** The arguments before `--`. Those after it belong to another program. */
export function beforeSeparator(args: readonly string[]): readonly string[] {
  const at = args.indexOf("--");
  return at < 0 ? args : args.slice(0, at);
}

const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/**
 * Handles Ctrl-C: the first one cancels the work and waits for it to end, the second one exits at once. No child process
 * survives: the first closes the connection and with it the child; after the second, a guardian process
 * (src/process/child.ts) ends the child when we have exited. SIGTERM and SIGHUP count as Ctrl-C.
 */
export class Interruption {
  /** Aborted at the first interrupt. */
  readonly signal: AbortSignal;
  readonly #work = new AbortController();
  readonly #onInterrupt: (text: string) => void;

  constructor(onInterrupt: (text: string) => void) {
    this.signal = this.#work.signal;
    this.#onInterrupt = onInterrupt;
    for (const name of SIGNALS) process.on(name, this.interrupt);
  }

  /** Also called for Ctrl-C in raw mode, where the terminal sends no signal. */
  readonly interrupt = (): void => {
    if (this.signal.aborted) process.exit(EXIT.interrupted);
    this.#onInterrupt("Cancelling; press Ctrl-C again to quit at once");
    this.#work.abort(new Error("interrupted"));
  };

  dispose(): void {
    for (const name of SIGNALS) process.off(name, this.interrupt);
  }
}
