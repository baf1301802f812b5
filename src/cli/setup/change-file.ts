// Changes a config of ours or of a client: shows the difference, asks, keeps a backup, and writes the file as a whole.
// Used by all commands that write configs, so that none of them can write without asking.

import { lstat, realpath, stat } from "node:fs/promises";
import { isAbsolute, join, relative, resolve } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { parse as parseJson, type ParseError } from "jsonc-parser";
import type { Client } from "../../config/clients.ts";
import { MAX_CONFIG_BYTES } from "../../config/document.ts";
import { writeWithBackup } from "../../config/write-config.ts";
import { homeFolder, readBounded } from "../../core/files.ts";
import { boolean } from "../../core/fields.ts";
import { errorMessage, isObject } from "../../core/values.ts";
import { EXIT, UsageError } from "../command.ts";
import type { FlagValues } from "../flags.ts";
import { coverSecrets } from "../show/problems.ts";
import { diffLines } from "../../core/line-diff.ts";
import { paintDiff } from "../terminal/line-diff.ts";
import { paint, printJson, printNotice, printStatus, printTrusted, sanitizeFor } from "../terminal/output.ts";
import { oneLine } from "../terminal/text.ts";
import { agrees, Prompter } from "../terminal/prompter.ts";

/** The flags of the commands that change a file. */
export const CHANGE_FLAGS = {
  "dry-run": boolean("Shows the change and writes nothing."),
  yes: boolean("Writes without asking. Needed if stdin is not a terminal."),
  json: boolean('Prints `{"file", "changed", "backup", "diff"}` and the names of what changed.'),
};

export const CHANGE_NOTES =
  "Shows the change before it is written, and asks. The file as it was is kept beside it, as FILE.DATE.bak; the three newest are kept. Comments and everything else in the file stay as they are.";

type ChangeValues = FlagValues<typeof CHANGE_FLAGS>;

/** A file as it is now. */
export interface EditedFile {
  /** The path as the user knows it. */
  readonly path: string;
  /** The path of the file itself, if `path` is a symbolic link. */
  readonly real: string;
  /** Undefined if there is no such file. */
  readonly text: string | undefined;
  readonly format: Client["format"];
}

/** A value to set in a file; undefined removes it. */
export interface Edit {
  readonly path: readonly string[];
  readonly value: object | undefined;
}

/**
 * Reads a file that is to be changed. A symbolic link is followed only within `root`, such as the home folder: the folder
 * of a project may come from another person, and a link in it may lead anywhere.
 */
export async function openForEdit(path: string, format: Client["format"], root: string): Promise<EditedFile> {
  const absolute = resolve(path);
  const link = await lstat(absolute).catch(() => undefined);
  if (link === undefined) return { path, real: absolute, text: undefined, format };
  const real = await realpath(absolute).catch(() => {
    throw new UsageError(`${path} is a symbolic link to a file that does not exist; remove it or create the file`);
  });
  const realRoot = await realpath(root).catch(() => root);
  if (link.isSymbolicLink() && relative(realRoot, real).startsWith("..")) {
    throw new UsageError(`${path} is a symbolic link to ${real}, outside of ${root}; change that file by hand`);
  }
  if (!(await stat(real)).isFile()) throw new UsageError(`${path} is not a file`);
  return { path, real, text: (await readBounded(real, MAX_CONFIG_BYTES)).toString(), format };
}

/** The text with these edits. Throws a UsageError if that is not possible without a change of anything else. */
export async function editText({ path, text = "", format }: EditedFile, edits: readonly Edit[]): Promise<string> {
  try {
    const { parse, edit } = await loadFormat(format);
    const expected = edits.reduce((before, { path: keys, value }) => withValue(before, keys, value), parse(text));
    const edited = edits.reduce((before, { path: keys, value }) => edit(before, keys, value), text);
    // In TOML, a table without a header exists only by what is in it.
    const comparable = (tree: Tree): Tree => (format === "toml" ? pruned(tree) : tree);
    if (!isDeepStrictEqual(comparable(parse(edited)), comparable(expected)))
      throw new Error("its form is unusual; change it by hand");
    return edited;
  } catch (error) {
    throw cannotChange(path, error);
  }
}

function cannotChange(path: string, error: unknown): UsageError {
  return new UsageError(`Cannot change ${path}: ${errorMessage(error)}`, { cause: error });
}

type Tree = { readonly [key: string]: unknown };

interface Format {
  readonly parse: (text: string) => Tree;
  readonly edit: (text: string, path: readonly string[], value: object | undefined) => string;
}

async function loadFormat(format: Client["format"]): Promise<Format> {
  if (format === "toml") {
    const [{ parse }, { editToml }] = await Promise.all([import("smol-toml"), import("./edit-toml.ts")]);
    // A plain copy, since smol-toml makes objects without a prototype.
    return { parse: (text) => structuredClone(parse(text)), edit: editToml };
  }
  const { editJson, notJson } = await import("../../config/edit-json.ts");
  const read = (text: string): Tree => {
    const errors: ParseError[] = [];
    const value: unknown = text.trim() === "" ? {} : parseJson(text, errors, { allowTrailingComma: true });
    if (errors.length > 0) throw notJson(text, errors[0]?.offset ?? 0);
    return isObject(value) ? value : {};
  };
  return { parse: read, edit: editJson };
}

/** The value at a path of a file; undefined if there is none. Throws if the file cannot be parsed. */
export async function valueIn({ path, text = "", format }: EditedFile, keys: readonly string[]): Promise<unknown> {
  const { parse } = await loadFormat(format);
  try {
    return keys.reduce<unknown>((at, key) => (isObject(at) ? at[key] : undefined), parse(text));
  } catch (error) {
    throw cannotChange(path, error);
  }
}

function withValue(tree: Tree, [key = "", ...rest]: readonly string[], value: object | undefined): Tree {
  const { [key]: inner, ...others } = tree;
  if (rest.length > 0) {
    if (inner === undefined && value === undefined) return tree;
    return { ...tree, [key]: withValue(isObject(inner) ? inner : {}, rest, value) };
  }
  return value === undefined ? others : { ...tree, [key]: value };
}

/** Without empty objects. */
function pruned(tree: Tree): Tree {
  const entries = Object.entries(tree).map(([key, value]) => [key, isTable(value) ? pruned(value) : value] as const);
  return Object.fromEntries(entries.filter(([, value]) => !isTable(value) || Object.keys(value).length > 0));
}

function isTable(value: unknown): value is Tree {
  return isObject(value) && !Array.isArray(value) && !(value instanceof Date);
}

export interface ChangeOptions {
  readonly values: ChangeValues;
  /** What to print after the change was written. */
  readonly done: string;
  /** What to print if there is nothing to change. */
  readonly unchanged: string;
  /** Fields for --json. */
  readonly document?: object;
}

/** Shows a change and writes it if the user agrees. Resolves to the exit code. */
export async function changeFile(file: EditedFile, edited: string, options: ChangeOptions): Promise<number> {
  const { values, done, unchanged, document } = options;
  const { path, real, text } = file;
  const isChanged = edited !== (text ?? "");
  const diff = isChanged
    ? diffLines(splitLines(text ?? ""), splitLines(edited), CONTEXT_LINES, ["  ..."]).map(coverSecrets)
    : [];
  const shownPath = real === resolve(path) ? shortPath(path) : `${shortPath(path)} (a link to ${shortPath(real)})`;
  const report = (backup?: string): void => {
    if (values.json === true) printJson({ ...document, file: real, changed: isChanged, backup, diff: diff.join("\n") });
  };
  if (!isChanged) {
    report();
    printNotice(unchanged);
    return EXIT.ok;
  }
  if (values.json !== true) printDiff(shownPath, text === undefined, diff);
  if (values["dry-run"] === true) {
    report();
    printStatus("Nothing was written (--dry-run)");
    return EXIT.ok;
  }
  if (values.yes !== true && !(await confirm(shownPath))) {
    printStatus("Nothing was written");
    return EXIT.usage;
  }
  const backup = await writeChange(file, edited);
  report(backup);
  if (backup !== undefined) printNotice(`The file as it was: ${shortPath(backup)}`);
  printNotice(done);
  return EXIT.ok;
}

async function confirm(path: string): Promise<boolean> {
  if (!Prompter.isAvailable()) {
    throw new UsageError(`Stdin is not a terminal, so nothing was written to ${path}; --yes writes without asking`);
  }
  const controller = new AbortController();
  const prompter = new Prompter(() => controller.abort());
  const answer = prompter.open(controller.signal, (dialog) => agrees(dialog, `Write ${oneLine(path)}? [y/N]: `));
  return answer.catch(() => false);
}

/** Returns the path of the backup. */
async function writeChange({ path, real, text }: EditedFile, edited: string): Promise<string | undefined> {
  try {
    return await writeWithBackup(real, text, edited);
  } catch (error) {
    throw new UsageError(`Cannot write ${path}: ${errorMessage(error)}`, { cause: error });
  }
}

function printDiff(path: string, isNew: boolean, diff: readonly string[]): void {
  const { stdout } = process;
  printTrusted(`${paint("bold", sanitizeFor(stdout, `${path}${isNew ? " (new)" : ""}`), stdout)}\n`);
  for (const line of diff) printTrusted(`${paintDiff(sanitizeFor(stdout, line))}\n`);
}

const CONTEXT_LINES = 3;

function splitLines(text: string): string[] {
  const lines = text.split(/\r?\n/);
  return lines.at(-1) === "" ? lines.slice(0, -1) : lines;
}

/** A path for messages: an absolute one in the home folder begins with ~. */
export function shortPath(path: string): string {
  const below = isAbsolute(path) ? relative(homeFolder(), path) : "..";
  return below.startsWith("..") || below === "" ? path : join("~", below);
}
