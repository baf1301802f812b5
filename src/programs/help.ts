// Reads the help of a command-line program: its summary, its usage, whether it has subcommands, and its options with
// their types. Understands the layouts of getopt and argp, git, argparse, clap, Go's flag and cobra, commander and yargs.
// What it does not understand is left out, so an option in the result has the spelling that the program expects.

import { firstChars } from "../core/text.ts";

/** An option of a program. */
export interface ProgramOption {
  /** As it is written, without the dashes: the long name if there is one. */
  readonly name: string;
  /** With the dashes: `--max-count` or `-C`. */
  readonly flag: string;
  /** Other names of the same option, without the dashes. */
  readonly aliases: readonly string[];
  /** Whether it is followed by a value. */
  readonly value: "none" | "required" | "optional";
  /** Whether the program reads the value after `=` or as the next argument. */
  readonly separator: "=" | " ";
  readonly type: "string" | "number";
  readonly choices: readonly string[];
  readonly isRepeatable: boolean;
  readonly description: string;
}

export interface ProgramHelp {
  readonly summary: string | undefined;
  /** The first line of the usage, without the word "usage". */
  readonly usage: string | undefined;
  /** Whether the first argument is the name of a subcommand, which has options of its own. */
  readonly hasSubcommands: boolean;
  /** Those that the help lists with a description. */
  readonly subcommands: readonly string[];
  readonly options: readonly ProgramOption[];
}

const MAX_OPTIONS = 300;
const MAX_DESCRIPTION = 300;
const MAX_SUBCOMMANDS = 60;
const MAX_LINES = 5_000;
const MAX_LINE_LENGTH = 500;
const MAX_USAGE_LINES = 50;

const USAGE = /^\s*usage(?: of [^:]*)?\s*:?\s*/i;
const OPTION_LINE = /^(\s*)(?=--?[A-Za-z0-9?@#[])/;
const HEADING = /^\S.*:\s*$|^[A-Z][A-Z ]+$|^\s{0,2}[A-Z][\w ]*:\s*$/;
const COMMAND_HEADING = /^\s{0,2}(?:[\w-]+ ){0,4}(?:sub)?commands\b[^.]{0,60}:?\s*$/i;
const COMMAND_LINE = /^\s{2,8}([a-z][\w-]*)(?:, [a-z][\w-]*)*\*?:?(?:\s{2,}\S|\t)/;
const COMMAND_USAGE =
  /<(?:sub)?commands?>|[[<](?:sub)?command[\]>]|\bCOMMAND\b|\bSUBCOMMAND\b|\{[a-z][\w-]*(?:,[a-z][\w-]*)+\}/;

/** Parses the text that `--help` printed. */
export function parseHelp(text: string): ProgramHelp {
  const lines = plainLines(text);
  const usage = usageBlock(lines);
  const usageText = usage.slice(0, MAX_USAGE_LINES).join(" ").replace(/\s+/g, " ");
  const subcommands = [...new Set(subcommandNames(lines))];
  const options = new Map<string, ProgramOption>();
  for (const option of [...listedOptions(lines), ...usageOptions(usageText)]) {
    const isKnown = [option.name, ...option.aliases].some((name) => findOption(options, name) !== undefined);
    if (!isKnown && !isAboutProgram(option) && options.size < MAX_OPTIONS) options.set(option.name, option);
  }
  const hasSubcommands = commandsStart(lines) >= 0 || COMMAND_USAGE.test(usageText);
  // Without any of these, the text is not a help, but perhaps an error.
  const isHelp = hasSubcommands || usage.length > 0 || options.size > 0;
  return {
    summary: isHelp ? findSummary(lines, usage) : undefined,
    usage: usage[0]?.replace(USAGE, "").trim() || usage[1]?.trim(),
    hasSubcommands,
    subcommands: subcommands.slice(0, MAX_SUBCOMMANDS),
    options: [...options.values()],
  };
}

function findOption(options: ReadonlyMap<string, ProgramOption>, name: string): ProgramOption | undefined {
  return options.get(name) ?? [...options.values()].find(({ aliases }) => aliases.includes(name));
}

/** Removes colours, and the letters that are struck over for bold text. Cuts what is too long to be a help. */
function plainLines(text: string): readonly string[] {
  // oxlint-disable-next-line no-control-regex
  const plain = text.replace(/\u001b\[[\d;]{0,20}[A-Za-z]|.\u0008/g, "");
  return plain
    .split(/\r?\n/)
    .slice(0, MAX_LINES)
    .map((line) => firstChars(line, MAX_LINE_LENGTH));
}

/** The usage, up to the first empty line, option, or line that is not indented. */
function usageBlock(lines: readonly string[]): readonly string[] {
  const start = lines.findIndex((line) => USAGE.test(line));
  if (start < 0) return [];
  const isAlone = lines[start]?.replace(USAGE, "").trim() === "";
  const rest = lines.slice(start + 1);
  // The usage may begin on the line after the word, even after an empty one.
  const skipped = isAlone && rest[0]?.trim() === "" ? 1 : 0;
  const end = rest.findIndex(
    (line, at) => at >= skipped && (!/^\s+\S/.test(line) || (at > 0 && OPTION_LINE.test(line))),
  );
  const block = [lines[start] ?? "", ...rest.slice(skipped, end < 0 ? undefined : Math.max(end, skipped))];
  return isAlone && block.length === 1 ? [`${block[0]}${rest[skipped] ?? ""}`] : block;
}

/** The first line that says something about the program, before its options and its lists. */
function findSummary(lines: readonly string[], usage: readonly string[]): string | undefined {
  for (const line of lines) {
    const text = line.trim();
    const isUsage = USAGE.test(line) || usage.includes(line) || /^(?:or:|try |mandatory arguments)/i.test(text);
    if (text === "" || isUsage) continue;
    if (OPTION_LINE.test(line) || HEADING.test(line) || /^[\s\t]{2}/.test(line) || text.endsWith(":")) return undefined;
    // A heading or a name with its version says nothing, and `npm <command>` is a usage.
    const isSentence = text.endsWith(".") || text.split(/\s+/).length > 2;
    if (isSentence && !/[<[]|^\$/.test(text.slice(0, 20))) return firstChars(text, MAX_DESCRIPTION);
  }
  return undefined;
}

function commandsStart(lines: readonly string[]): number {
  return lines.findIndex((line) => COMMAND_HEADING.test(line) && !OPTION_LINE.test(line));
}

function subcommandNames(lines: readonly string[]): string[] {
  const start = commandsStart(lines);
  if (start < 0) return [];
  const names: string[] = [];
  for (const line of lines.slice(start + 1)) {
    // The list ends where the options begin.
    if (OPTION_LINE.test(line) || /^\s*(?:[\w-]+ )?(?:options|flags)\s*:/i.test(line)) break;
    names.push(...(COMMAND_LINE.exec(line)?.slice(1, 2) ?? []));
  }
  return names;
}

/** `--help` and `--version` tell about the program and do nothing else. */
function isAboutProgram({ name, aliases, description }: ProgramOption): boolean {
  if ([name, ...aliases].some((spelling) => spelling === "help" || spelling === "version")) return true;
  return /^[hvV?]$/.test(name) && /\b(?:help|version)\b/i.test(description);
}

/** The options that have a line of their own, with the lines that follow as their description. */
function listedOptions(lines: readonly string[]): ProgramOption[] {
  const options: ProgramOption[] = [];
  for (let at = 0; at < lines.length; at += 1) {
    const line = lines[at] ?? "";
    const indent = OPTION_LINE.exec(line)?.[1]?.length;
    if (indent === undefined) continue;
    const spec = readSpecs(line.slice(indent));
    if (spec === undefined) continue;
    const parts = [spec.rest];
    const column = spec.rest === "" ? undefined : line.length - spec.rest.length;
    for (let next = lines[at + 1]; next !== undefined; next = lines[at + 1]) {
      const depth = next.search(/\S/);
      // A line in the column of the description belongs to it even if it begins with a dash.
      const isContinued = column !== undefined && depth >= column - 1;
      if (depth <= indent || (OPTION_LINE.test(next) && !isContinued)) break;
      parts.push(next.trim());
      at += 1;
    }
    const description = parts
      .join(" ")
      .replace(/\s+/g, " ")
      .replace(/^[:\s]+|\s+$/g, "");
    options.push(...toOptions(spec, description));
  }
  return options;
}

interface Spec {
  readonly flag: string;
  /** What stands for the value. Undefined if there is none. */
  readonly metavar: string | undefined;
  readonly isOptional: boolean;
  readonly separator: "=" | " ";
  readonly isRepeatable: boolean;
}

const FLAG = /^(--?(?:\[no-\])?(?:[A-Za-z0-9@#][\w:+-]*(?:\.[\w+-]+)*|\?))(\.\.\.)?/;
const VALUES: readonly (readonly [RegExp, { readonly optional?: true; readonly separator: "=" | " " }])[] = [
  [/^\[=?(<[^>]*>|\{[^}]*\}|[^\]\s]+)\]/, { optional: true, separator: "=" }],
  [
    /^=(<[^>]*>(?:[=:,]<[^>]*>)*|\{[^}]*\}|\[[-+]+\][A-Za-z]+|\[[^\]]*\]|"[^"]*"|'[^']*'|[^\s,\]]+)/,
    { separator: "=" },
  ],
  [/^ (<[^>]*>(?:[=:,]<[^>]*>)*|\{[^}]*\})/, { separator: " " }],
  [/^ \[(<[^>]*>|\{[^}]*\}|[A-Za-z][\w-]*)(?: ?\.\.\.)?\]/, { optional: true, separator: "=" }],
  [/^ ([A-Z][A-Z0-9_:/-]*(?:=[A-Z]+)?)(?=[\s,|\]]|\.\.\.|$)/, { separator: " " }],
  // As cobra and Go write the type: one word, and then the column of the descriptions.
  [/^ ([a-z][\w-]*)(?=\s{2,}|\t|$| :)/, { separator: " " }],
];
const MORE = /^(?: ?\.\.\.| \[\S+ ?\.\.\.\])/;
const NEXT = /^(?:,\s*|\s*\|\s*|\s+or\s+|\/| (?=--))(?=-)/;
/** Two values, or another option: nothing that one argument could express. */
const UNCLEAR = /^ [-;{]|^ [A-Z][A-Z_]*(?=\s{2,}|$)|^ <[^>]+>|^ [A-Za-z_]+ [A-Za-z_]+\s{2,}\S/;

/** `-NUM` of grep and `-WIDTH` of fmt stand for any number, such as `-5`. */
const ANY_NUMBER = /^-(?:NUM|NUMBER|COUNT|DIGITS|COLUMNS?|WIDTH|LINES|LEVEL)$/;

/** Reads `-d, --data <data>` at the start of a line; the rest is the description. */
function readSpecs(line: string): { readonly specs: readonly Spec[]; readonly rest: string } | undefined {
  const specs: Spec[] = [];
  let rest = line;
  for (;;) {
    const [whole, flag] = FLAG.exec(rest) ?? [];
    if (whole === undefined || flag === undefined) break;
    rest = rest.slice(whole.length);
    let spec: Spec = { flag, metavar: undefined, isOptional: false, separator: "=", isRepeatable: false };
    for (const [pattern, { optional, separator }] of VALUES) {
      const [value, metavar = ""] = pattern.exec(rest) ?? [];
      if (value === undefined) continue;
      rest = rest.slice(value.length);
      const [more = ""] = MORE.exec(rest) ?? [];
      rest = rest.slice(more.length);
      const isRepeatable = more !== "" || /\w.*\.\.\./.test(value);
      spec = { flag, metavar, isOptional: optional === true, separator, isRepeatable };
      break;
    }
    if (!ANY_NUMBER.test(flag)) specs.push(spec);
    const [separator] = NEXT.exec(rest) ?? [];
    if (separator === undefined) break;
    rest = rest.slice(separator.length);
  }
  // What follows must be a description: text that touches the flag means that the spelling was not understood.
  if (specs.length === 0 || UNCLEAR.test(rest) || (rest !== "" && !/^[\s:;,)\]]/.test(rest))) return undefined;
  return { specs, rest: rest.trim() };
}

const NUMBERS = /^(?:n|nn?n|num|number|u?int(?:\d+)?|integer|count|float(?:\d+)?|double|decimal|port|digits)$/i;
const LISTS = /^(?:list|strings|stringarray|stringslice|ints|\w+\.\.\.)$/i;
const REPEATED = /\b(?:multiple times|more than once|several times|repeatable|(?:may|can) be repeated)\b|\[array\]/i;

function toOptions({ specs }: { readonly specs: readonly Spec[] }, described: string): ProgramOption[] {
  // `--[no-]color` is two options.
  if (specs.some(({ flag }) => flag.startsWith("--[no-]"))) {
    const variants = ["", "no-"].map((prefix) =>
      specs
        .filter(({ flag }) => prefix === "" || flag.startsWith("--[no-]"))
        .map((spec) => ({ ...spec, flag: spec.flag.replace("[no-]", prefix) })),
    );
    return variants.flatMap((variant) => toOptions({ specs: variant }, described));
  }
  const main = specs.find(({ flag }) => flag.startsWith("--")) ?? specs[0];
  const typed = [main, ...specs].find((spec) => spec?.metavar !== undefined);
  if (main === undefined) return [];
  const metavar = (typed?.metavar ?? "").replace(/^<(.*)>$/, "$1").replace(/^["'](.*)["']$/, "$1");
  const yargs = / \[(string|number|count|array)\]/.exec(described)?.[1];
  const value = typed === undefined ? (yargs === undefined || yargs === "count" ? "none" : "required") : "required";
  const names = specs.map(({ flag }) => flag.replace(/^--?/, ""));
  const name = main.flag.replace(/^--?/, "");
  return [
    {
      name,
      flag: main.flag,
      aliases: names.filter((spelling) => spelling !== name),
      value: typed?.isOptional === true ? "optional" : value,
      separator: typed?.separator ?? "=",
      type: NUMBERS.test(metavar) || yargs === "number" ? "number" : "string",
      choices: value === "none" ? [] : findChoices(typed?.metavar ?? "", described),
      isRepeatable:
        value !== "none" && (typed?.isRepeatable === true || LISTS.test(metavar) || REPEATED.test(described)),
      description: firstChars(described || `${main.flag}${typed ? ` ${typed.metavar}` : ""}`, MAX_DESCRIPTION),
    },
  ];
}

const WORD = "[\"'`]?[\\w.+-]+[\"'`]?";
const LISTED = new RegExp(
  `[[(](?:possible values|choices|values|one of):? (${WORD}(?:(?:, ?| ?\\| ?)${WORD})*)[\\])]` +
    `|\\(("[\\w.+-]+"(?:(?:, ?| ?\\| ?)"[\\w.+-]+")+)\\)`,
  "i",
);

function findChoices(metavar: string, described: string): readonly string[] {
  // Not `<data|filename>`, in which the words stand for values.
  const inMetavar = /^\{([\w.+-]+(?:[,|][\w.+-]+)+)\}$|^([\w.+-]+(?:\|[\w.+-]+)+)$/.exec(metavar);
  const [, named, quoted] = LISTED.exec(described) ?? [];
  const list = inMetavar?.[1] ?? inMetavar?.[2] ?? named ?? quoted;
  if (list === undefined) return [];
  const choices = list.split(/[,|]/).map((choice) => choice.trim().replace(/^["'`]|["'`]$/g, ""));
  return [...new Set(choices.filter((choice) => choice !== ""))];
}

const IN_USAGE =
  /(?<![\w\]>=-])(--?[A-Za-z][^\s|\][=]*(?:\[=[^\]]*\]|=[^\s\]]+| <[^>]*>(?:=<[^>]*>)?| [A-Z][A-Z_]*(?=\]))?)/g;
/** `[-h | --help]`: nothing that a caller needs. */
const ABOUT_PROGRAM = /\[(?:-\w \| )?--?(?:help|version|h)(?: \| -\w)?\]/g;

/** Options that only the usage shows, such as `[-C <path>]`. */
function usageOptions(usage: string): ProgramOption[] {
  return [...usage.replace(ABOUT_PROGRAM, "").matchAll(IN_USAGE)].flatMap(([, text = ""]) => {
    if (ANY_NUMBER.test(text)) return [];
    const letters = /^-([A-Za-z]{2,})$/.exec(text)?.[1];
    // `-fiv` is three options in usages of BSD programs.
    if (letters !== undefined && new Set(letters).size === letters.length) {
      return [...letters].flatMap((letter) => toOptions(readSpecs(`-${letter}`) ?? { specs: [] }, ""));
    }
    const spec = letters === undefined ? readSpecs(text) : undefined;
    return spec === undefined || spec.rest !== "" ? [] : toOptions(spec, "");
  });
}
