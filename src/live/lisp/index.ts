// Common Lisp as a live language: the texts for the language model, and the runtime. It starts a guest from a saved core
// if there is one, else from the compiled guest, else from its sources, and saves a core in the background once a guest
// is ready. The .lisp files in this folder run inside the session's image.

import { within } from "../../core/async.ts";
import { defined } from "../../core/values.ts";
import type { CallSyntax } from "../../tools/search.ts";
import type { GuestOptions } from "../options.ts";
import type { GuestCommand, Runtime } from "../runtime.ts";
import type { Language } from "../tool.ts";
import { Installation } from "./sbcl.ts";
import { EVALUATE, RESOURCES, TOOLS } from "./tools.ts";

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
  options: GuestOptions = {},
  onWarning: (text: string) => void = (text) => process.emitWarning(text),
): LispRuntime {
  const { env, cwd, inheritEnv } = options;
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

  /** Never rejects: sessions without a core only start more slowly. */
  const save = (): Promise<Error | undefined> =>
    (saving ??= find()
      .then((sbcl) => sbcl.save())
      .then(
        () => undefined,
        (error: unknown) => (error instanceof Error ? error : new Error(String(error))),
      ));

  return {
    language: "lisp",
    stopSteps: ["interrupt", "renew"],
    noise: NOISE,

    async start({ memoryMb }, isSandboxed = false) {
      const sbcl = await find();
      const common = { command: sbcl.command, reads: sbcl.files, ...defined({ env, cwd, inheritEnv }) };
      // A guest in a sandbox cannot save the compiled guest, so a process outside saves a core before the first starts.
      if (isSandboxed) await save();
      if (await sbcl.hasCore()) return { ...common, args: sbcl.coreArguments(memoryMb) };
      const problem = await sbcl.prepare();
      if (problem !== undefined && !hasWarned) {
        hasWarned = true;
        onWarning(problem.message);
      }
      await waitForCompiler(sbcl);
      return { ...common, args: sbcl.sourceArguments(memoryMb), isSlow: true };
    },

    onReady() {
      endCompiling();
      if (!isClosed) void save();
    },

    async startFailed(command, isCancelled = false) {
      endCompiling();
      // Without a core, another start would fail in the same way.
      if (isCancelled || command.args[0] !== "--core") return false;
      await (await find()).drop();
      saving = undefined;
      return true;
    },

    checkpoint: {
      async start({ memoryMb }, file) {
        const sbcl = await find();
        return {
          command: sbcl.command,
          reads: [file],
          ...defined({ env, cwd, inheritEnv }),
          args: sbcl.coreArguments(memoryMb, file),
        };
      },
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

export function lispLanguage(options: GuestOptions = {}, onWarning?: (text: string) => void): Language {
  return {
    runtime: lispRuntime(options, onWarning),
    title: "Common Lisp",
    instructions: INSTRUCTIONS,
    evaluate: EVALUATE,
    tools: TOOLS,
    hasDebugger: true,
    resources: RESOURCES,
    callsTools: CALLS_TOOLS,
    callSyntax: CALL_SYNTAX,
    callAdvice: {
      search: '(search-tools "words")',
      wait: "Wait for the threads that call tools, with sb-thread:join-thread.",
      arguments: "names and values, or one table",
      output: (number) => `(call-tool "output" :number ${number})`,
    },
  };
}

/** Such as `(call-tool "notes.search" :query string [:max-results integer])`. */
const CALL_SYNTAX: CallSyntax = {
  parameter: (name, type, isRequired) => {
    const text = `${argumentName(name)} ${/ /.test(type) ? `{${type}}` : type}`;
    return isRequired ? text : `[${text}]`;
  },
  call: (name, parameters) => `(${["call-tool", JSON.stringify(name), ...parameters].join(" ")})`,
};

/** A keyword that the guest changes back into the name, or a string, which it leaves as it is. */
function argumentName(name: string): string {
  if (/^[a-z][a-z0-9]*(?:[A-Z][a-z0-9]+)*$/.test(name)) return `:${name.replace(/[A-Z]/g, "-$&").toLowerCase()}`;
  return /^[a-z][a-z0-9]*(?:[_-][a-z0-9]+)*$/.test(name) ? `:${name.replaceAll("_", "-")}` : JSON.stringify(name);
}

const CALLS_TOOLS =
  'Run Common Lisp in a persistent SBCL session that calls tools: (call-tool "notes.search" :query "x" :max-results 3). ' +
  "It waits for the result: structured content (objects are hash tables with strings as keys, arrays vectors, true T, " +
  'false NIL, null :NULL), a string, or a table of "text" and "content". A tool that fails signals TOOL-ERROR. Threads ' +
  "(sb-thread:make-thread, join-thread) run calls side by side. Only what the code prints and the values of its last form " +
  "are returned; (show value) adds images and resource links of a result. Definitions are kept.";

const INSTRUCTIONS =
  "Persistent Common Lisp sessions on SBCL. Evaluate with evaluate-lisp: definitions, variables and the current " +
  "package are kept for later calls. An error comes back with its frames and variables and stays open until the next " +
  "evaluation: take-restart, evaluate-in-frame and inspect work on it. Look things up with describe-symbol and " +
  "apropos-search before you use them, and check code with validate-syntax and compile-form before you save it. Most " +
  "tools take the name of a `session`; different names are separate images. get-usage-guide explains more.";
