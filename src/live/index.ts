// catenary/live: servers that run code in live sessions. Each call of `javascript`, `lisp` or `smalltalk` creates a server
// with its own sessions. No process starts before the first evaluation. A session runs any code, and is a sandbox only
// with the option `sandbox`.

import type { Handler } from "../core/handler.ts";
import { isUnfinishedChain, NO_UPSTREAM } from "../core/handler-marks.ts";
import { defined } from "../core/values.ts";
import { choice } from "../core/fields.ts";
import { checkFields, kindOf, OptionPlace } from "../core/options.ts";
import { createCodeMode, type CodeMode, type CodeModeOptions as CreateCodeModeOptions } from "./code-mode.ts";
import { js } from "./js/entry.ts";
import { jsLanguage, type JavaScriptGuestOptions } from "./js/index.ts";
import { lisp as lispEntry } from "./lisp/entry.ts";
import { lispLanguage } from "./lisp/index.ts";
import { LANGUAGES } from "./languages.ts";
import { CODE, GUEST, LIVE, type GuestOptions, type LiveOptions } from "./options.ts";
import { createLiveServer, type Live } from "./server.ts";
import type { SmalltalkGuestOptions } from "./smalltalk/engine.ts";
import { smalltalk as smalltalkEntry } from "./smalltalk/entry.ts";
import { smalltalkLanguage } from "./smalltalk/index.ts";
import type { LanguageEntry } from "./tool.ts";

export type { InheritEnv } from "../process/program.ts";
export type * from "../server/index.ts";
export type { CodeMode } from "./code-mode.ts";
export type { Evaluation } from "./evaluation.ts";
export type { JavaScriptPermission } from "./js/settings.ts";
export type { Limits } from "./runtime.ts";
export type { LiveOptions, SandboxOptions } from "./options.ts";
export type { LiveServer } from "../core/live-server.ts";
export type { Live } from "./server.ts";

/** Options of `javascript()`. */
export type JavaScriptOptions = LiveOptions & JavaScriptGuestOptions;
/** Options of `lisp()`. */
export type LispOptions = LiveOptions & GuestOptions;
/** Options of `smalltalk()`. */
export type SmalltalkOptions = LiveOptions & SmalltalkGuestOptions;

/**
 * Sessions in JavaScript and TypeScript, each in its own Node process.
 *
 * @example
 * await serve(javascript());
 */
export function javascript(options: JavaScriptOptions = {}): Live {
  check("javascript()", options, js);
  return createLiveServer(jsLanguage(options), options);
}

/**
 * Sessions in Common Lisp, each in its own SBCL process. SBCL must be installed.
 *
 * @example
 * await serve(chain(log()).to({ lisp: lisp(), js: javascript() }));
 */
export function lisp(options: LispOptions = {}): Live {
  check("lisp()", options, lispEntry);
  return createLiveServer(lispLanguage(options), options);
}

/**
 * Sessions in Smalltalk: on Amber, in a Node process each, or on the program that `command` names.
 *
 * @example
 * await serve(smalltalk());
 */
export function smalltalk(options: SmalltalkOptions = {}): Live {
  check("smalltalk()", options, smalltalkEntry);
  return createLiveServer(smalltalkLanguage(options), options);
}

/** Options of `codeMode()`: those of the language's sessions, and what their code may do. */
export type CodeModeOptions = CreateCodeModeOptions &
  JavaScriptGuestOptions &
  SmalltalkGuestOptions &
  GuestOptions & {
    /** The language of the code. Default: "js". */
    readonly language?: "js" | "lisp" | "smalltalk" | undefined;
  };

/**
 * Code mode in front of a gateway: callers see `search-tools`, `describe-tools` and `run-code` in place of all tools,
 * and call the tools from code.
 *
 * @example
 * await serve(codeMode(chain(log()).to({ notes: upstream({ command: "npx", args: ["-y", "notes-mcp"] }), mail })));
 */
export function codeMode<Gateway extends Handler>(gateway: Gateway, options: CodeModeOptions = {}): CodeMode<Gateway> {
  if (isUnfinishedChain(gateway)) throw new TypeError(`codeMode(): ${NO_UPSTREAM}`);
  if (typeof gateway !== "function") {
    throw new TypeError(`codeMode(): the gateway must be a handler, not ${kindOf(gateway)}`);
  }
  const place = new OptionPlace("codeMode()");
  const {
    language: name = LANGUAGE.default,
    include,
    confirm,
    maxCalls,
    maxParallel,
    maxResultBytes,
    ...live
  } = options;
  const language = LANGUAGES.find((known) => known.name === name) ?? js;
  checkFields(options, { ...LIVE, ...GUEST, ...language.settings, language: LANGUAGE, ...CODE }, place);
  const problem = language.codeProblem?.(live);
  if (problem !== undefined) {
    const name = problem.setting === "program" ? "command" : problem.setting;
    throw place.at(name).error(`cannot be used: ${problem.message}; ${problem.hint}`);
  }
  const codeOptions = defined({ include, confirm, maxCalls, maxParallel, maxResultBytes });
  return createCodeMode(gateway, () => language.create(live), { ...live, ...codeOptions });
}

const LANGUAGE = choice(
  "The language of the code.",
  LANGUAGES.map((language) => language.name),
).or("js");

/** Throws a TypeError for an invalid option. Whether the program exists is checked when a session starts. */
function check(owner: string, options: object, { settings }: LanguageEntry): void {
  checkFields(options, { ...LIVE, ...GUEST, ...settings }, new OptionPlace(owner));
}
