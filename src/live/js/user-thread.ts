// The main thread of a guest, which runs the user's code: it takes one job after the other from the controller and
// sends back the outcome. It saves the functions that it needs before the user's code can replace them. Whatever runs
// here may be terminated at any instruction; the next message is then handled normally.

import { writeSync } from "node:fs";
import { register } from "node:module";
import { inspect } from "node:util";
import type { MessagePort } from "node:worker_threads";
import { Evaluator, type JobState } from "./evaluator.ts";
import { getSource, Globals, listVariables } from "./globals.ts";
import type { Job, ToController, ToMainThread } from "./messages.ts";
import { startsWith, toText } from "./primordials.ts";
import { cut, withSyntaxPosition } from "./print.ts";
import { abortProfiling, startProfiling } from "./profiling.ts";

const activeResources = process.getActiveResourcesInfo.bind(process);
const listenerCount = process.listenerCount.bind(process);
const emit = process.emit.bind(process) as (event: string, ...args: unknown[]) => boolean;
const enqueueMicrotask = queueMicrotask;
const emitWarning = process.emitWarning.bind(process) as (...args: unknown[]) => void;
const bytesOf = Buffer.from.bind(Buffer) as (text: string, encoding?: BufferEncoding) => Buffer;
const nextTick = process.nextTick.bind(process);

/** Thrown and never caught. This makes Node forget the callback that was terminated. */
const RECOVERY = new Error("recovery");
/** More frames than are shown, because those of Node and of the guest are removed. */
const STACK_FRAMES = 25;
const MAX_UNCAUGHT_LENGTH = 10_000;

export class UserThread {
  readonly #port: MessagePort;
  readonly #send: (message: ToController) => void;
  readonly #globals = new Globals();
  readonly #evaluator = new Evaluator(this.#globals);
  #current: JobState | undefined;
  #canImportTypeScript = ((process.features as { typescript?: unknown }).typescript ?? false) !== false;

  constructor(port: MessagePort) {
    this.#port = port;
    this.#send = port.postMessage.bind(port);
  }

  listen(): void {
    Error.stackTraceLimit = STACK_FRAMES;
    hideLoaderWarning();
    // A capture callback, because the user's code could remove a listener. No exception ends the process.
    process.setUncaughtExceptionCaptureCallback((error: unknown) => {
      if (error === RECOVERY) return;
      if (listenerCount("uncaughtException") > 0) emit("uncaughtException", error, "uncaughtException");
      else this.#send({ kind: "uncaught", text: `Uncaught ${errorText(error)}` });
    });
    makeOutputSynchronous();
    this.#port.on("message", (message: ToMainThread) => this.#receive(message));
    this.#send({ kind: "ready" });
  }

  #receive(message: ToMainThread): void {
    switch (message.kind) {
      case "job":
        return this.#run(message);
      case "probe":
        if (this.#current !== undefined && this.#current.id === message.abandon) {
          this.#current.isOver = true;
          this.#current = undefined;
        }
        this.#send({ kind: "idle", token: message.token, resources: activeResources() });
        // Answer first, since the controller terminates a thread that answers late. If the thread is terminated before
        // the next line runs, the next job aborts the profiling.
        if (message.abandon !== undefined) abortProfiling();
        return;
      case "recover":
        return enqueueMicrotask(() => {
          throw RECOVERY;
        });
    }
  }

  #run(job: Job): void {
    const state: JobState = { id: job.id, isOver: false };
    this.#current = state;
    if (job.cell?.importsTypeScript === true && !this.#canImportTypeScript) {
      this.#canImportTypeScript = true;
      register("../../modules/typescript.js", import.meta.url);
    }
    const done = (outcome: object): void => {
      if (state.isOver) return;
      state.isOver = true;
      this.#current = undefined;
      this.#send({ realMs: 0, runMs: 0, ...outcome, kind: "done", id: job.id });
    };
    try {
      this.#perform(job, state, done);
    } catch (error) {
      // The user's code may have replaced a built-in function that could not be saved beforehand.
      done({
        thrown: { type: "Error", message: `The session could not run this request: ${errorText(error)}`, stack: "" },
      });
    }
  }

  #perform(job: Job, state: JobState, done: (outcome: object) => void): void {
    const { cell, op, params } = job;
    abortProfiling();
    const isProfiled = op === "profile-code" || op === "heap-report";
    const stopProfiling = isProfiled ? startProfiling(op, params, cell !== undefined) : undefined;
    if (cell !== undefined) {
      this.#evaluator.execute(cell, state, job, (outcome) => done({ ...outcome, found: stopProfiling?.() }));
      return;
    }
    if (op === "list-variables") done({ found: listVariables(this.#globals, params) });
    else if (op === "get-source") done({ found: getSource(this.#globals, toText(params["name"])) });
    else done({ found: stopProfiling?.() });
  }
}

function errorText(error: unknown): string {
  try {
    return cut(inspect(withSyntaxPosition(error), { maxStringLength: MAX_UNCAUGHT_LENGTH }), MAX_UNCAUGHT_LENGTH);
  } catch {
    return "(a value that cannot be printed)";
  }
}

/** The user need not know that Node's loader for `import()` is experimental. */
function hideLoaderWarning(): void {
  process.emitWarning = (...args: unknown[]): void => {
    if (!startsWith(toText(args[0]), "vm.USE_MAIN_CONTEXT")) emitWarning(...args);
  };
}

/**
 * Makes each write to stdout and stderr complete before it returns. So a program that prints endlessly waits for its
 * reader instead of filling its memory, all output of a job is in the pipe before its result is in the channel, and no
 * write is pending when the code is terminated.
 */
function makeOutputSynchronous(): void {
  for (const stream of [process.stdout, process.stderr]) {
    const { fd } = stream;
    const { _handle: handle } = stream as { readonly _handle?: { setBlocking?(isBlocking: boolean): void } };
    handle?.setBlocking?.(true);
    stream.write = (chunk: string | Uint8Array, encoding?: unknown, done?: unknown): boolean => {
      writeAll(fd, typeof chunk === "string" ? bytesOf(chunk, toEncoding(encoding)) : chunk);
      const callback = typeof encoding === "function" ? encoding : done;
      if (typeof callback === "function") nextTick(callback);
      return true;
    };
  }
}

function toEncoding(given: unknown): BufferEncoding | undefined {
  return typeof given === "string" ? (given as BufferEncoding) : undefined;
}

function writeAll(fd: number, bytes: Uint8Array): void {
  try {
    for (let from = 0; from < bytes.length;) from += writeSync(fd, bytes, from);
  } catch {
    // The reader is gone. The code that prints must not fail because of that.
  }
}
