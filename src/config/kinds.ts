// The kinds of entries under `mcpServers`: a command, a URL, a module, or a live session, which evaluates code from
// callers. Each kind has a key of its own, further fields, and a function that turns them into the arguments of
// `upstream()`. To add a kind, define it and list it in KINDS. Nothing is started here, and src/live is loaded only when
// a live entry is used.

import { readFile } from "node:fs/promises";
import { isAbsolute, resolve } from "node:path";
import { parseEnv } from "node:util";
import type { UpstreamTarget, UpstreamOptions } from "../chain/upstream/options.ts";
import type { Command } from "../client/command.ts";
import { nearest } from "../core/options.ts";
import type { Handler } from "../core/handler.ts";
import { defined } from "../core/values.ts";
import type { JavaScriptOptions, Limits } from "../live/index.ts";
import { exportedFunction, loadUserModule } from "../modules/load-module.ts";
import type { Position, Problem } from "./document.ts";
import * as read from "./readers.ts";
import { SIGN_IN_FIELDS, type SignInSettings } from "./sign-in.ts";

/** The arguments of `upstream()`. */
export interface UpstreamArguments {
  readonly target: UpstreamTarget;
  readonly options?: UpstreamOptions;
  /** For a URL: how to sign in if the server asks for it. */
  readonly signIn?: SignInSettings;
}

export interface RequiredProgram {
  readonly command: Command;
  readonly position: Position;
  /** What to do if the program is missing. Default: general advice. */
  readonly hint?: string;
}

/** An upstream as read from the config. */
export interface UpstreamSource {
  readonly kind: string;
  /** The values of the entry, for display; they may contain secrets. */
  readonly settings: Readonly<Record<string, unknown>>;
  /** The program that the upstream starts. Absent if it starts none, or if an input that it needs has no answer yet. */
  readonly program?: RequiredProgram;
  /** A reason why the upstream will not work on this machine. */
  readonly warning?: Problem;
  /** Rejects with an error that says what is missing. */
  resolve(): Promise<UpstreamArguments>;
}

export interface UpstreamKind {
  /** The key that every entry of this kind has, and that no other entry has. */
  readonly key: string;
  /** What the value of the key is, for hints. */
  readonly purpose: string;
  readonly fields: read.Fields;
  /** Hints for entries that also have the key of another kind. Each hint is stored under that other key. */
  readonly conflicts?: Readonly<Record<string, string>>;
  /** Checks the fields against each other; returns undefined if it reported a problem. */
  read(values: Readonly<Record<string, unknown>>, cursor: read.Cursor): UpstreamSource | undefined;
}

/** Infers the types of the values from the fields. */
function defineKind<F extends read.Fields>(
  fields: F,
  kind: {
    readonly key: keyof F & string;
    readonly purpose: string;
    readonly conflicts?: Readonly<Record<string, string>>;
    read(values: read.FieldValues<F>, cursor: read.Cursor): UpstreamSource | undefined;
  },
): UpstreamKind {
  return { ...kind, fields, read: (values, cursor) => kind.read(values as read.FieldValues<F>, cursor) };
}

/** Also accepts numbers and booleans, as clients do. In VS Code, null unsets a variable; we cannot do that here. */
const envValue: read.Reader<string> = read.reader({ type: ["string", "number", "boolean", "null"] }, (cursor) => {
  if (cursor.kind === "string") return read.anyString(cursor);
  if (cursor.kind === "number" || cursor.kind === "boolean") return String(cursor.value);
  if (cursor.kind !== "null") return read.wrongType(cursor, "a string");
  const hint = "a variable cannot be unset for one command; unset it in the environment of the gateway";
  cursor.warn("null is ignored", hint);
  return undefined;
});

const env = read
  .recordOf(envValue, 'an object of strings, such as {"API_KEY": "${API_KEY}"}')
  .describe("Environment variables for the command or the live sessions, added to those of the gateway.");

const cwd = read
  .pathTo("folder", "warning")
  .describe("The folder to start the command or the live sessions in. Default: the folder of this file.");

const programString = read.stringThat(
  (given) => given.trim() !== "" && !given.includes("\0"),
  "not a valid command",
  "write the program to start, such as npx",
  "\\S",
);

/** A program by name or path. A name is looked up on the PATH; anything with a slash is a path. */
const program: read.Reader<string> = read.reader(programString.schema, (cursor) => {
  const found = programString(cursor);
  if (found === undefined) return undefined;
  return /[/\\]/.test(found) && !isAbsolute(found) ? resolve(cursor.context.folder, found) : found;
});

/** The program, unless it depends on an input that has no answer yet. */
function requiredProgram(cursor: read.Cursor, key: string, required: RequiredProgram): Pick<UpstreamSource, "program"> {
  return [key, "cwd"].some((name) => read.scanStrings(cursor.get(name)).isPending) ? {} : { program: required };
}

const TRANSPORTS = ["stdio", "http", "streamable-http", "streamableHttp", "sse"] as const;
const transport = read.oneOf(TRANSPORTS);

/**
 * Reads `type`, which some clients call `transport`. The key `command` or `url` already determines the transport, and
 * the kind of HTTP transport is detected. So the value is only checked for contradictions.
 */
function transportFields(style: "stdio" | "http"): { type: read.Reader<string>; transport: read.Reader<string> } {
  const checked = read.reader(transport.schema, (cursor) => {
    const type = transport(cursor);
    if (type === undefined || (type === "stdio") === (style === "stdio")) return type;
    const [has, needs] = style === "stdio" ? ["command", "url"] : ["url", "command"];
    return cursor.error(`does not fit an entry with "${has}"`, `remove it, or write "${needs}" instead of "${has}"`);
  });
  return {
    type: checked.describe("The transport. Optional, since command or url already says it."),
    transport: checked.describe("Same as type, by the name that some clients use."),
  };
}

export const command: UpstreamKind = defineKind(
  {
    command: program.describe(
      "A program to start, an MCP server on stdio. A name is looked up on the PATH; a path is relative to this file.",
    ),
    args: read
      .arrayOf(read.anyString, 'an array of strings, such as ["-y", "notes-mcp"]')
      .describe("The arguments of the command."),
    env,
    cwd,
    envFile: read
      .pathTo("file", "error")
      .describe("A file of NAME=value lines for the environment of the command; env overrides it."),
    ...transportFields("stdio"),
  },
  {
    key: "command",
    purpose: "a program to start",
    read({ command: file, args = [], env: own = {}, cwd: folder, envFile }, cursor) {
      if (file === undefined) return undefined;
      const target = { command: file, args, env: own, cwd: folder ?? cursor.context.folder };
      const settings = { ...target, ...defined({ envFile }) };
      const { position } = cursor.get("command") ?? cursor;
      return {
        kind: "command",
        settings,
        ...requiredProgram(cursor, "command", { command: settings, position }),
        async resolve() {
          const fromFile = envFile === undefined ? {} : await readEnvFile(envFile);
          return { target: { ...target, env: { ...fromFile, ...own } } };
        },
      };
    },
  },
);

async function readEnvFile(file: string): Promise<Record<string, string>> {
  let text: string;
  try {
    text = await readFile(file, "utf8");
  } catch (error) {
    throw new Error(`Cannot read the envFile: ${(error as NodeJS.ErrnoException).code ?? "not a file"}`, {
      cause: error,
    });
  }
  return parseEnv(text.replace(/^\uFEFF/, "")) as Record<string, string>;
}

const headerValues = read.recordOf(
  read.stringThat(
    (given) => /^[\t\x20-\x7e\x80-\xff]*$/.test(given),
    "not a valid header value",
    "write one line of Latin-1 characters",
  ),
  'an object of strings, such as {"Authorization": "Bearer ${TOKEN}"}',
);

const headers: typeof headerValues = read.reader(headerValues.schema, (cursor) => {
  for (const { name, keyOffset } of cursor.members()) {
    if (/^[!#$%&'*+.^_`|~\w-]+$/.test(name)) continue;
    const hint = "use letters, digits and -, and no spaces";
    cursor.context.problems.error(keyOffset, `${JSON.stringify(name)} is not a valid header name`, hint);
  }
  return headerValues(cursor);
});

export const url: UpstreamKind = defineKind(
  {
    url: read
      .stringThat(
        isHttpUrl,
        "not a valid HTTP URL",
        "write one that begins with https:// or http://, without a user name or password",
        "^https?://|\\$\\{",
      )
      .describe("The URL of an MCP server over HTTP. The kind of HTTP transport is detected."),
    headers: headers.describe("Headers to send with every HTTP request."),
    ...SIGN_IN_FIELDS,
    ...transportFields("http"),
  },
  {
    key: "url",
    purpose: "an HTTP address",
    read({ url: address, headers: given, oauth, auth = oauth }, cursor) {
      if (address === undefined) return undefined;
      const options = defined({ headers: given });
      const hasHeader = Object.keys(given ?? {}).some((name) => name.toLowerCase() === "authorization");
      const key = cursor.get("auth") ?? cursor.get("oauth");
      if (hasHeader && auth !== undefined && auth !== false) {
        return key?.errorAtKey("the headers have an Authorization too", "keep one of them");
      }
      const signIn = auth === false || hasHeader ? undefined : (auth ?? {});
      return {
        kind: "url",
        settings: { url: address, ...options, ...defined({ auth }) },
        resolve: async () => ({ target: address, options, ...defined({ signIn }) }),
      };
    },
  },
);

function isHttpUrl(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, username, password } = new URL(text);
  return (protocol === "http:" || protocol === "https:") && username === "" && password === "";
}

/** A server in this process: what `catenary serve MODULE` would serve. */
const module: UpstreamKind = defineKind(
  {
    module: read
      .pathTo("file", "error")
      .describe(
        "The path of a JavaScript or TypeScript module that exports a server as its default or as `server`; relative to this file.",
      ),
  },
  {
    key: "module",
    purpose: "a module that exports a server",
    read({ module: file }) {
      if (file === undefined) return undefined;
      return {
        kind: "module",
        settings: { module: file },
        resolve: async () => ({ target: await serverFromModule(file) }),
      };
    },
  },
);

async function serverFromModule(file: string): Promise<Handler> {
  const server = exportedFunction(await loadUserModule(file)) as Handler | undefined;
  if (server !== undefined) return server;
  throw new Error(`${file} exports no server: export one made by createServer as the default, or as \`server\``);
}

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
  const { maxSessions, idleMs, cwd: folder, env: own, program: file, permission: allowed, ...limits } = settings;
  const options = { limits, ...defined({ maxSessions, idleMs, cwd: folder, env: own, command: file }) };
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
  // These three are described in upstreams.ts, since every entry may have them.
  timeoutMs: read.timeoutIn(bounded("timeoutMs", "milliseconds")),
  maxSessions: read.positiveInteger,
  idleMs: read.milliseconds,
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
const CONNECTION_OPTIONS = ["share", "revision", "maxTimeoutMs", "startTimeoutMs", "restart", "remember"];

/** The first version of Node with a suitable permission model. src/live refuses older versions. */
export const MIN_PERMISSION_NODE = 24;

const INSTALL_HINTS = {
  lisp: 'install it (apt-get install sbcl, or brew install sbcl), or write its path in "program"',
  js: 'write the path of a Node executable in "program", or remove "program"',
} as const;

const live: UpstreamKind = defineKind(LIVE_FIELDS, {
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
    cursor
      .get("limits")
      ?.warnAtKey("ignored", `write the limits directly in the entry: ${Object.keys(LIVE_BOUNDS).join(", ")}`);
    if (isLisp) cursor.get("permission")?.warnAtKey("ignored", "only JavaScript sessions have permissions");
    const isRestricted = !isLisp && values.permission !== undefined && values.permission !== false;
    const settings = { ...values, cwd: values.cwd ?? cursor.context.folder };
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

/** The kinds of entries, in the order in which hints list them. */
export const KINDS: readonly UpstreamKind[] = [command, url, module, live];
