// Sets and removes a table in the text of a TOML file, such as [mcp_servers.catenary], with its subtables. The rest of
// the file stays as it is, byte for byte. Only tables with a header of their own are found; the caller checks the result.

import { parse, stringify } from "smol-toml";
import { isObject } from "../../core/values.ts";

/** Each line in a long string that looks like a header takes a try to parse what is before it. */
const MAX_TRIES = 200;

/** Sets a table, or with undefined removes it. */
export function editToml(text: string, path: readonly string[], value: object | undefined): string {
  const eol = text.includes("\r\n") ? "\r\n" : "\n";
  const tables = findTables(text).filter(({ keys }) => path.every((key, at) => keys[at] === key));
  const table = value === undefined ? "" : writeTable(path, value).replaceAll("\n", eol);
  const [first] = tables;
  if (first === undefined) {
    if (table === "") return text;
    const gap = text === "" ? "" : /\n\r?\n$/.test(text) ? "" : text.endsWith("\n") ? eol : eol + eol;
    return `${text}${gap}${table}`;
  }
  let edited = text;
  for (const { start, end } of tables.toReversed()) {
    const isFirst = start === first.start;
    const before = edited.slice(0, start);
    // The blank lines before a removed table go with it.
    const head = isFirst && table !== "" ? before + table : before.replace(/(?<=^|\n)(?:[ \t]*\r?\n)+$/, "");
    edited = head + edited.slice(end);
  }
  return edited;
}

function writeTable(path: readonly string[], value: object): string {
  const nested = path.reduceRight<object>((inner, key) => ({ [key]: inner }), value);
  return `${stringify(nested).trim()}\n`;
}

interface Table {
  readonly keys: readonly string[];
  readonly start: number;
  /** After its last line that is neither blank nor a comment. */
  readonly end: number;
}

function findTables(text: string): Table[] {
  const tables: Table[] = [];
  const headers = text.matchAll(/(?<![^\n])[ \t]*\[[^\n]*\][ \t]*(?:#[^\n]*)?(?=\n|$)/g);
  let start = 0;
  let tries = 0;
  const isWhole = (part: string): boolean => {
    if (isToml(part)) return true;
    tries += 1;
    if (tries > MAX_TRIES) throw new Error("it has long strings with lines such as [section]; change it by hand");
    return false;
  };
  for (const at of [...Array.from(headers, ({ index }) => index), text.length]) {
    const part = text.slice(start, at);
    // What looks like a header in a string or an array of several lines is none: the part before it is not complete.
    if (!isWhole(part)) continue;
    const lines = part.split(/(?<=\n)/);
    let last = lines.findLastIndex((line) => !/^\s*(?:#[^\n]*)?\s*$/.test(line));
    // The last line of a long string may look like a comment.
    while (!isWhole(lines.slice(0, last + 1).join(""))) last += 1;
    const end = start + lines.slice(0, last + 1).join("").length;
    tables.push({ keys: headerKeys(lines[0] ?? ""), start, end });
    start = at;
  }
  return tables;
}

function isToml(text: string): boolean {
  try {
    parse(text);
    return true;
  } catch {
    return false;
  }
}

/** The keys of a header; none if the line is not one. */
function headerKeys(line: string): string[] {
  const keys: string[] = [];
  let inner: unknown = /^\s*\[/.test(line) ? parse(line) : undefined;
  for (;;) {
    if (Array.isArray(inner)) [inner] = inner as unknown[];
    const [entry] = isObject(inner) ? Object.entries(inner) : [];
    if (entry === undefined) return keys;
    keys.push(entry[0]);
    inner = entry[1];
  }
}
