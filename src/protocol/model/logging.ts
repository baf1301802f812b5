// What travels beside a result: log messages, progress, and the wish to stop. Types only; the levels of a
// log message are in core/context.ts, because every request carries one.

import type { LogLevel } from "../../core/handler.ts";
import type { Id } from "../../jsonrpc/message.ts";
import type { RequestParams } from "./results.ts";

export interface LogMessageParams extends RequestParams {
  readonly level: LogLevel;
  readonly logger?: string;
  readonly data: unknown;
}

export interface ProgressParams extends RequestParams {
  readonly progressToken: Id;
  /** Grows with each message. */
  readonly progress: number;
  readonly total?: number;
  readonly message?: string;
}

export interface CancelledParams extends RequestParams {
  readonly requestId: Id;
  readonly reason?: string;
}
