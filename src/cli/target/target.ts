// Which end a command line means, and how it is to be reached: a URL, or what follows `--`, which always comes last and
// stands in the target's place. The flags that all commands toward an end have are read here, before anything is
// started, so that a mistake costs nothing.

import { stat } from "node:fs/promises";
import { basename, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { LOG_LEVELS, type LogLevel } from "../../core/handler.ts";
import { errorMessage } from "../../core/text.ts";
import type { Root } from "../../protocol/model/index.ts";
import { knownRevision } from "../../protocol/revisions/index.ts";
import { NotFoundError, UsageError } from "../exit-codes.ts";
import { parseFlags, type Flags, type Values } from "./flags.ts";
import { nearest } from "../../core/options.ts";

export const TARGET_FLAGS = {
  json: { type: "boolean" },
  quiet: { type: "boolean" },
  verbose: { type: "boolean" },
  "log-level": { type: "string" },
  timeout: { type: "string" },
  revision: { type: "string" },
  root: { type: "string", multiple: true },
  env: { type: "string", multiple: true },
  cwd: { type: "string" },
  header: { type: "string", multiple: true },
  token: { type: "string" },
  "no-login": { type: "boolean" },
  "client-id": { type: "string" },
  "client-secret-env": { type: "string" },
  "client-metadata": { type: "string" },
  scope: { type: "string", multiple: true },
} as const;

/** Only with a command, and only with a URL. */
const OF_COMMANDS = ["env", "cwd"] as const;
const OF_URLS = [
  ...(["header", "token", "no-login", "client-id", "client-secret-env", "client-metadata", "scope"] as const),
];

export const TARGET_HELP: string = `A target is a URL, or \`-- COMMAND ARGS...\` at the very end of the line, in TARGET's place.

Output:
  --json                 one JSON document on stdout: the result in the newest revision, or
                         {"error": {"kind", "message", ...}}
  --quiet                no progress and no remarks on stderr
  --verbose              what the server logs, a command's own stderr, and what is spoken
  --log-level LEVEL      log messages from this level on: ${LOG_LEVELS.slice(0, 4).join(", ")},
                         ${LOG_LEVELS.slice(4).join(", ")}

Connecting:
  --timeout SECONDS      how long the server may be silent, at its start and in a call; 60;
                         0: for ever
  --revision DATE        speak this revision of the protocol and no other
  --root DIR             a folder that the server may be told of; may be given several times
  --env KEY=VALUE        for a command: added to its environment; likewise
  --cwd DIR              for a command: the folder in which it is started
  --header 'NAME: VALUE' for a URL: sent with every request; may be given several times
  --token TOKEN          for a URL: a bearer token; better in the environment, as CATENARY_TOKEN,
                         where other users of the machine do not see it

Signing in, for a URL that asks for it: by OAuth, in the browser; tokens are kept for the next time.
  --no-login             never open the browser: use the tokens that there are, or end with 3
  --client-id ID         the client that was registered for you beforehand
  --client-secret-env VARIABLE
                         its secret is in this variable of the environment
  --client-metadata URL  where the client's metadata document is
  --scope SCOPE          ask for this scope; may be given several times

Ctrl-C cancels what is under way; once more quits at once.
`;

export const EXIT_HELP = `Exit codes: 0; 1 the command line is wrong; 2 not found: no such tool, resource, prompt, file or
command; 3 not signed in, or not allowed; 4 the server cannot be reached, or does not answer;
5 the tool failed; 130 interrupted.
`;

const ADDRESS = /^https?:\/\//i;

export interface CommandUpstream {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd?: string;
}

export type Upstream = URL | CommandUpstream;

export type TargetValues = Values<typeof TARGET_FLAGS>;

export interface Wanted<F extends Flags> {
  readonly end: Upstream;
  /** What else stands on the line. */
  readonly words: readonly string[];
  readonly values: Values<F> & TargetValues;
}

/** Throws a UsageError. `usage` is the command's first line, for a line without a target. */
export function readLine<const F extends Flags>(
  name: string,
  args: readonly string[],
  flags: F,
  usage: string,
): Wanted<F> {
  const at = args.indexOf("--");
  const own = at < 0 ? args : args.slice(0, at);
  const needs = { header: "a header: 'Name: value'", env: "a variable: KEY=VALUE", timeout: "a number of seconds" };
  const line = parseFlags(name, own, { ...flags, ...TARGET_FLAGS }, needs as Record<string, string>);
  const values = line.values as Values<F> & TargetValues;
  check(values);
  if (at >= 0) {
    const end = commandUpstream(args.slice(at + 1), values);
    // What is read may well stand at a web address.
    if (name !== "read" && ADDRESS.test(line.positionals[0] ?? "")) {
      throw new UsageError("A URL or a command: one target, not both");
    }
    return { end, words: line.positionals, values };
  }
  const [target, ...words] = line.positionals;
  if (target === undefined) throw new UsageError(`${name} needs a target\n\n${usage}`);
  return { end: urlUpstream(target, values), words, values };
}

/** What is the same for every end. */
function check(values: TargetValues): void {
  const { "log-level": level, revision, timeout, quiet, verbose } = values;
  if (level !== undefined && !LOG_LEVELS.includes(level as LogLevel)) {
    const [near] = nearest(level, LOG_LEVELS);
    const hint = near === undefined ? `there are ${LOG_LEVELS.join(", ")}` : `did you mean ${near}?`;
    throw new UsageError(`--log-level ${level} is no level; ${hint}`);
  }
  if (quiet === true && verbose === true) throw new UsageError("--quiet or --verbose: one of them, not both");
  if (timeout !== undefined && !/^\d+(?:\.\d+)?$/.test(timeout)) {
    throw new UsageError(`--timeout ${timeout} is no number of seconds`);
  }
  checkRevision(revision);
}

/** Throws a UsageError where it is none that we speak. */
export function checkRevision(revision: string | undefined): void {
  try {
    if (revision !== undefined) knownRevision(revision);
  } catch (error) {
    throw new UsageError(`--revision: ${errorMessage(error)}`);
  }
}

function commandUpstream([command, ...args]: readonly string[], values: TargetValues): CommandUpstream {
  if (command === undefined) throw new UsageError("-- needs a command behind it, such as -- node server.js");
  if (ADDRESS.test(command)) throw new UsageError(`${command} is a URL, which stands in front, without --`);
  const stray = OF_URLS.find((name) => values[name] !== undefined);
  if (stray !== undefined) throw new UsageError(`--${stray} goes with a URL, not with a command`);
  const { cwd } = values;
  return { command, args, env: variablesOf(values), ...(cwd === undefined ? undefined : { cwd }) };
}

export function variablesOf({ env = [] }: Pick<TargetValues, "env">): Readonly<Record<string, string>> {
  const pairs = env.map((pair): [string, string] => {
    const [, key = "", value = ""] = /^([^=]+)=([^]*)$/.exec(pair) ?? [];
    if (key === "") throw new UsageError(`--env ${pair} is no variable: write KEY=VALUE`);
    return [key, value];
  });
  return Object.fromEntries(pairs);
}

function urlUpstream(target: string, values: TargetValues): URL {
  const stray = OF_COMMANDS.find((name) => values[name] !== undefined);
  if (stray !== undefined) throw new UsageError(`--${stray} goes with a command: -- COMMAND ARGS...`);
  const forms = "a target is a URL such as http://127.0.0.1:3000/mcp, or -- COMMAND ARGS... at the end of the line";
  if (!ADDRESS.test(target) || !URL.canParse(target)) throw new UsageError(`${target} is no target: ${forms}`);
  const url = new URL(target);
  if (url.username !== "" || url.password !== "") {
    // Not repeated: it may be a secret.
    throw new UsageError("A name and a password do not belong into a URL; send them by --header 'Authorization: ...'");
  }
  return url;
}

/** As it is told to the person: without what may be a secret. */
export function upstreamName(end: Upstream): string {
  return end instanceof URL ? `${end.host}${end.pathname}` : basename(end.command);
}

export function headersOf({ header = [] }: TargetValues): Readonly<Record<string, string>> {
  const pairs = header.map((text): [string, string] => {
    const [, name = "", value = ""] =
      /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([\t\x20-\x7e\x80-\xff]*?)[ \t]*$/.exec(text) ?? [];
    // What was written is not repeated: it may be a secret.
    if (name === "") throw new UsageError("--header must be written 'Name: value', on one line, in Latin letters");
    return [name, value];
  });
  return Object.fromEntries(pairs);
}

export async function rootsOf({ root = [] }: TargetValues): Promise<readonly Root[]> {
  return Promise.all(
    root.map(async (folder): Promise<Root> => {
      const path = resolve(folder);
      const found = await stat(path).catch(() => undefined);
      if (found?.isDirectory() !== true) throw new NotFoundError(`There is no folder ${folder}`);
      return { uri: pathToFileURL(path).href, name: basename(path) };
    }),
  );
}
