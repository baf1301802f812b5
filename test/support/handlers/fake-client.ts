// A caller at a handler's desk, with no wire between: it asks, notes what it is told, and answers what it is
// asked. For tests of handlers.

import type { AskOptions, Caller, Context, LogLevel, Handler, Notification, Params, Request, Result } from "../../../src/core/handler.ts";
import { McpError } from "../../../src/protocol/errors.ts";
import { NEWEST } from "../../../src/protocol/revisions/index.ts";

export interface FakeClientOptions {
  readonly caller?: Partial<Caller>;
  readonly logLevel?: LogLevel;
  readonly answer?: (request: Request, options?: AskOptions) => Result | Promise<Result>;
  readonly hangUp?: (retryMs: number) => void;
}

export interface FakeClient {
  readonly notifications: Notification[];
  readonly clientRequests: { readonly request: Request; readonly options: AskOptions | undefined }[];
  readonly context: Context;
  callRequest(method: string, params?: Params): Promise<Result>;
  /** The error that a call ends with; fails where it ends with a result. */
  callError(method: string, params?: Params): Promise<McpError>;
  abort(reason?: Error): void;
}

export function fakeClient(handler: Handler, options: FakeClientOptions = {}): FakeClient {
  const told: Notification[] = [];
  const asked: FakeClient["clientRequests"] = [];
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
    notifications,
    clientRequests,
    context,
    callRequest,
    callError: async (method, params) => {
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


export interface FakeContext {
  readonly context: Context;
  /** What it was told, in order. */
  readonly notifications: Notification[];
  /** What it was asked, in order. */
  readonly clientRequests: Request[];
  /** Goes away. */
  abort(reason?: unknown): void;
}

export interface FakeContextOptions {
  readonly name?: string;
  readonly principal?: string;
  readonly revision?: string;
  readonly answer?: (question: Request) => Result | Promise<Result>;
}

export function fakeContext(options: FakeContextOptions = {}): FakeContext {
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
  return { context, notifications, clientRequests, abort: (reason) => stop.abort(reason ?? new Error("The caller has left")) };
}

export const call = (name: string, args?: Record<string, unknown>): Request => ({
  method: "tools/call",
  params: { name, ...(args === undefined ? undefined : { arguments: args }) },
});

export const textResult = (said: string): Result => ({ resultType: "complete", content: [{ type: "text", text: said }] });
