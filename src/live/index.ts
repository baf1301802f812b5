// catenary/live: servers that run code in live sessions. Each call of `javascript`, `lisp` or `smalltalk` creates a server
// with its own sessions. No process starts before the first evaluation. A session runs any code, and is a sandbox only
// with the option `sandbox`.

import { type Handler, isUnfinishedChain, NO_UPSTREAM } from "../core/handler.ts";
import { defined, isObject } from "../core/values.ts";
import { checkOptions, kindOf, OptionReader, type OptionNames } from "../core/options.ts";
import { createCodeMode, type CodeMode, type CodeModeOptions as CreateCodeModeOptions } from "./code-mode.ts";
import { js } from "./js/entry.ts";
import { jsLanguage, type JavaScriptGuestOptions } from "./js/index.ts";
import { SANDBOX_SETTING } from "./languages.ts";
import { lisp as lispEntry } from "./lisp/entry.ts";
import { lispLanguage, type LispGuestOptions } from "./lisp/index.ts";
import { LANGUAGES } from "./languages.ts";
import { LIMIT_BOUNDS } from "./runtime.ts";
import { createLiveServer, type Live, type LiveOptions } from "./server.ts";
import type { SmalltalkGuestOptions } from "./smalltalk/engine.ts";
import { smalltalk as smalltalkEntry } from "./smalltalk/entry.ts";
import { smalltalkLanguage } from "./smalltalk/index.ts";
import type { LanguageEntry, SettingSpec } from "./tool.ts";

export type { InheritEnv } from "../process/program.ts";
export type * from "../server/index.ts";
export type { CodeMode } from "./code-mode.ts";
export type { Evaluation } from "./evaluation.ts";
export type { JavaScriptPermission } from "./js/index.ts";
export type { Limits } from "./runtime.ts";
export type { SandboxOptions } from "./sandbox.ts";
export type { Live, LiveOptions } from "./server.ts";

/** Options of `javascript()`. */
export type JavaScriptOptions = LiveOptions & JavaScriptGuestOptions;
/** Options of `lisp()`. */
export type LispOptions = LiveOptions & LispGuestOptions;
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
  LispGuestOptions & {
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
  const read = new OptionReader("codeMode()", options, Object.keys(options));
  const { language: name = "js", include, confirm, maxCalls, maxParallel, maxResultBytes, ...live } = options;
  const language = LANGUAGES.find((one) => one.name === name);
  if (language === undefined) {
    throw read.error("language", `must be ${LANGUAGES.map((one) => JSON.stringify(one.name)).join(", ")}`);
  }
  checkOptions("codeMode()", options, { ...COMMON, ...language.settings, ...CODE });
  check("codeMode()", live, language);
  read.strings("include");
  read.choice("confirm", ["destructive"]);
  for (const budget of ["maxCalls", "maxParallel", "maxResultBytes"]) read.count(budget);
  const problem = language.codeProblem?.(live);
  if (problem !== undefined) {
    const name = problem.setting === "program" ? "command" : problem.setting;
    throw read.error(name, `cannot be used: ${problem.message}; ${problem.hint}`);
  }
  const own = defined({ include, confirm, maxCalls, maxParallel, maxResultBytes });
  return createCodeMode(gateway, () => language.create(live), { ...live, ...own });
}

const CODE: OptionNames<Omit<CreateCodeModeOptions, keyof LiveOptions>> & { readonly language: true } = {
  language: true,
  include: true,
  confirm: true,
  maxCalls: true,
  maxParallel: true,
  maxResultBytes: true,
};

/** The options that all languages have. */
const COMMON = {
  name: true,
  limits: true,
  maxSessions: true,
  idleMs: true,
  sandbox: true,
  cwd: true,
  env: true,
  inheritEnv: true,
  command: true,
} as const satisfies Record<keyof LispOptions, true>;

/** Throws a TypeError for an invalid option. Whether the program exists is checked when a session starts. */
function check(owner: string, options: object, { settings }: LanguageEntry): void {
  checkOptions(owner, options, { ...COMMON, ...settings });
  const read = new OptionReader(owner, options, Object.keys(options));
  checkLimits(owner, read);
  read.count("maxSessions");
  const idleMs = read.any("idleMs");
  if (idleMs !== undefined && !(typeof idleMs === "number" && idleMs >= 0))
    throw read.error("idleMs", "must be a number of milliseconds; 0 means never");
  for (const name of ["name", "command", "cwd"])
    if (read.any(name) !== undefined && !isNonEmpty(read.any(name)))
      throw read.error(name, "must be a non-empty string");
  const env = read.any("env");
  const isEnvironment =
    isObject(env) && Object.values(env).every((value) => value === undefined || typeof value === "string");
  // The error does not quote the values, since they may be secret.
  if (env !== undefined && !isEnvironment) throw read.error("env", "must be an object of strings");
  const inheritEnv = read.any("inheritEnv");
  if (typeof inheritEnv !== "boolean") read.strings("inheritEnv");
  for (const [name, spec] of Object.entries({ ...settings, sandbox: SANDBOX_SETTING }))
    checkSetting(owner, read, name, spec, read.any(name));
}

function checkLimits(owner: string, read: OptionReader): void {
  const limits = read.any("limits");
  if (limits === undefined) return;
  if (!isObject(limits)) throw read.error("limits", `must be an object with ${Object.keys(LIMIT_BOUNDS).join(", ")}`);
  checkOptions(owner, limits, LIMIT_BOUNDS, "limits.");
  for (const [name, [min, max]] of Object.entries(LIMIT_BOUNDS)) {
    const given = limits[name];
    // Only a duration may have a fraction.
    const isDuration = name.endsWith("Ms");
    const isNumber = isDuration ? typeof given === "number" : Number.isInteger(given);
    if (given === undefined || (isNumber && Number(given) >= min && Number(given) <= max)) continue;
    throw read.error(`limits.${name}`, `must be a${isDuration ? "" : " whole"} number from ${min} to ${max}`);
  }
}

const EXPECTED = {
  flag: "true or false",
  count: "a whole number above 0",
  string: "a non-empty string",
  path: "a path",
  paths: "an array of paths",
};

function checkSetting(owner: string, read: OptionReader, name: string, spec: SettingSpec, given: unknown): void {
  const { type, fields = {}, orFlag } = spec;
  if (given === undefined || (orFlag === true && typeof given === "boolean")) return;
  if (type !== "object") {
    if (!fitsSetting(type, given)) throw read.error(name, `must be ${EXPECTED[type]}`);
    return;
  }
  const keys = `{ ${Object.keys(fields).join(", ")} }`;
  if (!isObject(given)) throw read.error(name, `must be ${orFlag === true ? `true, false, or ${keys}` : keys}`);
  checkOptions(owner, given, fields, `${name}.`);
  for (const [field, inner] of Object.entries(fields))
    checkSetting(owner, read, `${name}.${field}`, inner, given[field]);
}

function fitsSetting(type: keyof typeof EXPECTED, given: unknown): boolean {
  if (type === "flag") return typeof given === "boolean";
  if (type === "count") return Number.isInteger(given) && Number(given) > 0;
  return type === "paths" ? Array.isArray(given) && given.every(isNonEmpty) : isNonEmpty(given);
}

function isNonEmpty(value: unknown): value is string {
  return typeof value === "string" && value.trim() !== "";
}
