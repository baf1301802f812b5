// Live sessions as a kind of entry under `mcpServers`: their languages, their settings, and the server that evaluates code
// from callers. Commands use the languages too. src/live is loaded only when a session is used.

import { resolve } from "node:path";
import type { Handler } from "../core/handler.ts";
import { nearest } from "../core/options.ts";
import { defined } from "../core/values.ts";
import type { JavaScriptOptions, Limits } from "../live/index.ts";
import {
  cwd,
  defineKind,
  env,
  inheritEnv,
  program,
  requiredProgram,
  type UpstreamKind,
  type UpstreamSource,
} from "./kinds.ts";
import * as read from "./readers.ts";

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
  Pick<JavaScriptOptions, "maxSessions" | "idleMs" | "cwd" | "env" | "inheritEnv" | "permission"> & {
    readonly program?: string;
  };

/** Loads src/live and creates the server of a language. */
export async function createLiveServer(name: LanguageName, settings: LiveSettings): Promise<Handler> {
  const { javascript, lisp } = await import("../live/index.ts");
  const {
    maxSessions,
    idleMs,
    cwd: folder,
    env: own,
    inheritEnv,
    program: file,
    permission: allowed,
    ...limits
  } = settings;
  const options = { limits, ...defined({ maxSessions, idleMs, cwd: folder, env: own, inheritEnv, command: file }) };
  return name === "lisp" ? lisp(options) : javascript({ ...options, ...defined({ permission: allowed }) });
}

/** A copy of the bounds in src/live, since checking a config does not load src/live. A test compares the two copies. */
export const LIVE_BOUNDS: Readonly<Record<keyof Limits, readonly [min: number, max: number]>> = {
  timeoutMs: [0, 86_400_000],
  memoryMb: [64, 16_384],
  outputChars: [1, 1_000_000],
  printLength: [1, 100_000],
  printDepth: [1, 1_000],
};

function bounded(name: keyof Limits, unit: string): read.Reader<number> {
  const [minimum, maximum] = LIVE_BOUNDS[name];
  const type = name === "timeoutMs" ? undefined : "integer";
  return read.numberIn({ ...defined({ type }), minimum, maximum }, `${unit} from ${minimum} to ${maximum}`);
}

const paths = read.arrayOf(
  read.reader(read.nonEmptyString.schema, (cursor) => {
    const path = read.nonEmptyString(cursor);
    return path === undefined ? undefined : resolve(cursor.context.folder, path);
  }),
  'an array of paths, such as ["./data"]',
);

const permissions = read.objectOf(
  {
    read: paths.describe("Files and folders that may be read, relative to this file. Default: all."),
    write: paths.describe("Files and folders that may be written, relative to this file. Default: none."),
    childProcess: read.flag.describe("Whether other programs may be started. Default: false."),
    net: read.flag.describe(
      "Whether the network may be used, if this version of Node can restrict it. Default: false.",
    ),
  },
  "an object",
);

const permission = read.reader({ anyOf: [read.flag.schema, permissions.schema] }, (cursor) => {
  if (cursor.kind === "object") return permissions(cursor);
  return cursor.kind === "boolean"
    ? read.flag(cursor)
    : read.wrongType(cursor, "true, false, or {read, write, childProcess, net}");
});

const LIVE_FIELDS = {
  live: read
    .oneOf(LANGUAGE_NAMES, (given) => {
      const near = nearestLanguage(given);
      return near && `did you mean ${near}?`;
    })
    .describe(
      "A language to evaluate code in, in sessions with a process each: js (JavaScript and TypeScript) or lisp (Common Lisp, with SBCL).",
    ),
  // These four are described in upstreams.ts, since every entry may have them.
  timeoutMs: read.timeoutIn(bounded("timeoutMs", "milliseconds")),
  maxSessions: read.positiveInteger,
  idleMs: read.milliseconds,
  inheritEnv,
  memoryMb: bounded("memoryMb", "whole megabytes").describe(
    "Maximum megabytes of memory of one live session. Default: 512.",
  ),
  outputChars: bounded("outputChars", "a whole number of characters").describe(
    "Maximum characters of output kept of an evaluation, for each of stdout and stderr. Default: 100000.",
  ),
  printLength: bounded("printLength", "a whole number").describe(
    "Maximum printed elements of a collection. Default: 100.",
  ),
  printDepth: bounded("printDepth", "a whole number").describe("Maximum printed depth of a value. Default: 10."),
  cwd,
  env,
  program: program.describe(
    "The program of a live session: the name or path of sbcl or node. Default: sbcl on the PATH, or the node that runs the gateway.",
  ),
  permission: permission.describe(
    "Restricts live JavaScript sessions with the permission model of Node 24 and later: true, or an object with what they may access. This is not a sandbox.",
  ),
} as const satisfies read.Fields;

/** Options of other upstreams. Live sessions start and end by other rules, so these do not apply to them. */
export const CONNECTION_OPTIONS: readonly string[] = [
  "share",
  "revision",
  "maxTimeoutMs",
  "startTimeoutMs",
  "restart",
  "remember",
  "start",
];

/** The first version of Node with a suitable permission model. src/live refuses older versions. */
export const MIN_PERMISSION_NODE = 24;

const INSTALL_HINTS = {
  lisp: 'install it (apt-get install sbcl, or brew install sbcl), or write its path in "program"',
  js: 'write the path of a Node executable in "program", or remove "program"',
} as const;

export const live: UpstreamKind = defineKind(LIVE_FIELDS, {
  key: "live",
  purpose: "a language to evaluate code in",
  // "command" is not accepted here: another client that reads this file would start it as an MCP server.
  conflicts: { command: 'the program of a live session is set by "program"' },
  misplaced: { limits: `write the limits directly in the entry: ${Object.keys(LIVE_BOUNDS).join(", ")}` },
  read({ live: name, ...values }, cursor) {
    if (name === undefined) return undefined;
    const isLisp = name === "lisp";
    for (const key of CONNECTION_OPTIONS) {
      cursor.get(key)?.warnAtKey("ignored", "live sessions do not have this option");
    }
    if (isLisp) cursor.get("permission")?.warnAtKey("ignored", "only JavaScript sessions have permissions");
    const isRestricted = !isLisp && values.permission !== undefined && values.permission !== false;
    const settings = {
      ...values,
      cwd: values.cwd ?? cursor.context.folder,
      // Callers run code in the sessions, so by default they do not see the keys in the gateway's environment.
      inheritEnv: values.inheritEnv ?? false,
    };
    const file = values.program ?? (isLisp ? "sbcl" : undefined);
    const { position } = cursor.get("program") ?? cursor.get("live") ?? cursor;
    const hint = INSTALL_HINTS[isLisp ? "lisp" : "js"];
    return {
      kind: "live",
      settings: { live: name, ...settings },
      ...(isRestricted && values.program === undefined && warnOfOldNode(cursor)),
      ...(file !== undefined &&
        requiredProgram(cursor, "program", { command: { command: file, cwd: settings.cwd }, position, hint })),
      resolve: async () => ({ target: await createLiveServer(name, settings) }),
    };
  },
});

function warnOfOldNode(cursor: read.Cursor): Pick<UpstreamSource, "warning"> {
  const field = cursor.get("permission");
  const [major = ""] = process.versions.node.split(".");
  if (field === undefined || Number(major) >= MIN_PERMISSION_NODE) return {};
  const message = `${field.path}: needs Node ${MIN_PERMISSION_NODE} or later; this is Node ${major}`;
  const hint = 'write the path of a newer Node in "program", or remove "permission"; otherwise every evaluation fails';
  const position = cursor.context.problems.position(field.keyOffset);
  return { warning: { ...position, severity: "warning", message, hint } };
}
