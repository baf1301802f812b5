// `catenary disable|enable SERVER[/TOOL] [CONFIG]`: hides a server or a tool from clients, and shows it again. It changes
// the config, and a gateway that runs this config uses the change at once.

import { realpath } from "node:fs/promises";
import { resolve } from "node:path";
import { isFatal } from "../../config/document.ts";
import { editHidden, HidingError, type Hideable } from "../../config/hidden.ts";
import { checkConfig } from "../../config/load.ts";
import { errorMessage } from "../../core/values.ts";
import { EXIT, NotFoundError, UsageError } from "../command.ts";
import { command, type Command } from "../define.ts";
import type { ParsedLine } from "../flags.ts";
import { askGateway, findGateways } from "../serve/control.ts";
import { CHANGE_FLAGS, CHANGE_NOTES, changeFile } from "../setup/change-file.ts";
import { CONFIG } from "../target/target.ts";
import { printNotice } from "../terminal/output.ts";
import { oneLine } from "../terminal/text.ts";
import { openConfigFile } from "./add.ts";

const USAGE = "SERVER[/TOOL] [CONFIG] [OPTIONS]";
const NOTES = `${CHANGE_NOTES} A gateway of yours that runs this config uses the change at once.`;
const EXITS = "0 ok; 1 wrong command line, or not written; 2 no such file or server.";

type Line = ParsedLine<typeof CHANGE_FLAGS>;

/** A name of a server may have slashes, so the longest one that the config has counts. */
function readTarget(word: string, names: readonly string[]): Hideable {
  const [server] = names
    .filter((name) => word === name || word.startsWith(`${name}/`))
    .toSorted((one, other) => other.length - one.length);
  if (server !== undefined) return { server, tool: word === server ? undefined : word.slice(server.length + 1) };
  const [first = "", ...rest] = word.split("/");
  return { server: first, tool: rest.length === 0 ? undefined : rest.join("/") };
}

async function change({ words: [word = "", config = CONFIG], values }: Line, isHidden: boolean): Promise<number> {
  const { file, servers } = await openConfigFile(config);
  const { text, path, real } = file;
  if (text === undefined) throw new NotFoundError(`There is no config ${config}; write its path after ${word}`);
  const target = readTarget(word, Object.keys(servers));
  const { server, tool } = target;
  if (tool === "") throw new UsageError(`${word} has no name of a tool after the slash`);
  let edited: string;
  try {
    edited = editHidden(text, target, isHidden, resolve(path));
  } catch (error) {
    if (!(error instanceof HidingError)) throw error;
    const message = `${error.message}${error.isNotFound ? ` in ${path}` : ""}${error.hint === undefined ? "" : `; ${error.hint}`}`;
    throw error.isNotFound ? new NotFoundError(message) : new UsageError(message);
  }
  await checkEdited(path, text, edited);
  const what = tool === undefined ? server : `${tool} of ${server}`;
  const exit = await changeFile(file, edited, {
    values,
    done: `${what} is ${isHidden ? "hidden from clients" : "shown to clients"}`,
    unchanged: `${what} is ${isHidden ? "hidden" : "shown"} already`,
    document: { server, ...(tool !== undefined && { tool }), hidden: isHidden },
  });
  if (exit === EXIT.ok && values["dry-run"] !== true) await tellGateways(real, target, isHidden);
  return exit;
}

/** Throws if the change makes the config one that no gateway can use. A config that was so before can still be changed. */
async function checkEdited(path: string, before: string, edited: string): Promise<void> {
  const problem = (await checkConfig(edited, path)).find(isFatal);
  if (problem === undefined || (await checkConfig(before, path)).some(isFatal)) return;
  throw new UsageError(`${path} was not changed: with this change it would have an error: ${problem.message}`);
}

/** Tells the gateways that run this config. The config has the change already, so a failure is only reported. */
async function tellGateways(real: string, target: Hideable, isHidden: boolean): Promise<void> {
  for (const { socket, config, url } of await findGateways().catch(() => [])) {
    if (config === undefined || (await realpath(config).catch(() => resolve(config))) !== real) continue;
    try {
      await askGateway(socket, "POST", isHidden ? "/hide" : "/show", target);
      printNotice(`The gateway at ${oneLine(url)} uses it now`);
    } catch (error) {
      printNotice(`The gateway at ${oneLine(url)} does not use it yet: ${oneLine(errorMessage(error))}`);
    }
  }
}

export const disableCommand: Command = command({
  name: "disable",
  usage: USAGE,
  about: `Hides a server, or one of its tools by the name that it has at the server, from clients. A hidden server does not
run. The config is \`./${CONFIG}\` unless it is given.`,
  flags: CHANGE_FLAGS,
  notes: NOTES,
  exits: EXITS,
  words: 2,
  needs: "the name of a server, or SERVER/TOOL",
  run: (line) => change(line, true),
});

export const enableCommand: Command = command({
  name: "enable",
  usage: USAGE,
  about: "Shows a server or a tool to clients again that `catenary disable` or the console has hidden.",
  flags: CHANGE_FLAGS,
  notes: NOTES,
  exits: EXITS,
  words: 2,
  needs: "the name of a server, or SERVER/TOOL",
  run: (line) => change(line, false),
});
