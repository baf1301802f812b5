// Reads tables, links and code blocks of our own Markdown pages, and writes tables.

/** The rows of every table, without the header rows; cells are trimmed. */
export function tables(text: string): string[][][] {
  const found = text.matchAll(/(?:^\|.*\n)+/gm);
  return Array.from(found, ([table]) => table.trimEnd().split("\n").slice(2).map(cells));
}

/** The rows of the first table under a heading, up to the next heading. */
export function tableUnder(heading: string, text: string): string[][] {
  const lines = text.split("\n");
  const start = lines.indexOf(heading);
  if (start < 0) throw new Error(`The page has no heading "${heading}"`);
  const next = lines.findIndex((line, index) => index > start && line.startsWith("#"));
  const section = lines.slice(start + 1, next < 0 ? undefined : next);
  return tables(`${section.join("\n")}\n`)[0] ?? [];
}

function cells(line: string): string[] {
  return line
    .replace(/^\||\|\s*$/g, "")
    .split(/(?<!\\)\|/)
    .map((cell) => cell.trim());
}

/** A table with columns of equal width, as the formatter writes it. */
export function writtenTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const cells = [head, ...rows].map((row) => row.map((cell) => cell.replaceAll("|", "\\|")));
  const widths = head.map((_, column) => Math.max(...cells.map((row) => row[column]?.length ?? 0)));
  const [first = "", ...lines] = cells.map(
    (row) => `| ${row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(" | ")} |`,
  );
  return [first, `| ${widths.map((width) => "-".repeat(width)).join(" | ")} |`, ...lines, ""].join("\n");
}

/** Links to other files, without the fragment. */
export function fileLinks(text: string): string[] {
  return [...text.matchAll(/\]\(([^)\s]+)\)/g)]
    .map(([, target = ""]) => target.replace(/#.*$/, ""))
    .filter((target) => target !== "" && !/^[a-z]+:/.test(target));
}

export interface CodeBlock {
  /** The line on which the block begins, from 1. */
  readonly line: number;
  readonly language: string;
  /** The word after the language; empty if there is none. */
  readonly mark: string;
  readonly code: string;
}

/** The fenced code blocks that begin at the start of a line, in order. */
export function codeBlocks(text: string): CodeBlock[] {
  const found = text.matchAll(/^```(\w+)(?: (\S+))?\n([^]*?)^```$/gm);
  return Array.from(found, ({ index, 1: language = "", 2: mark = "", 3: code = "" }) => {
    const line = text.slice(0, index).split("\n").length;
    return { line, language, mark, code };
  });
}

const UNITS: Readonly<Record<string, number>> = {
  "": 1,
  ms: 1,
  s: 1_000,
  min: 60_000,
  h: 3_600_000,
  KiB: 1024,
  MiB: 1024 * 1024,
};

/** "4 MiB" in bytes, "2 s" in milliseconds, "100" as it is. */
export function amount(text: string): number {
  const [, number = "", unit = ""] = /^(\d+)\s*(\w*)$/.exec(text) ?? [];
  const factor = UNITS[unit];
  if (number === "" || factor === undefined) throw new Error(`"${text}" is not a valid amount`);
  return Number(number) * factor;
}

/** The number, or product of numbers, that a source assigns to a constant, key or option, or that is its default. */
export function writtenNumber(name: string, source: string): number {
  const number = "(\\d[\\d_ *]*)";
  const assigned = new RegExp(`\\b${name}\\b(?:\\??: [A-Za-z]+)?\\s*(?:=|:|\\?\\?)\\s*${number}`);
  // Up to the line on which the next option begins.
  const declared = new RegExp(`^  ${name}: (?:(?!^  \\w)[^])*?\\.or\\(\\s*${number}`, "m");
  const found = (declared.exec(source) ?? assigned.exec(source))?.[1];
  if (found === undefined) throw new Error(`The source assigns no number to ${name}`);
  return found.split("*").reduce((product, factor) => product * Number(factor.trim().replaceAll("_", "")), 1);
}
