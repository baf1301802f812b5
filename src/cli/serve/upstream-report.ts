// Reports on the upstreams of a running gateway: a table at the start, a line when an upstream starts, crashes or
// stops, and the stderr of its program, with the name of the upstream before each line.

import type { UpstreamStatus } from "../../chain/upstream/options.ts";
import { reasonOf } from "../show/lists.ts";
import { formatTable, oneLine } from "../terminal/text.ts";
import { LineSplitter, paint, terminalWidth } from "../terminal/output.ts";
import type { EventLog, LogLevel } from "./event-log.ts";

const STATES: Readonly<Record<UpstreamStatus["state"], string>> = {
  idle: "idle (starts on first use)",
  starting: "starting",
  running: "running",
  restarting: "crashed; restarting",
  failed: "crashed too often; not restarted",
  closed: "closed",
};

/** One line per upstream: name, target and state. */
export function upstreamTable(
  upstreams: Readonly<Record<string, UpstreamStatus>>,
  stream: NodeJS.WriteStream = process.stderr,
): string {
  const rows = Object.entries(upstreams).map(([name, { target, state, restartInMs, problem, failing }]) => {
    const isTriedAgain = state === "idle" && failing === true;
    const text = isTriedAgain ? "failed (tried again on next use)" : `${STATES[state]}${delay(restartInMs)}`;
    return [
      oneLine(name),
      shortTarget(oneLine(target)),
      problem === undefined || state === "running" ? text : `${text}: ${reasonOf(problem)}`,
    ];
  });
  return formatTable(rows, { indent: 2, width: terminalWidth(stream), maxColumn: MAX_TARGET });
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
    const { state, problem } = status;
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
    });
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
