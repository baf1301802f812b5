// catenary/live: servers that run code in live sessions. Each call of `javascript` or `lisp` creates a server with its
// own sessions. No process starts before the first evaluation. A session is not a sandbox: it runs any code.

import { isObject } from "../core/values.ts";
import { checkOptions, OptionReader } from "../core/options.ts";
import { jsLanguage, type JavaScriptGuestOptions, type JavaScriptPermission } from "./js/index.ts";
import { lispLanguage, type LispGuestOptions } from "./lisp/index.ts";
import { LIMIT_BOUNDS, type Limits } from "./runtime.ts";
import { createLiveServer, type Live, type LiveOptions } from "./server.ts";

export type { Evaluation } from "./evaluation.ts";
export type { JavaScriptPermission } from "./js/index.ts";
export type { Limits } from "./runtime.ts";
export type { Live, LiveOptions } from "./server.ts";

/** Options of `javascript()`. */
export type JavaScriptOptions = LiveOptions & JavaScriptGuestOptions;
/** Options of `lisp()`. */
export type LispOptions = LiveOptions & LispGuestOptions;

/**
 * Sessions in JavaScript and TypeScript, each in its own Node process.
 *
 * @example
 * await serve(javascript());
 */
export function javascript(options: JavaScriptOptions = {}): Live {
  checkPermission("javascript()", checkCommon("javascript()", options, JAVASCRIPT_OPTIONS));
  return createLiveServer(jsLanguage(options), options);
}

/**
 * Sessions in Common Lisp, each in its own SBCL process. SBCL must be installed.
 *
 * @example
 * await serve(chain(log()).to({ lisp: lisp(), js: javascript() }));
 */
export function lisp(options: LispOptions = {}): Live {
  checkCommon("lisp()", options, LISP_OPTIONS);
  return createLiveServer(lispLanguage(options), options);
}

// Typed against the options, so that a new option must be added here too.
const LISP_OPTIONS = {
  name: true,
  limits: true,
  maxSessions: true,
  idleMs: true,
  cwd: true,
  env: true,
  inheritEnv: true,
  command: true,
} as const satisfies Record<keyof LispOptions, true>;

const JAVASCRIPT_OPTIONS = { ...LISP_OPTIONS, permission: true } as const satisfies Record<
  keyof JavaScriptOptions,
  true
>;

const PERMISSIONS = { read: "paths", write: "paths", childProcess: "flag", net: "flag" } as const satisfies Record<
  keyof JavaScriptPermission,
  "paths" | "flag"
>;

/** Throws a TypeError for an invalid option. Whether the program exists is checked when a session starts. */
function checkCommon(owner: string, options: object, known: object): OptionReader {
  checkOptions(owner, options, known);
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
  return read;
}

function checkLimits(owner: string, read: OptionReader): void {
  const limits = read.any("limits");
  if (limits === undefined) return;
  if (!isObject(limits)) throw read.error("limits", `must be an object with ${Object.keys(LIMIT_BOUNDS).join(", ")}`);
  checkOptions(owner, limits, LIMIT_BOUNDS, "limits.");
  for (const [name, [min, max]] of Object.entries(LIMIT_BOUNDS)) {
    const given = limits[name];
    // Only the timeout may have a fraction.
    const isTimeout = name === ("timeoutMs" satisfies keyof Limits);
    const isNumber = isTimeout ? typeof given === "number" : Number.isInteger(given);
    if (given === undefined || (isNumber && Number(given) >= min && Number(given) <= max)) continue;
    throw read.error(`limits.${name}`, `must be a${isTimeout ? "" : " whole"} number from ${min} to ${max}`);
  }
}

function checkPermission(owner: string, read: OptionReader): void {
  const permission = read.any("permission");
  if (permission === undefined || typeof permission === "boolean") return;
  if (!isObject(permission))
    throw read.error("permission", "must be true, false, or { read, write, childProcess, net }");
  checkOptions(owner, permission, PERMISSIONS, "permission.");
  for (const [name, kind] of Object.entries(PERMISSIONS)) {
    const given = permission[name];
    if (given === undefined) continue;
    if (kind === "flag" && typeof given !== "boolean") throw read.error(`permission.${name}`, "must be true or false");
    if (kind === "paths" && !(Array.isArray(given) && given.every(isNonEmpty)))
      throw read.error(`permission.${name}`, "must be an array of paths");
  }
}

function isNonEmpty(value: unknown): value is string {
  return typeof value === "string" && value.trim() !== "";
}
