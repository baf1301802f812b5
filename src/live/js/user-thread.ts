// The main thread of a guest, which is the user's: it runs what the controller gives it, one after the other, and says
// what came out. What it needs for that it takes before the user's code can change it. Whatever runs here may be
// terminated at any instruction, and the next message is then taken as if nothing had been.

import { register } from "node:module";
import { inspect } from "node:util";
import type { MessagePort } from "node:worker_threads";
import { Evaluator, type Run } from "./evaluator.ts";
import { Globals, source, variables } from "./globals.ts";
import type { Job, ToController, ToMain } from "./messages.ts";
import { startsWith, toText } from "./primordials.ts";
import { cut } from "./print.ts";
import { measured, unmeasured } from "./profiling.ts";
import { withPlace } from "./print.ts";
import { writeSync } from "node:fs";

const resources = process.getActiveResourcesInfo.bind(process);
const listeners = process.listenerCount.bind(process);
const emit = process.emit.bind(process) as (event: string, ...args: unknown[]) => boolean;
const later = queueMicrotask;
const emitWarning = process.emitWarning.bind(process) as (...args: unknown[]) => void;

/** Thrown where nobody catches it, so that Node forgets what a terminated callback was in the middle of. */
const HEALING = new Error("healed");
/** Frames of Node and of ours are left out of what is told, so more are taken. */
const STACK_FRAMES = 25;
/** Characters of an error that nobody caught. */
const MOST_TOLD = 10_000;

export class UserThread {
  readonly #port: MessagePort;
  readonly #say: (message: ToController) => void;
  readonly #globals = new Globals();
  readonly #evaluator = new Evaluator(this.#globals);
  #current: Run | undefined;
  #readsTypeScript = ((process.features as { typescript?: unknown }).typescript ?? false) !== false;

  constructor(port: MessagePort) {
    this.#port = port;
    this.#say = port.postMessage.bind(port);
  }

  listen(): void {
    Error.stackTraceLimit = STACK_FRAMES;
    hushLoader();
    // Not a listener, which the user's code could take away; with it, nothing that is thrown ends the process.
    process.setUncaughtExceptionCaptureCallback((error: unknown) => {
      if (error === HEALING) return;
      if (listeners("uncaughtException") > 0) emit("uncaughtException", error, "uncaughtException");
      else this.#say({ kind: "uncaught", text: `Uncaught ${text(error)}` });
    });
    printAtOnce();
    this.#port.on("message", (message: ToMain) => this.#take(message));
    this.#say({ kind: "ready" });
  }

  #take(message: ToMain): void {
    switch (message.kind) {
      case "job":
        return this.#run(message);
      case "ask":
        if (this.#current !== undefined && this.#current.id === message.abandon) {
          this.#current.isOver = true;
          this.#current = undefined;
        }
        this.#say({ kind: "here", token: message.token, resources: resources() });
        // Behind the answer: whoever waits for it terminates what is late, and then this is left to the next job.
        if (message.abandon !== undefined) unmeasured();
        return;
      case "heal":
        return later(() => {
          throw HEALING;
        });
    }
  }

  #run(job: Job): void {
    const turn: Run = { id: job.id, isOver: false };
    this.#current = turn;
    if (job.cell?.importsTypeScript === true && !this.#readsTypeScript) {
      this.#readsTypeScript = true;
      register("../../modules/typescript-hook.js", import.meta.url);
    }
    const done = (found: object): void => {
      if (turn.isOver) return;
      turn.isOver = true;
      this.#current = undefined;
      this.#say({ realMs: 0, runMs: 0, ...found, kind: "done", id: job.id });
    };
    try {
      this.#perform(job, turn, done);
    } catch (error) {
      // The user's code may have taken from us what we cannot keep.
      done({ thrown: { type: "Error", message: `The session could not do this: ${text(error)}`, stack: "" } });
    }
  }

  #perform(job: Job, turn: Run, done: (found: object) => void): void {
    const { cell, op, params } = job;
    unmeasured();
    const isMeasured = op === "profile-code" || op === "heap-report";
    const measure = isMeasured ? measured(op, params, cell !== undefined) : undefined;
    if (cell !== undefined) {
      this.#evaluator.execute(cell, turn, job, (outcome) => done({ ...outcome, found: measure?.() }));
      return;
    }
    if (op === "list-variables") done({ found: variables(this.#globals, params) });
    else if (op === "get-source") done({ found: source(this.#globals, toText(params["name"])) });
    else done({ found: measure?.() });
  }
}

function text(error: unknown): string {
  try {
    return cut(inspect(withPlace(error), { maxStringLength: MOST_TOLD }), MOST_TOLD);
  } catch {
    return "something that cannot be printed";
  }
}

/** That how modules are found is an experiment of Node is no news for the user. */
function hushLoader(): void {
  process.emitWarning = (...args: unknown[]): void => {
    if (!startsWith(toText(args[0]), "vm.USE_MAIN_CONTEXT")) emitWarning(...args);
  };
}

// How a guest prints: each write to stdout and stderr is done when it returns. So a program that prints without end
// waits for its reader instead of filling its memory, what it printed stands in the pipe before its result stands in the
// channel, and there is nothing half done where it is terminated in the middle of printing.

const toBytes = Buffer.from.bind(Buffer) as (text: string, encoding?: BufferEncoding) => Buffer;
const nextTick = process.nextTick.bind(process);

export function printAtOnce(): void {
  for (const stream of [process.stdout, process.stderr]) {
    const { fd } = stream;
    const { _handle: handle } = stream as { readonly _handle?: { setBlocking?(isBlocking: boolean): void } };
    handle?.setBlocking?.(true);
    stream.write = (chunk: string | Uint8Array, encoding?: unknown, done?: unknown): boolean => {
      print(fd, typeof chunk === "string" ? toBytes(chunk, encodingOf(encoding)) : chunk);
      const callback = typeof encoding === "function" ? encoding : done;
      if (typeof callback === "function") nextTick(callback);
      return true;
    };
  }
}

function encodingOf(given: unknown): BufferEncoding | undefined {
  return typeof given === "string" ? (given as BufferEncoding) : undefined;
}

function print(fd: number, bytes: Uint8Array): void {
  try {
    for (let from = 0; from < bytes.length;) from += writeSync(fd, bytes, from);
  } catch {
    // A reader that is gone is no fault of what prints.
  }
}
