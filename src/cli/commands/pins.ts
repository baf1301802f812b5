// `catenary pins`: shows the definitions that the middleware `pin` holds back, with what has changed in them, and
// approves them. What a server wrote is shown with escapes for characters that a reader cannot see, since that is where
// instructions to a model hide.

import { resolve } from "node:path";
import { Pins, PIN_NOUNS, type PinnedDefinition } from "../../chain/pins.ts";
import { ConfigError, loadConfig } from "../../config/index.ts";
import {
  approveHeld,
  changedLines,
  pinFilesOf,
  type PinnedItem,
  readPinnedItems,
  stateOf,
} from "../../config/pinned-items.ts";
import { nearest } from "../../core/options.ts";
import { boolean } from "../../core/fields.ts";
import { EXIT, NotFoundError, UsageError } from "../command.ts";
import { command, type Command } from "../define.ts";
import { flag, type ParsedLine } from "../flags.ts";
import { CONFIG, requireConfig } from "../target/target.ts";
import { paintDiff } from "../terminal/line-diff.ts";
import { hintFor, paint, printJson, printTrusted } from "../terminal/output.ts";
import { oneLine, quoteWord } from "../terminal/text.ts";

const FLAGS = {
  file: flag("FILE", "The file of approved definitions, if it is not that of a config.", {
    expected: "a file",
  }),
  json: boolean(
    'Prints `{"items": [{"server", "kind", "name", "state", "approved", "held"}]}`; `state` is `approved`, `new`, `changed` or, after `reset`, `forgotten`.',
  ),
};

export const pinsCommand: Command = command({
  name: "pins",
  usage: `[CONFIG] [SERVER[/NAME]] [--file FILE] [--json]
approve [CONFIG] SERVER[/NAME]... [--file FILE] [--json]
reset [CONFIG] SERVER[/NAME]... [--file FILE] [--json]`,
  about: `Lists the definitions of tools, prompts and templates that the middleware pin has approved, and those that it holds
back because they are new or have changed, with what has changed. Characters that are invisible or control a terminal are
shown as escapes.

approve lets callers see and use what is held. reset forgets what was approved: the next list of the server counts as its
first. A running gateway notices an approval with the next request, and a reset with the next list.

CONFIG ends with .json or .jsonc, and may also come last; default: ./${CONFIG}.`,
  flags: FLAGS,
  exits: "0 ok; 1 wrong command line; 2 no such server or item.",
  words: Infinity,
  run: pins,
});

async function pins({ words: operands, values }: ParsedLine<typeof FLAGS>): Promise<number> {
  const [first, ...rest] = operands;
  const action = first === "approve" || first === "reset" ? first : undefined;
  const words = action === undefined ? operands : rest;
  // It comes first, as in other commands. What comes last cannot be a server either if it is a file.
  const config = [words[0], words.at(-1)].find((word = "") => /\.jsonc?$/.test(word));
  const wanted = words.filter((word) => word !== config);
  if (action !== undefined && wanted.length === 0)
    throw new UsageError(`${action} needs a SERVER\n${pinsCommand.usage}`);
  if (action === undefined && wanted.length > 1) {
    const [near] = nearest(first ?? "", ["approve", "reset"]);
    const hint = near === undefined ? "pins takes one SERVER[/NAME]" : `did you mean catenary pins ${near}?`;
    throw new UsageError(`${hint}\n${pinsCommand.usage}`);
  }
  const files = await pinFiles(config, values.file);
  const all: PinnedItem[] = [];
  for (const file of files) all.push(...(await readPinnedItems(new Pins(file))));
  const chosen = wanted.length === 0 ? all : wanted.flatMap((name) => choose(name, all, files));
  if (action === "approve") await approveHeld(chosen);
  if (action === "reset") await reset(chosen, wanted);
  if (values.json === true) printJson({ items: chosen.map((item) => toJson(item, action)) });
  else if (action === undefined) show(chosen, wanted.length > 0, config, values.file);
  else report(chosen, action);
  return EXIT.ok;
}

/** The files that the middleware of a config use. */
async function pinFiles(config: string | undefined, file: string | undefined): Promise<readonly string[]> {
  if (file !== undefined) return [resolve(file)];
  const path = await requireConfig(config, "pins");
  // The answers to the inputs do not matter here.
  const loaded = await loadConfig(path, { inputs: async () => "-" }).catch((error: unknown) => {
    if (!(error instanceof ConfigError)) throw error;
    throw new UsageError(`${path} has problems, which \`catenary check ${path}\` shows; or name the FILE with --file`);
  });
  const files = await pinFilesOf(loaded);
  if (files.length > 0) return files;
  throw new UsageError(`${path} does not use the middleware pin; add it: "chain": ["pin"]`);
}

/** The items that SERVER or SERVER/NAME means. */
function choose(wanted: string, all: readonly PinnedItem[], files: readonly string[]): readonly PinnedItem[] {
  const matching = all.filter(({ server, name }) => wanted === server || wanted === `${server}/${name}`);
  if (matching.length > 0) return matching;
  const servers = [...new Set(all.map(({ server }) => server))];
  const [near] = nearest(wanted, [...servers, ...all.map(({ server, name }) => `${server}/${name}`)]);
  const known =
    near !== undefined
      ? `did you mean ${oneLine(near)}?`
      : servers.length === 0
        ? `${files.join(", ")} has none`
        : `write SERVER or SERVER/NAME; the servers are ${servers.map(oneLine).join(", ")}`;
  throw new NotFoundError(`There are no definitions of ${oneLine(wanted)}; ${known}`);
}

async function reset(chosen: readonly PinnedItem[], wanted: readonly string[]): Promise<void> {
  for (const { pins: file, server, kind, name } of chosen) {
    await file.change(() => {
      if (wanted.includes(server)) file.forget(server);
      else file.set(server, kind, name, undefined);
      return true;
    });
  }
}

function toJson({ server, kind, name, pin }: PinnedItem, action: "approve" | "reset" | undefined): object {
  const [approved, held] = action === "approve" ? [pin.held ?? pin.approved, undefined] : [pin.approved, pin.held];
  const state = action === "reset" ? "forgotten" : action === "approve" ? "approved" : stateOf(pin);
  return { server, kind: PIN_NOUNS[kind], name, state, approved: approved?.definition, held: held?.definition };
}

function report(chosen: readonly PinnedItem[], action: "approve" | "reset"): void {
  const isDone = ({ pin }: PinnedItem): boolean => action === "reset" || pin.held !== undefined;
  for (const item of chosen.filter(isDone)) {
    printTrusted(`${action === "approve" ? "approved" : "forgotten"}  ${label(item)}\n`);
    // The server may have changed it again since the list was shown.
    if (action === "approve") printTrusted(difference(item.pin.approved, item.pin.held));
  }
  if (!chosen.some(isDone)) printTrusted("Nothing is held back, so there is nothing to approve\n");
}

function label({ server, kind, name }: Pick<PinnedItem, "server" | "kind" | "name">): string {
  return `${PIN_NOUNS[kind]} ${oneLine(server)}${kind === "server" ? "" : `/${oneLine(name)}`}`;
}

const NOTHING_YET =
  "Nothing is approved or held back yet. To let the servers list what they offer: catenary tools CONFIG\n";

function show(
  chosen: readonly PinnedItem[],
  isWhole: boolean,
  config: string | undefined,
  file: string | undefined,
): void {
  const held = chosen.filter(({ pin }) => pin.held !== undefined);
  const approved = chosen.filter(({ pin }) => pin.held === undefined);
  if (chosen.length === 0) printTrusted(hintFor(process.stdout, NOTHING_YET));
  for (const item of approved) {
    printTrusted(`${paint("green", "approved", process.stdout)}  ${label(item)}\n`);
    if (isWhole && chosen.length === 1) printTrusted(difference(item.pin.approved, item.pin.approved));
  }
  for (const item of held) {
    printTrusted(`${paint("yellow", stateOf(item.pin).padEnd(8), process.stdout)}  ${label(item)}\n`);
    printTrusted(difference(item.pin.approved, item.pin.held));
  }
  const [only] = held;
  if (only === undefined) return;
  const names =
    held.length === 1 && only.kind !== "server"
      ? [`${only.server}/${only.name}`]
      : new Set(held.map(({ server }) => server));
  const words = [...(config === undefined ? [] : [config]), ...names, ...(file === undefined ? [] : ["--file", file])];
  const command = `catenary pins approve ${words.map((word) => quoteWord(oneLine(word))).join(" ")}`;
  printTrusted(hintFor(process.stdout, `\nHeld back: ${held.length}. To approve: ${command}\n`));
}

/** What has changed from one definition to another: the lines of each field that differ. */
export function difference(from: PinnedDefinition | undefined, to: PinnedDefinition | undefined): string {
  const fields = changedLines(from, to);
  if (fields === undefined) return "    (the definition is too long to be shown)\n";
  return fields
    .map(({ field, lines }) =>
      [`    ${oneLine(field)}:\n`, ...lines.map((line) => `      ${paintDiff(line)}\n`)].join(""),
    )
    .join("");
}
