// Compares the calls, the kills and the log of the workers: whether each call was answered correctly, whether any ran
// twice, and how long after a kill the calls that it hit were answered.

import type { RecordedCall } from "./busy-caller.ts";

export interface Kill {
  readonly pid: number;
  readonly at: number;
}

export interface Evaluation {
  readonly results: number;
  readonly errors: number;
  /** Kills that hit at least one call. */
  readonly hits: number;
  /** Milliseconds from a kill to the error of a call that it hit, ascending. */
  readonly errorDelays: readonly number[];
  /** The same for calls that the next process answered: those not begun, or waiting for their caller's input. */
  readonly resumedDelays: readonly number[];
  readonly faults: readonly string[];
}

/** A kill shortly before the call may cause its error, while the gateway has not noticed it yet. */
const BEFORE_MS = 60_000;

export function evaluateCalls(calls: readonly RecordedCall[], kills: readonly Kill[], log: string): Evaluation {
  const { ranIn, ownerOf, upAt, faults } = parseLog(log);
  const errorDelays: number[] = [];
  const resumedDelays: number[] = [];
  const hit = new Set<Kill>();
  const killByPid = new Map(kills.map((kill) => [kill.pid, kill]));
  const canHit = (call: RecordedCall, { pid }: Kill): boolean => {
    const owner = ownerOf.get(pid);
    // Callers share the processes of an upstream.
    return owner === undefined || owner.split(" ")[0] === call.upstream;
  };
  for (const call of calls) {
    const pid = ranIn.get(call.text);
    const near = kills.filter(
      (kill) => kill.at > call.sentAt - BEFORE_MS && kill.at < call.answeredAt && canHit(call, kill),
    );
    if (call.outcome === "open") faults.push(`${call.text} was not answered: ${call.answer}`);
    else if (call.outcome === "result") {
      if (call.answer !== `${pid} ${call.text}`) faults.push(`${call.text} got ${call.answer}, but ran in ${pid}`);
      const first = near.find((kill) => kill.at > call.sentAt && kill.at < (upAt.get(pid ?? 0) ?? 0));
      if (first !== undefined) resumedDelays.push(call.answeredAt - first.at);
    } else {
      // The kill of the process in which it ran; else the last that can have hit it, perhaps while a process started.
      const kill = pid === undefined ? near.at(-1) : killByPid.get(pid);
      if (kill === undefined) {
        faults.push(
          `${call.text} failed, but nothing was killed: ${call.answer}; ${describeKills(call, kills, ownerOf)}`,
        );
      } else {
        (isWaitingForCaller(call, kill) ? resumedDelays : errorDelays).push(call.answeredAt - kill.at);
        hit.add(kill);
      }
      // The next process does not know the state of a request that the one before had sent.
      const isExplained =
        call.answer.includes(`The upstream ${call.upstream} `) || call.answer.includes("requestState");
      if (!isExplained) faults.push(`${call.text}: the error does not name its upstream: ${call.answer}`);
    }
  }
  return {
    results: calls.filter(({ outcome }) => outcome === "result").length,
    errors: calls.filter(({ outcome }) => outcome === "error").length,
    hits: hit.size,
    errorDelays: errorDelays.toSorted((a, b) => a - b),
    resumedDelays: resumedDelays.toSorted((a, b) => a - b),
    faults,
  };
}

/** The last kills before a call was answered, for the reader of a failure. */
function describeKills(call: RecordedCall, kills: readonly Kill[], ownerOf: ReadonlyMap<number, string>): string {
  const last = kills.filter(({ at }) => at < call.answeredAt).slice(-3);
  const lines = last.map(
    ({ pid, at }) => `${ownerOf.get(pid) ?? "unknown"} ${(call.sentAt - at).toFixed(0)} ms before`,
  );
  return `it took ${(call.answeredAt - call.sentAt).toFixed(0)} ms; last kills: ${lines.join(", ")}`;
}

/** A stateless call that elicits waits for its caller's answer, and then goes to the next process. */
function isWaitingForCaller({ style, repliedAt }: RecordedCall, { at }: Kill): boolean {
  return style === "stateless" && repliedAt > at;
}

interface WorkerLog {
  /** Process by the text of a call. */
  readonly ranIn: Map<string, number>;
  /** Upstream and style of the callers by process. */
  readonly ownerOf: Map<number, string>;
  /** When a process got its first request. */
  readonly upAt: Map<number, number>;
  readonly faults: string[];
}

function parseLog(log: string): WorkerLog {
  const ranIn = new Map<string, number>();
  const upAt = new Map<number, number>();
  const ownerOf = new Map<number, string>();
  const faults: string[] = [];
  for (const line of log.split("\n")) {
    const [verb, pid, first = "", second, at] = line.split(" ");
    if (verb === "here") {
      ownerOf.set(Number(pid), `${first} ${second}`);
      upAt.set(Number(pid), Number(at) - performance.timeOrigin);
    }
    if (verb !== "ran") continue;
    if (ranIn.has(first)) faults.push(`${first} ran in ${ranIn.get(first)} and again in ${pid}`);
    ranIn.set(first, Number(pid));
  }
  return { ranIn, ownerOf, upAt, faults };
}
