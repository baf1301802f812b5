// `catenary add NAME -- COMMAND ARGS...` and `catenary add NAME URL` write a server into a config, `catenary remove NAME`
// removes one. The config is created if there is none.

import { dirname, resolve } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { isObject } from "../../core/values.ts";
import { nearest } from "../../core/options.ts";
import { findSpawnProblem } from "../../process/program.ts";
import { NotFoundError, UsageError, type Command } from "../command.ts";
import {
  CHANGE_FLAGS,
  CHANGE_HELP,
  changeFile,
  type EditedFile,
  editText,
  openForEdit,
  valueIn,
} from "../setup/change-file.ts";
import { defineCommand } from "../show/problems.ts";
import {
  CONFIG,
  type FlagValues,
  parseEnvFlags,
  parseFlags,
  parseHeaders,
  splitAtCommand,
  unexpectedArguments,
} from "../target/target.ts";
import { printStatus, quoteWord, sanitizeFor } from "../terminal/output.ts";

const USAGE = `Usage: catenary add NAME [OPTIONS] [--] COMMAND ARGS...
       catenary add NAME URL [OPTIONS]
`;

const HELP = `${USAGE}
Writes a server into a config: a command to start, or the URL of a server. Creates the config if
there is none. Write a secret as a variable, such as --env 'KEY=\${KEY}': it is read from the
environment when the config is used.

  --config FILE          the config; default ./${CONFIG}
  --env KEY=VALUE        for a command: an environment variable; repeatable
  --cwd DIR              for a command: the folder to start it in, relative to the config
  --header 'NAME: VALUE' for a URL: a header to send with every request; repeatable
  --force                replace a server of the same name
${CHANGE_HELP}
Exit codes: 0 ok; 1 wrong command line, or not written.
`;

const REMOVE_USAGE = "Usage: catenary remove NAME [--config FILE] [OPTIONS]";

const REMOVE_HELP = `${REMOVE_USAGE}

Removes a server from a config.

  --config FILE          the config; default ./${CONFIG}
${CHANGE_HELP}
Exit codes: 0 ok; 1 wrong command line, or not written; 2 no such file or server.
`;

const REMOVE_FLAGS = { ...CHANGE_FLAGS, config: { type: "string" } } as const;
const FLAGS = {
  ...REMOVE_FLAGS,
  env: { type: "string", multiple: true },
  cwd: { type: "string" },
  header: { type: "string", multiple: true },
  force: { type: "boolean" },
} as const;
const EXPECTED = { env: "a variable: KEY=VALUE", header: "a header: 'Name: value'", config: "the path of a config" };

interface AddLine {
  readonly name: string;
  readonly words: readonly string[];
  readonly values: FlagValues<typeof FLAGS>;
}

const isUrl = (word: string): boolean => /^https?:\/\//i.test(word);

/** The arguments of ours: options before and after NAME, and after a URL, but not after a command. */
function ownArguments(args: readonly string[]): { own: string[]; name: string | undefined; words: string[] } {
  const first = splitAtCommand(args, FLAGS);
  const [name, ...rest] = first.command;
  const second = splitAtCommand(rest, FLAGS);
  const [word = "", ...after] = second.command;
  const isLast = isUrl(word) && !rest.includes("--");
  return {
    own: [...first.own, ...second.own, ...(isLast ? after.filter((one) => one !== "--") : [])],
    name,
    words: isLast ? [word] : second.command,
  };
}

function parseLine(args: readonly string[]): AddLine {
  const { own, name, words } = ownArguments(args);
  const { positionals, values } = parseFlags("add", own, FLAGS, EXPECTED);
  if (name === undefined || name.trim() === "") throw new UsageError(`add needs a NAME\n\n${USAGE}`);
  if (positionals.length > 0) throw unexpectedArguments("add", positionals, USAGE);
  if (words.length === 0) {
    const hint = isUrl(name) ? `; write a name before the URL: catenary add NAME ${name}` : "";
    throw new UsageError(`add needs a COMMAND or a URL after the name${hint}\n\n${USAGE}`);
  }
  return { name, words, values };
}

function newEntry({ words: [first = "", ...rest], values }: AddLine): object {
  const { env, cwd, header } = values;
  if (isUrl(first)) {
    const misplaced = env === undefined ? (cwd === undefined ? undefined : "cwd") : "env";
    if (misplaced !== undefined) throw new UsageError(`--${misplaced} needs a command, not a URL`);
    if (rest.length > 0) throw unexpectedArguments("add", rest, USAGE);
    if (!URL.canParse(first)) throw new UsageError(`${first} is not a valid URL`);
    return { url: first, ...(header && { headers: parseHeaders(values) }) };
  }
  if (header !== undefined) throw new UsageError("--header needs a URL, not a command");
  return {
    command: first,
    ...(rest.length > 0 && { args: rest }),
    ...(env && { env: parseEnvFlags(values) }),
    ...(cwd !== undefined && { cwd }),
  };
}

/** A config, and the key under which it has its servers. */
export interface OpenedConfig {
  readonly file: EditedFile;
  readonly section: string;
  readonly servers: { readonly [name: string]: unknown };
}

export async function openConfigFile(path: string): Promise<OpenedConfig> {
  const file = await openForEdit(path, "json", process.cwd());
  const section =
    (await valueIn(file, ["mcpServers"])) === undefined && (await valueIn(file, ["servers"])) !== undefined;
  const key = section ? "servers" : "mcpServers";
  const servers = await valueIn(file, [key]);
  return { file, section: key, servers: isObject(servers) ? servers : {} };
}

/** Only a warning: the program may be installed later. */
async function warnOfProgram({ words: [command = ""], values }: AddLine, config: string): Promise<void> {
  if (isUrl(command) || command.includes("${")) return;
  const cwd = resolve(dirname(config), values.cwd ?? ".");
  const problem = await findSpawnProblem({ command, cwd });
  if (problem !== undefined) printStatus(sanitizeFor(process.stderr, `Warning: ${problem.message}`));
}

/** Says that an option after the command is one of the command, if it was probably meant for us. */
function noteMisplaced({ words }: AddLine, args: readonly string[]): void {
  const option = words.find((word) => ["--yes", "--force", "--dry-run"].includes(word));
  if (option === undefined || args.includes("--")) return;
  printStatus(`${option} is an argument of the command here; options of add stand before the command`);
}

async function add(args: readonly string[]): Promise<number> {
  const line = parseLine(args);
  const { name, values } = line;
  const { config = CONFIG, force } = values;
  const value = newEntry(line);
  const { file, section, servers } = await openConfigFile(config);
  const old = servers[name];
  const isSame = isDeepStrictEqual(old, value);
  if (old !== undefined && !isSame && force !== true) {
    throw new UsageError(`${config} has a server ${name} already; --force replaces it, or choose another name`);
  }
  const edited = isSame ? (file.text ?? "") : await editText(file, [{ path: [section, name], value }]);
  await warnOfProgram(line, config);
  noteMisplaced(line, args);
  const where = config === CONFIG ? quoteWord(name) : quoteWord(config);
  return changeFile(file, edited, {
    values,
    done: `To see its tools: catenary tools ${where}. If it does not start: catenary doctor ${where}`,
    unchanged: `${config} has this server already`,
    document: { name },
  });
}

async function remove(args: readonly string[]): Promise<number> {
  const { positionals, values } = parseFlags("remove", args, REMOVE_FLAGS, { config: EXPECTED.config });
  const [name, ...more] = positionals;
  if (name === undefined) throw new UsageError(`remove needs a NAME\n\n${REMOVE_USAGE}`);
  if (more.length > 0) throw unexpectedArguments("remove", more, REMOVE_USAGE);
  const { config = CONFIG } = values;
  const { file, section, servers } = await openConfigFile(config);
  if (file.text === undefined) throw new NotFoundError(`There is no config ${config}; --config names another`);
  if (!Object.hasOwn(servers, name)) {
    const names = Object.keys(servers);
    const [near] = nearest(name, names);
    const hint =
      near === undefined ? `it has ${names.length === 0 ? "none" : names.join(", ")}` : `did you mean ${near}?`;
    throw new NotFoundError(`There is no server ${name} in ${config}; ${hint}`);
  }
  return changeFile(file, await editText(file, [{ path: [section, name], value: undefined }]), {
    values,
    done: `${config} no longer has ${name}`,
    unchanged: `There is no server ${name} in ${config}`,
    document: { name },
  });
}

export const addCommand: Command = defineCommand(HELP, add, (args) => ownArguments(args).own);
export const removeCommand: Command = defineCommand(REMOVE_HELP, remove);
