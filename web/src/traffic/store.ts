// Keeps the rows of Traffic up to date from the feed, from the first visit of the page on, and tells it at most once for
// each frame. Older rows are read in pages until all that the gateway keeps are here.

import { signal } from "@preact/signals";
import { FilterError, parseFilter, type Filter } from "../../../src/console/filter.ts";
import type { CallPage, CallRow } from "../../../src/console/types.ts";
import { get } from "../api.ts";
import { connection, follow } from "../feed.ts";
import { info } from "../state.ts";
import { rootOf, Rows, View, type Entry } from "./rows.ts";

/** Rows in one page of older ones. A page is read and taken in within a few milliseconds. */
const PAGE = 2_000;
const KEPT = 100_000;
const RETRY_MS = 3_000;
/** How often the gateway is asked again for a filter that looks into bodies. */
const SEARCH_AGAIN_MS = 3_000;

export const rows: Rows = new Rows(KEPT);
export const view: View = new View(rows);
/** Changes when the page must draw again. */
export const drawn = signal(0);
export const isPaused = signal(false);
/** How many rows have come while it is paused. */
export const missed = signal(0);
/** `before`: older rows are still read. */
export const loading = signal<"first" | "before" | undefined>("first");
export const filterError = signal<FilterError | undefined>(undefined);
/** How long the last filter took, in milliseconds. */
export const filterMs = signal(0);

let isStarted = false;
let filter: Filter | undefined;
let filterText = "";
let reading = 0;
let searchTimer: ReturnType<typeof setTimeout> | undefined;
let isDrawWanted = false;

/** Begins to follow the calls, once. */
export function startCalls(): void {
  if (isStarted) return;
  isStarted = true;
  follow("calls", take, () => void readAll());
}

export function pause(wanted: boolean): void {
  if (isPaused.value === wanted) return;
  isPaused.value = wanted;
  missed.value = 0;
  if (!wanted) void apply();
}

/** Uses a filter. Words that cannot be read are left out, and the first says why. */
export function useFilterText(text: string): void {
  if (text === filterText) return;
  filterText = text;
  let readable = text;
  let problem: FilterError | undefined;
  for (;;) {
    try {
      filter = parseFilter(readable);
      break;
    } catch (error) {
      if (!(error instanceof FilterError)) throw error;
      problem ??= error;
      readable = readable.slice(0, error.at) + readable.slice(error.at + error.length);
    }
  }
  filterError.value = problem;
  void apply();
}

/** Folds or unfolds what is nested under a row. */
export function fold(entry: Entry, isOpen: boolean): void {
  entry.isOpen = isOpen;
  view.update(new Set([rootOf(entry)]), []);
  drawSoon();
}

async function apply(): Promise<void> {
  clearTimeout(searchTimer);
  const used = filter;
  const start = performance.now();
  let found: ReadonlySet<number> | undefined;
  if (used?.needsBodies === true) {
    found = await search(used.text);
    if (used !== filter) return;
    searchTimer = setTimeout(() => void apply(), SEARCH_AGAIN_MS);
  }
  if (!(await view.use(used, found))) return;
  filterMs.value = performance.now() - start;
  drawSoon();
}

/** The calls that the gateway finds: only it has the bodies. */
async function search(text: string): Promise<ReadonlySet<number>> {
  try {
    const found = await readPage({ filter: text, limit: 2_000 });
    return new Set(found.calls.map(({ id, parent }) => parent ?? id));
  } catch {
    return new Set();
  }
}

function take(batch: readonly CallRow[]): void {
  const { touched, gone } = rows.apply(batch);
  const firstId = rows.trim();
  if (isPaused.peek()) {
    missed.value += batch.length;
    return;
  }
  if (firstId !== undefined) view.trim(firstId);
  view.update(touched, gone);
  drawSoon();
}

function drawSoon(): void {
  if (isDrawWanted) return;
  isDrawWanted = true;
  requestAnimationFrame(() => {
    isDrawWanted = false;
    drawn.value += 1;
  });
}

/** Reads the rows that were missed since the feed was open before, the newest first. */
async function readAll(): Promise<void> {
  reading += 1;
  const own = reading;
  rows.max = info.peek()?.keptRows ?? KEPT;
  const known = rows.newestId;
  let before: number | undefined;
  let isFirst = true;
  loading.value = rows.size === 0 ? "first" : "before";
  try {
    for (;;) {
      // Each page begins where the one before it ends.
      const page = await readPage({ limit: PAGE, before });
      if (own !== reading) return;
      const highest = page.calls.reduce((most, { id }) => Math.max(most, id), 0);
      // A gateway that was started again counts from one.
      if (isFirst && highest < known) {
        rows.clear();
        void view.use(filter);
      }
      isFirst = false;
      take(page.calls);
      loading.value = "before";
      before = page.before;
      if (before === undefined || rows.newestId - before >= rows.max) break;
      // What was known before is not read again, but for the last calls, which may have ended meanwhile.
      if (before < known && rows.get(before - 1) !== undefined) break;
    }
  } catch {
    // When the connection is lost, the feed says so, and reads again when it is back.
    if (own === reading) setTimeout(() => own === reading && connection.peek() === "open" && void readAll(), RETRY_MS);
  }
  if (own === reading) loading.value = undefined;
  drawSoon();
}

function readPage(query: {
  readonly limit: number;
  readonly filter?: string;
  readonly before?: number | undefined;
}): Promise<CallPage> {
  return get<CallPage>("calls", query);
}
