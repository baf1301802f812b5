// `catenary add NAME -- COMMAND ARGS...` and `catenary add NAME URL` write a server into a config, `catenary remove NAME`
// removes one. The config is created if there is none.

import { dirname, resolve } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { boolean } from "../../core/fields.ts";
import { isObject } from "../../core/values.ts";
import { findSpawnProblem } from "../../process/spawn-problem.ts";
import { NotFoundError, suggest, UsageError } from "../command.ts";
import { command, type Command, unexpectedArguments } from "../define.ts";
import { flag, type ParsedLine, parseFlags, refuseFlags, splitAtCommand } from "../flags.ts";
import {
  CHANGE_FLAGS,
  CHANGE_NOTES,
  changeFile,
  type EditedFile,
  editText,
  openForEdit,
  valueIn,
} from "../setup/change-file.ts";
import { COMMAND_FLAGS, CONFIG, isUrl, parseEnvFlags, parseHeaders, URL_FLAGS } from "../target/target.ts";
import { printNotice, printStatus } from "../terminal/output.ts";
import { quoteWord } from "../terminal/text.ts";

/** The config that a command writes to. */
export const CONFIG_FLAG = {
  config: flag("FILE", `The config to write to. Default \`./${CONFIG}\`.`, {
    expected: "the path of a config",
  }),
};
const REMOVE_FLAGS = { ...CONFIG_FLAG, ...CHANGE_FLAGS };
const FLAGS = {
  ...CONFIG_FLAG,
  env: COMMAND_FLAGS.env,
  cwd: flag("DIR", "For a command: the folder to start it in, relative to the config."),
  header: URL_FLAGS.header,
  force: boolean("Replaces a server of the same name."),
  ...CHANGE_FLAGS,
};

/** The arguments of ours: options before and after NAME, and after a URL, but not after a command. */
function ownArguments(args: readonly string[]): { ownWords: string[]; name: string | undefined; words: string[] } {
  const first = splitAtCommand(args, FLAGS);
  const [name, ...rest] = first.command;
  const second = splitAtCommand(rest, FLAGS);
  const [word = "", ...after] = second.command;
  const isLast = isUrl(word) && !rest.includes("--");
  return {
    ownWords: [...first.ownWords, ...second.ownWords, ...(isLast ? after.filter((word) => word !== "--") : [])],
    name,
    words: isLast ? [word] : second.command,
  };
}

type AddLine = ReturnType<typeof parseLine>;

function parseLine(args: readonly string[]) {
  const { ownWords, name, words } = ownArguments(args);
  const { words: more, values } = parseFlags("add", ownWords, FLAGS);
  const { usage } = addCommand;
  if (name === undefined || name.trim() === "") throw new UsageError(`add needs a NAME\n\n${usage}`);
  if (more.length > 0) throw unexpectedArguments("add", more, usage);
  if (words.length === 0) {
    const hint = isUrl(name) ? `; write a name before the URL: catenary add NAME ${name}` : "";
    throw new UsageError(`add needs a COMMAND or a URL after the name${hint}\n\n${usage}`);
  }
  return { name, words, values };
}

function newEntry({ words: [first = "", ...rest], values }: AddLine): object {
  const { env, cwd, header } = values;
  if (isUrl(first)) {
    refuseFlags(values, ["env", "cwd"], "a command, not a URL");
    if (rest.length > 0) throw unexpectedArguments("add", rest, addCommand.usage);
    if (!URL.canParse(first)) throw new UsageError(`${first} is not a valid URL`);
    return { url: first, ...(header && { headers: parseHeaders(values) }) };
  }
  refuseFlags(values, ["header"], "a URL, not a command");
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
  const config = await valueIn(file, []);
  const { mcpServers, servers } = isObject(config) ? config : {};
  const section = mcpServers === undefined && servers !== undefined ? "servers" : "mcpServers";
  const entries = section === "servers" ? servers : mcpServers;
  return { file, section, servers: isObject(entries) ? entries : {} };
}

/** Only a warning: the program may be installed later. */
async function warnOfProgram({ words: [command = ""], values }: AddLine, config: string): Promise<void> {
  if (isUrl(command) || command.includes("${")) return;
  const cwd = resolve(dirname(config), values.cwd ?? ".");
  const problem = await findSpawnProblem({ command, cwd });
  if (problem !== undefined) printNotice(`Warning: ${problem.message}`);
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

export const addCommand: Command = command({
  name: "add",
  usage: "NAME [OPTIONS] [--] COMMAND ARGS...\nNAME URL [OPTIONS]",
  about: `Writes a server into a config: a command to start, or the URL of a server. Creates the config if there is none.
Write a secret as a variable, such as --env 'KEY=\${KEY}': it is read from the environment when the config is used.`,
  flags: FLAGS,
  notes: CHANGE_NOTES,
  exits: "0 ok; 1 wrong command line, or not written.",
  ownWords: (args) => ownArguments(args).ownWords,
  runArguments: add,
});

export const removeCommand: Command = command({
  name: "remove",
  usage: "NAME [--config FILE] [OPTIONS]",
  about: "Removes a server from a config.",
  flags: REMOVE_FLAGS,
  notes: CHANGE_NOTES,
  exits: "0 ok; 1 wrong command line, or not written; 2 no such file or server.",
  words: 1,
  needs: "a NAME",
  run: remove,
});

async function remove({ words: [name = ""], values }: ParsedLine<typeof REMOVE_FLAGS>): Promise<number> {
  const { config = CONFIG } = values;
  const { file, section, servers } = await openConfigFile(config);
  if (file.text === undefined) throw new NotFoundError(`There is no config ${config}; --config names another`);
  if (!Object.hasOwn(servers, name)) {
    const names = Object.keys(servers);
    const hint = suggest(name, names, `it has ${names.length === 0 ? "none" : names.join(", ")}`);
    throw new NotFoundError(`There is no server ${name} in ${config}; ${hint}`);
  }
  return changeFile(file, await editText(file, [{ path: [section, name], value: undefined }]), {
    values,
    done: `${config} no longer has ${name}`,
    unchanged: `There is no server ${name} in ${config}`,
    document: { name },
  });
}
