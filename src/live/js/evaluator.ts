// Runs the user's code in the main thread, in Node's own context, so that values from Node's modules have the classes
// that the code expects (an Error is an Error, a Buffer a Uint8Array). It is not a sandbox. The code may be terminated
// at any instruction; then the controller sends the reply.

// Not used as a security boundary, only to set the file name, the first line and the loader for `import()`.
// oxlint-disable-next-line no-restricted-imports
import { constants, Script } from "node:vm";
import { performance } from "node:perf_hooks";
import process from "node:process";
import { errorMessage } from "../../core/values.ts";
import type { Globals } from "./globals.ts";
import type { Cell, Done, PrintLimits, Thrown } from "./messages.ts";
import { describeThrown, printValue } from "./print.ts";

// Saved because the user's code may declare these names.
const NativePromise = Promise;
const NativeSyntaxError = SyntaxError;

export interface JobState {
  readonly id: number;
  /** Whether the job was answered or abandoned. */
  isOver: boolean;
}

/** The object that rewritten async code uses. The names are short because that code contains them. */
interface EvaluationScope {
  /** Awaits a value; never settles if the job is over by then. */
  a(awaited: unknown): Promise<unknown>;
  /** Checks that a module has the imported names. */
  i(module: unknown, name: string, keys: readonly string[]): unknown;
  /** The code stores its value here. */
  v: unknown;
}

/** Calls `done` once, possibly before it returns, unless the job is terminated or abandoned. */
export function evaluate(
  globals: Globals,
  cell: Cell,
  job: JobState,
  limits: PrintLimits,
  done: (outcome: Omit<Done, "kind" | "id">) => void,
): void {
  const startedAt = performance.now();
  const usedBefore = process.cpuUsage();
  const finish = (result: Pick<Done, "value" | "thrown" | "undeclared">): void => {
    if (job.isOver) return;
    const used = process.cpuUsage(usedBefore);
    done({ ...result, realMs: performance.now() - startedAt, runMs: (used.user + used.system) / 1000 });
  };
  const succeed = (value: unknown): void => {
    if (job.isOver) return;
    // Print first: a value that cannot be printed is an error and does not become `_`.
    const result = cell.hasValue ? { value: printValue(value, limits) } : {};
    if (cell.hasValue) globals.last.value = value;
    finish(result);
  };
  // A cell that cannot be compiled defines nothing.
  let undeclare = (): string[] => cell.declared.map(({ name }) => name);
  const fail = (error: unknown): void => {
    if (job.isOver) return;
    globals.last.error = error;
    try {
      finish({ thrown: describeThrown(error), undeclared: undeclare() });
    } catch (problem) {
      finish({ thrown: brokenGuest(problem) });
    }
  };
  let scripts: Script[];
  try {
    scripts = compile(cell);
  } catch (error) {
    return fail(error);
  }
  const created = globals.declare(cell.declared, cell.name);
  undeclare = () => globals.undeclare(created);
  try {
    let value: unknown;
    for (const script of scripts) value = script.runInThisContext({ displayErrors: false });
    if (cell.isAsync) void runAsync(value as (scope: EvaluationScope) => Promise<unknown>, job, succeed, fail);
    else succeed(value);
  } catch (error) {
    fail(error);
  }
}

/** The error if the user's code has replaced something that this code needs. */
export function brokenGuest(error: unknown): Thrown {
  const message = `The session is broken: has its code replaced a built-in function? Reset it (${errorMessage(error)})`;
  return { type: "Error", message, stack: "" };
}

function compile(cell: Cell): Script[] {
  const importModuleDynamically = constants.USE_MAIN_CONTEXT_DEFAULT_LOADER;
  const code = new Script(cell.code, { filename: cell.name, lineOffset: cell.lineOffset, importModuleDynamically });
  if (cell.hoisted === undefined) return [code];
  return [new Script(cell.hoisted, { filename: cell.name, importModuleDynamically }), code];
}

async function runAsync(
  code: (scope: EvaluationScope) => Promise<unknown>,
  job: JobState,
  succeed: (value: unknown) => void,
  fail: (error: unknown) => void,
): Promise<void> {
  const scope: EvaluationScope = { a: (awaited) => awaitUnlessOver(awaited, job), i: checkImports, v: undefined };
  try {
    await code(scope);
    succeed(scope.v);
  } catch (error) {
    fail(error);
  }
}

/** An abandoned job does not continue after its `await`. */
async function awaitUnlessOver(awaited: unknown, job: JobState): Promise<unknown> {
  try {
    const value = await awaited;
    return job.isOver ? await never() : value;
  } catch (error) {
    if (job.isOver) await never();
    throw error;
  }
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
