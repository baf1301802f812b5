// The routes of Traffic: the rows, the detail of one, and the stream of events.

import { callDetail, type DetailOptions } from "./call-detail.ts";
import type { Row } from "./call-row.ts";
import type { Feed } from "./feed.ts";
import { FilterError, parseFilter, type Filter } from "./filter.ts";
import { ApiError, EventStream, type ApiRequest, type Route } from "./route.ts";
import type { CallPage, FeedTopic } from "./types.ts";

export interface CallsRouteParts {
  readonly detail: DetailOptions;
  readonly feed: Feed;
}

const USUAL_LIMIT = 1_000;
/** A longer answer would keep the gateway from its calls for too long: read page by page. */
const MAX_LIMIT = 10_000;
/** A search in bodies gives way to calls after this time. */
const TURN_MS = 8;

const TOPICS: Readonly<Record<FeedTopic, true>> = {
  ...{ info: true, calls: true, overview: true, log: true },
  ...{ questions: true, catalogue: true, live: true, transcript: true },
};

export function callsRoutes({ detail, feed }: CallsRouteParts): Route[] {
  const { log } = detail;
  return [
    {
      method: "GET",
      path: "calls",
      about: `Rows: logical calls, newest first, each followed by what is nested under it. \`filter\`: only those that match. \`limit\`: about so many rows (${USUAL_LIMIT}, at most ${MAX_LIMIT}). \`before\`: only calls before this id, for the next page.`,
      run: async ({ query, signal }): Promise<CallPage> => {
        const filter = filterIn(query);
        const limit = numberIn(query, "limit", MAX_LIMIT) ?? USUAL_LIMIT;
        const before = numberIn(query, "before") ?? log.kept.next;
        return readPage(detail, filter, { limit, before, signal });
      },
    },
    {
      method: "GET",
      path: "calls/:id",
      about: "All that is kept of a row: request, result, steps, messages on the wire, stderr around that time.",
      run: ({ params }) => {
        const { id = "" } = params;
        const document = /^\d{1,15}$/.test(id) ? callDetail(Number(id), detail) : undefined;
        if (document !== undefined) return document;
        throw new ApiError(
          404,
          `There is no call ${id}`,
          `the last ${log.kept.limits.rows} are kept while the gateway runs`,
        );
      },
    },
    {
      method: "GET",
      path: "events",
      about:
        "A stream of events by topic. `topics`: their names, separated by commas. `filter`: of the rows. `after`: first the rows after this id.",
      run: ({ query, signal }) => {
        const topics = topicsIn(query);
        const filter = filterIn(query);
        const after = numberIn(query, "after");
        if (feed.isFull) throw new ApiError(503, "Too many pages follow this gateway", "close some of them");
        return new EventStream((sink) => {
          const listener = { topics, filter, sink };
          feed.add(listener, signal);
          if (after !== undefined && topics.has("calls")) void feed.sendRows(listener, log.kept.rows(after + 1));
        });
      },
    },
  ];
}

/** Logical calls, newest first, with what is nested under them, until there are enough rows. */
async function readPage(
  { log }: DetailOptions,
  filter: Filter,
  { limit, before, signal }: { readonly limit: number; readonly before: number; readonly signal: AbortSignal },
): Promise<CallPage> {
  const calls: Row[] = [];
  let turnEndsAt = performance.now() + TURN_MS;
  let id = Math.min(before, log.kept.next) - 1;
  for (; id >= log.kept.oldest && calls.length < limit; id -= 1) {
    if (performance.now() > turnEndsAt) {
      // Calls of clients come first.
      await new Promise((resolve) => setImmediate(resolve));
      turnEndsAt = performance.now() + TURN_MS;
      if (signal.aborted) break;
    }
    const row = log.row(id);
    // What is nested comes with its call, if that is still kept.
    if (row === undefined || (row.parent !== undefined && log.row(row.parent) !== undefined)) continue;
    if (filter.excludes(row, log.hasText)) continue;
    const all = [row, ...row.nested];
    if (all.some((one) => filter.matches(one, log.hasText))) for (const one of all) calls.push(log.refreshed(one));
  }
  return { calls, ...(id >= log.kept.oldest && { before: id + 1 }) };
}

function filterIn(query: URLSearchParams): Filter {
  try {
    return parseFilter(query.get("filter") ?? "");
  } catch (error) {
    throw error instanceof FilterError ? new ApiError(400, error.message) : error;
  }
}

function numberIn(query: ApiRequest["query"], name: string, max = Number.MAX_SAFE_INTEGER): number | undefined {
  const text = query.get(name);
  if (text === null) return undefined;
  if (!/^\d{1,15}$/.test(text)) throw new ApiError(400, `\`${name}\` must be a number`);
  return Math.min(Number(text), max);
}

function topicsIn(query: URLSearchParams): ReadonlySet<FeedTopic> {
  const names = (query.get("topics") ?? "calls").split(",").filter((name) => name !== "");
  for (const name of names) {
    if (!Object.hasOwn(TOPICS, name)) {
      throw new ApiError(400, `There is no topic ${name}; there are ${Object.keys(TOPICS).join(", ")}`);
    }
  }
  return new Set(names as FeedTopic[]);
}
