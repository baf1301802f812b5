// The traffic of a gateway, for the console: the log of calls with its figures, the feed, and their routes, put together.

import { messageRedactor } from "../config/config-secrets.ts";
import type { ObservedCall } from "../chain/observe.ts";
import { isObject } from "../core/values.ts";
import { stepsOf, type DetailOptions } from "./call-detail.ts";
import { CallLog } from "./call-log.ts";
import type { Row } from "./call-row.ts";
import { callsRoutes } from "./calls-routes.ts";
import { Feed } from "./feed.ts";
import type { ConsoleHost } from "./host.ts";
import type { KeptLimits } from "./kept-calls.ts";
import type { Route } from "./route.ts";
import { TrafficStats } from "./traffic-stats.ts";
import type { LogLine, StepView } from "./types.ts";

export interface TrafficOptions {
  readonly limits?: KeptLimits;
  /** Whether callers must send a token. */
  readonly hasToken?: boolean;
  /** The questions that wait for clients have changed. */
  readonly onQuestions?: () => void;
  /** A request has ended. */
  readonly onRequestEnded?: (row: Row, call: ObservedCall) => void;
  /** A call of the operator has its row: the id of the call in the console. */
  readonly onOperatorRow?: (call: string, row: number) => void;
}

const LOG_BATCH_MS = 250;

export class Traffic {
  readonly log: CallLog;
  readonly stats: TrafficStats = new TrafficStats();
  readonly feed: Feed;
  readonly routes: readonly Route[];
  readonly #host: ConsoleHost;
  readonly #detail: DetailOptions;
  #stop: (() => void) | undefined;
  #stopLog: (() => void) | undefined;

  constructor(
    host: ConsoleHost,
    { limits, hasToken = false, onQuestions, onRequestEnded, onOperatorRow }: TrafficOptions = {},
  ) {
    this.#host = host;
    const { running } = host;
    const redactor = messageRedactor(() => running.config);
    this.log = new CallLog({
      ...(limits && { limits }),
      onlyServer: () => {
        const { upstreams } = running.gateway;
        return upstreams.size === 1 ? upstreams.keys().next().value : undefined;
      },
      hide: (text) => redactor().text(text),
      onBegan: (row, context) => {
        // A config that is in use for a moment has secrets that may be kept.
        redactor();
        this.stats.began(row, context);
        const { operatorCall } = context.caller;
        if (operatorCall !== undefined) onOperatorRow?.(operatorCall, row.id);
      },
      onEnded: (row, caller) => this.stats.ended(row, caller),
      hideParams: (params) => redactor().protocol(params),
      ...(onRequestEnded && { onRequestEnded }),
      ...(onQuestions && { onQuestions }),
    });
    this.feed = new Feed(this.log);
    this.feed.addSource("log", { onWatched: (isWatched) => this.#followLog(isWatched) });
    this.#detail = {
      log: this.log,
      redactor,
      stderr: (server) => host.log.recent(server).map(this.shownLine),
      target: () => ({ url: host.info().url, hasToken }),
    };
    this.routes = callsRoutes({ detail: this.#detail, feed: this.feed });
  }

  /** Observes calls from now on. */
  start(): void {
    this.#stop ??= this.#host.running.gateway.observe(this.log.reader);
  }

  close(): void {
    this.#stop?.();
    this.#stop = undefined;
    this.feed.close();
  }

  /** An entry of the log without secrets: a server may write them to stderr. */
  readonly shownLine = (line: LogLine): LogLine => ({ ...line, message: this.#detail.redactor().text(line.message) });

  /** The steps of a row. Undefined if they are no longer kept. */
  stepsOf(id: number): readonly StepView[] | undefined {
    const row = this.log.row(id);
    return row === undefined || this.log.kept.record(id) === undefined ? undefined : stepsOf(row, this.#detail);
  }

  /** The request of a row, to be made again. */
  requestOf(id: number): { readonly method: string; readonly params: unknown } | "dropped" | undefined {
    if (this.log.row(id) === undefined) return undefined;
    const request = this.log.kept.record(id)?.request;
    // Params that have too many values, or are not JSON, are a text that says so.
    return request !== undefined && isObject(request.params) ? request : "dropped";
  }

  #followLog(isWatched: boolean): void {
    this.#stopLog?.();
    this.#stopLog = undefined;
    if (!isWatched) return;
    let lines: LogLine[] = [];
    let timer: NodeJS.Timeout | undefined;
    const send = (): void => {
      timer = undefined;
      this.feed.publish("log", lines);
      lines = [];
    };
    const stop = this.#host.log.follow((line) => {
      lines.push(this.shownLine(line));
      timer ??= setTimeout(send, LOG_BATCH_MS);
    });
    this.#stopLog = () => {
      clearTimeout(timer);
      stop();
    };
  }
}
