// catenary/live: live sessions, as servers. Each call of `javascript` or `lisp` is a server of its own, with its own
// sessions; nothing is started before the first evaluation. They run whatever they are given: this is no sandbox.

import { jsLanguage, type JavaScriptGuestOptions, type JavaScriptPermission } from "./js/index.ts";
import { lispLanguage, type LispGuestOptions } from "./lisp/index.ts";
import { liveServer, type Live, type LiveOptions } from "./server.ts";
import { checkOptions } from "../core/options.ts";
import { isObject } from "../core/objects.ts";
import { BOUNDS, type Limits } from "./runtime.ts";

export type { Evaluation } from "./evaluation.ts";
export type { JavaScriptPermission } from "./js/index.ts";
export type { Live, LiveOptions } from "./server.ts";
export type { Limits } from "./runtime.ts";

/**
 * Sessions in JavaScript and TypeScript, in Node processes of their own.
 *
 * @example
 * await serve(javascript());
 */
export function javascript(options: JavaScriptOptions = {}): Live {
  checkJavaScript(options);
  return liveServer(jsLanguage(options), options);
}

/**
 * Sessions in Common Lisp, on the SBCL of this machine.
 *
 * @example
 * await serve(chain(log()).to({ lisp: lisp(), js: javascript() }));
 */
export function lisp(options: LispOptions = {}): Live {
  checkLisp(options);
  return liveServer(lispLanguage(options), options);
}

// What people say of live sessions, looked at when they say it: a name that there is not, or a value that can be none,
// would otherwise be found out by what does not happen. Whether there is such a program, and whether it can do what is
// wanted, is seen when a session is started.

export type JavaScriptOptions = LiveOptions & JavaScriptGuestOptions;
export type LispOptions = LiveOptions & LispGuestOptions;

// By the types, so that an option which is added there must be added here.
const LISP = {
  name: true,
  limits: true,
  sessions: true,
  idle: true,
  cwd: true,
  env: true,
  command: true,
} as const satisfies Record<keyof LispOptions, true>;

const JAVASCRIPT = { ...LISP, permission: true } as const satisfies Record<keyof JavaScriptOptions, true>;

const PERMISSION = { read: "paths", write: "paths", childProcess: "flag", net: "flag" } as const satisfies Record<
  keyof JavaScriptPermission,
  "paths" | "flag"
>;

type Said = { readonly [name: string]: unknown };

/** Throws a TypeError that says what is wrong. */
export function checkJavaScript(options: unknown): void {
  const owner = "javascript()";
  const { permission } = checkCommon(owner, options, JAVASCRIPT);
  if (permission === undefined || typeof permission === "boolean") return;
  if (!isObject(permission)) throw fault(owner, "permission", "true, false, or { read, write, childProcess, net }");
  checkOptions(`\`permission\` of ${owner}`, permission, PERMISSION);
  for (const [name, kind] of Object.entries(PERMISSION)) {
    const given = permission[name];
    if (given === undefined) continue;
    if (kind === "flag" && typeof given !== "boolean") throw fault(owner, `permission.${name}`, "true or false");
    if (kind === "paths" && !(Array.isArray(given) && given.every(isText)))
      throw fault(owner, `permission.${name}`, "a list of paths");
  }
}

/** Throws a TypeError that says what is wrong. */
export function checkLisp(options: unknown): void {
  checkCommon("lisp()", options, LISP);
}

function checkCommon(owner: string, options: unknown, known: object): Said {
  if (!isObject(options)) throw new TypeError(`${owner}: the options must be an object`);
  checkOptions(owner, options, known);
  const { limits, sessions, idle, env } = options;
  if (limits !== undefined) checkLimits(owner, limits);
  if (sessions !== undefined && !(Number.isSafeInteger(sessions) && Number(sessions) > 0))
    throw fault(owner, "sessions", "a whole number above 0");
  if (idle !== undefined && !(typeof idle === "number" && idle >= 0))
    throw fault(owner, "idle", "a number of milliseconds; 0: never");
  for (const name of ["name", "command", "cwd"])
    if (options[name] !== undefined && !isText(options[name])) throw fault(owner, name, "a text, and not empty");
  // What is in it is not repeated: it may be secret.
  const isEnvironment =
    isObject(env) && Object.values(env).every((one) => one === undefined || typeof one === "string");
  if (env !== undefined && !isEnvironment) throw fault(owner, "env", "an object of texts by name");
  return options;
}

function checkLimits(owner: string, limits: unknown): void {
  if (!isObject(limits)) throw fault(owner, "limits", `an object of ${Object.keys(BOUNDS).join(", ")}`);
  checkOptions(`\`limits\` of ${owner}`, limits, BOUNDS);
  for (const [name, [least, most]] of Object.entries(BOUNDS)) {
    const given = limits[name];
    // A part of a millisecond does no harm; a part of a character does.
    const isKind = name === ("timeoutMs" satisfies keyof Limits) ? typeof given === "number" : Number.isInteger(given);
    if (given === undefined || (isKind && Number(given) >= least && Number(given) <= most)) continue;
    throw fault(owner, `limits.${name}`, `a${name === "timeoutMs" ? "" : " whole"} number from ${least} to ${most}`);
  }
}

function isText(value: unknown): value is string {
  return typeof value === "string" && value.trim() !== "";
}

function fault(owner: string, name: string, wanted: string): TypeError {
  return new TypeError(`${owner}: \`${name}\` must be ${wanted}`);
}
