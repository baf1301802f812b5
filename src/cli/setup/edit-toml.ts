// Sets and removes a table in the text of a TOML file, such as [mcp_servers.catenary], with its subtables. The rest of
// the file stays as it is, byte for byte. Only tables with a header of their own are found; the caller checks the result.

import { parse, stringify } from "smol-toml";
import { isObject } from "../../core/values.ts";

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
  const tables: { keys: readonly string[]; start: number; end: number }[] = [];
  let state: LineState = { depth: 0 };
  let offset = 0;
  for (const line of text.split(/(?<=\n)/)) {
    const isInside = state.quote !== undefined || state.depth > 0;
    const keys = isInside ? undefined : headerKeys(line);
    if (keys !== undefined) tables.push({ keys, start: offset, end: offset });
    else state = scanLine(line, state);
    offset += line.length;
    const current = tables.at(-1);
    if (current !== undefined && (isInside || !/^\s*(?:#.*)?\s*$/.test(line))) current.end = offset;
  }
  return tables;
}

/** The keys of a header; undefined if the line is not one. */
function headerKeys(line: string): string[] | undefined {
  if (!/^\s*\[/.test(line)) return undefined;
  const keys: string[] = [];
  try {
    let inner: unknown = parse(line);
    for (;;) {
      if (Array.isArray(inner)) [inner] = inner as unknown[];
      const [entry] = isObject(inner) ? Object.entries(inner) : [];
      if (entry === undefined) return keys;
      keys.push(entry[0]);
      inner = entry[1];
    }
  } catch {
    return undefined;
  }
}

interface LineState {
  /** The delimiter of the string that has begun on an earlier line. */
  readonly quote?: string | undefined;
  /** How many arrays and inline tables have begun. */
  readonly depth: number;
}

/** The state after a line. */
function scanLine(line: string, { quote: open, depth: before }: LineState): LineState {
  let quote = open;
  let depth = before;
  for (let at = 0; at < line.length; at += 1) {
    const rest = line.slice(at);
    if (quote !== undefined) {
      if (quote.startsWith('"') && rest.startsWith("\\")) at += 1;
      else if (rest.startsWith(quote)) {
        at += quote.length - 1;
        quote = undefined;
      }
      continue;
    }
    if (rest.startsWith("#")) break;
    quote = /^(?:"""|'''|["'])/.exec(rest)?.[0];
    at += (quote?.length ?? 1) - 1;
    if (/^[[{]/.test(rest)) depth += 1;
    if (/^[\]}]/.test(rest)) depth -= 1;
  }
  // Only these go on in the next line.
  return { quote: quote?.length === 3 ? quote : undefined, depth };
}
