// Lets the controller inspect and stop the main thread of a guest, with Node's inspector. An idle thread must not be
// terminated: the termination would hit whatever runs next, and if that is internal code of Node, some versions crash.
// So the controller first sends a probe, which an idle thread answers. A thread that does not answer is paused and then
// terminated at that point.

import { Session, type Debugger } from "node:inspector";
import { within } from "../../core/async.ts";
import type { Frame } from "../runtime.ts";
import type { ToMainThread } from "./messages.ts";

/** How long an idle thread may take to answer a probe. */
const PROBE_TIMEOUT_MS = 100;
/**
 * How long a busy thread may take to pause. Native code never pauses, but a thread that is merely slow must have enough
 * time to give a backtrace.
 */
const PAUSE_TIMEOUT_MS = 600;
/** The same in later rounds, when the backtrace is already known. */
const PAUSE_AGAIN_TIMEOUT_MS = 300;
/** How long a terminated thread may take to answer before it is paused again: another callback may loop too. */
const TERMINATE_TIMEOUT_MS = 50;
const MAX_TERMINATIONS = 40;

export interface IdleReport {
  /** What the thread may be waiting for, by Node's names of active resources. */
  readonly resources: readonly string[];
  /** The stack of the job that was abandoned, in the terms of another language. */
  readonly frames?: readonly Frame[];
}

export interface StoppedJob {
  readonly wasIdle: boolean;
  readonly resources: readonly string[];
  readonly frames: readonly string[];
  /** The stack in the terms of another language. */
  readonly ownFrames?: readonly Frame[];
}

export class MainThread {
  readonly #send: (message: ToMainThread) => void;
  readonly #probes = new Map<number, (report: IdleReport) => void>();
  #tokens = 0;

  constructor(send: (message: ToMainThread) => void) {
    this.#send = send;
  }

  /** Must be called when the thread answers a probe. */
  onIdle(token: number, report: IdleReport): void {
    this.#probes.get(token)?.(report);
    this.#probes.delete(token);
  }

  /** Finds out what the thread is doing. Returns a report if it is idle, frames if it could be paused, else neither. */
  async inspect(): Promise<{ readonly idle?: IdleReport; readonly frames?: readonly string[] }> {
    const answer = this.#probe();
    const idle = await within(PROBE_TIMEOUT_MS, answer);
    if (idle !== undefined) return { idle };
    const inspector = new Inspector();
    try {
      const response = await within(PAUSE_TIMEOUT_MS, Promise.race([inspector.pause(), answer]));
      if (response === undefined) return {};
      return Array.isArray(response) ? { frames: response.map(({ text }) => text) } : { idle: response };
    } finally {
      inspector.close();
    }
  }

  /**
   * Stops what runs, and abandons the job; without one, stops callbacks that run after their job. Undefined if `isDone`
   * became true first, or if the code cannot be stopped.
   */
  async stop(job: number | undefined, isDone: () => boolean): Promise<StoppedJob | undefined> {
    let answers = [this.#probe(job)];
    let first = await within(PROBE_TIMEOUT_MS, Promise.race(answers));
    if (first !== undefined) return stoppedJob(first, true, []);
    const inspector = new Inspector();
    let frames: readonly string[] = [];
    try {
      for (let round = 0; round < MAX_TERMINATIONS && !isDone(); round += 1) {
        // An idle thread that is merely slow answers now, or pauses while it receives the probe; then it is resumed.
        const timeoutMs = round === 0 ? PAUSE_TIMEOUT_MS : PAUSE_AGAIN_TIMEOUT_MS;
        const response = await within(timeoutMs, Promise.race([inspector.pause(), ...answers]));
        if (response === undefined || Array.isArray(response)) {
          if (frames.length === 0) frames = (response ?? []).map(({ text }) => text);
          if (response === undefined) inspector.terminate();
          else inspector.resume(!isReceiving(response));
          // The termination may have interrupted the answer to the previous probe.
          answers.push(this.#probe(job));
        }
        const report = await within(TERMINATE_TIMEOUT_MS, Promise.race(answers));
        if (report === undefined) continue;
        first ??= report;
        // Ticks that are still queued run after the answer, and may loop too. So the thread has to answer once more.
        this.#send({ kind: "recover" });
        answers = [this.#probe(job)];
        if ((await within(TERMINATE_TIMEOUT_MS, Promise.race(answers))) === undefined) continue;
        return stoppedJob(first, false, frames);
      }
      return undefined;
    } finally {
      inspector.close();
    }
  }

  #probe(abandon?: number): Promise<IdleReport> {
    const token = ++this.#tokens;
    return new Promise((resolve) => {
      this.#probes.set(token, resolve);
      this.#send({ kind: "probe", token, ...(abandon === undefined ? undefined : { abandon }) });
    });
  }
}

function stoppedJob(report: IdleReport, wasIdle: boolean, frames: readonly string[]): StoppedJob {
  return { wasIdle, resources: report.resources, frames, ...(report.frames && { ownFrames: report.frames }) };
}

interface PausedFrame {
  readonly url: string;
  /** The frame as it is shown, such as `name (url:line:column)`. */
  readonly text: string;
}

/**
 * A debugger of the main thread. It is connected only while it is needed, since it delays the exit of the process. To
 * enable it takes long in a session with thousands of scripts, so it happens once.
 */
class Inspector {
  readonly #session = new Session();
  readonly #urls = new Map<string, string>();
  /** Pending until the thread pauses, and present until it is resumed. */
  #paused: Promise<readonly Debugger.CallFrame[]> | undefined;
  #onPaused: ((frames: readonly Debugger.CallFrame[]) => void) | undefined;

  constructor() {
    this.#session.connectToMainThread();
    this.#session.on("Debugger.scriptParsed", ({ params }) => this.#urls.set(params.scriptId, params.url));
    this.#session.on("Debugger.paused", ({ params }) => this.#onPaused?.(params.callFrames));
    this.#session.post("Debugger.enable");
  }

  /** Resolves when the thread is paused, with its frames, the innermost first. */
  async pause(): Promise<PausedFrame[]> {
    if (this.#paused === undefined) {
      this.#paused = new Promise((resolve) => {
        this.#onPaused = resolve;
      });
      this.#session.post("Debugger.pause");
    }
    const frames = await this.#paused;
    return frames.map(({ functionName: name, location }) => {
      const url = this.#urls.get(location.scriptId) ?? "";
      const position = `${url}:${location.lineNumber + 1}:${(location.columnNumber ?? 0) + 1}`;
      return { url, text: name === "" ? position : `${name} (${position})` };
    });
  }

  /** Terminates what a thread runs that does not pause. */
  terminate(): void {
    this.#session.post("Runtime.terminateExecution");
  }

  /** Lets a paused thread go on, or terminates what it ran. */
  resume(isTerminated: boolean): void {
    this.#paused = undefined;
    this.#session.post("Debugger.resume", { terminateOnResume: isTerminated });
  }

  /** Disconnects. A paused thread resumes. */
  close(): void {
    this.#session.disconnect();
  }
}

/** Whether the thread is receiving a message, with no user code on its stack. */
function isReceiving(frames: readonly PausedFrame[]): boolean {
  const isInPort = frames.some(({ url }) => url === "node:internal/per_context/messageport");
  return isInPort && frames.every(({ url }) => url.startsWith("node:") || url.endsWith("/live/js/user-thread.js"));
}
