// What the calls, the kills and the file of what ran say together: whether each call was answered as it may be, whether
// any ran twice, and how long after a kill those were answered that it hit.

import type { Call } from "./busy-caller.ts";

export interface Kill {
  readonly pid: number;
  readonly at: number;
}

export interface Verdict {
  readonly results: number;
  readonly errors: number;
  /** Kills that hit at least one call. */
  readonly hits: number;
  /** Milliseconds from a kill to the error that it made of a call, the shortest first. */
  readonly struck: readonly number[];
  /** The same for calls that were left for the process that came next: not begun, or with a caller who was asked. */
  readonly carried: readonly number[];
  readonly faults: readonly string[];
}

/** An error may come of a kill that was shortly before the call: the gateway has not heard of it yet. */
const BEFORE_MS = 1_000;

export function judge(calls: readonly Call[], kills: readonly Kill[], log: string): Verdict {
  const { ranIn, whose, upAt, faults } = read(log);
  const struck: number[] = [];
  const carried: number[] = [];
  const hit = new Set<Kill>();
  const killOf = new Map(kills.map((kill) => [kill.pid, kill]));
  const mayBeOf = (call: Call, { pid }: Kill): boolean => {
    const owner = whose.get(pid);
    return owner === undefined || owner === `${call.end} ${call.style}`;
  };
  for (const call of calls) {
    const pid = ranIn.get(call.text);
    const near = kills.filter(
      (kill) => kill.at > call.sentAt - BEFORE_MS && kill.at < call.answeredAt && mayBeOf(call, kill),
    );
    if (call.outcome === "open") faults.push(`${call.text} was not answered: ${call.words}`);
    else if (call.outcome === "result") {
      if (call.words !== `${pid} ${call.text}`) faults.push(`${call.text} got ${call.words}, and ran in ${pid}`);
      const first = near.find((kill) => kill.at > call.sentAt && kill.at < (upAt.get(pid ?? 0) ?? 0));
      if (first !== undefined) carried.push(call.answeredAt - first.at);
    } else {
      // Known where it ran; else the last kill that can have been it, perhaps of a process that was only starting.
      const kill = pid === undefined ? near.at(-1) : killOf.get(pid);
      if (kill === undefined) faults.push(`${call.text} failed, and nothing was killed: ${call.words}`);
      else {
        (isWithCaller(call, kill) ? carried : struck).push(call.answeredAt - kill.at);
        hit.add(kill);
      }
      // The process that comes next does not know what the one before had asked.
      const isTold = call.words.includes(`The upstream ${call.end} `) || call.words.includes("requestState");
      if (!isTold) faults.push(`${call.text}: nobody is named by: ${call.words}`);
    }
  }
  return {
    results: calls.filter(({ outcome }) => outcome === "result").length,
    errors: calls.filter(({ outcome }) => outcome === "error").length,
    hits: hit.size,
    struck: struck.toSorted((a, b) => a - b),
    carried: carried.toSorted((a, b) => a - b),
    faults,
  };
}

/** In an exchange a call that asks is with its caller until that one replies, and comes back to the next process. */
function isWithCaller({ style, repliedAt }: Call, { at }: Kill): boolean {
  return style === "stateless" && repliedAt > at;
}

interface Told {
  /** By text, the process. */
  readonly ranIn: Map<string, number>;
  /** By process, the end and the style of its callers. */
  readonly whose: Map<number, string>;
  /** By process, when it was first spoken with. */
  readonly upAt: Map<number, number>;
  readonly faults: string[];
}

function read(log: string): Told {
  const ranIn = new Map<string, number>();
  const upAt = new Map<number, number>();
  const whose = new Map<number, string>();
  const faults: string[] = [];
  for (const line of log.split("\n")) {
    const [verb, pid, first = "", second, at] = line.split(" ");
    if (verb === "here") {
      whose.set(Number(pid), `${first} ${second}`);
      upAt.set(Number(pid), Number(at) - performance.timeOrigin);
    }
    if (verb !== "ran") continue;
    if (ranIn.has(first)) faults.push(`${first} ran in ${ranIn.get(first)} and again in ${pid}`);
    ranIn.set(first, Number(pid));
  }
  return { ranIn, whose, upAt, faults };
}
