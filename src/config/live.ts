// Entries with `live`: sessions that evaluate code from callers, each in a process of its own. Also the names of the
// languages, which the command line uses too. src/live is loaded only when such an entry is used.

import { resolve } from "node:path";
import { nearest } from "../core/options.ts";
import type { Handler } from "../core/handler.ts";
import type { JavaScriptOptions, Limits } from "../live/index.ts";
import {
  type Cursor,
  arrayOf,
  flag,
  isPending,
  milliseconds,
  nonEmptyString,
  numberThat,
  objectOf,
  oneOf,
  pathTo,
  positiveInteger,
  warnIfSeconds,
  wrongType,
  type Fields,
  type FieldValues,
  type Reader,
} from "./readers.ts";
import { defineKind, environment, program, type UpstreamKind, type UpstreamSource } from "./kinds.ts";

export type LanguageName = "js" | "javascript" | "lisp";

export const LANGUAGE_NAMES: readonly LanguageName[] = ["js", "javascript", "lisp"];

/** Other names for these languages. */
const ALIASES: ReadonlyMap<string, LanguageName> = new Map([
  ["ecmascript", "js"],
  ["node", "js"],
  ["nodejs", "js"],
  ["ts", "js"],
  ["typescript", "js"],
  ["cl", "lisp"],
  ["clisp", "lisp"],
  ["common-lisp", "lisp"],
  ["commonlisp", "lisp"],
  ["sbcl", "lisp"],
]);

function isLanguage(name: string): name is LanguageName {
  return LANGUAGE_NAMES.some((known) => known === name);
}

/** Finds a language by its name or an alias, ignoring case. */
export function findLanguage(name: string): LanguageName | undefined {
  const lower = name.toLowerCase();
  return isLanguage(lower) ? lower : ALIASES.get(lower);
}

/** The language that was probably meant. */
export function nearestLanguage(name: string): LanguageName | undefined {
  return findLanguage(name) ?? nearest(name, LANGUAGE_NAMES, name.length < 4 ? 1 : 2).find(isLanguage);
}

/**
 * The options of `javascript()` and `lisp()`, as a config names them: limits are not nested in `limits`, and `command`
 * is called `program`.
 */
export type LiveSettings = Partial<Limits> &
  Pick<JavaScriptOptions, "maxSessions" | "idleMs" | "cwd" | "env" | "permission"> & { readonly program?: string };

/** Loads src/live and creates the server of a language. */
export async function createLiveServer(name: LanguageName, settings: LiveSettings): Promise<Handler> {
  const { javascript, lisp } = await import("../live/index.ts");
  const { maxSessions, idleMs, cwd, env, program: file, permission, ...limits } = settings;
  const options = {
    limits,
    ...(maxSessions !== undefined && { maxSessions }),
    ...(idleMs !== undefined && { idleMs }),
    ...(cwd !== undefined && { cwd }),
    ...(env !== undefined && { env }),
    ...(file !== undefined && { command: file }),
  };
  return name === "lisp" ? lisp(options) : javascript({ ...options, ...(permission !== undefined && { permission }) });
}

/** A copy of the bounds in src/live, since checking a config does not load src/live. A test compares the two copies. */
export const LIVE_BOUNDS: Readonly<Record<keyof Limits, readonly [min: number, max: number]>> = {
  timeoutMs: [0, 86_400_000],
  memoryMb: [64, 16_384],
  outputChars: [1, 1_000_000],
  printLength: [1, 100_000],
  printDepth: [1, 1_000],
};

function bounded(name: keyof Limits, unit: string): Reader<number> {
  const [min, max] = LIVE_BOUNDS[name];
  return numberThat(
    (given) => given >= min && given <= max && (name === "timeoutMs" || Number.isInteger(given)),
    `${unit} from ${min} to ${max}`,
  );
}

const evaluationTimeout: Reader<number> = (cursor) => {
  const given = bounded("timeoutMs", "milliseconds")(cursor);
  warnIfSeconds(cursor, given);
  return given;
};

const paths = arrayOf((cursor) => {
  const path = nonEmptyString(cursor);
  return path === undefined ? undefined : resolve(cursor.context.folder, path);
}, 'an array of paths, such as ["./data"]');

const PERMISSION = { read: paths, write: paths, childProcess: flag, net: flag } as const satisfies Fields;
export const PERMISSION_FIELDS: Fields = PERMISSION;

const permissions = objectOf(PERMISSION, "an object");
const permission: Reader<boolean | FieldValues<typeof PERMISSION>> = (cursor) => {
  if (cursor.value.kind === "object") return permissions(cursor);
  return cursor.value.kind === "boolean"
    ? flag(cursor)
    : wrongType(cursor, "true, false, or {read, write, childProcess, net}");
};

const FIELDS = {
  live: oneOf(LANGUAGE_NAMES, (given) => {
    const near = nearestLanguage(given);
    return near && `did you mean ${near}?`;
  }),
  timeoutMs: evaluationTimeout,
  memoryMb: bounded("memoryMb", "whole megabytes"),
  outputChars: bounded("outputChars", "a whole number of characters"),
  printLength: bounded("printLength", "a whole number"),
  printDepth: bounded("printDepth", "a whole number"),
  maxSessions: positiveInteger,
  idleMs: milliseconds,
  cwd: pathTo("folder", "warning"),
  env: environment,
  program,
  permission,
} as const satisfies Fields;

/** Options of other upstreams. Live sessions start and end by other rules, so these do not apply to them. */
const CONNECTION_OPTIONS = ["share", "revision", "maxTimeoutMs", "startTimeoutMs", "restart", "remember"];

/** The first version of Node with a suitable permission model. src/live refuses older versions. */
export const MIN_PERMISSION_NODE = 24;

const INSTALL_HINTS = {
  lisp: 'install it (apt-get install sbcl, or brew install sbcl), or write its path in "program"',
  js: 'write the path of a Node executable in "program", or remove "program"',
} as const;

export const live: UpstreamKind = defineKind(FIELDS, {
  key: "live",
  purpose: "a language to evaluate code in",
  // "command" is not accepted here: another client that reads this file would start it as an MCP server.
  conflicts: { command: 'the program of a live session is set by "program"' },
  read({ live: name, ...values }, cursor) {
    if (name === undefined) return undefined;
    const isLisp = name === "lisp";
    for (const key of CONNECTION_OPTIONS) {
      cursor.get(key)?.warnAtKey("ignored", "live sessions do not have this option");
    }
    cursor.get("limits")?.warnAtKey("ignored", `write each limit by itself: ${Object.keys(LIVE_BOUNDS).join(", ")}`);
    if (isLisp) cursor.get("permission")?.warnAtKey("ignored", "only JavaScript sessions have permissions");
    const isRestricted = !isLisp && values.permission !== undefined && values.permission !== false;
    const settings = { ...values, cwd: values.cwd ?? cursor.context.folder };
    const file = values.program ?? (isLisp ? "sbcl" : undefined);
    const { position } = cursor.get("program") ?? cursor.get("live") ?? cursor;
    const isUnknown = ["program", "cwd"].some((key) => isPending(cursor, key));
    return {
      kind: "live",
      settings: { live: name, ...settings },
      ...(isRestricted && values.program === undefined && warnOfOldNode(cursor)),
      ...(file !== undefined &&
        !isUnknown && {
          program: {
            command: { command: file, cwd: settings.cwd },
            position,
            hint: INSTALL_HINTS[isLisp ? "lisp" : "js"],
          },
        }),
      resolve: async () => ({ target: await createLiveServer(name, settings) }),
    };
  },
});

function warnOfOldNode(cursor: Cursor): Pick<UpstreamSource, "warning"> {
  const field = cursor.get("permission");
  const [major = ""] = process.versions.node.split(".");
  if (field === undefined || Number(major) >= MIN_PERMISSION_NODE) return {};
  const message = `${field.path}: needs Node ${MIN_PERMISSION_NODE} or later; this is Node ${major}`;
  const hint = 'write the path of a newer Node in "program", or remove "permission"; otherwise every evaluation fails';
  const position = cursor.context.problems.position(field.keyOffset);
  return { warning: { ...position, severity: "warning", message, hint } };
}
