// The log of a running gateway: what happens to its upstreams, what they write to stderr, and our own messages. It is
// written to stderr, as text or as lines of JSON. The last entries are kept for `catenary logs`.

import { log } from "../../chain/middleware/log.ts";
import type { MiddlewareFactories } from "../../config/index.ts";
import type { Middleware } from "../../core/handler.ts";
import { isObject } from "../../core/values.ts";
import { directStatus, hintFor, isTerminal, paint, sanitizeFor, writeLines } from "../terminal/output.ts";
import { oneLine } from "../terminal/text.ts";

export type LogLevel = "info" | "warning" | "error";
export type LogFormat = "text" | "json";

export const LOG_FORMATS: readonly LogFormat[] = ["text", "json"];

export interface LogEntry {
  /** In ISO 8601, in UTC. */
  readonly time: string;
  readonly level: LogLevel;
  /** The upstream that it is about. */
  readonly upstream?: string;
  /** Set if the upstream has written it. */
  readonly stream?: "stderr" | "stdout";
  readonly message: string;
}

export interface EventLogOptions {
  /** Default: text. */
  readonly format?: LogFormat | undefined;
  /** Whether lines of text begin with the time. Default: true. */
  readonly hasTimes?: boolean;
}

/** How many entries are kept. One of a server's stderr has at most 8 KiB. */
const MAX_ENTRIES = 1_000;

export class EventLog {
  readonly #isJson: boolean;
  readonly #hasTimes: boolean;
  readonly #followers = new Set<(entry: LogEntry) => void>();
  #entries: LogEntry[] = [];

  constructor({ format = "text", hasTimes = true }: EventLogOptions = {}) {
    this.#isJson = format === "json";
    this.#hasTimes = hasTimes;
    // Text that other code prints while the gateway runs belongs to the log too, as it is.
    directStatus((text) => {
      if (this.#isJson) for (const line of text.split("\n")) this.#add({ level: "info", message: line });
      else writeLines(`${text}\n`);
    });
  }

  /** `colored` adds colours to the message, which is already safe for a terminal. */
  write(entry: Omit<LogEntry, "time">, colored: (message: string) => string = (message) => message): void {
    const { time } = this.#add(entry);
    if (this.#isJson) return;
    const { upstream, stream } = entry;
    const name = sourceOf(entry);
    const painted = upstream === undefined ? name : paint(stream === undefined ? "bold" : "dim", name);
    const prefix = this.#hasTimes
      ? `${isTerminal(process.stderr) ? paint("dim", new Date().toTimeString().slice(0, 8)) : time} `
      : "";
    writeLines(`${prefix}${painted} ${colored(hintFor(process.stderr, entry.message))}\n`);
  }

  /** A `log` that writes to this log, in its format unless the config sets another. */
  get middleware(): MiddlewareFactories {
    const create = (logOptions: unknown): Middleware => {
      if (logOptions !== undefined && !isObject(logOptions)) return log(logOptions as never);
      return log({ format: this.#isJson ? "json" : "text", ...logOptions, write: (line) => this.#writeLine(line) });
    };
    return new Map([["log", create]]);
  }

  #writeLine(line: string): void {
    // The entry has its own time.
    const message = line.replace(/^\d{4}-\S+Z /, "");
    this.#add({ level: "info", message }, line);
    if (!this.#isJson) writeLines(`${line}\n`);
  }

  info(message: string): void {
    this.write({ level: "info", message });
  }

  /** The last entries, oldest first; of one upstream, or of all. */
  recent(upstream?: string): readonly LogEntry[] {
    return this.#entries.filter((entry) => upstream === undefined || entry.upstream === upstream);
  }

  /** Calls back with each new entry. Returns a function that stops this. */
  follow(onEntry: (entry: LogEntry) => void): () => void {
    this.#followers.add(onEntry);
    return () => this.#followers.delete(onEntry);
  }

  #add(event: Omit<LogEntry, "time">, line?: string): LogEntry {
    const entry: LogEntry = { time: new Date().toISOString(), ...event };
    this.#entries.push(entry);
    if (this.#entries.length >= 2 * MAX_ENTRIES) this.#entries = this.#entries.slice(-MAX_ENTRIES);
    if (this.#isJson) writeLines(`${line ?? JSON.stringify(entry)}\n`, describeAsEntry);
    for (const onEntry of this.#followers) onEntry(entry);
    return entry;
  }
}

function describeAsEntry(message: string): string {
  const entry: LogEntry = { time: new Date().toISOString(), level: "warning", message };
  return `${JSON.stringify(entry)}\n`;
}

/** An entry as a line of text, for a terminal or a file. */
export function formatEntry(entry: LogEntry): string {
  return `${oneLine(entry.time)} ${sourceOf(entry)} ${sanitizeFor(process.stdout, entry.message)}`;
}

/** The upstream, with a colon before what it has written itself. */
function sourceOf({ upstream, stream }: Pick<LogEntry, "upstream" | "stream">): string {
  return upstream === undefined ? "catenary:" : `${oneLine(upstream)}${stream === undefined ? "" : ":"}`;
}
