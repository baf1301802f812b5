// Common Lisp as a live language: the texts for the language model, and the runtime. It starts a guest from a saved core
// if there is one, else from the compiled guest, else from its sources, and saves a core in the background once a guest
// is ready. The .lisp files in this folder run inside the session's image.

import { within } from "../../core/async.ts";
import { defined } from "../../core/values.ts";
import type { GuestCommand, GuestRequest, Runtime } from "../runtime.ts";
import type { Language } from "../tool.ts";
import { Installation } from "./sbcl.ts";
import { EVALUATE, TOOLS } from "./tools.ts";

export interface LispGuestOptions {
  /** The SBCL executable; `sbcl` on the PATH by default. */
  readonly command?: string;
  /** Added to the environment of this process. */
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
}

export interface LispRuntime extends Runtime {
  /** Deletes the core if the guest was started from one. Resolves to true then, since another start may succeed. */
  startFailed(command: GuestCommand, isCancelled?: boolean): Promise<boolean>;
  /** Resolves when no core is being saved, with the error if saving failed. */
  saved(): Promise<Error | undefined>;
}

/** How long other guests wait for the one that compiles: as long as a guest may take to become ready. */
const COMPILE_TIMEOUT_MS = 60_000;

/** SBCL's lines about a stack overflow. The error already reports it. Some lines come one evaluation late. */
const NOISE =
  /^(?:INFO: )?(?:Control|Binding|Alien) stack guard page (?:unprotected|reprotected|temporarily disabled: proceed with caution)\n/gm;

/** `onWarning` is called once if sessions start slowly for a reason that the user can fix. */
export function lispRuntime(
  options: LispGuestOptions = {},
  onWarning: (text: string) => void = (text) => process.emitWarning(text),
): LispRuntime {
  const { env, cwd } = options;
  let installation: Promise<Installation> | undefined;
  let saving: Promise<Error | undefined> | undefined;
  let hasWarned = false;
  let isClosed = false;
  /** Resolves when the first guest has compiled its sources, or has failed. */
  let compiling: Promise<void> | undefined;
  let endCompiling = (): void => undefined;

  const find = (): Promise<Installation> => {
    installation ??= Installation.find(options.command, env?.["PATH"]).catch((error: unknown) => {
      // SBCL may be installed later, while this process runs.
      installation = undefined;
      throw error;
    });
    return installation;
  };
  /** If several guests start and nothing is compiled yet, one compiles and the others wait for its result. */
  const waitForCompiler = async (sbcl: Installation): Promise<void> => {
    if (await sbcl.hasCompiled()) return;
    if (compiling === undefined) compiling = new Promise((resolve) => (endCompiling = resolve));
    else await within(COMPILE_TIMEOUT_MS, compiling);
  };

  return {
    language: "lisp",
    stopSteps: ["interrupt", "renew"],
    noise: NOISE,
    encode: encodeRequest,

    async start({ memoryMb }) {
      const sbcl = await find();
      const common = { command: sbcl.command, ...defined({ env, cwd }) };
      if (await sbcl.hasCore()) return { ...common, args: sbcl.coreArguments(memoryMb) };
      const problem = await sbcl.prepare();
      if (problem !== undefined && !hasWarned) {
        hasWarned = true;
        onWarning(problem.message);
      }
      await waitForCompiler(sbcl);
      return { ...common, args: sbcl.sourceArguments(memoryMb) };
    },

    onReady() {
      endCompiling();
      if (isClosed || saving !== undefined) return;
      // Never rejects: sessions without a core only start more slowly.
      saving = find()
        .then((sbcl) => sbcl.save())
        .then(
          () => undefined,
          (error: unknown) => (error instanceof Error ? error : new Error(String(error))),
        );
    },

    async startFailed(command, isCancelled = false) {
      endCompiling();
      // Without a core, another start would fail in the same way.
      if (isCancelled || command.args[0] !== "--core") return false;
      await (await find()).drop();
      saving = undefined;
      return true;
    },

    async saved() {
      return saving;
    },

    async close() {
      isClosed = true;
      endCompiling();
      await (await installation?.catch(() => undefined))?.close();
      await saving;
    },
  };
}

/** Encodes a request as a property list with keywords as keys. Values that cannot be written in Lisp become nil. */
export function encodeRequest(request: GuestRequest): string {
  let text = "";
  for (const name of Object.keys(request)) {
    // For the guest, an absent key and nil are the same.
    const value = encodeValue(request[name]);
    if (value !== "nil") text += `${text === "" ? "(" : " "}:${name.replace(/[A-Z]/g, "-$&").toLowerCase()} ${value}`;
  }
  return `${text})`;
}

function encodeValue(value: unknown): string {
  if (value === true) return "t";
  if (typeof value === "string") return `"${value.replaceAll("\\", "\\\\").replaceAll('"', '\\"')}"`;
  if (typeof value === "number") return Number.isFinite(value) ? String(value) : "nil";
  if (Array.isArray(value)) return value.length === 0 ? "nil" : `(${value.map(encodeValue).join(" ")})`;
  return "nil";
}

export function lispLanguage(options: LispGuestOptions = {}): Language {
  return {
    runtime: lispRuntime(options),
    title: "Common Lisp",
    instructions: INSTRUCTIONS,
    evaluate: EVALUATE,
    tools: TOOLS,
    guide: GUIDE,
  };
}

const INSTRUCTIONS =
  "Persistent Common Lisp sessions on SBCL. Evaluate with evaluate-lisp: definitions, variables and the current " +
  "package are kept for later calls, and errors come back with a backtrace without ending the session. Look things up " +
  "with describe-symbol and apropos-search before you use them, and check code with validate-syntax and compile-form " +
  "before you save it. Most tools take the name of a `session`; different names are separate images. get-usage-guide " +
  "explains more.";

const GUIDE = `# Common Lisp sessions

A session is a running SBCL image. Later calls see what earlier calls defined; an error ends the call, not the session.
Work as at a REPL: try a small piece, look at the result, continue.

## Quick start

1. \`evaluate-lisp\` with \`(defun sq (x) (* x x))\` returns \`=> SQ\`.
2. \`evaluate-lisp\` with \`(sq 5)\` returns \`=> 25\`.
3. \`describe-symbol\` with \`sq\` shows its arguments, \`who-calls\` its callers.
4. \`list-definitions\` lists what the session has defined so far.

## Tools

| tool | purpose | when |
|---|---|---|
| evaluate-lisp | run code and keep the state | always |
| time-execution | run once, with time and allocation | before and after an optimization |
| validate-syntax | check that code can be read | before you write a file |
| match-paren | find the matching parenthesis | when validate-syntax complains |
| compile-form | errors, type conflicts and undefined names, without running | before you evaluate something risky |
| macroexpand-form | show what a macro expands to | when a macro surprises you |
| describe-symbol | kind, arguments, value, documentation, source | before you call an unknown function |
| apropos-search | names that contain a string | when you half remember a name |
| who-calls, who-references | where a function or a variable is used | before you change it |
| class-info, find-methods | slots, superclasses, methods | when you work with CLOS |
| list-definitions | definitions made by evaluations and load-file (nested ones too), and the systems that were loaded | when you come back to a session |
| describe-last-error, get-backtrace | the last error, with restarts and frames | after [ERROR] |
| load-file, load-system, quickload | load code from disk, ASDF, Quicklisp | to load a project |
| list-local-systems, describe-system, system-dependencies, find-system-file, quicklisp-search | find systems to load | before loading |
| profile-code, allocation-profile, profile-functions | where time and memory go | when something is slow |
| memory-report | what the image holds | when memory grows |
| telos-* | why a program is the way it is | if the library telos is loaded |
| list-sessions, interrupt-session, reset-session, close-session, configure-limits | sessions and their limits | see below |

## Workflow

- **Small steps.** Define one function, call it with a simple case and an edge case, then write the next.
- **Check before you save.** \`validate-syntax\` first, then \`compile-form\`, then write the file, then \`load-file\`.
- **Look before you use.** \`apropos-search\`, then \`describe-symbol\`; for a library, \`describe-system\` first.
- **Types.** Declare them where they matter and read the warnings of \`compile-form\`, which reports type conflicts.

## Patterns

- Several forms in one call run in order. Each is read after those before it have run, so \`(defpackage :app ...)\`,
  \`(in-package :app)\` and code in that package may be in one call.
- The package is kept: after \`(in-package :app)\`, or with \`package\` given to evaluate-lisp, later calls and tools work
  in APP. For other tools, \`package\` applies to that call only.
- \`*\`, \`**\` and \`***\` are the last three values. \`(values)\` returns \`; No values\`.
- Print with \`format t\`; output comes back before the values, and as progress while the code runs.
- Long values are cut in length and depth; ask for the part that you need.

## What to avoid

- Do not read from the terminal: there is none, and \`(read-line)\` fails at once.
- Do not use \`#.\`: it is refused. Evaluate the form, then use its value.
- Do not call \`(sb-ext:exit)\`: it ends the session and all its state.
- Do not disable interrupts for long: such code cannot be interrupted. At a timeout the session goes on with a new
  evaluator and keeps its state; if that fails, its process is ended and the state is lost.
- Do not redefine symbols of COMMON-LISP; create your own package and shadow them.
- A session is not a sandbox: the code can do everything that the user who started the server can do.

## Errors

- \`[ERROR] TYPE\` with a message and a \`[Backtrace]\`: fix the code and evaluate it again; all definitions are kept.
- With several forms, the message names the one that failed. Those before it have run, so send only the rest again.
- Changing a \`defstruct\` or \`defconstant\` is an error with a restart CONTINUE. Invoke it like this:
  \`(handler-bind ((error #'continue)) (eval '(defstruct foo a b)))\`. \`describe-last-error\` lists the restarts.
- \`[TIMEOUT]\`: the evaluation was stopped. The result says whether the state was kept. Pass \`timeout\` (seconds) for a
  call that needs more, or raise the limit with \`configure-limits\`.
- Stack or heap exhaustion is an error like any other; release what you no longer need, then continue.
- If a session loses its state (it exited, or could not be stopped otherwise), the next result reports this and lists
  the lost definitions. Define them again, preferably from a file with \`load-file\`.
- If the definitions have become inconsistent, \`reset-session\` starts a fresh image.

## Persistence and sessions

- All state lives in the image until it is reset, closed, idle for too long, or the server ends. It is not on disk:
  keep what matters in files.
- Most tools take a \`session\` name; the default is \`main\`. A new name creates a new image, separate from all others.
  Evaluations of one session run one after the other; different sessions run in parallel.
- \`list-sessions\` lists them, \`interrupt-session\` stops what runs and keeps the state, \`close-session\` ends one.
`;
