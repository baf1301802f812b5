// The main thread of a guest, which runs the user's code: it takes one job after the other from the controller and
// sends back the outcome. Whatever runs here may be terminated at any instruction; the next message is then handled
// normally. Nothing here uses a global name while jobs run, since the user's code may declare that name.

import { Buffer } from "node:buffer";
import { writeSync } from "node:fs";
import { register } from "node:module";
import process from "node:process";
import type { MessagePort } from "node:worker_threads";
import { abortProfiling, startProfiling } from "./profiles.ts";
import { Captures } from "./thrown-variables.ts";
import { getSource, Globals, listVariables } from "./globals.ts";
import { complete, completeVariable, readVariable } from "./complete.ts";
import { brokenGuest, evaluate, type JobState } from "./evaluator.ts";
import { describeThrown, errorText } from "./print.ts";
import { Handles } from "./inspect.ts";
import type { AnswerQueue, Evaluator, Job, ToController, ToMainThread } from "./messages.ts";
import { Reloader } from "./reload.ts";
import { refuseRunnersListeners, SessionTests } from "./session-tests.ts";
import { ToolCalls, ToolError } from "./tools.ts";

const enqueueMicrotask = queueMicrotask;
const emitWarning = process.emitWarning.bind(process) as (...args: unknown[]) => void;

/** Thrown and never caught. This makes Node forget the callback that was terminated. */
const RECOVERY = new Error("recovery");
/** More frames than are shown, because those of Node and of the guest are removed. */
const STACK_FRAMES = 25;

const GUEST_FOLDER = new URL(".", import.meta.url).href;

export class UserThread {
  readonly #port: MessagePort;
  readonly #send: (message: ToController) => void;
  readonly #tests = new SessionTests(() => this.#current?.id);
  readonly #globals = new Globals((require) => this.#tests.wrapRequire(require));
  /** Evaluates another language instead of JavaScript. */
  readonly #evaluator: Evaluator | undefined;
  readonly #captures = new Captures((url) => url.startsWith(GUEST_FOLDER));
  readonly #handles = new Handles();
  readonly #toolCalls: ToolCalls;
  readonly #answers: AnswerQueue;
  readonly #reloader = new Reloader(this.#globals);
  #current: JobState | undefined;
  /** The value of the global `tools`, in code mode. */
  #tools: object | undefined;
  #canImportTypeScript = ((process.features as { typescript?: unknown }).typescript ?? false) !== false;

  constructor(port: MessagePort, evaluator: Evaluator | undefined, answers: AnswerQueue) {
    this.#port = port;
    this.#evaluator = evaluator;
    this.#answers = answers;
    const send = port.postMessage.bind(port) as (message: ToController) => void;
    this.#send = send;
    this.#toolCalls = new ToolCalls(
      (json) => send({ kind: "message", json }),
      () => this.#current?.id,
    );
  }

  listen(): void {
    Error.stackTraceLimit = STACK_FRAMES;
    hideLoaderWarning();
    // A capture callback, because the user's code could remove a listener. No exception ends the process.
    process.setUncaughtExceptionCaptureCallback((error: unknown) => {
      if (error === RECOVERY || this.#toolCalls.isOfCancelled(error) || this.#tests.fail(error)) return;
      if (process.listenerCount("uncaughtException") > 0) process.emit("uncaughtException", error as Error);
      else this.#send({ kind: "uncaught", text: `Uncaught ${errorText(error)}` });
    });
    refuseRunnersListeners();
    makeOutputSynchronous();
    this.#port.on("message", (message: ToMainThread) => this.#receive(message));
    this.#send({ kind: "ready", ...(this.#evaluator && { version: this.#evaluator.version }) });
    // The controller is still starting, so this delays nothing.
    if (this.#evaluator === undefined) this.#captures.turn(true);
  }

  #receive(message: ToMainThread): void {
    switch (message.kind) {
      case "job":
        return this.#run(message);
      case "probe":
        if (this.#current !== undefined && this.#current.id === message.abandon) {
          this.#current.isOver = true;
          this.#toolCalls.end(this.#current.id, true);
          this.#current = undefined;
        }
        this.#send({
          kind: "idle",
          token: message.token,
          resources: process.getActiveResourcesInfo(),
          ...(this.#evaluator && message.abandon !== undefined && { frames: this.#evaluator.interruptedFrames() }),
        });
        // Answer first, since the controller terminates a thread that answers late. If the thread is terminated before
        // the next line runs, the next job aborts what was begun.
        if (message.abandon !== undefined) this.#abortTools();
        return;
      case "tools":
        this.#handles.turnOff();
        if (this.#evaluator !== undefined) {
          return this.#evaluator.setTools(message.tools, {
            request: (body) => this.#toolCalls.requestNow(body, this.#answers),
            show: this.#toolCalls.show,
          });
        }
        this.#tools = this.#toolCalls.create(message.tools);
        this.#globals.provide({ show: this.#toolCalls.show, ToolError });
        return;
      case "called":
        return this.#toolCalls.settle(message.json);
      case "watch":
        return this.#captures.turn(message.isOn);
      case "forget":
        return this.#captures.clear();
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
      this.#toolCalls.end(job.id, false);
      this.#send({ realMs: 0, runMs: 0, ...outcome, kind: "done", id: job.id });
    };
    try {
      this.#perform(job, state, done);
    } catch (error) {
      done({ thrown: brokenGuest(error) });
    }
  }

  #perform(job: Job, state: JobState, done: (outcome: object) => void): void {
    const { cell, op, params } = job;
    if (this.#evaluator !== undefined) return void this.#performOther(this.#evaluator, job, done);
    this.#abortTools();
    // Code that has given the name another value must not lose the tools for the runs after it.
    if (this.#tools !== undefined) this.#globals.provide({ tools: this.#tools });
    if (op === "reload") return void this.#later(() => this.#reloader.reload(), done);
    if (op === "run-tests") return void this.#later(() => this.#tests.run(params["pattern"], () => state.isOver), done);
    const isProfiled = op === "profile-code" || op === "heap-report";
    const stopProfiling = isProfiled ? startProfiling(op, params, cell !== undefined) : undefined;
    if (cell !== undefined) {
      const session = {
        globals: this.#globals,
        captures: this.#captures,
        handles: this.#handles,
        tests: this.#tests,
      };
      const frame = op === "evaluate-in-frame" ? this.#captures.frames[params["frame"] as number] : undefined;
      evaluate(session, { cell, job: state, limits: job, frame }, (outcome) =>
        done(stopProfiling === undefined ? outcome : { ...outcome, found: stopProfiling() }),
      );
      return;
    }
    done({ found: stopProfiling === undefined ? this.#find(op, params) : stopProfiling() });
  }

  /** Undoes what a tool has begun whose job was stopped. */
  #abortTools(): void {
    abortProfiling();
    this.#reloader.abort();
    this.#tests.abort();
  }

  async #later(find: () => Promise<unknown>, done: (outcome: object) => void): Promise<void> {
    try {
      done({ found: await find() });
    } catch (error) {
      done({ thrown: describeThrown(error) });
    }
  }

  /** What a tool that runs no code of the user finds. */
  #find(op: string, params: Job["params"]): unknown {
    const {
      name = "",
      value = "",
      code = "",
      arguments: toolArguments,
    } = params as Record<string, string> & {
      readonly arguments?: Readonly<Record<string, string>>;
    };
    switch (op) {
      case "list-variables":
      case "list-definitions":
        return listVariables(this.#globals, params);
      case "inspect":
        return this.#handles.inspect(params);
      case "complete":
        return complete(this.#globals, code, typeof params["position"] === "number" ? params["position"] : code.length);
      case "complete-argument":
        return completeVariable(this.#globals, value);
      case "read-resource":
        return readVariable(toolArguments?.["name"] ?? "");
      default:
        return getSource(name);
    }
  }

  async #performOther(evaluator: Evaluator, job: Job, done: (outcome: object) => void): Promise<void> {
    try {
      done({ reply: await evaluator.perform(job.op, job.params, job) });
    } catch (error) {
      done({ thrown: brokenGuest(error) });
    }
  }
}

/** The user need not know that features which we use are experimental: Node's loader for `import()`, types. */
function hideLoaderWarning(): void {
  process.emitWarning = (...args: unknown[]): void => {
    const [warning] = args;
    if (typeof warning !== "string" || !/^(?:vm\.USE_MAIN_CONTEXT|stripTypeScriptTypes)/.test(warning))
      emitWarning(...args);
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
      writeAll(
        fd,
        typeof chunk === "string"
          ? Buffer.from(chunk, typeof encoding === "string" ? (encoding as BufferEncoding) : undefined)
          : chunk,
      );
      const callback = typeof encoding === "function" ? encoding : done;
      if (typeof callback === "function") process.nextTick(callback);
      return true;
    };
  }
}

function writeAll(fd: number, bytes: Uint8Array): void {
  try {
    for (let from = 0; from < bytes.length;) from += writeSync(fd, bytes, from);
  } catch {
    // The reader is gone. The code that prints must not fail because of that.
  }
}
