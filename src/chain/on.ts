// `on`: creates typed middleware from a function for some methods: requests of callers, requests to the client, or
// notifications to the client. The upstream may send a request to the client during a call, or put it into an
// `input_required` result. In both cases it is passed to the function, once. If the caller is stateless, requests that
// the function passes on are put into an `input_required` result again on their way to the caller. Requests that are
// part of a task's state are not passed to the function.

import { copyContext } from "../core/cancel.ts";
import { ConnectionError } from "../core/errors.ts";
import type { AskOptions, Context, Middleware, Notification, Request, Result } from "../core/handler.ts";
import { isObject } from "../core/values.ts";
import { answerInputRequired } from "../dialogue/calls/input-required.ts";
import { McpError } from "../protocol/errors.ts";
import type {
  ClientMethods,
  CreateTaskResult,
  InputRequiredResult,
  MethodName,
  Methods,
  Notifications,
} from "../protocol/model/index.ts";
import { CLIENT_METHOD_NAMES, NOTIFICATION_NAMES, noSuchMethod, REQUEST_NAMES } from "./method-names.ts";

type ClientMethodName = keyof ClientMethods;
/** Without cancellations, which middleware gets through `context.signal`. */
type NotificationName = Exclude<keyof Notifications, "notifications/cancelled">;

/** A request of one of these methods, with its params. */
export type RequestOf<M extends MethodName> = {
  [K in M]: { readonly method: K; readonly params: Methods[K]["params"] };
}[M];

/** Without the fields of any name, so that `"content" in result` tells the results of a method apart. */
type Named<Of> = { [Key in keyof Of as string extends Key ? never : Key]: Of[Key] };

/** Results in addition to the usual one, by method. */
interface OtherResults {
  "tools/call": Named<InputRequiredResult> | Named<CreateTaskResult>;
  "prompts/get": Named<InputRequiredResult>;
  "resources/read": Named<InputRequiredResult>;
}

/** The result of a request: the usual one or, depending on `resultType`, a request for input or a task. */
export type ResultOf<M extends MethodName> = {
  [K in M]: Methods[K]["result"] | (K extends keyof OtherResults ? OtherResults[K] : never);
}[M];

/** A request to the client of one of these methods, with its params. */
export type ClientRequestOf<A extends ClientMethodName> = {
  [K in A]: { readonly method: K; readonly params: ClientMethods[K]["params"] };
}[A];
export type ClientResultOf<A extends ClientMethodName> = ClientMethods[A]["result"];

export type NotificationOf<N extends NotificationName> = {
  [K in N]: undefined extends Notifications[K]
    ? { readonly method: K; readonly params?: Exclude<Notifications[K], undefined> }
    : { readonly method: K; readonly params: Notifications[K] };
}[N];

export type OnRequest<M extends MethodName> = (
  request: RequestOf<M>,
  context: Context,
  next: (request: RequestOf<M>, context: Context) => Promise<ResultOf<M>>,
) => Promise<ResultOf<M>> | ResultOf<M>;

/** Gets a request to the client. Calls `next` to get the client's answer, or returns its own. */
export type OnClientRequest<A extends ClientMethodName> = (
  question: ClientRequestOf<A>,
  context: Context,
  next: (question: ClientRequestOf<A>, context: Context) => Promise<ClientResultOf<A>>,
) => Promise<ClientResultOf<A>> | ClientResultOf<A>;

/** Passes the notification on by calling `next`, or drops it. */
export type OnNotification<N extends NotificationName> = (
  notification: NotificationOf<N>,
  context: Context,
  next: (notification: NotificationOf<N>, context: Context) => void,
) => void;

/** The type of the function for these methods. */
export type On<Name extends MethodName | ClientMethodName | NotificationName> = [Name] extends [MethodName]
  ? OnRequest<Name>
  : [Name] extends [ClientMethodName]
    ? OnClientRequest<Name>
    : [Name] extends [NotificationName]
      ? OnNotification<Name>
      : never;

/**
 * Creates middleware for the messages of one method, or of several.
 *
 * @example
 * on("tools/call", async (request, context, next) => {
 *   console.error(request.params.name);
 *   return next(request, context);
 * });
 */
export function on<Name extends MethodName | ClientMethodName | NotificationName>(
  method: Name | readonly Name[],
  run: On<Name>,
): Middleware {
  const methods: ReadonlySet<string> = new Set<string>([method].flat());
  if (typeof run !== "function")
    throw new TypeError("on() takes a function: on(method, (message, context, next) => ...)");
  const middleware = creatorFor(methods)(methods, run as never);
  return Object.defineProperty(middleware, "name", { value: `on ${[...methods].join(" ")}` });
}

type CreateMiddleware = (methods: ReadonlySet<string>, run: never) => Middleware;

function creatorFor(methods: ReadonlySet<string>): CreateMiddleware {
  if (methods.size === 0) throw new TypeError("on() takes at least one method");
  const matching = [...CREATORS].filter(([names]) => [...methods].some((method) => names.has(method)));
  const [entry] = matching;
  const known = [...REQUEST_NAMES, ...CLIENT_METHOD_NAMES, ...NOTIFICATION_NAMES];
  const wrong = [...methods].find((method) => !known.includes(method));
  if (wrong === "notifications/cancelled") {
    throw new TypeError("on(): a cancellation is not passed as a notification; use `context.signal`");
  }
  if (entry === undefined || wrong !== undefined) throw new TypeError(`on(): ${noSuchMethod(wrong, known)}`);
  if (matching.length > 1) {
    throw new TypeError("on(): requests, requests to the client and notifications each need a function of their own");
  }
  return entry[1];
}

function onRequests(methods: ReadonlySet<string>, run: Middleware): Middleware {
  return (request, context, next) =>
    methods.has(request.method) ? run(request, context, next) : next(request, context);
}

type AnswerClientRequest = (
  question: Request,
  context: Context,
  next: (question: Request, context: Context) => Promise<Result>,
) => Promise<Result> | Result;

function onClientRequests(methods: ReadonlySet<string>, run: AnswerClientRequest): Middleware {
  return async (request, context, next) => {
    /** An exception of the function that was not a deliberate answer. */
    let accident: { readonly error: unknown } | undefined;
    const ask = async (question: Request, options?: AskOptions): Promise<Result> => {
      if (!methods.has(question.method)) return context.ask(question, options);
      const failures: unknown[] = [];
      const askClient = (passed: Request, context: Context): Promise<Result> =>
        context.ask(passed, options).catch((error: unknown) => {
          failures.push(error);
          throw error;
        });
      try {
        return await run(question, context, askClient);
      } catch (error) {
        // An McpError or ConnectionError is a deliberate answer.
        if (!failures.includes(error) && !isDeliberate(error)) accident ??= { error };
        throw error;
      }
    };
    const inner = copyContext(context, { ask });
    const first = await next(request, inner);
    const result = asksClient(first, methods) ? await answerInputRequired(first, next, request, inner) : first;
    // The upstream got an error as the answer and may have handled it, but the caller must get the function's error.
    if (accident !== undefined) throw accident.error;
    return result;
  };
}

/** Whether the result asks for the client's input with one of the methods. */
function asksClient({ resultType, inputRequests }: Result, methods: ReadonlySet<string>): boolean {
  if (resultType !== "input_required" || !isObject(inputRequests)) return false;
  return Object.values(inputRequests).some(
    (inputRequest) => isObject(inputRequest) && methods.has(String(inputRequest["method"])),
  );
}

type HandleNotification = (
  notification: Notification,
  context: Context,
  next: (notification: Notification, context: Context) => void,
) => void;

function onNotifications(methods: ReadonlySet<string>, run: HandleNotification): Middleware {
  return (request, context, next) =>
    next(request, {
      ...context,
      // If `run` is an async function, compose.ts handles its rejection.
      notify: (notification) =>
        methods.has(notification.method)
          ? run(notification, context, (passed, target) => target.notify(passed))
          : context.notify(notification),
    });
}

const CREATORS: ReadonlyMap<ReadonlySet<string>, CreateMiddleware> = new Map<ReadonlySet<string>, CreateMiddleware>([
  [REQUEST_NAMES, onRequests],
  [CLIENT_METHOD_NAMES, onClientRequests],
  [NOTIFICATION_NAMES, onNotifications],
]);

function isDeliberate(error: unknown): boolean {
  try {
    return error instanceof McpError || error instanceof ConnectionError;
  } catch {
    // The thrown value may be a Proxy whose traps throw.
    return false;
  }
}
