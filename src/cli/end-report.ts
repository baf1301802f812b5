// What is told of ends while they are served: a table of them at the start, a line whenever one starts, fails or is left
// alone, and what their programs write to stderr, each line under the end's name. Told only; nothing is decided here.

import type { EndStatus } from "../chain/end-status.ts";
import { columns } from "./columns.ts";
import { fitFor, isTerminal, oneLine } from "./harmless.ts";
import { Linewise } from "./linewise.ts";
import { paint, say } from "./output.ts";

/** In the words of a person who waits for it. */
const STATES: Readonly<Record<EndStatus["state"], string>> = {
  asleep: "asleep, starts when it is asked for something",
  starting: "starting",
  running: "running",
  waiting: "has failed, is started again in a while",
  stopped: "has failed too often, is left alone",
  closed: "closed",
};

/** Each end with how it is reached and how it stands. */
export function endTable(ends: Readonly<Record<string, EndStatus>>): string {
  const rows = Object.entries(ends).map(([name, { target, state, problem }]) => [
    oneLine(name),
    oneLine(target),
    problem === undefined || state === "running" ? STATES[state] : `${STATES[state]}: ${firstLine(problem)}`,
  ]);
  const { stderr } = process;
  return columns(rows, { indent: 2, width: isTerminal(stderr) && stderr.columns > 0 ? stderr.columns : undefined });
}

/** What was told of an end last. */
interface Told {
  readonly state: EndStatus["state"];
  readonly hasFailed: boolean;
  readonly problem?: string | undefined;
}

const NOTHING: Told = { state: "asleep", hasFailed: false };

export class EndReport {
  readonly #isFull: boolean;
  readonly #last = new Map<string, Told>();
  readonly #stderr = new Map<string, Linewise>();

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

  readonly onState = (end: string, status: EndStatus): void => {
    const { state: before, hasFailed, problem: known } = this.#last.get(end) ?? NOTHING;
    const { state, problem } = status;
    const isFailure = state === "waiting" || state === "stopped";
    this.#last.set(end, { state, hasFailed: isFailure || (hasFailed && state !== "running"), problem });
    // One that fails again as it did before has nothing new to tell.
    if (state === before && (!isFailure || problem === known)) return;
    // What a program has left half said was its last word.
    if (state !== "running" && state !== "starting") this.#stderr.get(end)?.flush();
    const words = this.#words(status, before, hasFailed);
    if (words === undefined) return;
    say(`${stamp()}${paint("bold", oneLine(end))} ${words}`);
  };

  #words(status: EndStatus, before: EndStatus["state"], hasFailed: boolean): string | undefined {
    const { state, pids, revision, problem = "it is gone" } = status;
    const why = fitFor(process.stderr, firstLine(problem));
    if (state === "waiting") return `${paint("yellow", "failed")}, and is started again in a while: ${why}`;
    if (state === "stopped") return `${paint("red", "stopped")}: it has failed too often; the last time: ${why}`;
    if (state === "asleep" && before === "running" && this.#isFull) return "went to sleep: nobody needs it";
    if (state !== "running" || (!this.#isFull && !hasFailed)) return undefined;
    const details = [
      ...(pids.length === 0 ? [] : [`process ${pids.join(", ")}`]),
      ...(revision === undefined ? [] : [`revision ${revision}`]),
    ].join(", ");
    return `${paint("green", hasFailed ? "restarted" : "started")}${details === "" ? "" : ` (${details})`}`;
  }
}

/** For somebody who comes back to the terminal later; whoever keeps a log has times of their own. */
function stamp(): string {
  return isTerminal(process.stderr) ? `${paint("dim", new Date().toTimeString().slice(0, 8))} ` : "";
}

/** The rest is what its stderr has said already. */
function firstLine(text: string): string {
  return text.split("\n", 1)[0] ?? "";
}
