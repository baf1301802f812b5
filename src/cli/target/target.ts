// The server that a command talks to, its target: a URL, a config or the name of a server as the first argument, or a
// program to start, after `--` at the end of the line. Declares the flags that go with it. Everything is checked before
// anything is started.

import { existsSync, statSync } from "node:fs";
import { stat } from "node:fs/promises";
import { basename, resolve, extname } from "node:path";
import { pathToFileURL } from "node:url";
import type { Command as ProgramCommand } from "../../client/command.ts";
import { readConfigText } from "../../config/document.ts";
import { boolean, refine, strings } from "../../core/fields.ts";
import { LOG_LEVELS } from "../../core/handler.ts";
import { defined, errorMessage } from "../../core/values.ts";
import type { Root } from "../../protocol/model/index.ts";
import { knownRevision } from "../../protocol/revisions/index.ts";
import { NotFoundError, UsageError } from "../command.ts";
import { command, type Command } from "../define.ts";
import { flag, oneOf, onlyFor, parseFlags, refuseFlags, seconds, section } from "../flags.ts";
import type { Flags, FlagValues } from "../flags.ts";

/** The flags that say how to start a command. */
export const COMMAND_FLAGS = onlyFor("command", {
  env: flag("KEY=VALUE", strings("An environment variable."), { expected: "a variable: KEY=VALUE" }),
  cwd: flag("DIR", "The folder to start it in."),
});

/** The flags that say how to sign in. */
export const SIGN_IN_FLAGS = onlyFor("url", {
  "client-id": flag("ID", "The id of an OAuth client that is already registered."),
  "client-secret-env": flag("VARIABLE", "The environment variable that contains the secret of that client."),
  "client-metadata": flag("URL", "The URL of the client's metadata document."),
  scope: flag("SCOPE", strings("A scope to ask for.")),
});

/** What is sent to a URL. */
export const URL_FLAGS = onlyFor("url", {
  header: flag("'NAME: VALUE'", strings("A header to send with every request."), {
    expected: "a header: 'Name: value'",
  }),
  token: flag(
    "TOKEN",
    "A bearer token. Prefer `CATENARY_TOKEN` in the environment, which other users of this machine cannot see.",
  ),
});

/** How long a server may be silent. Long, because a package manager may have to download it first. */
export const TIMEOUT_MS = 60_000;

const OUTPUT_FLAGS = {
  json: boolean(
    'Prints [one JSON document](#json-output) on stdout: the result in the newest revision, or `{"error": {"kind", "message", ...}}`.',
  ),
  quiet: boolean("No progress and no notes on stderr."),
  verbose: boolean("Shows the server's log from `info` on, the stderr of a command, and the revision in use."),
  "log-level": oneOf(
    "LEVEL",
    `Shows log messages from this level on: ${LOG_LEVELS.map((level) => `\`${level}\``).join(", ")}.`,
    LOG_LEVELS,
    "level",
  ),
};

const CONNECTION_FLAGS = {
  timeout: seconds(
    `How long the server may be silent, at the start and during a call. Default ${TIMEOUT_MS / 1_000}; 0: no limit. Progress resets it.`,
  ),
  revision: refine(flag("DATE", "Uses only this protocol revision."), checkRevision),
  root: flag("DIR", strings("A folder to announce to the server.")),
  ...COMMAND_FLAGS,
  ...URL_FLAGS,
};

export const TARGET_FLAGS = {
  ...section("Output", OUTPUT_FLAGS),
  ...section("Connection", CONNECTION_FLAGS),
  ...section("Signing in, if a URL asks for it (OAuth in the browser; tokens are saved for the next time)", {
    ...onlyFor("url", {
      "no-login": boolean("Never opens the browser. Uses a saved token, or exits with code 3."),
    }),
    ...SIGN_IN_FLAGS,
  }),
} as const;

/** Throws a UsageError for an unknown revision. */
function checkRevision(revision: string): void {
  try {
    knownRevision(revision);
  } catch (error) {
    throw new UsageError(`--revision: ${errorMessage(error)}`);
  }
}

/** The flags that are only for one kind of target. */
function flagsOnlyFor(kind: "command" | "url"): readonly string[] {
  return Object.keys(TARGET_FLAGS).filter((name) => (TARGET_FLAGS as Flags)[name]?.only === kind);
}

const HTTP_URL = /^https?:\/\//i;

/** The gateway of a config, or only one of its servers. */
export interface ConfigTarget {
  readonly config: string;
  readonly server?: string;
  /** Whether code mode is left out, even if the config has it. */
  readonly withoutCode?: true;
}

export type CliTarget = URL | ProgramCommand | ConfigTarget;

export type TargetValues = FlagValues<typeof TARGET_FLAGS>;

export interface TargetLine<F extends Flags = typeof TARGET_FLAGS> {
  readonly target: CliTarget;
  /** The other arguments. */
  readonly words: readonly string[];
  readonly values: FlagValues<F> & TargetValues;
}

/** A command whose first argument is a TARGET, or which ends with `-- COMMAND ARGS...`. */
export function targetCommand<const F extends Flags>(declared: {
  readonly name: string;
  /** What follows TARGET. */
  readonly usage?: string;
  readonly about: string;
  readonly flags: F;
  /** How many arguments there may be after TARGET. Default: 0. */
  readonly words?: number;
  /** What is missing if there is none. */
  readonly needs?: string;
  readonly run: (line: TargetLine<F>) => Promise<number>;
}): Command {
  const { name, about, flags } = declared;
  const rest = `${declared.usage === undefined ? "" : `${declared.usage} `}[OPTIONS]`;
  return command<F & typeof TARGET_FLAGS, TargetLine<F>>({
    ...declared,
    usage: `TARGET ${rest}\n${rest} -- COMMAND ARGS...`,
    about: `${about}\n\n${TARGET_ABOUT}`,
    flags: { ...flags, ...TARGET_FLAGS },
    notes: TARGET_NOTES,
    exits: TARGET_EXITS,
    parse: (args, usage) => parseTargetLine(name, args, flags, usage),
  });
}

export const TARGET_ABOUT =
  "TARGET is a URL, a config (all its servers, as one), or the name of a server in ./catenary.json. To start a server instead, put `-- COMMAND ARGS...` last.";

export const TARGET_NOTES = "Ctrl-C cancels the call; a second Ctrl-C quits at once.";

export const TARGET_EXITS =
  "0 ok; 1 wrong command line; 2 not found (tool, resource, prompt, file or command); 3 not signed in, or not allowed; 4 server unreachable or not answering; 5 the tool failed; 130 interrupted.";

/** Throws a UsageError if the line is not valid. `usage` is shown if the target is missing. */
export function parseTargetLine<const F extends Flags>(
  name: string,
  args: readonly string[],
  flags: F,
  usage: string,
): TargetLine<F> {
  const at = args.indexOf("--");
  const line = parseFlags(name, at < 0 ? args : args.slice(0, at), { ...flags, ...TARGET_FLAGS });
  const values = line.values as FlagValues<F> & TargetValues;
  const { quiet, verbose } = values as TargetValues;
  if (quiet === true && verbose === true) throw new UsageError("Give --quiet or --verbose, not both");
  if (at >= 0) {
    const target = parseCommand(args.slice(at + 1), values);
    // The argument of `read` is the URI of a resource, which may be an http URL.
    if (name !== "read" && HTTP_URL.test(line.words[0] ?? "")) {
      throw new UsageError("Give one target: a URL or a command, not both");
    }
    return { target, words: line.words, values };
  }
  const [target, ...words] = line.words;
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

function parseCommand([command, ...args]: readonly string[], values: TargetValues): ProgramCommand {
  if (command === undefined) throw new UsageError("-- needs a command after it, such as -- node server.js");
  if (HTTP_URL.test(command)) throw new UsageError(`${command} is a URL: write it in TARGET's place, without --`);
  refuseFlags(values, flagsOnlyFor("url"), "a URL as the target, not a command");
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
  refuseFlags(values, flagsOnlyFor("command"), "a command as the target: -- COMMAND ARGS...");
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
  const misplaced = ["revision", ...flagsOnlyFor("command"), ...flagsOnlyFor("url")];
  refuseFlags(values, misplaced, "a URL or a command as the target; a config sets it in its entries");
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
      const stats = await stat(path).catch(() => undefined);
      if (stats?.isDirectory() !== true) throw new NotFoundError(`There is no folder ${folder}`);
      return { uri: pathToFileURL(path).href, name: basename(path) };
    }),
  );
}

/** The default config. */
export const CONFIG = "catenary.json";

const CONFIG_EXTENSIONS = new Set([".json", ".jsonc", ".toml"]);
const MODULE_EXTENSIONS = new Set([".js", ".mjs", ".cjs", ".ts", ".mts", ".cts"]);

/** The given file, or the default config in this folder. Throws a NotFoundError if there is none. */
export async function requireConfig(file: string | undefined, command: string): Promise<string> {
  const path = file ?? CONFIG;
  const stats = await stat(path).catch(() => undefined);
  if (stats?.isFile() === true) return path;
  if (stats !== undefined) throw new UsageError(`${path} is not a file; name the config itself, such as ./${CONFIG}`);
  if (HTTP_URL.test(path)) {
    throw new UsageError(
      `${path} is a URL, but ${command} needs a config; \`catenary tools URL\` lists its tools, and \`catenary add NAME URL\` writes it into ./${CONFIG}`,
    );
  }
  if (file !== undefined) throw new NotFoundError(`There is no config ${path}; check the path`);
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
