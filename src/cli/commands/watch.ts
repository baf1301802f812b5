// `catenary watch`: the live list of Traffic in a terminal. Each row is printed when it has ended, or waits for an answer;
// at a terminal, those that run are not redrawn, so that the lines can be scrolled, copied and piped.

import { FilterError, filterRows, parseFilter, type Filter } from "../../console/filter.ts";
import type { CallRow } from "../../console/types.ts";
import { boolean } from "../../core/fields.ts";
import { beforeSeparator, EXIT, Interruption, UnreachableError, UsageError } from "../command.ts";
import { command, type Command } from "../define.ts";
import { parseFlags, type Flags, type ParsedLine } from "../flags.ts";
import { callLine } from "../show/call-rows.ts";
import { followGateway } from "../serve/control.ts";
import { CHOICE, GATEWAY_FLAG, theGateway } from "../target/running-gateway.ts";
import { printStatus, printTrusted, terminalWidth } from "../terminal/output.ts";
import { oneLine, sanitizeJson } from "../terminal/text.ts";

/** For the help of commands with a filter. */
export const FILTER_ABOUT: string = `FILTER: words that a call must have, such as
  server:github tool:create_* status:error dur:>500ms client:cursor
  text:"not found" -method:ping since:10m
A - excludes what matches, a * matches any characters, and commas separate alternatives.`;

const FLAGS = {
  ...GATEWAY_FLAG,
  json: boolean("Prints each row as a line of JSON, whenever it has changed: a [`CallRow`](console-api.md#documents)."),
};

export const watchCommand: Command = command({
  name: "watch",
  usage: "[FILTER...] [--gateway WHICH] [--json]",
  about: `Prints the calls of a running gateway as they happen, a line each when it has ended: time, client, call, server,
how long it took, how it ended. Retries, polls of tasks, questions and the calls of code are indented under their call;
the time that a person took to answer is in parentheses.

${FILTER_ABOUT}`,
  flags: FLAGS,
  notes: CHOICE,
  exits: "0 the gateway has ended; 1 wrong command line; 4 no gateway runs; 130 after Ctrl-C.",
  words: Infinity,
  parse: (args) => parseFilterLine("watch", args, FLAGS),
  async run({ words, values }) {
    const filter = readFilter(words);
    const { socket, url } = await theGateway(values.gateway);
    const interruption = new Interruption(() => undefined);
    const show = values.json === true ? printRows : lines(filter);
    // The first event of `info` says that the stream is open.
    const query = new URLSearchParams({ topics: "calls,info", filter: filter.text });
    let isCut = false;
    try {
      await followGateway(
        socket,
        `/events?${query.toString()}`,
        (event, data) => {
          if (event === "info") printStatus(`Calls through ${oneLine(url)}; Ctrl-C ends this`);
          if (event === "calls") show(data as readonly CallRow[]);
          if (event === "cut") isCut = true;
        },
        interruption.signal,
      );
    } finally {
      interruption.dispose();
    }
    if (interruption.signal.aborted) return EXIT.interrupted;
    if (isCut)
      throw new UnreachableError("This command has read too slowly, so the gateway has cut it off; filter more");
    return EXIT.ok;
  },
});

/** A word such as `-method:ping` is part of the filter, and no flag. */
export function parseFilterLine<const F extends Flags>(name: string, args: readonly string[], flags: F): ParsedLine<F> {
  const own = beforeSeparator(args);
  const isExcluded = (word: string): boolean => /^-[a-z]+:/i.test(word);
  const { words, values } = parseFlags(
    name,
    [...own.filter((word) => !isExcluded(word)), ...args.slice(own.length)],
    flags,
  );
  return { words: [...words, ...own.filter(isExcluded)], values };
}

/**
 * Words of the command line are words of the filter; a shell has taken the quotes of `text:"not found"` away. Throws a
 * UsageError for one that cannot be read.
 */
export function readFilter(words: readonly string[]): Filter {
  const quoted = words.map((word) => {
    const [, key, text = ""] = /^(-?(?:text|error):)([^"]*\s[^"]*)$/i.exec(word) ?? [];
    return key === undefined || /\s-?[a-z]+:/i.test(text) ? word : `${key}"${text}"`;
  });
  try {
    return parseFilter(quoted.join(" "));
  } catch (error) {
    throw error instanceof FilterError ? new UsageError(error.message) : error;
  }
}

function printRows(rows: readonly CallRow[]): void {
  for (const row of rows) printTrusted(`${sanitizeJson(JSON.stringify(row))}\n`);
}

/** So many rows are remembered, so that each is printed once. */
const MAX_KNOWN = 10_000;

/** Prints a logical call that has ended with all that is nested under it, and what comes later below it. */
function lines(filter: Filter): (rows: readonly CallRow[]) => void {
  const printed = new Set<number>();
  /** What waits for its call to end, by the id of the call. */
  const waiting = new Map<number, Map<number, CallRow>>();
  return (rows) => {
    for (const row of rows) {
      const logical = row.parent ?? row.id;
      const group = waiting.get(logical) ?? new Map<number, CallRow>();
      group.set(row.id, row);
      waiting.set(logical, group);
    }
    for (const [logical, group] of waiting) {
      const call = group.get(logical);
      const isOver = call === undefined ? printed.has(logical) : call.endedAt !== undefined || call.status === "asked";
      if (!isOver) continue;
      waiting.delete(logical);
      // The gateway has filtered them; but a row that matched while the call ran may not any more. Only the gateway has bodies.
      const all = [...group.values()].toSorted((one, other) => one.id - other.id);
      const wanted = filter.needsBodies ? all : filterRows(all, filter);
      for (const row of wanted) {
        const isNews = row.status === "asked" || row.endedAt !== undefined;
        if (!isNews || (printed.has(row.id) && row.id !== logical)) continue;
        printed.add(row.id);
        printTrusted(`${callLine(row, terminalWidth(process.stdout))}\n`);
      }
    }
    for (const id of printed) {
      if (printed.size <= MAX_KNOWN) break;
      printed.delete(id);
    }
  };
}
