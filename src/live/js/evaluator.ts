// Runs the user's code in the main thread, in Node's own context, so that values from Node's modules have the classes
// that the code expects (an Error is an Error, a Buffer a Uint8Array). It is not a sandbox. The code may be terminated
// at any instruction; then the controller sends the reply.

// Not used as a security boundary, only to set the file name, the first line and the loader for `import()`.
// oxlint-disable-next-line no-restricted-imports
import { compileFunction, constants, Script } from "node:vm";
import { performance } from "node:perf_hooks";
import process from "node:process";
import { errorMessage } from "../../core/values.ts";
import type { CapturedFrame, Captures } from "./thrown-variables.ts";
import type { Globals } from "./globals.ts";
import { describeThrown, printValue } from "./print.ts";
import type { Handles } from "./inspect.ts";
import type { Cell, Done, PrintLimits, Thrown, ThrownFrame } from "./messages.ts";
import type { SessionTests } from "./session-tests.ts";

// Saved because the user's code may declare or replace these.
const NativePromise = Promise;
const NativeSyntaxError = SyntaxError;
const { apply } = Reflect;
const GLOBAL = globalThis;
const laterTurn = setImmediate;
// Unbound on purpose: it is applied to promises.
// oxlint-disable-next-line typescript/unbound-method
const { then } = NativePromise.prototype;
const resolve = NativePromise.resolve.bind(NativePromise) as <T>(value: T) => Promise<T>;

export interface JobState {
  readonly id: number;
  /** Whether the job was answered or abandoned. */
  isOver: boolean;
}

/** The parameter of rewritten code. The names are short because that code contains them. */
interface EvaluationScope {
  /** The code stores its value here. */
  v: unknown;
  /** Set when the code has run to its end. */
  k?: 1;
  /** Called when the code has ended, with or without an error. */
  e?(): void;
  /** Whether the job is over, so that the code must not go on. */
  readonly o?: boolean;
  /** A promise that never settles. */
  readonly n?: Promise<never>;
  /** Returns the awaited value, its second argument, or what the session has in its place. */
  u?(before: unknown, awaited: unknown): unknown;
  /** Checks that a module has the imported names. */
  i?(module: unknown, name: string, keys: readonly string[]): unknown;
}

type Code = (scope: EvaluationScope) => unknown;

/** What evaluations leave behind. */
export interface SessionState {
  readonly globals: Globals;
  readonly captures: Captures;
  readonly handles: Handles;
  readonly tests: SessionTests;
}

export interface EvaluationOptions {
  readonly cell: Cell;
  readonly job: JobState;
  readonly limits: PrintLimits;
  /** The frame of an error in which the code runs, with copies of its variables. */
  readonly frame?: CapturedFrame | undefined;
}

/** Calls `done` once, possibly before it returns, unless the job is terminated or abandoned. */
export function evaluate(
  { globals, captures, handles, tests }: SessionState,
  { cell, job, limits, frame }: EvaluationOptions,
  done: (outcome: Omit<Done, "kind" | "id">) => void,
): void {
  const startedAt = performance.now();
  const usedBefore = process.cpuUsage();
  const finish = (result: Pick<Done, "value" | "handle" | "thrown" | "undeclared">): void => {
    if (job.isOver) return;
    if (cell.declared.length + cell.imported.length > 0) globals.remember(cell.declared, cell.imported);
    const used = process.cpuUsage(usedBefore);
    const note = testsNote(tests.takeDefined());
    done({ ...result, ...note, realMs: performance.now() - startedAt, runMs: (used.user + used.system) / 1000 });
  };
  const succeed = (value: unknown): void => {
    if (job.isOver) return;
    // Print first: a value that cannot be printed is an error and does not become `_`.
    if (!cell.hasValue) return finish({});
    const text = printValue(value, limits);
    globals.last.value = value;
    finish({ value: text, ...handles.of(value, text) });
  };
  // A cell that cannot be compiled defines nothing.
  let undeclare = (): string[] => cell.declared.map(({ name }) => name);
  const fail = (error: unknown): void => {
    if (job.isOver) return;
    globals.last.error = error;
    try {
      // An error in a frame of another error does not replace that.
      const frames = frame === undefined ? captures.take(error) : [];
      const thrown = { ...describeThrown(error), frames: frames.map((frame) => toThrownFrame(frame, handles)) };
      finish({ thrown, undeclared: undeclare() });
    } catch (problem) {
      finish({ thrown: brokenGuest(problem) });
    }
  };
  let code: Code;
  let hoisted: Script | undefined;
  try {
    if (cell.hoisted !== undefined) hoisted = new Script(cell.hoisted, scriptOptions(cell.name));
    code = compile(cell, frame);
  } catch (error) {
    return fail(error);
  }
  if (frame === undefined) captures.begin();
  const created = globals.declare(cell.declared, cell.name);
  undeclare = () => globals.undeclare(created);
  try {
    hoisted?.runInThisContext({ displayErrors: false });
  } catch (error) {
    return fail(error);
  }
  const end = (scope: EvaluationScope): void => {
    try {
      succeed(scope.v);
    } catch (error) {
      fail(error);
    }
  };
  if (cell.form === "async") runAsync(code as (scope: EvaluationScope) => Promise<unknown>, { job, tests }, end, fail);
  else run(code, end, fail);
}

function testsNote(defined: number): Pick<Done, "note"> | undefined {
  if (defined === 0) return undefined;
  return { note: `${defined === 1 ? "1 test" : `${defined} tests`} defined; run-tests runs the tests of the session` };
}

/** The error if the user's code has replaced something that this code needs. */
export function brokenGuest(error: unknown): Thrown {
  const message = `The session is broken: has its code replaced a built-in function? Reset it (${errorMessage(error)})`;
  return { type: "Error", message, stack: "" };
}

function scriptOptions(filename: string, lineOffset = 0): object {
  return { filename, lineOffset, importModuleDynamically: constants.USE_MAIN_CONTEXT_DEFAULT_LOADER };
}

function compile(cell: Cell, frame: CapturedFrame | undefined): Code {
  if (cell.code === "") return () => undefined;
  if (frame !== undefined) return compileInFrame(cell, frame);
  const options = scriptOptions(cell.name, cell.lineOffset);
  // It takes less time to compile than a script that evaluates to a function.
  if (cell.form === "function") return compileFunction(cell.code, [cell.scope], options) as Code;
  const script = new Script(cell.code, options);
  if (cell.form === "async") return script.runInThisContext({ displayErrors: false }) as Code;
  return (scope) => {
    scope.v = script.runInThisContext({ displayErrors: false });
  };
}

/** The variables of the frame are those of a `with` statement. */
function compileInFrame({ code, name, lineOffset }: Cell, { self, variables }: CapturedFrame): Code {
  const script = new Script(`(function($f){with($f)return${code}})`, scriptOptions(name, lineOffset));
  const inFrame = script.runInThisContext({ displayErrors: false }) as (this: unknown, variables: object) => Code;
  return apply(inFrame, self, [variables]);
}

function toThrownFrame({ ownNames, variables, self, ...place }: CapturedFrame, handles: Handles): ThrownFrame {
  const frameVariables: [name: string, value: unknown][] = ownNames.map((name) => [name, variables[name]]);
  if (typeof self === "object" && self !== null && self !== GLOBAL) frameVariables.unshift(["this", self]);
  const locals = frameVariables.map(([name, value]) => {
    const { text, handle } = handles.line(value);
    return { name, value: text, ...(handle === undefined ? undefined : { handle }) };
  });
  return { name: place.name, url: place.url, line: place.line, column: place.column, locals };
}

/**
 * Runs the code as a reaction of a promise, so that no frame of the guest is on its stack. The handlers are added after it
 * has run: before that, the debugger would take every error for one that is caught.
 */
function run(code: Code, end: (scope: EvaluationScope) => void, fail: (error: unknown) => void): void {
  const scope: EvaluationScope = { v: undefined };
  const start = resolve(scope);
  const ran = apply(then, start, [code]) as unknown;
  void apply(then, start, [() => apply(then, ran, [() => end(scope), fail])]);
}

/**
 * Runs `work` a few turns of the event loop later. What the code has awaited may still print: a reporter of node:test
 * writes the result of a test after its promise is resolved.
 */
function afterOutput(work: () => void, turns = 3): void {
  laterTurn(turns === 1 ? work : () => afterOutput(work, turns - 1));
}

function runAsync(
  code: (scope: EvaluationScope) => Promise<unknown>,
  { job, tests }: { readonly job: JobState; readonly tests: SessionTests },
  end: (scope: EvaluationScope) => void,
  fail: (error: unknown) => void,
): void {
  const scope: EvaluationScope = {
    v: undefined,
    e: () => (scope.k === undefined ? void apply(then, ran, [undefined, fail]) : afterOutput(() => end(scope))),
    get o() {
      return job.isOver;
    },
    get n() {
      return never();
    },
    u: (_before, awaited) => tests.imported(awaited),
    i: checkImports,
  };
  const ran = code(scope);
}

/** A new promise each time: a shared one would keep every abandoned job in memory. */
function never(): Promise<never> {
  return new NativePromise<never>(() => undefined);
}

function checkImports(module: unknown, name: string, keys: readonly string[]): unknown {
  const missing = keys.find((key) => !(key in (module as object)));
  if (missing === undefined) return module;
  throw new NativeSyntaxError(`The requested module '${name}' does not provide an export named '${missing}'`);
}
