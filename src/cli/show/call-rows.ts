// Rows of Traffic as lines for a terminal: time, client, call, server, time taken, outcome; what is nested under a call is
// indented. Names come from clients and servers, so they are escaped.

import type { CallRow } from "../../console/types.ts";
import { OPERATOR } from "../../core/authentication.ts";
import { paint } from "../terminal/output.ts";
import { oneLine, pad, truncate, widthOf } from "../terminal/text.ts";

const CLIENT = 16;
const SERVER = 14;
const MIN_CALL = 20;
const MAX_CALL = 48;
const TAKEN = 8;
/** The time, the spaces between the columns, and what an outcome needs at least. */
const FIXED = 10 + 5 * 2 + 12;
/** Of a file. */
const USUAL_WIDTH = 120;

type Stream = NodeJS.WriteStream;

/** `width`: of the terminal; undefined for a file. */
export function callLine(row: CallRow, width: number | undefined, stream: Stream = process.stdout): string {
  const { at, server = "", parent, principal } = row;
  const client = principal === OPERATOR ? "you" : (row.client ?? "");
  const room = (width ?? USUAL_WIDTH) - FIXED - CLIENT - SERVER - TAKEN;
  const time = `${new Date(at).toTimeString().slice(0, 8)}.${Math.floor((at % 1_000) / 100)}`;
  const cells = [
    fit(parent === undefined ? client : "", CLIENT),
    fit(`${parent === undefined ? "" : "  └ "}${callName(row)}`, Math.max(MIN_CALL, Math.min(MAX_CALL, room))),
    fit(server, SERVER),
    taken(row).padStart(TAKEN),
  ].join("  ");
  const outcome = oneLine(outcomeOf(row));
  const left = width === undefined ? Infinity : Math.max(MIN_OUTCOME, width - time.length - widthOf(cells) - 4);
  return `${paint("dim", time, stream)}  ${cells}  ${paintOutcome(row, truncate(left, outcome), stream)}`;
}

const MIN_OUTCOME = 8;

function outcomeOf({ status, error, errorText = "" }: CallRow): string {
  if (status !== "error") return status;
  return errorText === "" ? (error ?? status) : `${error ?? status}: ${errorText}`;
}

function fit(text: string, width: number): string {
  return pad(width, truncate(width, oneLine(text)));
}

/** A tool by its name; others with their method. */
function callName({ method, name, kind }: CallRow): string {
  if (kind === "retry") return `retry of ${name ?? method}`;
  if (method === "tools/call" && name !== undefined) return name;
  return name === undefined ? method : `${method} ${name}`;
}

/** How long the call worked. The time until a person has answered is in parentheses. */
function taken({ ms, waitMs, kind, status }: CallRow): string {
  if (kind === "question") return waitMs === undefined ? "…" : `(${duration(waitMs)})`;
  if (ms === undefined) return status === "asked" ? "(…)" : "…";
  return duration(ms);
}

export function duration(ms: number): string {
  if (ms < 1) return "<1 ms";
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 100_000) return `${(ms / 1_000).toFixed(1)} s`;
  return `${Math.round(ms / 60_000)} min`;
}

function paintOutcome({ status }: CallRow, text: string, stream: Stream): string {
  if (status === "error") return paint("red", text, stream);
  if (status === "asked" || status === "cancelled") return paint("yellow", text, stream);
  return status === "ok" ? paint("green", text, stream) : text;
}
