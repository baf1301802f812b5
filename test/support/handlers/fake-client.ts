// A caller at a handler's desk, with no wire between: it asks, notes what it is told, and answers what it is
// asked. For tests of handlers.

import type { AskOptions, Caller, Context, LogLevel, Handler, Notification, Params, Request, Result } from "../../../src/core/handler.ts";
import { McpError } from "../../../src/protocol/errors.ts";
import { NEWEST } from "../../../src/protocol/revisions/index.ts";

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

// A caller without a wire, for tests of links: the context of one call, and all that came back by it.


export interface LoneCaller {
  readonly context: Context;
  /** What it was told, in order. */
  readonly said: Notification[];
  /** What it was asked, in order. */
  readonly asked: Request[];
  /** Goes away. */
  leave(reason?: unknown): void;
}

export interface LoneCallerOptions {
  readonly name?: string;
  readonly principal?: string;
  readonly revision?: string;
  readonly answer?: (question: Request) => Result | Promise<Result>;
}

export function loneCaller(options: LoneCallerOptions = {}): LoneCaller {
  const said: Notification[] = [];
  const asked: Request[] = [];
  const stop = new AbortController();
  const context: Context = {
    revision: options.revision ?? NEWEST.name,
    caller: {
      capabilities: { elicitation: {}, sampling: {}, roots: {} },
      ...(options.name === undefined ? undefined : { info: { name: options.name, version: "1" } }),
      ...(options.principal === undefined ? undefined : { principal: options.principal }),
    },
    signal: stop.signal,
    notify: (notification) => void said.push(notification),
    ask: async (question) => {
      asked.push(question);
      if (options.answer === undefined) throw new Error("Nobody answers");
      return options.answer(question);
    },
  };
  return { context, said, asked, leave: (reason) => stop.abort(reason ?? new Error("The caller has left")) };
}

export const call = (name: string, args?: Record<string, unknown>): Request => ({
  method: "tools/call",
  params: { name, ...(args === undefined ? undefined : { arguments: args }) },
});

export const text = (said: string): Result => ({ resultType: "complete", content: [{ type: "text", text: said }] });
