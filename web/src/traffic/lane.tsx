// The lane "When": where a call lies between the calls in sight, with the time of persons told apart from that of work.

import type { JSX } from "preact";
import { colorOf } from "../state.ts";
import type { Entry } from "./rows.ts";

/** What the lane shows, in milliseconds since 1970. */
export interface LaneWindow {
  readonly from: number;
  readonly to: number;
}

const MIN_MS = 10;

/** The window of the rows in sight. A few that take very long do not make all others invisible. */
export function windowOf(entries: readonly Entry[], now: number): LaneWindow {
  let from = Number.POSITIVE_INFINITY;
  let last = 0;
  const ends: number[] = [];
  for (const { row } of entries) {
    from = Math.min(from, row.at);
    last = Math.max(last, row.at);
    ends.push(row.endedAt ?? (row.status === "running" ? now : row.at + (row.ms ?? 0)));
  }
  ends.sort((one, other) => one - other);
  const most = Math.max(last, ends[Math.floor(ends.length * 0.9)] ?? last, from + MIN_MS);
  return { from, to: Math.max(most, Math.min(ends.at(-1) ?? last, from + 2.5 * (most - from))) };
}

export function Lane({ entry, window }: { readonly entry: Entry; readonly window: LaneWindow }): JSX.Element {
  const { row, nested } = entry;
  const { from, to } = window;
  const end = row.endedAt ?? (row.status === "running" ? to : row.at + (row.ms ?? 0));
  const isBad = row.status === "error";
  const isWait = row.kind === "question";
  const tone = isWait ? "wait" : isBad ? "work is-bad" : `work ${colorOf(row.server)}`;
  const part = (at: number): number => Math.max(0, Math.min(100, (100 * (at - from)) / (to - from)));
  const bar = (start: number, stop: number, name: string): JSX.Element => {
    const left = part(start);
    return <i key={start} class={`bar ${name}`} style={{ left: `${left}%`, width: `${part(stop) - left}%` }} />;
  };
  const waits = nested?.filter((child) => child.row.kind === "question") ?? [];
  return (
    <span class={row.status === "running" ? "lane is-running" : "lane"} aria-hidden="true">
      {waits.length === 0
        ? bar(row.at, end, tone)
        : partsOf(entry, end, waits).map(([a, b, wait]) => bar(a, b, wait ? "wait" : tone))}
    </span>
  );
}

/** Work and waiting, one after the other. */
function partsOf(entry: Entry, end: number, waits: readonly Entry[]): (readonly [number, number, boolean])[] {
  const parts: (readonly [number, number, boolean])[] = [];
  let at = entry.row.at;
  for (const { row } of waits) {
    const stop = row.endedAt ?? end;
    if (row.at > at) parts.push([at, row.at, false]);
    if (stop > Math.max(at, row.at)) parts.push([Math.max(at, row.at), stop, true]);
    at = Math.max(at, stop);
  }
  if (end > at) parts.push([at, end, false]);
  return parts;
}
