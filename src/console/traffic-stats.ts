// Figures of the calls: by minute and server for an hour, times of the last calls of each server, and the clients. What
// counts as a call of a server is what does work there: no lists, pings, polls or questions. A client's calls are all
// that it asks for but pings, polls and notifications.

import type { Caller, Context } from "../core/handler.ts";
import type { Row } from "./call-row.ts";
import type { ClientCard, Minutes, ServerCard } from "./types.ts";

const MINUTES = 60;
const MINUTE_MS = 60_000;
/** Times of the last calls of a server. */
const TIMES = 1_000;
const MAX_CLIENTS = 500;
/** Servers come from the config, but a gateway behind this one may name many. */
const MAX_SERVERS = 1_000;

class ServerFigures {
  readonly times = new Float64Array(TIMES);
  timed = 0;
  calls = 0;
  errors = 0;
  lastAt: number | undefined = undefined;
  readonly callsByMinute: Uint32Array = new Uint32Array(MINUTES);
  readonly errorsByMinute: Uint32Array = new Uint32Array(MINUTES);
  /** The number of the last minute that is counted. */
  minute = 0;

  /** Makes room for the minutes that have begun. */
  moveTo(minute: number): void {
    for (let next = Math.max(this.minute + 1, minute - MINUTES + 1); next <= minute; next += 1) {
      this.callsByMinute[next % MINUTES] = 0;
      this.errorsByMinute[next % MINUTES] = 0;
    }
    this.minute = Math.max(this.minute, minute);
  }
}

interface Client {
  /** Not the key of the caller, which may be as good as its session. */
  readonly id: string;
  readonly name: string;
  readonly version: string | undefined;
  readonly principal: string | undefined;
  readonly revision: string;
  readonly since: number;
  calls: number;
  errors: number;
  lastAt: number;
  last: string;
  ended: AbortSignal | undefined;
  listening: number;
}

/** No work for a server, however a gateway answers it. */
const NO_WORK = new Set(["ping", "server/discover", "subscriptions/listen", "logging/setLevel"]);

function isWork({ method }: Row): boolean {
  return !NO_WORK.has(method) && !method.endsWith("/list") && !method.startsWith("notifications/");
}

export class TrafficStats {
  readonly #servers = new Map<string, ServerFigures>();
  /** The last one is the one that called last. */
  readonly #clients = new Map<string, Client>();
  readonly #now: () => number;
  #lastClient = 0;
  /** How many logical calls of clients have begun. */
  calls = 0;

  constructor(now: () => number = Date.now) {
    this.#now = now;
  }

  /** A logical call of a client has begun. */
  began(row: Row, { caller, revision, session }: Pick<Context, "caller" | "revision" | "session">): void {
    const { method } = row;
    this.calls += 1;
    if (method === "ping" || method.startsWith("notifications/")) return;
    const client = this.#client(caller, revision);
    client.ended = session?.ended ?? client.ended;
    client.lastAt = row.at;
    client.last = row.name ?? method;
    client.calls += 1;
    if (method === "subscriptions/listen") client.listening += 1;
  }

  /** A logical call, or one of code, has ended. */
  ended(row: Row, caller: Caller): void {
    const isError = row.status === "error";
    const client = this.#clients.get(caller.key);
    if (client !== undefined && row.kind === "call") {
      if (isError) client.errors += 1;
      if (row.method === "subscriptions/listen") client.listening = Math.max(0, client.listening - 1);
    }
    if (!isWork(row)) return;
    const figures = this.#figures(row.server ?? "");
    figures.calls += 1;
    figures.lastAt = row.endedAt;
    const minute = Math.floor(this.#now() / MINUTE_MS);
    figures.moveTo(minute);
    figures.callsByMinute[minute % MINUTES]! += 1;
    if (isError) {
      figures.errors += 1;
      figures.errorsByMinute[minute % MINUTES]! += 1;
    }
    if (row.ms === undefined) return;
    figures.times[figures.timed % TIMES] = row.ms;
    figures.timed += 1;
  }

  /** Undefined if no call got to the server. */
  server(name: string): Pick<ServerCard, "calls" | "errors" | "p50" | "p95" | "lastAt"> | undefined {
    const figures = this.#servers.get(name);
    if (figures === undefined) return undefined;
    const { calls, errors, times, timed, lastAt } = figures;
    const sorted = times.slice(0, Math.min(timed, TIMES)).toSorted();
    return {
      ...{ calls, errors },
      ...(sorted.length > 0 && { p50: quantile(sorted, 0.5), p95: quantile(sorted, 0.95) }),
      ...(lastAt !== undefined && { lastAt }),
    };
  }

  minutes(): Minutes {
    const last = Math.floor(this.#now() / MINUTE_MS);
    const calls: Record<string, number[]> = {};
    const errors: Record<string, number[]> = {};
    for (const [name, figures] of this.#servers) {
      figures.moveTo(last);
      const order = Array.from({ length: MINUTES }, (_, at) => (last + 1 + at) % MINUTES);
      if (!figures.callsByMinute.some((count) => count > 0)) continue;
      calls[name] = order.map((at) => figures.callsByMinute[at] ?? 0);
      errors[name] = order.map((at) => figures.errorsByMinute[at] ?? 0);
    }
    return { last: last * MINUTE_MS, calls, errors };
  }

  /** The one that called last comes first. */
  clients(): readonly ClientCard[] {
    return [...this.#clients.values()].toReversed().map((client) => {
      const { id, name, version, principal, revision, since, calls, errors, lastAt, last, ended, listening } = client;
      return {
        ...{ key: id, name, revision, since, calls, errors, lastAt, last },
        ...(version !== undefined && { version }),
        ...(principal !== undefined && { principal }),
        isConnected: listening > 0 || ended?.aborted === false,
      };
    });
  }

  #figures(server: string): ServerFigures {
    let figures = this.#servers.get(server);
    if (figures === undefined) {
      if (this.#servers.size >= MAX_SERVERS) return this.#servers.get("") ?? this.#create("");
      figures = this.#create(server);
    }
    return figures;
  }

  #create(server: string): ServerFigures {
    const figures = new ServerFigures();
    this.#servers.set(server, figures);
    return figures;
  }

  #client(caller: Caller, revision: string): Client {
    const { key, info, principal } = caller;
    let client = this.#clients.get(key);
    // The order of the map is that of the last calls.
    this.#clients.delete(key);
    client ??= {
      ...{
        id: String((this.#lastClient += 1)),
        principal,
        revision,
        name: info?.title?.toString() || info?.name || "unknown client",
      },
      ...{ version: info?.version, since: this.#now(), calls: 0, errors: 0, lastAt: 0, last: "" },
      ...{ ended: undefined, listening: 0 },
    };
    this.#clients.set(key, client);
    if (this.#clients.size > MAX_CLIENTS) {
      const [oldest = ""] = this.#clients.keys();
      this.#clients.delete(oldest);
    }
    return client;
  }
}

function quantile(sorted: Float64Array, part: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0;
}
