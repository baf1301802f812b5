// Reports on the upstreams of a running gateway: a table at the start and for `catenary status`, a line when an upstream
// starts, crashes or stops, and the stderr of its program, with the name of the upstream before each line.

import type { UpstreamStatus } from "../../chain/upstream/options.ts";
import { LineSplitter } from "../terminal/line-splitter.ts";
import { paint, terminalWidth } from "../terminal/output.ts";
import { formatTable, oneLine, truncate, widthOf } from "../terminal/text.ts";
import type { EventLog, LogLevel } from "./event-log.ts";

const STATES: Readonly<Record<Exclude<UpstreamStatus["state"], "restarting" | "failed">, string>> = {
  idle: "idle (starts on first use)",
  starting: "starting",
  running: "running",
  closed: "closed",
  incomplete: "not started",
};

/** The state, and what will happen if the upstream has failed. */
function describeState({ state, failing, cause, restartInMs }: UpstreamStatus): string {
  if (state === "restarting") return `${failureOf(cause)}; ${nextTry(cause, restartInMs)}`;
  if (state === "failed") return `${failureOf(cause)} ${TOO_OFTEN}`;
  return state === "idle" && failing === true ? "failed (tried again on next use)" : STATES[state];
}

/** `catenary restart` tries it again at once. */
const TOO_OFTEN = "too often; not restarted for a while";

function failureOf(cause: UpstreamStatus["cause"]): string {
  return cause === "start" ? "failed to start" : "crashed";
}

/** No process is started before a request needs it. */
function nextTry(cause: UpstreamStatus["cause"], afterMs: number | undefined): string {
  const pause = afterMs === undefined ? "" : ` after ${Math.ceil(afterMs / 1_000)} s`;
  return `${cause === "start" ? "tried again" : "restarts"} on next use${pause}`;
}

const INDENT = 2;
/** The widths of the column of targets. In a narrow terminal, it leaves room for the states. */
const MAX_TARGET = 48;
const MIN_TARGET = 16;

/** One line per upstream: name, target and state; a reason that does not fit is on a line of its own. */
export function upstreamTable(
  upstreams: Readonly<Record<string, UpstreamStatus>>,
  stream: NodeJS.WriteStream = process.stderr,
): string {
  const rows = Object.entries(upstreams).map(([name, status]) => {
    const { state, target, problem, reason: failure = problem, unlisted } = status;
    const reason = state === "running" ? unlisted && `${UNLISTED}: ${oneLine(unlisted)}` : failure && oneLine(failure);
    const separator = state === "running" ? "; " : ": ";
    return { name: oneLine(name), target: oneLine(target), state: describeState(status), reason, separator };
  });
  const width = terminalWidth(stream);
  const longest = (texts: readonly string[]): number => Math.max(0, ...texts.map(widthOf));
  const taken = INDENT + 4 + longest(rows.map(({ name }) => name)) + longest(rows.map(({ state }) => state));
  const room = Math.max(MIN_TARGET, Math.min(MAX_TARGET, (width ?? Infinity) - taken));
  const lines = formatTable(
    rows.map(({ name, target, state }) => [name, shortTarget(target, room), state]),
    { indent: INDENT, maxColumn: MAX_TARGET },
  ).split("\n");
  return rows
    .map(({ reason, separator }, at) => {
      const line = lines[at] ?? "";
      if (reason === undefined) return `${line}\n`;
      const whole = `${line}${separator}${reason}`;
      return widthOf(whole) <= (width ?? Infinity) ? `${whole}\n` : `${line}\n${" ".repeat(INDENT + 2)}${reason}\n`;
    })
    .join("");
}

/** What is wrong with an upstream that runs and whose lists fail. */
const UNLISTED = "cannot be listed";

/** Folders and files that most servers have, so that they do not tell one from another. */
const COMMON_PARTS = /^(?:dist|build|lib|src|bin|out|esm|cjs|(?:index|main|server|cli)\.\w+)$/;

/** Leaves out what says least: first the folders before that of the server, then all but its name. */
function shortTarget(target: string, width: number): string {
  if (widthOf(target) <= width) return target;
  const [program = "", ...words] = target.split(" ");
  const parts = words.join(" ").split("/");
  const at = parts.findLastIndex((part) => !COMMON_PARTS.test(part));
  if (at <= 0) return truncate(width, target);
  const whole = `${program} .../${parts.slice(at).join("/")}`;
  return widthOf(whole) <= width ? whole : truncate(width, parts[at] ?? "");
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
      const details = `: ${oneLine(unlisted)}`;
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
    const { state, pids, revision, restartInMs, cause, problem = "the process ended" } = status;
    const reason = oneLine(status.reason ?? problem);
    const change = failureOf(cause);
    if (state === "restarting") {
      const details = `; ${nextTry(cause, restartInMs)}: ${reason}`;
      return { level: "warning", change, color: "yellow", details };
    }
    if (state === "failed") {
      const details = ` ${TOO_OFTEN}; last error: ${reason}`;
      return { level: "error", change, color: "red", details };
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
    const recovery =
      failed === undefined
        ? processes > 0 && pids.length > processes
          ? `has ${pids.length} processes`
          : "started"
        : failed === "unreachable" && pids.length === 0
          ? "reachable again"
          : "restarted";
    return { level: "info", change: recovery, color: "green", details: known === "" ? "" : ` (${known})` };
  }
}

interface Description {
  readonly level: LogLevel;
  readonly change: string;
  readonly color: "dim" | "green" | "red" | "yellow";
  readonly details: string;
}
