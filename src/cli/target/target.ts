// Parses the flags of a command, and the server that it talks to, its target: a URL, a config or the name of a server as
// the first argument, or a program to start, after `--` at the end of the line. Everything is checked before anything is
// started. The error for a mistake is one sentence, with the flag that was probably meant.

import { existsSync, statSync } from "node:fs";
import { stat } from "node:fs/promises";
import { basename, resolve, extname } from "node:path";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { readConfigText } from "../../config/document.ts";
import { LOG_LEVELS, type LogLevel } from "../../core/handler.ts";
import { nearest } from "../../core/options.ts";
import { defined, errorMessage } from "../../core/values.ts";
import type { Root } from "../../protocol/model/index.ts";
import { knownRevision } from "../../protocol/revisions/index.ts";
import { NotFoundError, UsageError } from "../command.ts";

interface Flag {
  readonly type: "string" | "boolean";
  readonly multiple?: boolean;
  /** `-` is a valid value and means stdin. */
  readonly dash?: boolean;
  /** The kind of target that the flag is for. */
  readonly only?: "command" | "url";
}

export type Flags = Readonly<Record<string, Flag>>;

export interface ParsedLine<F extends Flags> {
  readonly positionals: readonly string[];
  readonly values: FlagValues<F>;
}

export type FlagValues<F extends Flags> = {
  readonly [Name in keyof F]?: F[Name] extends { type: "boolean" }
    ? true
    : F[Name] extends { multiple: true }
      ? readonly string[]
      : string;
};

/** Throws a UsageError for an invalid flag. If the value of a flag is missing, the error quotes `expected`. */
export function parseFlags<const F extends Flags>(
  command: string,
  args: readonly string[],
  flags: F,
  expected: { readonly [Name in keyof F]?: string } = {},
): ParsedLine<F> {
  const { positionals, values, tokens } = parseArgs({
    args: [...args],
    options: flags,
    allowPositionals: true,
    strict: false,
    tokens: true,
  });
  const seen = new Set<string>();
  for (const token of tokens) {
    if (token.kind !== "option") continue;
    const { name, rawName, value, inlineValue } = token;
    const flag = rawName.startsWith("--") && Object.hasOwn(flags, name) ? flags[name] : undefined;
    if (flag === undefined) throw new UsageError(`There is no option ${rawName}; ${hint(command, name, flags)}`);
    if (flag.type === "boolean" && value !== undefined) throw new UsageError(`${rawName} takes no value`);
    // A value that starts with a dash is the next flag, unless it follows an `=`.
    const isFlag = !inlineValue && value?.startsWith("-") === true && !(flag.dash === true && value === "-");
    const isMissing = flag.type === "string" && (value === undefined || isFlag);
    if (isMissing || value === "") throw new UsageError(`${rawName} needs ${expected[name] ?? "a value"}`);
    if (flag.type === "string" && flag.multiple !== true && seen.has(name))
      throw new UsageError(`${rawName} was given twice, and takes one value`);
    seen.add(name);
  }
  return { positionals, values };
}

/** Options of other programs, and ours with the same meaning. */
const FOREIGN_FLAGS: ReadonlyMap<string, readonly [flag: string, example: string]> = new Map([
  ["p", ["http", "--http :PORT"]],
  ["port", ["http", "--http :PORT"]],
  ["host", ["http", "--http HOST:PORT"]],
  ["e", ["env", "--env KEY=VALUE"]],
  ["H", ["header", "--header 'NAME: VALUE'"]],
  ["o", ["output", "--output FILE"]],
  ["q", ["quiet", "--quiet"]],
  ["v", ["verbose", "--verbose"]],
  ["y", ["yes", "--yes"]],
  ["profile", ["compat", "--compat NAME"]],
]);

function hint(command: string, name: string, flags: Flags): string {
  const [foreign, example] = FOREIGN_FLAGS.get(name) ?? [];
  if (foreign !== undefined && Object.hasOwn(flags, foreign)) return `did you mean ${example}?`;
  // A single letter is near to every short name.
  const [flag] = name.length === 1 ? [] : nearest(name, Object.keys(flags));
  return flag === undefined ? `catenary ${command} --help lists the options` : `did you mean --${flag}?`;
}

/** Splits a line at its command: everything after `--`, or from the first word on that is not an option. */
export function splitAtCommand(args: readonly string[], flags: Flags): { own: string[]; command: string[] } {
  const { tokens } = parseArgs({
    args: [...args],
    options: flags,
    allowPositionals: true,
    strict: false,
    tokens: true,
  });
  const first = tokens.find(({ kind }) => kind !== "option");
  if (first === undefined) return { own: [...args], command: [] };
  const from = first.kind === "option-terminator" ? first.index + 1 : first.index;
  return { own: args.slice(0, first.index), command: args.slice(from) };
}

export function unexpectedArguments(command: string, words: readonly string[], usage: string): UsageError {
  return new UsageError(`${command}: unexpected argument ${words.join(" ")}\n\n${usage}`);
}

export const TARGET_FLAGS = {
  json: { type: "boolean" },
  quiet: { type: "boolean" },
  verbose: { type: "boolean" },
  "log-level": { type: "string" },
  timeout: { type: "string" },
  revision: { type: "string" },
  root: { type: "string", multiple: true },
  env: { type: "string", multiple: true, only: "command" },
  cwd: { type: "string", only: "command" },
  header: { type: "string", multiple: true, only: "url" },
  token: { type: "string", only: "url" },
  "no-login": { type: "boolean", only: "url" },
  "client-id": { type: "string", only: "url" },
  "client-secret-env": { type: "string", only: "url" },
  "client-metadata": { type: "string", only: "url" },
  scope: { type: "string", multiple: true, only: "url" },
} as const;

export type SignInFlag = "client-id" | "client-secret-env" | "client-metadata" | "scope";

/** The flags that say how to sign in. */
export const SIGN_IN_FLAGS: Pick<typeof TARGET_FLAGS, SignInFlag> = {
  "client-id": TARGET_FLAGS["client-id"],
  "client-secret-env": TARGET_FLAGS["client-secret-env"],
  "client-metadata": TARGET_FLAGS["client-metadata"],
  scope: TARGET_FLAGS.scope,
};

export const SIGN_IN_HELP = `  --client-id ID         the id of a client that is already registered
  --client-secret-env VARIABLE
                         the environment variable that holds the client's secret
  --client-metadata URL  the URL of the client's metadata document
  --scope SCOPE          a scope to ask for; repeatable
`;

/** The first given flag that is only for another kind of target. */
function misplacedFlag(values: TargetValues, ...others: readonly ("command" | "url")[]): string | undefined {
  const names = Object.entries(TARGET_FLAGS).filter(([, flag]) => "only" in flag && others.includes(flag.only));
  return names.map(([name]) => name).find((name) => values[name as keyof TargetValues] !== undefined);
}

export const TARGET_HELP: string = `TARGET is a URL, a config (all its servers, as one), or the name of a server in ./catenary.json. To
start a server instead, put \`-- COMMAND ARGS...\` last.

Output:
  --json                 print one JSON document on stdout: the result in the newest revision, or
                         {"error": {"kind", "message", ...}}
  --quiet                no progress and no notes on stderr
  --verbose              show the server's log, the command's stderr, and the revision
  --log-level LEVEL      show log messages from this level on: ${LOG_LEVELS.slice(0, 4).join(", ")},
                         ${LOG_LEVELS.slice(4).join(", ")}

Connection:
  --timeout SECONDS      how long the server may be silent, at the start and during a call;
                         default 60, 0: no limit
  --revision DATE        use only this protocol revision
  --root DIR             a folder to announce to the server; repeatable
  --env KEY=VALUE        for a command: an environment variable; repeatable
  --cwd DIR              for a command: the folder to start it in
  --header 'NAME: VALUE' for a URL: a header to send with every request; repeatable
  --token TOKEN          for a URL: a bearer token. Prefer CATENARY_TOKEN in the environment, which
                         other users of this machine cannot see

Signing in, if a URL asks for it (OAuth in the browser; tokens are saved for the next time):
  --no-login             never open the browser: use a saved token, or exit with code 3
${SIGN_IN_HELP}
Ctrl-C cancels the call; a second Ctrl-C quits at once.
`;

export const EXIT_HELP = `Exit codes: 0 ok; 1 wrong command line; 2 not found (tool, resource, prompt, file or command);
3 not signed in, or not allowed; 4 server unreachable or not answering; 5 the tool failed;
130 interrupted.
`;

const HTTP_URL = /^https?:\/\//i;

export interface CommandTarget {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd?: string;
}

/** The gateway of a config, or only one of its servers. */
export interface ConfigTarget {
  readonly config: string;
  readonly server?: string;
  /** Whether code mode is left out, even if the config has it. */
  readonly withoutCode?: true;
}

export type CliTarget = URL | CommandTarget | ConfigTarget;

export type TargetValues = FlagValues<typeof TARGET_FLAGS>;

export interface TargetLine<F extends Flags> {
  readonly target: CliTarget;
  /** The other arguments. */
  readonly words: readonly string[];
  readonly values: FlagValues<F> & TargetValues;
}

/** Throws a UsageError if the line is not valid. `usage` is shown if the target is missing. */
export function parseTargetLine<const F extends Flags>(
  name: string,
  args: readonly string[],
  flags: F,
  usage: string,
): TargetLine<F> {
  const at = args.indexOf("--");
  const own = at < 0 ? args : args.slice(0, at);
  const expected = { header: "a header: 'Name: value'", env: "a variable: KEY=VALUE", timeout: "a number of seconds" };
  const line = parseFlags(name, own, { ...flags, ...TARGET_FLAGS }, expected as Record<string, string>);
  const values = line.values as FlagValues<F> & TargetValues;
  checkValues(values);
  if (at >= 0) {
    const target = parseCommand(args.slice(at + 1), values);
    // The argument of `read` is the URI of a resource, which may be an http URL.
    if (name !== "read" && HTTP_URL.test(line.positionals[0] ?? "")) {
      throw new UsageError("Give one target: a URL or a command, not both");
    }
    return { target, words: line.positionals, values };
  }
  const [target, ...words] = line.positionals;
  if (target === undefined) {
    const hint = existsSync(CONFIG) ? `; for all servers of this folder: catenary ${name} ${CONFIG}` : "";
    throw new UsageError(`${name} needs a target${hint}\n\n${usage}`);
  }
  return {
    target: HTTP_URL.test(target) ? parseTargetUrl(target, values) : parseConfig(target, values),
    words,
    values,
  };
}

function checkValues(values: TargetValues): void {
  const { "log-level": level, revision, timeout, quiet, verbose } = values;
  if (level !== undefined && !LOG_LEVELS.includes(level as LogLevel)) {
    const [near] = nearest(level, LOG_LEVELS);
    const hint = near === undefined ? `the levels are ${LOG_LEVELS.join(", ")}` : `did you mean ${near}?`;
    throw new UsageError(`--log-level ${level} is not a valid level; ${hint}`);
  }
  if (quiet === true && verbose === true) throw new UsageError("Give --quiet or --verbose, not both");
  checkTimeout(timeout);
  checkRevision(revision);
}

/** Throws a UsageError unless the text is a number of seconds. */
export function checkTimeout(timeout: string | undefined): void {
  if (timeout === undefined || /^\d+(?:\.\d+)?$/.test(timeout)) return;
  throw new UsageError(`--timeout ${timeout} is not a number of seconds`);
}

/** Throws a UsageError for an unknown revision. */
export function checkRevision(revision: string | undefined): void {
  try {
    if (revision !== undefined) knownRevision(revision);
  } catch (error) {
    throw new UsageError(`--revision: ${errorMessage(error)}`);
  }
}

function parseCommand([command, ...args]: readonly string[], values: TargetValues): CommandTarget {
  if (command === undefined) throw new UsageError("-- needs a command after it, such as -- node server.js");
  if (HTTP_URL.test(command)) throw new UsageError(`${command} is a URL: write it in TARGET's place, without --`);
  const misplaced = misplacedFlag(values, "url");
  if (misplaced !== undefined) throw new UsageError(`--${misplaced} needs a URL as the target, not a command`);
  return { command, args, env: parseEnvFlags(values), ...defined({ cwd: values.cwd }) };
}

export function parseEnvFlags({ env = [] }: Pick<TargetValues, "env">): Readonly<Record<string, string>> {
  const pairs = env.map((pair): [string, string] => {
    const [, key = "", value = ""] = /^([^=]+)=([^]*)$/.exec(pair) ?? [];
    if (key === "") throw new UsageError(`--env ${pair} is not a variable: write KEY=VALUE`);
    return [key, value];
  });
  return Object.fromEntries(pairs);
}

function parseTargetUrl(target: string, values: TargetValues): URL {
  const misplaced = misplacedFlag(values, "command");
  if (misplaced !== undefined) throw new UsageError(`--${misplaced} needs a command as the target: -- COMMAND ARGS...`);
  return parseUrl(target);
}

export function isUrl(target: string): boolean {
  return HTTP_URL.test(target);
}

export function parseUrl(target: string): URL {
  if (!URL.canParse(target)) throw new UsageError(`${target} is not a valid target: ${TARGET_FORMS}`);
  const url = new URL(target);
  if (url.username !== "" || url.password !== "") {
    // The URL is not repeated here: it may contain a secret.
    throw new UsageError("The URL contains a user name or password; use --header 'Authorization: ...' instead");
  }
  return url;
}

const TARGET_FORMS =
  "write a URL such as http://127.0.0.1:3000/mcp, the path of a config, the name of a server in ./catenary.json, or -- COMMAND ARGS... at the end of the line";

/** A path, or the name of a server in the config of this folder. */
function parseConfig(target: string, values: TargetValues): ConfigTarget {
  const isFile = CONFIG_EXTENSIONS.has(extname(target).toLowerCase()) || isFileSync(target);
  if (!isFile && (/[/\\]/.test(target) || !isFileSync(CONFIG))) {
    const isName = /^[\w.-]+$/.test(target);
    if (!isName) throw new UsageError(`${target} is not a valid target: ${TARGET_FORMS}`);
    throw new UsageError(
      `There is no ${CONFIG} here that could have a server ${target}: go to its folder, or make one with \`catenary add ${target} COMMAND ...\` or \`catenary import\`. Other targets: a URL, the path of a config, or -- COMMAND ARGS... at the end of the line`,
    );
  }
  if (isFile && MODULE_EXTENSIONS.has(extname(target).toLowerCase())) {
    throw new UsageError(`${target} is not a config; to start it, put -- node ${target} at the end of the line`);
  }
  const misplaced = values.revision === undefined ? misplacedFlag(values, "command", "url") : "revision";
  if (misplaced !== undefined) {
    throw new UsageError(`--${misplaced} needs a URL or a command as the target; a config sets it in its entries`);
  }
  return isFile ? { config: target } : { config: CONFIG, server: target };
}

function isFileSync(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() === true;
}

/** A name for messages, without parts that may be secret. */
export function targetName(target: CliTarget): string {
  if (target instanceof URL) return target.host;
  return "config" in target ? (target.server ?? target.config) : basename(target.command);
}

export function parseHeaders({ header = [] }: Pick<TargetValues, "header">): Readonly<Record<string, string>> {
  const pairs = header.map((text): [string, string] => {
    const [, name = "", value = ""] =
      /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([\t\x20-\x7e\x80-\xff]*?)[ \t]*$/.exec(text) ?? [];
    // The header is not repeated here: it may be a secret.
    if (name === "") throw new UsageError("--header must be 'Name: value', on one line of Latin-1 characters");
    return [name, value];
  });
  return Object.fromEntries(pairs);
}

export async function resolveRoots({ root = [] }: TargetValues): Promise<readonly Root[]> {
  return Promise.all(
    root.map(async (folder): Promise<Root> => {
      const path = resolve(folder);
      const found = await stat(path).catch(() => undefined);
      if (found?.isDirectory() !== true) throw new NotFoundError(`There is no folder ${folder}`);
      return { uri: pathToFileURL(path).href, name: basename(path) };
    }),
  );
}

// Finds the config that a command line names, and distinguishes configs from modules. The config is loaded later, by
// the commands that need it.

/** The default config. */
export const CONFIG = "catenary.json";

const CONFIG_EXTENSIONS = new Set([".json", ".jsonc", ".toml"]);
const MODULE_EXTENSIONS = new Set([".js", ".mjs", ".cjs", ".ts", ".mts", ".cts"]);

/** The given file, or the default config in this folder. Throws a NotFoundError if there is none. */
export async function requireConfig(given: string | undefined, command: string): Promise<string> {
  const path = given ?? CONFIG;
  const found = await stat(path).catch(() => undefined);
  if (found?.isFile() === true) return path;
  if (found !== undefined) throw new UsageError(`${path} is not a file; name the config itself, such as ./${CONFIG}`);
  if (HTTP_URL.test(path)) {
    throw new UsageError(
      `${path} is a URL, but ${command} needs a config; \`catenary tools URL\` lists its tools, and \`catenary add NAME URL\` writes it into ./${CONFIG}`,
    );
  }
  if (given !== undefined) throw new NotFoundError(`There is no config ${path}; check the path`);
  throw new NotFoundError(
    `There is no ${CONFIG} here: name a config, \`catenary ${command} FILE\`, or make one: \`catenary add NAME COMMAND ...\`, or \`catenary import\` for the servers of your clients`,
  );
}

/** Whether the file is a config and not a module, by its extension or else by how it begins. */
export async function isConfig(path: string): Promise<boolean> {
  const extension = extname(path).toLowerCase();
  if (CONFIG_EXTENSIONS.has(extension)) return true;
  if (MODULE_EXTENSIONS.has(extension)) return false;
  const text = await readConfigText(path).catch(() => "");
  return /^(?:\s|\/\/.*|\/\*[^]*?\*\/)*\{/.test(text);
}
