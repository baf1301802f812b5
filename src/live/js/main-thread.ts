// The main thread of a guest, seen from the controller: whether it is idle, where it is when it is not, and how it is
// stopped. Node's inspector reaches it in the middle of whatever JavaScript runs there. An idle thread is never
// terminated, because some versions of Node crash when the next thing that runs there is their own: so it is asked
// first, and then halted, and terminated where it stands.

import { Session, type Debugger } from "node:inspector";
import type { ToMain } from "./messages.ts";

/** How long an idle thread may take to answer. */
const ASK_MS = 100;
/** How long a busy one may take to halt: native code does not, and what is only late must not lose its backtrace. */
const HALT_MS = 600;
/** The same of one that was terminated, whose backtrace is known. */
const HALT_AGAIN_MS = 100;
/** How long one that was terminated may take to answer, before it is tried again. */
const STOP_MS = 150;
const MOST_STOPS = 20;

export interface Here {
  /** What keeps it waiting, as Node names it. */
  readonly resources: readonly string[];
}

export interface Stopped {
  readonly wasIdle: boolean;
  readonly resources: readonly string[];
  readonly frames: readonly string[];
}

export class MainThread {
  readonly #send: (message: ToMain) => void;
  readonly #asked = new Map<number, (here: Here) => void>();
  #tokens = 0;

  constructor(send: (message: ToMain) => void) {
    this.#send = send;
  }

  heard(token: number, here: Here): void {
    this.#asked.get(token)?.(here);
    this.#asked.delete(token);
  }

  /** Where it is; without frames where it cannot be halted. */
  async look(): Promise<{ readonly here?: Here; readonly frames?: readonly string[] }> {
    const answer = this.#ask();
    const here = await within(answer, ASK_MS);
    if (here !== undefined) return { here };
    const inspector = new Inspector();
    try {
      const sign = await within(Promise.race([inspector.halted(), answer]), HALT_MS);
      if (sign === undefined) return {};
      return Array.isArray(sign) ? { frames: sign.map(frameText) } : { here: sign };
    } finally {
      inspector.close();
    }
  }

  /** Stops what runs and abandons the run. Undefined where `isDone` came to be true before, or nothing helps. */
  async stop(abandon: number, isDone: () => boolean): Promise<Stopped | undefined> {
    const answers = [this.#ask(abandon)];
    const here = await within(Promise.race(answers), ASK_MS);
    if (here !== undefined) return { wasIdle: true, resources: here.resources, frames: [] };
    const inspector = new Inspector();
    let frames: readonly string[] = [];
    try {
      for (let round = 0; round < MOST_STOPS && !isDone(); round += 1) {
        // One that was only late halts as it takes the message, or has answered.
        const wait = round === 0 ? HALT_MS : HALT_AGAIN_MS;
        const sign = await within(Promise.race([inspector.halted(), ...answers]), wait);
        if (sign === undefined || Array.isArray(sign)) {
          if (frames.length === 0) frames = (sign ?? []).map(frameText);
          if (sign === undefined || !isListening(sign)) inspector.terminate();
          else inspector.resume();
          // What was terminated may have been about to answer.
          answers.push(this.#ask(abandon));
        }
        const back = await within(Promise.race(answers), STOP_MS);
        if (back === undefined) continue;
        this.#send({ kind: "heal" });
        return { wasIdle: false, resources: back.resources, frames };
      }
      return undefined;
    } finally {
      inspector.close();
    }
  }

  #ask(abandon?: number): Promise<Here> {
    const token = ++this.#tokens;
    return new Promise((resolve) => {
      this.#asked.set(token, resolve);
      this.#send({ kind: "ask", token, ...(abandon === undefined ? undefined : { abandon }) });
    });
  }
}

/** A place in the main thread. */
interface Halted {
  readonly name: string;
  readonly url: string;
  readonly line: number;
  readonly column: number;
}

/** Connected only while it is needed: a process that ends would wait for it. */
class Inspector {
  readonly #session = new Session();
  readonly #urls = new Map<string, string>();
  #paused: ((frames: readonly Debugger.CallFrame[]) => void) | undefined;

  constructor() {
    this.#session.connectToMainThread();
    this.#session.on("Debugger.scriptParsed", ({ params }) => this.#urls.set(params.scriptId, params.url));
    // One for all rounds: one of each would stay where it does not halt.
    this.#session.on("Debugger.paused", ({ params }) => this.#paused?.(params.callFrames));
  }

  /** Resolves where it halts, with the places at which it stands then, the innermost first. */
  async halted(): Promise<Halted[]> {
    const paused = new Promise<readonly Debugger.CallFrame[]>((resolve) => {
      this.#paused = resolve;
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

  /** It goes on, wherever it was halted. */
  close(): void {
    this.#session.disconnect();
  }
}

/** It came back by itself, and is taking a message: nothing of the user's is on its stack. */
function isListening(halted: readonly Halted[]): boolean {
  const isTaking = halted.some(({ url }) => url === "node:internal/per_context/messageport");
  return isTaking && halted.every(({ url }) => url.startsWith("node:") || url.endsWith("/live/js/user-thread.js"));
}

function frameText({ name, url, line, column }: Halted): string {
  const place = `${url}:${line}:${column}`;
  return name === "" ? place : `${name} (${place})`;
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
