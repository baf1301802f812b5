// Messages between the two threads of a guest: the controller, which talks to the host, and the main thread, which runs
// the user's code. They contain plain data only, so that broken user code cannot break the controller.

import type { MessagePort } from "node:worker_threads";
import type { CallableTool, Frame, Limits } from "../runtime.ts";
import type { ImportedName } from "./parse.ts";
import type { Rewritten } from "./rewrite.ts";

/** One piece of code, rewritten and ready to run. */
export interface Cell extends Omit<Rewritten, "shifts" | "awaits"> {
  /** The name in stack frames, such as `<eval 3>`. */
  readonly name: string;
  /** Whether it imports TypeScript files. */
  readonly importsTypeScript: boolean;
  /** The names that get values of modules. */
  readonly imported: readonly ImportedName[];
}

export type PrintLimits = Pick<Limits, "printLength" | "printDepth" | "outputChars">;

export interface Job extends PrintLimits {
  readonly kind: "job";
  readonly id: number;
  readonly op: string;
  readonly cell?: Cell;
  /** The arguments of a tool. */
  readonly params: Readonly<Record<string, unknown>>;
}

/** Evaluates another language in the main thread: it answers all requests but those that the controller answers. */
export interface Evaluator {
  /** The version for the host, such as "Amber 0.30.0". */
  readonly version: string;
  /** Returns the reply to a request, or throws an error, which is the reply then. May be terminated at any point. */
  perform(op: string, params: Job["params"], limits: PrintLimits): object | Promise<object>;
  /** The stack of the evaluation that was just terminated. */
  interruptedFrames(): readonly Frame[];
  /** Lets the code call tools. */
  setTools(tools: readonly CallableTool[], calls: BlockingCalls): void;
}

/** Calls of tools that block the thread until they are answered, for a language whose code cannot wait otherwise. */
export interface BlockingCalls {
  /** `body` has the members of the message as JSON, without braces. */
  request(body: string): CallResult;
  /** Adds content to the result of the run. Throws if nothing runs. */
  show(blocks: readonly unknown[]): void;
}

/** The request `call-result`. */
export interface CallResult {
  readonly call: number;
  readonly result?: { readonly structured?: unknown; readonly text: string; readonly content?: readonly unknown[] };
  readonly error?: {
    readonly kind: string;
    readonly message: string;
    readonly content?: readonly unknown[];
  };
}

/** How answers reach a thread that is blocked: the number in `signal` grows with each message to the port. */
export interface AnswerQueue {
  readonly port: MessagePort;
  readonly signal: SharedArrayBuffer;
}

/** What the module of another language exports. */
export interface EvaluatorModule {
  readonly createEvaluator: () => Promise<Evaluator>;
}

export interface ControllerData {
  readonly port: MessagePort;
  /** Present if the main thread evaluates another language than JavaScript. Gets the answers to its calls of tools. */
  readonly answers?: AnswerQueue;
}

export type ToMainThread =
  | Job
  /** Asks for the answer "idle" as soon as no code runs. First abandons the job `abandon` if it is still waiting. */
  | { readonly kind: "probe"; readonly token: number; readonly abandon?: number }
  /** A callback was terminated, so Node's state for it must be reset. */
  | { readonly kind: "recover" }
  /** Turns the capture of variables on or off. */
  | { readonly kind: "watch"; readonly isOn: boolean }
  /** Forgets the variables of the last error. */
  | { readonly kind: "forget" }
  /** Replaces the tools that the code can call. */
  | { readonly kind: "tools"; readonly tools: readonly CallableTool[] }
  /** Answers a call of a tool: the request `call-result` as JSON, which only the main thread needs to read. */
  | { readonly kind: "called"; readonly json: string };

/** A variable, with a handle if its value was not printed whole. */
export interface Local {
  readonly name: string;
  readonly value: string;
  readonly handle?: number;
}

/** A frame of the user's code at the place where an error was thrown. */
export interface ThrownFrame {
  readonly name: string;
  readonly url: string;
  readonly line: number;
  readonly column: number;
  readonly locals: readonly Local[];
}

export interface Thrown {
  readonly type: string;
  readonly message: string;
  /** Empty if the variables were not captured. */
  readonly frames?: readonly ThrownFrame[];
  /** For a syntax error in an imported file, it begins with the position and the line, as Node writes them. */
  readonly stack: string;
}

export interface Done {
  readonly kind: "done";
  readonly id: number;
  /** The printed value; undefined if there is none. */
  readonly value?: string;
  /** Its handle, if it was not printed whole. */
  readonly handle?: number;
  readonly thrown?: Thrown;
  /** Names whose declarations did not run because the cell failed. */
  readonly undeclared?: readonly string[];
  /** A line for the text of the evaluation. */
  readonly note?: string;
  readonly realMs: number;
  readonly runMs: number;
  /** What a tool found. */
  readonly found?: unknown;
  /** The whole reply, if another language was evaluated. */
  readonly reply?: object;
}

export type ToController =
  | { readonly kind: "ready"; readonly version?: string }
  | Done
  | {
      readonly kind: "idle";
      readonly token: number;
      readonly resources: readonly string[];
      readonly frames?: readonly Frame[];
    }
  | { readonly kind: "uncaught"; readonly text: string }
  /** A message to the host about the job that runs, as JSON. */
  | { readonly kind: "message"; readonly json: string };
