// The main thread of a guest as the controller sees it: probes whether it is idle, finds out where it is if not, and
// stops it, with Node's inspector. An idle thread is never terminated, because some versions of Node crash when the
// next thing that runs there is their own code. So the thread is probed first, then paused, and terminated where it is.

import { Session, type Debugger } from "node:inspector";
import type { ToMainThread } from "./messages.ts";

/** How long an idle thread may take to answer a probe. */
const PROBE_TIMEOUT_MS = 100;
/**
 * How long a busy one may take to pause. Native code never does; a thread that is only slow must not lose its
 * backtrace.
 */
const PAUSE_TIMEOUT_MS = 600;
/** The same after a termination, when the backtrace is known. */
const PAUSE_AGAIN_TIMEOUT_MS = 100;
/** How long a terminated thread may take to answer before it is terminated again. */
const TERMINATE_TIMEOUT_MS = 150;
const MAX_TERMINATIONS = 20;

export interface IdleReport {
  /** What keeps the thread waiting, by Node's names. */
  readonly resources: readonly string[];
}

export interface StoppedJob {
  readonly wasIdle: boolean;
  readonly resources: readonly string[];
  readonly frames: readonly string[];
}

export class MainThread {
  readonly #send: (message: ToMainThread) => void;
  readonly #probes = new Map<number, (report: IdleReport) => void>();
  #tokens = 0;

  constructor(send: (message: ToMainThread) => void) {
    this.#send = send;
  }

  /** Call it when the thread has answered a probe. */
  onIdle(token: number, report: IdleReport): void {
    this.#probes.get(token)?.(report);
    this.#probes.delete(token);
  }

  /** Where the thread is: a report if it is idle, frames if it could be paused, else neither. */
  async inspect(): Promise<{ readonly idle?: IdleReport; readonly frames?: readonly string[] }> {
    const answer = this.#probe();
    const idle = await within(answer, PROBE_TIMEOUT_MS);
    if (idle !== undefined) return { idle };
    const inspector = new Inspector();
    try {
      const sign = await within(Promise.race([inspector.pause(), answer]), PAUSE_TIMEOUT_MS);
      if (sign === undefined) return {};
      return Array.isArray(sign) ? { frames: sign.map(frameText) } : { idle: sign };
    } finally {
      inspector.close();
    }
  }

  /** Stops and abandons the job. Undefined if `isDone` became true first, or if nothing helps. */
  async stop(job: number, isDone: () => boolean): Promise<StoppedJob | undefined> {
    const answers = [this.#probe(job)];
    const idle = await within(Promise.race(answers), PROBE_TIMEOUT_MS);
    if (idle !== undefined) return { wasIdle: true, resources: idle.resources, frames: [] };
    const inspector = new Inspector();
    let frames: readonly string[] = [];
    try {
      for (let round = 0; round < MAX_TERMINATIONS && !isDone(); round += 1) {
        // A thread that was only slow pauses while it takes the message, or has answered.
        const timeoutMs = round === 0 ? PAUSE_TIMEOUT_MS : PAUSE_AGAIN_TIMEOUT_MS;
        const sign = await within(Promise.race([inspector.pause(), ...answers]), timeoutMs);
        if (sign === undefined || Array.isArray(sign)) {
          if (frames.length === 0) frames = (sign ?? []).map(frameText);
          if (sign === undefined || !isReceiving(sign)) inspector.terminate();
          else inspector.resume();
          // The termination may have hit the answer to the last probe.
          answers.push(this.#probe(job));
        }
        const report = await within(Promise.race(answers), TERMINATE_TIMEOUT_MS);
        if (report === undefined) continue;
        this.#send({ kind: "recover" });
        return { wasIdle: false, resources: report.resources, frames };
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

interface PausedFrame {
  readonly name: string;
  readonly url: string;
  readonly line: number;
  readonly column: number;
}

/** Connected only while it is needed: a process that exits would wait for it. */
class Inspector {
  readonly #session = new Session();
  readonly #urls = new Map<string, string>();
  #onPaused: ((frames: readonly Debugger.CallFrame[]) => void) | undefined;

  constructor() {
    this.#session.connectToMainThread();
    this.#session.on("Debugger.scriptParsed", ({ params }) => this.#urls.set(params.scriptId, params.url));
    // One listener for all rounds: a listener per round would leak if the thread does not pause.
    this.#session.on("Debugger.paused", ({ params }) => this.#onPaused?.(params.callFrames));
  }

  /** Resolves when the thread is paused, with its frames, the innermost first. */
  async pause(): Promise<PausedFrame[]> {
    const paused = new Promise<readonly Debugger.CallFrame[]>((resolve) => {
      this.#onPaused = resolve;
    });
    this.#session.post("Debugger.enable");
    this.#session.post("Debugger.pause");
    const frames = await paused;
    return frames.map(({ functionName: name, location }) => ({
      name,
      url: this.#urls.get(location.scriptId) ?? "",
      line: location.lineNumber + 1,
      column: (location.columnNumber ?? 0) + 1,
    }));
  }

  terminate(): void {
    this.#session.post("Runtime.terminateExecution");
    this.resume();
  }

  resume(): void {
    this.#session.post("Debugger.resume");
    this.#session.post("Debugger.disable");
  }

  /** A paused thread goes on. */
  close(): void {
    this.#session.disconnect();
  }
}

/** Whether the thread is receiving a message, with no user code on its stack. */
function isReceiving(frames: readonly PausedFrame[]): boolean {
  const isInPort = frames.some(({ url }) => url === "node:internal/per_context/messageport");
  return isInPort && frames.every(({ url }) => url.startsWith("node:") || url.endsWith("/live/js/user-thread.js"));
}

function frameText({ name, url, line, column }: PausedFrame): string {
  const position = `${url}:${line}:${column}`;
  return name === "" ? position : `${name} (${position})`;
}

async function within<T>(promise: Promise<T>, ms: number): Promise<T | undefined> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => resolve(undefined), ms);
  });
  const first = await Promise.race([promise, late]);
  clearTimeout(timer);
  return first;
}
