// A client without a connection, for tests of handlers and middleware: `fakeClient` calls a handler directly,
// `fakeContext` makes the context of a call, `fakeCaller` its caller. Both record notifications and requests to the client.

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
} from "../../../src/core/handler.ts";
import { newCaller, statelessCaller } from "../../../src/protocol/caller.ts";
import { McpError } from "../../../src/protocol/errors.ts";
import { checkParams } from "../../../src/protocol/params.ts";
import { NEWEST, revisionNamed } from "../../../src/protocol/revisions/index.ts";

/** A caller of the newest revision, unless a style is given. What can be derived from the given fields is derived. */
export function fakeCaller(given: Partial<Caller> = {}): Caller {
  const { style = NEWEST.style, capabilities = {}, info, key, ...identity } = given;
  const caller =
    style === "session" ? newCaller(style, capabilities, info) : statelessCaller(info, capabilities, identity);
  return { ...caller, ...identity, ...(key === undefined ? undefined : { key }) };
}

/** The handler behind the check of params that every front makes. Handlers rely on it. */
export function withParamsCheck(handler: Handler): Handler {
  return async (request, context) => {
    checkParams(request.method, request.params);
    return handler(request, context);
  };
}

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
  call(method: string, params?: Params): Promise<Result>;
  /** The error of a call; fails if the call has a result. */
  callError(method: string, params?: Params): Promise<McpError>;
  abort(reason?: Error): void;
}

export function fakeClient(handler: Handler, options: FakeClientOptions = {}): FakeClient {
  const notifications: Notification[] = [];
  const clientRequests: FakeClient["clientRequests"] = [];
  const stop = new AbortController();
  const context: Context = {
    revision: NEWEST.name,
    caller: fakeCaller(options.caller),
    signal: stop.signal,
    ...(options.logLevel === undefined ? undefined : { logLevel: options.logLevel }),
    ...(options.hangUp === undefined ? undefined : { hangUp: options.hangUp }),
    notify: (notification) => notifications.push(notification),
    ask: async (request, askOptions) => {
      clientRequests.push({ request, options: askOptions });
      return (await options.answer?.(request, askOptions)) ?? {};
    },
  };
  const call = (method: string, params: Params = {}): Promise<Result> => handler({ method, params }, context);
  return {
    notifications,
    clientRequests,
    context,
    call,
    callError: async (method, params) => {
      const error: unknown = await call(method, params).then(
        (result) => new Error(`The call has a result: ${JSON.stringify(result)}`),
        (thrown: unknown) => thrown,
      );
      if (error instanceof McpError) return error;
      throw error;
    },
    abort: (reason) => stop.abort(reason),
  };
}

export interface FakeContext {
  readonly context: Context;
  readonly notifications: Notification[];
  readonly clientRequests: Request[];
  abort(reason?: unknown): void;
}

export interface FakeContextOptions {
  readonly name?: string;
  readonly principal?: string;
  readonly revision?: string;
  readonly answer?: (request: Request) => Result | Promise<Result>;
}

export function fakeContext(options: FakeContextOptions = {}): FakeContext {
  const notifications: Notification[] = [];
  const clientRequests: Request[] = [];
  const stop = new AbortController();
  const context: Context = {
    revision: options.revision ?? NEWEST.name,
    caller: fakeCaller({
      style: revisionNamed(options.revision ?? NEWEST.name)?.style ?? NEWEST.style,
      capabilities: { elicitation: {}, sampling: {}, roots: {} },
      ...(options.name === undefined ? undefined : { info: { name: options.name, version: "1" } }),
      ...(options.principal === undefined ? undefined : { principal: options.principal }),
    }),
    signal: stop.signal,
    notify: (notification) => void notifications.push(notification),
    ask: async (request) => {
      clientRequests.push(request);
      if (options.answer === undefined) throw new Error("The client has no answer");
      return options.answer(request);
    },
  };
  const abort = (reason?: unknown): void => stop.abort(reason ?? new Error("The caller has left"));
  return { context, notifications, clientRequests, abort };
}

export const callRequest = (name: string, args?: Record<string, unknown>): Request => ({
  method: "tools/call",
  params: { name, ...(args === undefined ? undefined : { arguments: args }) },
});

export const textResult = (text: string): Result => ({ resultType: "complete", content: [{ type: "text", text }] });
