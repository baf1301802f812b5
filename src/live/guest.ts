// The process of one live session, seen from the host: it is asked by frames on fd 3 and answers there; what it writes
// to fd 1 and 2 is raw output. Each request gets one answer, or learns that the process is gone. When to ask, to stop
// or to end it is for the session.

import { StringDecoder } from "node:string_decoder";
import { ConnectionError } from "../core/errors.ts";
import { errorMessage } from "../core/text.ts";
import { within } from "../core/async.ts";
import { startChild, type Child } from "../process/child.ts";
import { isObject } from "../core/objects.ts";
import { frame, FrameReader } from "./frames.ts";
import { Patience, understood } from "./guest-messages.ts";
import type { GuestCommand, GuestRequest, Limits, Runtime } from "./runtime.ts";

export type OutputStream = "stdout" | "stderr";
export type Hear = (text: string, stream: OutputStream) => void;
/** The params of a request: made for it alone, and filled on its way. */
export type Filled = { [param: string]: unknown };
export type Reply = { readonly [key: string]: unknown };

/** How long a guest may take until it is ready. */
const START_MS = 60_000;
/** How long it may take to end by itself when its channel is closed. */
const FAREWELL_MS = 300;

/**
 * The longest answer that is taken: so much, and so many bytes for each character of output that is kept. Guests cut
 * what they say themselves; a longer one was not written by them, and reading it would hold up everybody.
 */
const LEAST_FRAME_BYTES = 1024 * 1024;
const FRAME_BYTES = 16;

interface Asked {
  readonly hear: Hear | undefined;
  /** Whether what it printed must have been read before its answer is given. */
  readonly isPlain: boolean;
  readonly resolve: (reply: Reply) => void;
  readonly reject: (error: Error) => void;
}

/** A start that may be given up: then `guest` is closed, if it is there already. */
export interface Opening {
  guest?: Guest;
  isGivenUp?: boolean;
}

/** The process has ended; what was asked of it will not be answered. */
export class GuestGone extends Error {}

export class Guest {
  readonly child: Child;
  /** Told of what is printed where no request says that it is its own. */
  hearRaw: Hear = () => undefined;
  /** Told when the process has ended, and how. */
  onGone: (how: string) => void = () => undefined;
  version = "";
  /** Characters of output that are kept, as whoever asks has said last. */
  outputChars = 0;
  readonly #runtime: Runtime;
  readonly #asked = new Map<number, Asked>();
  #nextId = 1;
  #gone: string | undefined;
  readonly #patience = new Patience();
  #markReady: (() => void) | undefined;

  private constructor(runtime: Runtime, child: Child) {
    this.#runtime = runtime;
    this.child = child;
    const most = (): number => LEAST_FRAME_BYTES + FRAME_BYTES * this.outputChars;
    const reader = new FrameReader((text) => this.#take(text), most);
    child.channel?.on("data", (chunk: Buffer) => {
      try {
        reader.push(chunk);
      } catch (error) {
        this.#end(`it cannot be understood: ${errorMessage(error)}`);
        void this.close(0);
      }
    });
    // A program that closes its channel cannot be asked any more, whether or not it lives.
    child.channel?.on("end", () => void this.close());
    const decoder = new StringDecoder("utf8");
    child.stdout.on("data", (chunk: Buffer) => this.#raw(decoder.write(chunk), "stdout"));
    void child.exited.then(({ code, signal }) => this.#end(signal === null ? `exit code ${code}` : signal));
  }

  /** Resolves when it is ready; rejects with a ConnectionError that says what to do. */
  static async start(runtime: Runtime, limits: Limits, opening: Opening = {}): Promise<Guest> {
    const command = await runtime.start(limits);
    try {
      return await Guest.#begin(runtime, command, opening);
    } catch (error) {
      const isGivenUp = opening.isGivenUp === true;
      if ((await runtime.failed?.(command, isGivenUp)) !== true || isGivenUp) throw error;
      return Guest.#begin(runtime, await runtime.start(limits), opening);
    }
  }

  static async #begin(runtime: Runtime, command: GuestCommand, opening: Opening): Promise<Guest> {
    const decoder = new StringDecoder("utf8");
    let guest: Guest | undefined;
    let child: Child;
    try {
      child = await startChild({
        ...command,
        channel: true,
        stdinGraceMs: FAREWELL_MS,
        termGraceMs: FAREWELL_MS,
        onStderr: (chunk) => {
          if (guest !== undefined) guest.#hearStderr(decoder.write(chunk));
        },
      });
    } catch (error) {
      throw new ConnectionError("spawn", errorMessage(error), { cause: error, mayHaveRun: false });
    }
    const made = (guest = opening.guest = new Guest(runtime, child));
    if (opening.isGivenUp === true) void made.close(0);
    let isReady = false;
    const settled = new Promise<void>((resolve) => {
      made.#markReady = () => {
        isReady = true;
        resolve();
      };
      made.onGone = () => resolve();
    });
    await within(START_MS, settled);
    if (!isReady) {
      const why = made.#gone ?? `it was not ready after ${START_MS / 1000} s`;
      await made.close(0);
      const tail = child.stderrTail().trim().slice(-500);
      const message = `A ${runtime.language} session could not be started (${command.command}): ${why}`;
      throw new ConnectionError("spawn", tail === "" ? message : `${message}; it said: ${tail}`, { mayHaveRun: false });
    }
    made.onGone = () => undefined;
    runtime.settled?.();
    return made;
  }

  get pid(): number {
    return this.child.pid;
  }

  get isGone(): boolean {
    return this.#gone !== undefined;
  }

  /** Something that the evaluator does. `hear` is told of what it prints meanwhile, as far as the guest says whose it is. */
  ask(op: string, params: Filled, hear?: Hear): { readonly id: number; readonly reply: Promise<Reply> } {
    return this.#send(op, params, hear, true);
  }

  /** Something that the reader does at once, busy as the evaluator may be. */
  tell(op: string, params: Filled): Promise<Reply> {
    return this.#send(op, params, undefined, false).reply;
  }

  /** Whether what it prints is left in the pipe: it waits then, as soon as that is full. */
  silence(isSilent: boolean): void {
    for (const stream of [this.child.stdout, this.child.stderr]) {
      if (isSilent) stream.pause();
      else stream.resume();
    }
  }

  /** Ends the process, at once with a budget of 0; resolves when nobody of its family is left. */
  async close(budgetMs?: number): Promise<void> {
    await this.child.close(budgetMs).catch(() => undefined);
  }

  #send(op: string, params: Filled, hear: Hear | undefined, isPlain: boolean): { id: number; reply: Promise<Reply> } {
    const id = this.#nextId++;
    if (this.#gone !== undefined) return { id, reply: Promise.reject(new GuestGone(this.#gone)) };
    const reply = new Promise<Reply>((resolve, reject) => {
      this.#asked.set(id, { hear, isPlain, resolve, reject });
    });
    params["id"] = id;
    params["op"] = op;
    this.#patience.asked(this.outputChars);
    this.child.channel?.write(frame(this.#runtime.encode(params as Filled & GuestRequest)));
    return { id, reply };
  }

  #take(text: string): void {
    const message = understood(text);
    const { id, event, output } = message;
    const asked = typeof id === "number" ? this.#asked.get(id) : undefined;
    if (asked !== undefined && output === undefined) {
      this.#asked.delete(id as number);
      this.#answer(asked, message);
      return;
    }
    this.#patience.heard(text.length);
    if (asked !== undefined) this.#output(asked, message);
    else if (event === "background") this.#hearStderr(String(message["text"]));
    else if (event === "ready" && this.#markReady !== undefined) {
      this.version = String(message["version"]);
      this.#markReady();
      this.#markReady = undefined;
    }
  }

  #output({ hear }: Asked, { output, stream }: Reply): void {
    if (typeof output !== "string") return;
    // Some of what a runtime says of itself, it says on the stream of what runs.
    const text = stream === "stderr" ? this.#withoutNoise(output) : output;
    if (text !== "") hear?.(text, stream === "stderr" ? "stderr" : "stdout");
  }

  #answer(asked: Asked, { result, error }: Reply): void {
    const settle = (): void => {
      if (typeof error === "string") asked.reject(new Error(error));
      else asked.resolve(isObject(result) ? result : {});
    };
    // What was written to fd 1 and 2 before the answer can be read when the answer can: it is, in this very turn.
    if (asked.isPlain) setImmediate(settle);
    else settle();
  }

  #hearStderr(text: string): void {
    this.#raw(this.#withoutNoise(text), "stderr");
  }

  #withoutNoise(text: string): string {
    const { noise } = this.#runtime;
    return noise === undefined ? text : text.replaceAll(noise, "");
  }

  #raw(text: string, stream: OutputStream): void {
    if (text !== "") this.hearRaw(text, stream);
  }

  #end(how: string): void {
    if (this.#gone !== undefined) return;
    this.#gone = how;
    // As for answers: what it still said comes first.
    setImmediate(() => {
      for (const { reject } of this.#asked.values()) reject(new GuestGone(how));
      this.#asked.clear();
      this.onGone(how);
    });
  }
}
