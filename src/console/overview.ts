// What Home shows: needs, servers, clients, and the calls of the last hour. It is put together when someone asks, and
// published once a second while someone looks and it has changed.

import type { UpstreamStatus } from "../chain/upstream/options.ts";
import { unref } from "../core/async.ts";
import { defined } from "../core/values.ts";
import type { Feed } from "./feed.ts";
import type { ConsoleHost } from "./host.ts";
import { healthOf, type Needs } from "./needs.ts";
import type { ClientCard, Minutes, Overview, ServerCard } from "./types.ts";

/** What is known of the calls of a server. */
export type ServerTraffic = Pick<ServerCard, "calls" | "errors" | "p50" | "p95" | "lastAt">;

/** What a server offers, and what that costs a client. */
export type ServerTools = Pick<ServerCard, "tools" | "tokens" | "isEstimated">;

export interface OverviewOptions {
  readonly host: ConsoleHost;
  readonly needs: Needs;
  /** Undefined if no call got to the server yet. */
  readonly trafficOf: (server: string) => ServerTraffic | undefined;
  /** Undefined if the server was not listed yet. */
  readonly toolsOf: (server: string) => ServerTools | undefined;
  readonly clients: () => readonly ClientCard[];
  readonly minutes: () => Minutes;
  readonly calls: () => number;
}

const PUBLISH_MS = 1_000;

export class OverviewSource {
  readonly #options: OverviewOptions;
  #timer: NodeJS.Timeout | undefined;
  #published = "";

  constructor(options: OverviewOptions) {
    this.#options = options;
  }

  async read(): Promise<Overview> {
    const { needs, calls, clients, minutes } = this.#options;
    return {
      needs: await needs.all(),
      calls: calls(),
      servers: this.#servers(),
      clients: clients(),
      minutes: minutes(),
    };
  }

  /** Publishes what has changed, once a second, while pages follow it. */
  publishTo(feed: Pick<Feed, "addSource" | "publish">): void {
    const next = (): void => {
      const timer = unref(setTimeout(() => void this.#publish(feed).then(again, again), PUBLISH_MS));
      const again = (): void => {
        if (this.#timer === timer) next();
      };
      this.#timer = timer;
    };
    feed.addSource("overview", {
      first: () => this.read(),
      onWatched: (isWatched) => {
        clearTimeout(this.#timer);
        this.#timer = undefined;
        if (isWatched) next();
      },
    });
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  async #publish(feed: Pick<Feed, "publish">): Promise<void> {
    const overview = await this.read();
    const json = JSON.stringify(overview);
    if (json === this.#published) return;
    this.#published = json;
    feed.publish("overview", overview);
  }

  #servers(): readonly ServerCard[] {
    const { config, gateway } = this.#options.host.running;
    const cards = Object.entries(gateway.status()).map(([name, status]) => this.#card(name, status));
    const disabled = config.disabled.map((name) => ({ name, health: "disabled" as const, calls: 0, errors: 0 }));
    return [...cards, ...disabled];
  }

  #card(name: string, status: UpstreamStatus): ServerCard {
    const { host, trafficOf, toolsOf } = this.#options;
    const { config, signIns } = host.running;
    const { live } = config.upstreams.get(name)?.settings ?? {};
    return {
      name,
      health: healthOf(status, signIns.page(name) !== undefined),
      status,
      ...defined({ live: typeof live === "string" ? live : undefined }),
      calls: 0,
      errors: 0,
      ...trafficOf(name),
      ...toolsOf(name),
    };
  }
}
