// Runs the user's code in the main thread of a guest: in Node's own context, so that what Node's modules give is what
// the user's code takes it for (an Error is an Error, a Buffer a Uint8Array). It holds nothing back from the user: this
// is no sandbox. Whatever runs here may be terminated at any instruction; the controller then answers for it.

// This is not taken for a boundary: it is how code gets a name, a first line and `import()`.
// oxlint-disable-next-line no-restricted-imports
import { constants, Script } from "node:vm";
import { describe, printed } from "./print.ts";
import type { Globals } from "./globals.ts";
import type { Cell, Done, Printing } from "./messages.ts";

const now = performance.now.bind(performance);
const cpu = process.cpuUsage.bind(process);
// Kept as it is, to be applied to each script.
// oxlint-disable-next-line typescript/unbound-method
const run = Script.prototype.runInThisContext;
const { apply } = Reflect;
// The user's code may put another in its place.
const Pledge = Promise;
const Unread = SyntaxError;

export interface Run {
  readonly id: number;
  /** Nobody waits for it any more. */
  isOver: boolean;
}

/** What the rewritten code calls. */
interface Box {
  a(awaited: unknown): Promise<unknown>;
  i(module: unknown, name: string, keys: readonly string[]): unknown;
  v: unknown;
}

export type Outcome = Omit<Done, "kind" | "id">;

export class Evaluator {
  readonly #globals: Globals;

  constructor(globals: Globals) {
    this.#globals = globals;
  }

  /** Calls back once, perhaps before it returns, unless it is terminated or abandoned. */
  execute(cell: Cell, turn: Run, printing: Printing, done: (outcome: Outcome) => void): void {
    const startedAt = now();
    const usedBefore = cpu();
    const end = (what: Pick<Done, "value" | "thrown" | "gone">): void => {
      if (turn.isOver) return;
      const used = cpu(usedBefore);
      done({ ...what, realMs: now() - startedAt, runMs: (used.user + used.system) / 1000 });
    };
    const succeed = (value: unknown): void => {
      if (turn.isOver) return;
      // Printed first: an object that cannot be printed is no result.
      const what = cell.hasValue ? { value: printed(value, printing) } : {};
      if (cell.hasValue) this.#globals.last.value = value;
      end(what);
    };
    let made: string[] = [];
    const fail = (error: unknown, isUncompiled = false): void => {
      if (turn.isOver) return;
      const gone = this.#globals.forget(made);
      this.#globals.last.error = error;
      const thrown = describe(error);
      end({ thrown: isUncompiled ? { ...thrown, isUncompiled } : thrown, gone });
    };
    let scripts: Script[];
    try {
      scripts = compile(cell);
    } catch (error) {
      fail(error, true);
      return;
    }
    try {
      made = this.#globals.declare(cell.declared, cell.name);
      let value: unknown;
      for (let at = 0; at < scripts.length; at += 1) value = apply(run, scripts[at], [{ displayErrors: false }]);
      if (cell.isAsync) void drive(value as (box: Box) => Promise<unknown>, turn, succeed, fail);
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

/** Only by `await`, which works whatever has become of the methods of promises. */
async function drive(
  code: (box: Box) => Promise<unknown>,
  turn: Run,
  succeed: (value: unknown) => void,
  fail: (error: unknown) => void,
): Promise<void> {
  const box: Box = { a: (awaited) => whileWanted(awaited, turn), i: imported, v: undefined };
  try {
    await code(box);
    succeed(box.v);
  } catch (error) {
    fail(error);
  }
}

/** What was abandoned while it waited goes no further. */
async function whileWanted(awaited: unknown, turn: Run): Promise<unknown> {
  try {
    const value = await awaited;
    return turn.isOver ? await never() : value;
  } catch (error) {
    if (turn.isOver) await never();
    throw error;
  }
}

/** A new one each time: one that all wait for would hold all that wait, and what they have. */
function never(): Promise<never> {
  return new Pledge<never>(() => undefined);
}

function imported(module: unknown, name: string, keys: readonly string[]): unknown {
  for (let at = 0; at < keys.length; at += 1) {
    const key = keys[at] as string;
    if (key in (module as object)) continue;
    throw new Unread(`The requested module '${name}' does not provide an export named '${key}'`);
  }
  return module;
}
