// Runs the user's code in the main thread, in Node's own context, so that values from Node's modules have the classes
// that the code expects (an Error is an Error, a Buffer a Uint8Array). It is not a sandbox. The code may be terminated
// at any instruction; then the controller sends the reply.

// Not used as a security boundary, only to set the file name, the first line and the loader for `import()`.
// oxlint-disable-next-line no-restricted-imports
import { constants, Script } from "node:vm";
import type { Globals } from "./globals.ts";
import type { Cell, Done, PrintLimits } from "./messages.ts";
import { describeThrown, printValue } from "./print.ts";

const now = performance.now.bind(performance);
const cpuUsage = process.cpuUsage.bind(process);
// Unbound on purpose: `apply` calls it on each script.
// oxlint-disable-next-line typescript/unbound-method
const runInThisContext = Script.prototype.runInThisContext;
const { apply } = Reflect;
// Saved because the user's code may replace the globals.
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

export type Outcome = Omit<Done, "kind" | "id">;

export class Evaluator {
  readonly #globals: Globals;

  constructor(globals: Globals) {
    this.#globals = globals;
  }

  /** Calls `done` once, possibly before it returns, unless the job is terminated or abandoned. */
  execute(cell: Cell, job: JobState, limits: PrintLimits, done: (outcome: Outcome) => void): void {
    const startedAt = now();
    const usedBefore = cpuUsage();
    const finish = (result: Pick<Done, "value" | "thrown" | "undeclared">): void => {
      if (job.isOver) return;
      const used = cpuUsage(usedBefore);
      done({ ...result, realMs: now() - startedAt, runMs: (used.user + used.system) / 1000 });
    };
    const succeed = (value: unknown): void => {
      if (job.isOver) return;
      // Print first: a value that cannot be printed is an error and does not become `_`.
      const result = cell.hasValue ? { value: printValue(value, limits) } : {};
      if (cell.hasValue) this.#globals.last.value = value;
      finish(result);
    };
    let created: string[] = [];
    const fail = (error: unknown, isUncompiled = false): void => {
      if (job.isOver) return;
      const undeclared = this.#globals.undeclare(created);
      this.#globals.last.error = error;
      const thrown = describeThrown(error);
      finish({ thrown: isUncompiled ? { ...thrown, isUncompiled } : thrown, undeclared });
    };
    let scripts: Script[];
    try {
      scripts = compile(cell);
    } catch (error) {
      fail(error, true);
      return;
    }
    try {
      created = this.#globals.declare(cell.declared, cell.name);
      let value: unknown;
      for (let at = 0; at < scripts.length; at += 1)
        value = apply(runInThisContext, scripts[at], [{ displayErrors: false }]);
      if (cell.isAsync) void runAsync(value as (scope: EvaluationScope) => Promise<unknown>, job, succeed, fail);
      else succeed(value);
    } catch (error) {
      fail(error);
    }
  }
}

function compile(cell: Cell): Script[] {
  const importModuleDynamically = constants.USE_MAIN_CONTEXT_DEFAULT_LOADER;
  const code = new Script(cell.code, { filename: cell.name, lineOffset: cell.lineOffset, importModuleDynamically });
  if (cell.hoisted === undefined) return [code];
  return [new Script(cell.hoisted, { filename: cell.name, importModuleDynamically }), code];
}

/** Uses `await` only, which works even if the user's code has replaced the methods of promises. */
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
  for (let at = 0; at < keys.length; at += 1) {
    const key = keys[at] as string;
    if (key in (module as object)) continue;
    throw new NativeSyntaxError(`The requested module '${name}' does not provide an export named '${key}'`);
  }
  return module;
}
