// What is told of ends while they are served: a table of them at the start, a line whenever one starts, fails or is left
// alone, and what their programs write to stderr, each line under the end's name. Told only; nothing is decided here.

import type { UpstreamStatus } from "../../chain/upstream/status.ts";
import { columns } from "../terminal/columns.ts";
import { fitFor, isTerminal, oneLine } from "../terminal/harmless.ts";
import { Linewise } from "../terminal/linewise.ts";
import { paint, say } from "../terminal/output.ts";

/** In the words of a person who waits for it. */
const STATES: Readonly<Record<UpstreamStatus["state"], string>> = {
  asleep: "asleep, starts when it is asked for something",
  starting: "starting",
  running: "running",
  waiting: "has failed, is started again in a while",
  stopped: "has failed too often, is left alone",
  closed: "closed",
};

/** Each end with how it is reached and how it stands. */
export function endTable(ends: Readonly<Record<string, UpstreamStatus>>): string {
  const rows = Object.entries(ends).map(([name, { target, state, problem }]) => [
    oneLine(name),
    oneLine(target),
    problem === undefined || state === "running" ? STATES[state] : `${STATES[state]}: ${firstLine(problem)}`,
  ]);
  const { stderr } = process;
  return columns(rows, { indent: 2, width: isTerminal(stderr) && stderr.columns > 0 ? stderr.columns : undefined });
}

const NOISE_LINES = 5;
const NOISE_LENGTH = 200;

/** What was told of an end last. */
interface Told {
  readonly state: UpstreamStatus["state"];
  /** How it was told that it has failed, where it has not been well since. */
  readonly failed?: "restarting" | "away" | undefined;
  readonly problem?: string | undefined;
}

const NOTHING: Told = { state: "asleep" };

export class UpstreamReport {
  readonly #isFull: boolean;
  readonly #last = new Map<string, Told>();
  readonly #stderr = new Map<string, Linewise>();
  /** How many lines that are no messages each end has written to its stdout. */
  readonly #noise = new Map<string, number>();

  /** `isFull`: also what goes well is told. */
  constructor(isFull: boolean) {
    this.#isFull = isFull;
  }

  readonly onStderr = (end: string, text: string): void => {
    let lines = this.#stderr.get(end);
    if (lines === undefined) {
      lines = new Linewise((line) => say(`${paint("dim", `${oneLine(end)}:`)} ${fitFor(process.stderr, line)}`));
      this.#stderr.set(end, lines);
    }
    lines.add(text);
  };

  /** A few lines show what it is; a program that goes on must not fill the screen. */
  readonly onNoise = (end: string, line: string): void => {
    const count = (this.#noise.get(end) ?? 0) + 1;
    if (count > NOISE_LINES) return;
    this.#noise.set(end, count);
    const shown = fitFor(process.stderr, line.length > NOISE_LENGTH ? `${line.slice(0, NOISE_LENGTH)} ...` : line);
    const rest = count === NOISE_LINES ? " (more of it is not shown)" : "";
    say(`${paint("dim", `${oneLine(end)}:`)} stdout, but no message: ${shown}${rest}`);
  };

  readonly onState = (end: string, status: UpstreamStatus): void => {
    const last = this.#last.get(end) ?? NOTHING;
    const { state, problem } = status;
    // One that fails again as it did before has nothing new to tell.
    const isNews = problem !== undefined && problem !== last.problem;
    const isWell = state === "running" && !isNews && (state !== last.state || problem === undefined);
    const isBack = isWell && last.failed !== undefined;
    this.#last.set(end, {
      state,
      failed:
        state === "waiting" || state === "stopped" ? "restarting" : isNews ? "away" : isBack ? undefined : last.failed,
      // What an end is asked for by one caller after the other may have no session, and no problem, in between.
      problem: problem ?? (state === "running" ? undefined : last.problem),
    });
    if (state === last.state && !isNews && !isBack) return;
    // What a program has left half said was its last word.
    if (isNews || (state !== "running" && state !== "starting")) this.#stderr.get(end)?.flush();
    const words = this.#words(status, last, isNews);
    if (words === undefined) return;
    say(`${stamp()}${paint("bold", oneLine(end))} ${words}`);
  };

  #words(status: UpstreamStatus, { state: before, failed }: Told, isNews: boolean): string | undefined {
    const { state, pids, revision, problem = "it is gone" } = status;
    const why = fitFor(process.stderr, firstLine(problem));
    if (state === "waiting") return `${paint("yellow", "failed")}, and is started again in a while: ${why}`;
    if (state === "stopped") return `${paint("red", "stopped")}: it has failed too often; the last time: ${why}`;
    // An address waits for nothing, and one program of several may fail alone.
    if (isNews) return `${paint("yellow", "failed")}: ${why}`;
    if (state === "asleep" && before === "running" && this.#isFull) return "went to sleep: nobody needs it";
    if (state !== "running" || (!this.#isFull && failed === undefined)) return undefined;
    const details = [
      ...(pids.length === 0 ? [] : [`process ${pids.join(", ")}`]),
      ...(revision === undefined ? [] : [`revision ${revision}`]),
    ].join(", ");
    const what =
      failed === undefined ? "started" : failed === "away" && pids.length === 0 ? "answers again" : "restarted";
    return `${paint("green", what)}${details === "" ? "" : ` (${details})`}`;
  }
}

/** For somebody who comes back to the terminal later; whoever keeps a log has times of their own. */
function stamp(): string {
  return isTerminal(process.stderr) ? `${paint("dim", new Date().toTimeString().slice(0, 8))} ` : "";
}

/** The rest is what its stderr has said already; so what announces it goes too. */
export function firstLine(text: string): string {
  return (text.split("\n", 1)[0] ?? "").replace(/; [^;]*:$/, "");
}
