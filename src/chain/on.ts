// `on`: a middleware for one kind of message, with its types. Requests of callers, questions that an end asks of its
// caller, and notifications of an end each pass here; whatever else goes by is left alone. A question may come in
// either form: as an ask in mid-call, or as an `input_required` result, whose rounds are then driven here, so that
// the function sees every question once (the front makes rounds of them again where its caller needs that).
// Not seen: what a task asks, which stands in the task itself.

import type { AskOptions, Context } from "../core/handler.ts";
import { ConnectionError } from "../core/errors.ts";
import type { Handler, Middleware, Notification, Request, Result } from "../core/handler.ts";
import { goOn } from "../dialogue/calls/input-required.ts";
import { isObject } from "../core/objects.ts";
import { McpError } from "../protocol/errors.ts";
import type { Asks, MethodName, Methods, Notifications } from "../protocol/methods.ts";
import type { CreateTaskResult, InputRequiredResult } from "../protocol/model/index.ts";
import {
  ASK_NAMES,
  NOTIFICATION_NAMES,
  noSuchMethod,
  REQUEST_NAMES,
  type AskName,
  type NotificationName,
} from "./method-names.ts";

/** A request of one of these methods, with its params. */
export type RequestOf<M extends MethodName> = {
  [K in M]: { readonly method: K; readonly params: Methods[K]["params"] };
}[M];

interface Otherwise {
  "tools/call": InputRequiredResult | CreateTaskResult;
  "prompts/get": InputRequiredResult;
  "resources/read": InputRequiredResult;
}

/** What may come of a request: its result, or, by `resultType`, a question to its caller or a task. */
export type ResultOf<M extends MethodName> = {
  [K in M]: Methods[K]["result"] | (K extends keyof Otherwise ? Otherwise[K] : never);
}[M];

/** A question to the caller of one of these methods, with its params. */
export type QuestionOf<A extends AskName> = { [K in A]: { readonly method: K; readonly params: Asks[K]["params"] } }[A];
export type AnswerOf<A extends AskName> = Asks[A]["result"];

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

/** Sees the question on its way to the caller, and the answer; may answer itself. */
export type OnAsk<A extends AskName> = (
  question: QuestionOf<A>,
  context: Context,
  next: (question: QuestionOf<A>, context: Context) => Promise<AnswerOf<A>>,
) => Promise<AnswerOf<A>> | AnswerOf<A>;

/** Passes the notification on by calling `next`, or drops it by not doing so. */
export type OnNotification<N extends NotificationName> = (
  notification: NotificationOf<N>,
  context: Context,
  next: (notification: NotificationOf<N>, context: Context) => void,
) => void;

/** What a function for these methods is given and gives. */
export type On<Name extends MethodName | AskName | NotificationName> = [Name] extends [MethodName]
  ? OnRequest<Name>
  : [Name] extends [AskName]
    ? OnAsk<Name>
    : [Name] extends [NotificationName]
      ? OnNotification<Name>
      : never;

/**
 * A middleware for the messages of one method, or of several.
 *
 * @example
 * on("tools/call", async (request, context, next) => {
 *   console.error(request.params.name);
 *   return next(request, context);
 * });
 */
export function on<Name extends MethodName | AskName | NotificationName>(
  method: Name | readonly Name[],
  run: On<Name>,
): Middleware {
  const methods: ReadonlySet<string> = new Set<string>([method].flat());
  if (typeof run !== "function")
    throw new TypeError("on() takes a function: on(method, (message, context, next) => ...)");
  const middleware = familyOf(methods)(methods, run as never);
  return Object.defineProperty(middleware, "name", { value: `on ${[...methods].join(" ")}` });
}

type Family = (methods: ReadonlySet<string>, run: never) => Middleware;

function familyOf(methods: ReadonlySet<string>): Family {
  if (methods.size === 0) throw new TypeError("on() takes at least one method");
  const families = [...FAMILIES].filter(([names]) => [...methods].some((method) => names.has(method)));
  const [found] = families;
  const known = [...REQUEST_NAMES, ...ASK_NAMES, ...NOTIFICATION_NAMES];
  const wrong = [...methods].find((method) => !known.includes(method));
  if (wrong === "notifications/cancelled") {
    throw new TypeError("on(): a cancellation is not told as a notification; look at `context.signal`");
  }
  if (found === undefined || wrong !== undefined) throw new TypeError(`on(): ${noSuchMethod(wrong, known)}`);
  if (families.length > 1) {
    throw new TypeError("on(): requests, questions and notifications each need a function of their own");
  }
  return found[1];
}

function onRequests(methods: ReadonlySet<string>, run: Middleware): Middleware {
  return (request, context, next) =>
    methods.has(request.method) ? run(request, context, next) : next(request, context);
}

type Ask = (
  question: Request,
  context: Context,
  next: (question: Request, context: Context) => Promise<Result>,
) => Promise<Result> | Result;

function onAsks(methods: ReadonlySet<string>, run: Ask): Middleware {
  return async (request, context, next) => {
    const asking = new Asking(methods, run, context);
    const result = await asking.drive(request, next);
    // Whoever asked was told that it got no answer, but that was the function's fault and not its caller's.
    if (asking.accident !== undefined) throw asking.accident.error;
    return result;
  };
}

/** The questions of one request. */
class Asking {
  accident: { readonly error: unknown } | undefined;
  readonly #methods: ReadonlySet<string>;
  readonly #run: Ask;
  readonly #outer: Context;

  constructor(methods: ReadonlySet<string>, run: Ask, outer: Context) {
    this.#methods = methods;
    this.#run = run;
    this.#outer = outer;
  }

  async drive(request: Request, next: Handler): Promise<Result> {
    const inner: Context = { ...this.#outer, ask: (question, options) => this.#ask(question, options) };
    const result = await next(request, inner);
    return this.#isAsked(result) ? goOn(result, next, request, inner) : result;
  }

  async #ask(question: Request, options: AskOptions | undefined): Promise<Result> {
    if (!this.#methods.has(question.method)) return this.#outer.ask(question, options);
    const failures: unknown[] = [];
    try {
      return await this.#run(question, this.#outer, async (passed, context) => {
        try {
          return await context.ask(passed, options);
        } catch (error) {
          failures.push(error);
          throw error;
        }
      });
    } catch (error) {
      // An error that a function chooses is an answer; one that happened to it is not.
      if (!failures.includes(error) && !isMeant(error)) this.accident ??= { error };
      throw error;
    }
  }

  #isAsked(result: Result): boolean {
    const questions = result.resultType === "input_required" ? result["inputRequests"] : undefined;
    if (!isObject(questions)) return false;
    return Object.values(questions).some((one) => isObject(one) && this.#methods.has(String(one["method"])));
  }
}

type Notify = (
  notification: Notification,
  context: Context,
  next: (notification: Notification, context: Context) => void,
) => void;

function onNotifications(methods: ReadonlySet<string>, run: Notify): Middleware {
  return (request, context, next) =>
    next(request, {
      ...context,
      // What it returns is looked at where the link is put into a chain: an async function may fail late.
      notify: (notification) =>
        methods.has(notification.method)
          ? run(notification, context, (passed, toward) => toward.notify(passed))
          : context.notify(notification),
    });
}

const FAMILIES: ReadonlyMap<ReadonlySet<string>, Family> = new Map<ReadonlySet<string>, Family>([
  [REQUEST_NAMES, onRequests],
  [ASK_NAMES, onAsks],
  [NOTIFICATION_NAMES, onNotifications],
]);

function isMeant(error: unknown): boolean {
  try {
    return error instanceof McpError || error instanceof ConnectionError;
  } catch {
    return false;
  }
}
