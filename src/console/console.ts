// The console of a gateway: its parts, and the routes that they answer. It observes the calls of the gateway from `start`
// on, and keeps what the pages show of them.

import { defined } from "../core/values.ts";
import type { HttpRequest } from "../http/server/http-request.ts";
import { ConsoleAccess } from "./access.ts";
import { createApi } from "./api.ts";
import { ConsoleCatalogue } from "./catalogue.ts";
import { ChainCounters } from "./chain-picture.ts";
import { gatewayRoutes } from "./gateway-routes.ts";
import { HeldItems } from "./held-items.ts";
import type { ConsoleHost } from "./host.ts";
import { liveRoutes } from "./live-routes.ts";
import { LiveSessions } from "./live.ts";
import { Needs } from "./needs.ts";
import { Operator } from "./operator.ts";
import { overviewRoutes } from "./overview-routes.ts";
import { OverviewSource } from "./overview.ts";
import { createPages } from "./pages.ts";
import type { Route } from "./route.ts";
import { toolsRoutes } from "./tools-routes.ts";
import { Traffic } from "./traffic.ts";
import type { ConsoleInfo, Question } from "./types.ts";

export interface ConsoleOptions {
  /** Whether callers must send a token, for the commands that are shown. */
  readonly hasToken?: boolean;
}

/** How long changed questions wait for others. */
const QUESTIONS_MS = 50;

export class Console {
  /** For the pages and for the control socket. */
  readonly routes: readonly Route[];
  readonly #host: ConsoleHost;
  readonly #access = new ConsoleAccess();
  readonly #traffic: Traffic;
  readonly #operator: Operator;
  readonly #catalogue: ConsoleCatalogue;
  readonly #closed = new AbortController();
  readonly #hasToken: true | undefined;
  #keptSince: number | undefined;

  constructor(host: ConsoleHost, { hasToken = false }: ConsoleOptions = {}) {
    this.#hasToken = hasToken ? true : undefined;
    this.#host = host;
    const chain = new ChainCounters({ host, stepsOf: (row) => this.#traffic.stepsOf(row) });
    this.#traffic = new Traffic(host, {
      hasToken,
      onRequestEnded: (row, call) => chain.ended(row, call),
      onOperatorRow: (call, row) => this.#operator.hasRow(call, row),
      onQuestions: () => publishQuestions(),
    });
    const { feed, stats } = this.#traffic;
    const questions = (): readonly Question[] => [...this.#operator.questions, ...this.#traffic.log.questions()];
    let publishing: NodeJS.Timeout | undefined;
    const publishQuestions = (): void => {
      if (!feed.isWatched("questions")) return;
      publishing ??= setTimeout(() => {
        publishing = undefined;
        feed.publish("questions", questions());
      }, QUESTIONS_MS);
    };
    this.#operator = new Operator({
      host,
      log: this.#traffic,
      serverOf: (request) => this.#catalogue.serverOf(request),
      onQuestions: publishQuestions,
    });
    let catalogueVersion = 0;
    this.#catalogue = new ConsoleCatalogue(host, () => {
      catalogueVersion += 1;
      feed.publish("catalogue", { version: catalogueVersion });
    });
    const held = new HeldItems(host);
    const overview = new OverviewSource({
      host,
      needs: new Needs({ host, held, questions }),
      trafficOf: (server) => stats.server(server),
      toolsOf: (server) => this.#catalogue.counts().get(server),
      clients: () => stats.clients(),
      minutes: () => stats.minutes(),
      calls: () => stats.calls,
    });
    feed.addSource("info", { first: () => this.#info() });
    feed.addSource("questions", { first: questions });
    overview.publishTo(feed);
    this.routes = [
      { method: "GET", path: "info", about: "What runs, and how much is kept of its calls.", run: () => this.#info() },
      ...gatewayRoutes(host, this.#traffic.shownLine, this.#closed.signal),
      ...overviewRoutes({ host, overview, held, chain }),
      ...this.#traffic.routes.map((route) => this.#observing(route)),
      ...toolsRoutes(this.#catalogue, this.#operator),
      ...liveRoutes(host, new LiveSessions(host, feed)),
    ];
  }

  /** Observes calls from now on. */
  start(): void {
    this.#keptSince ??= Date.now();
    this.#traffic.start();
  }

  /** Ends the streams of pages and the calls that are made on them, and waits for no more bodies. */
  close(): void {
    this.#operator.close();
    this.#catalogue.close();
    this.#traffic.close();
    this.#closed.abort();
  }

  /** Answers requests of browsers; `base` is `/` or `/console/`. */
  pages(base: string, port: number): (request: HttpRequest) => boolean {
    const closed = this.#closed.signal;
    return createPages({ base, port, access: this.#access, api: createApi(this.routes, closed), closed });
  }

  /** The part of a link that opens the console once in one browser. */
  createToken(): string {
    return this.#access.createToken();
  }

  /** A gateway without pages observes calls from the first time that a command asks for them. */
  #observing(route: Route): Route {
    const run: Route["run"] = (request) => {
      this.start();
      return route.run(request);
    };
    return { ...route, run };
  }

  #info(): ConsoleInfo {
    const { rows, bytes } = this.#traffic.log.kept.limits;
    return {
      ...this.#host.info(),
      keptRows: rows,
      keptBytes: bytes,
      ...defined({ keptSince: this.#keptSince, hasToken: this.#hasToken }),
    };
  }
}
