// The log of a running gateway: what happens to its upstreams, what they write to stderr, and our own messages. It is
// written to stderr, as text or as lines of JSON. The last entries are kept for `catenary logs`.

import { log, MIDDLEWARE } from "../../chain/middleware/index.ts";
import type { UpstreamStatus } from "../../chain/upstream/options.ts";
import type { MiddlewareFactories } from "../../config/index.ts";
import type { Middleware } from "../../core/handler.ts";
import { isObject } from "../../core/values.ts";
import { reasonOf } from "../show/lists.ts";
import {
  directStatus,
  formatTable,
  isTerminal,
  LineSplitter,
  oneLine,
  paint,
  sanitizeFor,
  terminalWidth,
  writeLines,
} from "../terminal/output.ts";

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
    const shown = upstream === undefined ? name : paint(stream === undefined ? "bold" : "dim", name);
    const prefix = this.#hasTimes ? `${isTerminal(process.stderr) ? paint("dim", localTime()) : time} ` : "";
    writeLines(`${prefix}${shown} ${colored(sanitizeFor(process.stderr, entry.message))}\n`);
  }

  /** The built-in middleware, with a `log` that writes to this log, in its format unless the config sets another. */
  get middleware(): MiddlewareFactories {
    const create = (given: unknown): Middleware => {
      if (given !== undefined && !isObject(given)) return log(given as never);
      return log({ format: this.#isJson ? "json" : "text", ...given, write: (line) => this.#writeLine(line) });
    };
    return new Map([...MIDDLEWARE, ["log", create]]);
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

  #add(given: Omit<LogEntry, "time">, line?: string): LogEntry {
    const entry: LogEntry = { time: new Date().toISOString(), ...given };
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

function localTime(): string {
  return new Date().toTimeString().slice(0, 8);
}

// Reports on the upstreams of a running gateway: a table at the start, a line when an upstream starts, crashes or
// stops, and the stderr of its program, with the name of the upstream before each line.

const STATES: Readonly<Record<UpstreamStatus["state"], string>> = {
  idle: "idle (starts on first use)",
  starting: "starting",
  running: "running",
  restarting: "crashed; restarting",
  failed: "crashed too often; not restarted",
  closed: "closed",
  incomplete: "not started",
};

/** One line per upstream: name, target and state. */
export function upstreamTable(
  upstreams: Readonly<Record<string, UpstreamStatus>>,
  stream: NodeJS.WriteStream = process.stderr,
): string {
  const rows = Object.entries(upstreams).map(([name, { target, state, restartInMs, problem, failing, unlisted }]) => {
    const isTriedAgain = state === "idle" && failing === true;
    const text = isTriedAgain ? "failed (tried again on next use)" : `${STATES[state]}${delay(restartInMs)}`;
    const reason = state === "running" ? unlisted && `; ${UNLISTED}: ${reasonOf(unlisted)}` : reasonAfter(problem);
    return [oneLine(name), shortTarget(oneLine(target)), `${text}${reason ?? ""}`];
  });
  return formatTable(rows, { indent: 2, width: terminalWidth(stream), maxColumn: MAX_TARGET });
}

/** What is wrong with an upstream that runs and whose lists fail. */
const UNLISTED = "cannot be listed";

function reasonAfter(problem: string | undefined): string {
  return problem === undefined ? "" : `: ${reasonOf(problem)}`;
}

const MAX_TARGET = 48;

/** Leaves out folders of a long path, such as in `node .../dist/server.js`. */
function shortTarget(target: string): string {
  return target.length <= MAX_TARGET ? target : target.replace(/[^\s/]*\/(?:[^\s/]+\/)+(?=[^/]+\/[^/]+$)/, ".../");
}

function delay(ms: number | undefined): string {
  return ms === undefined ? "" : ` in ${Math.ceil(ms / 1_000)} s`;
}

/** Enough to recognize the output. More could fill the screen. */
const MAX_NOISE_LINES = 5;
const MAX_NOISE_LENGTH = 200;
const MAX_SEEN_LINES = 200;

interface LastReport {
  readonly state: UpstreamStatus["state"];
  /** How many processes it had. */
  readonly processes: number;
  /** The failure that was reported; undefined once the upstream has recovered. */
  readonly failed?: "restarting" | "unreachable" | undefined;
  readonly problem?: string | undefined;
  readonly unlisted?: string | undefined;
}

const INITIAL: LastReport = { state: "idle", processes: 0 };

export class UpstreamReport {
  readonly #log: EventLog;
  readonly #isVerbose: boolean;
  readonly #last = new Map<string, LastReport>();
  readonly #stderr = new Map<string, LineSplitter>();
  /** For each upstream that is starting, the lines of stderr so far. */
  readonly #seen = new Map<string, Set<string>>();
  /** For each upstream, how many stdout lines that are not messages were printed. */
  readonly #noise = new Map<string, number>();

  /** `isVerbose`: also reports each start, and each stop of an idle upstream. */
  constructor(log: EventLog, isVerbose: boolean) {
    this.#log = log;
    this.#isVerbose = isVerbose;
  }

  readonly onStderr = (upstream: string, text: string): void => {
    let lines = this.#stderr.get(upstream);
    if (lines === undefined) {
      const seen = new Set<string>();
      this.#seen.set(upstream, seen);
      lines = new LineSplitter((message) => {
        // A program may be started twice until it is clear that it cannot run, and then says the same twice.
        const line = message.replaceAll(/\d+/g, "0");
        if (seen.has(line)) return;
        if (this.#last.get(upstream)?.state === "starting" && seen.size < MAX_SEEN_LINES) seen.add(line);
        this.#log.write({ level: "info", upstream, stream: "stderr", message });
      });
      this.#stderr.set(upstream, lines);
    }
    lines.add(text);
  };

  /** Reports the first lines on stdout that are not messages. */
  readonly onNoise = (upstream: string, line: string): void => {
    const count = (this.#noise.get(upstream) ?? 0) + 1;
    if (count > MAX_NOISE_LINES) return;
    this.#noise.set(upstream, count);
    const cut = line.length > MAX_NOISE_LENGTH ? `${line.slice(0, MAX_NOISE_LENGTH)} ...` : line;
    const rest = count === MAX_NOISE_LINES ? " (further lines are not shown)" : "";
    const message = `stdout (not a message): ${cut}${rest}`;
    this.#log.write({ level: "warning", upstream, stream: "stdout", message });
  };

  /** Reports that names of its tools or prompts are shown in another form. */
  readonly onWarning = (upstream: string, message: string): void => {
    this.#log.write({ level: "warning", upstream, message });
  };

  readonly onState = (upstream: string, status: UpstreamStatus): void => {
    const last = this.#last.get(upstream) ?? INITIAL;
    const { state, problem, unlisted } = status;
    if (state !== last.state) this.#seen.get(upstream)?.clear();
    if (state === "closed") {
      this.#stderr.get(upstream)?.flush();
      const { pids } = status;
      if (!this.#isVerbose || pids.length === 0) return;
      const details = ` (pid ${pids.join(", ")})`;
      this.#write(upstream, { level: "info", change: "stopped", color: "dim", details });
      return;
    }
    // A problem is not reported twice in a row.
    const isNews = problem !== undefined && problem !== last.problem;
    const isWell = state === "running" && !isNews && (state !== last.state || problem === undefined);
    const isBack = isWell && last.failed !== undefined;
    const processes = status.pids.length;
    this.#last.set(upstream, {
      state,
      processes,
      failed:
        state === "restarting" || state === "failed"
          ? "restarting"
          : isNews
            ? "unreachable"
            : isBack
              ? undefined
              : last.failed,
      // An upstream whose sessions have all ended reports no problem. The last problem is kept, to recognize it later.
      problem: problem ?? (state === "running" ? undefined : last.problem),
      unlisted,
    });
    if (unlisted !== undefined && unlisted !== last.unlisted) {
      const details = `: ${reasonOf(unlisted)}`;
      this.#write(upstream, { level: "warning", change: UNLISTED, color: "yellow", details });
    }
    const hasMore = state === "running" && last.processes > 0 && processes > last.processes;
    if (state === last.state && !isNews && !isBack && !(hasMore && this.#isVerbose)) return;
    // The process has ended, so its last line of stderr is printed even if it is incomplete.
    if (isNews || (state !== "running" && state !== "starting")) this.#stderr.get(upstream)?.flush();
    const described = this.#describe(status, last, isNews);
    if (described !== undefined) this.#write(upstream, described);
  };

  #write(upstream: string, { level, change, color, details }: Description): void {
    const colored = (message: string): string => `${paint(color, change)}${message.slice(change.length)}`;
    this.#log.write({ level, upstream, message: `${change}${details}` }, colored);
  }

  #describe(
    status: UpstreamStatus,
    { state: before, failed, processes }: LastReport,
    isNews: boolean,
  ): Description | undefined {
    const { state, pids, revision, restartInMs, problem = "the process ended" } = status;
    const reason = reasonOf(problem);
    if (state === "restarting") {
      const details = `; restarting${delay(restartInMs)}: ${reason}`;
      return { level: "warning", change: "crashed", color: "yellow", details };
    }
    if (state === "failed") {
      const details = ` after too many crashes; last error: ${reason}`;
      return { level: "error", change: "stopped", color: "red", details };
    }
    if (state === "incomplete")
      return { level: "warning", change: "not started", color: "yellow", details: `: ${reason}` };
    // The state can still be "running": HTTP servers are not restarted, and one of several processes may fail alone.
    if (isNews) return { level: "warning", change: "failed", color: "yellow", details: `: ${reason}` };
    if (state === "idle" && before === "running" && this.#isVerbose) {
      return { level: "info", change: "stopped", color: "dim", details: " (idle)" };
    }
    if (state !== "running" || (!this.#isVerbose && failed === undefined)) return undefined;
    const known = [
      ...(pids.length === 0 ? [] : [`pid ${pids.join(", ")}`]),
      ...(revision === undefined ? [] : [`revision ${revision}`]),
    ].join(", ");
    const change =
      failed === undefined
        ? processes > 0 && pids.length > processes
          ? `has ${pids.length} processes`
          : "started"
        : failed === "unreachable" && pids.length === 0
          ? "reachable again"
          : "restarted";
    return { level: "info", change, color: "green", details: known === "" ? "" : ` (${known})` };
  }
}

interface Description {
  readonly level: LogLevel;
  readonly change: string;
  readonly color: "dim" | "green" | "red" | "yellow";
  readonly details: string;
}
