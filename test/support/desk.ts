// A caller at a handler's desk, with no wire between: it asks, notes what it is told, and answers what it is
// asked. For tests of handlers.

import type {
  AskOptions,
  Caller,
  Context,
  LogLevel,
  Handler,
  Notification,
  Params,
  Request,
  Result,
} from "../../src/core/handler.ts";
import { McpError } from "../../src/protocol/errors.ts";
import { NEWEST } from "../../src/protocol/revisions/index.ts";

export interface DeskOptions {
  readonly caller?: Partial<Caller>;
  readonly logLevel?: LogLevel;
  readonly answer?: (request: Request, options?: AskOptions) => Result | Promise<Result>;
  readonly hangUp?: (retryMs: number) => void;
}

export interface Desk {
  readonly told: Notification[];
  readonly asked: { readonly request: Request; readonly options: AskOptions | undefined }[];
  readonly context: Context;
  call(method: string, params?: Params): Promise<Result>;
  /** The error that a call ends with; fails where it ends with a result. */
  refused(method: string, params?: Params): Promise<McpError>;
  abort(reason?: Error): void;
}

export function desk(handler: Handler, options: DeskOptions = {}): Desk {
  const told: Notification[] = [];
  const asked: Desk["asked"] = [];
  const stop = new AbortController();
  const context: Context = {
    revision: NEWEST.name,
    caller: { capabilities: {}, ...options.caller },
    signal: stop.signal,
    ...(options.logLevel === undefined ? undefined : { logLevel: options.logLevel }),
    ...(options.hangUp === undefined ? undefined : { hangUp: options.hangUp }),
    notify: (notification) => told.push(notification),
    ask: async (request, askOptions) => {
      asked.push({ request, options: askOptions });
      return (await options.answer?.(request, askOptions)) ?? {};
    },
  };
  const call = (method: string, params: Params = {}): Promise<Result> => handler({ method, params }, context);
  return {
    told,
    asked,
    context,
    call,
    refused: async (method, params) => {
      const error: unknown = await call(method, params).then(
        (result) => new Error(`It was answered: ${JSON.stringify(result)}`),
        (thrown: unknown) => thrown,
      );
      if (error instanceof McpError) return error;
      throw error;
    },
    abort: (reason) => stop.abort(reason),
  };
}
