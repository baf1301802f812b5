// The life of a call, recorded once for all that want to know of it: `log`, `audit`, `metrics`, `trace` and `--trace`
// read it, and so can programs, by `observe()` at a place in a chain or by `gateway.observe()`. A record refers to
// requests and results, which are immutable. What takes time, such as bytes, is computed when it is read.

import { Buffer } from "node:buffer";
import { copyContext, isCancelled, onCancel } from "../core/cancel.ts";
import { ConnectionError } from "../core/errors.ts";
import { boolean, func, type Field } from "../core/fields.ts";
import type {
  CalledItem,
  Caller,
  Context,
  Handler,
  Middleware,
  Notification,
  Observer,
  RawPassage,
  Request,
  Result,
  StepRecorder,
  WireObserver,
  WirePassage,
} from "../core/handler.ts";
import { shownHead } from "../core/http-head.ts";
import { checkFields, OptionPlace } from "../core/options.ts";
import { reportListenerError } from "../core/listeners.ts";
import { withoutQuery } from "../core/secrets.ts";
import { errorMessage } from "../core/values.ts";
import { McpError } from "../protocol/errors.ts";
import { Recorder, type Step } from "./steps.ts";

/** What reads the lives of calls. It has the methods for what it wants to know. */
export interface CallReader<State = unknown> {
  /** A call begins. */
  readonly begin?: ((call: ObservedCall<State>) => void | Promise<void>) | undefined;
  /** The call notifies its caller: progress, a log message, a change. */
  readonly notified?: ((call: ObservedCall<State>, notification: Notification) => void) | undefined;
  /** The call asks its caller. */
  readonly asked?: ((call: ObservedCall<State>, question: ObservedQuestion) => void) | undefined;
  /** The caller has answered, or the question has failed. */
  readonly answered?: ((call: ObservedCall<State>, question: ObservedQuestion) => void) | undefined;
  /** The caller no longer wants the result. */
  readonly cancelled?: ((call: ObservedCall<State>) => void) | undefined;
  /** The call has ended. */
  readonly end?: ((call: ObservedCall<State>) => void | Promise<void>) | undefined;
  /**
   * A message of the call passes, on the side of its client or of an upstream. The response to the client comes after
   * `end`. What is not on any wire, such as a call to a server in this process, has no messages.
   */
  readonly passed?: ((call: ObservedCall<State>, passage: WirePassage) => void) | undefined;
  /** The call runs code, in code mode. The calls that the code makes have `run` as `context.run`. */
  readonly ran?: ((call: ObservedCall<State>, run: string) => void) | undefined;
  /** Whether `steps` of a call are recorded. Default: false. */
  readonly steps?: boolean | undefined;
}

/** A request to the caller during a call. */
export interface ObservedQuestion {
  readonly request: Request;
  readonly result?: Result | undefined;
  readonly error?: unknown;
  /** How long the answer took. Undefined until then. */
  readonly ms?: number | undefined;
}

/** The life of one call, as it is seen at one place. Its fields change until the call has ended. */
export class ObservedCall<State = unknown> implements Observer, WireObserver {
  /** As it got to this place. */
  readonly request: Request;
  readonly context: Context;
  /** By the clock of `performance.now()`. */
  readonly startedAt: number = performance.now();
  /** The upstream that got the request last, such as `notes` or `team.notes`. Undefined if there is only one. */
  upstream: string | undefined = undefined;
  /** The request in the own names of the upstream that got it last. */
  sent: Request | undefined = undefined;
  /** Undefined if the call has failed. */
  result: Result | undefined = undefined;
  /** What was thrown, if the call has failed. */
  error: unknown = undefined;
  /** Running until the call has ended. It is cancelled if it failed after its caller had cancelled it. */
  status: "running" | "answered" | "failed" | "cancelled" = "running";
  /**
   * How many notifications and questions there were, and how long the call has waited for answers, all together.
   * Undefined unless the reader has a method for them.
   */
  messages: { notifications: number; questions: number; waitedMs: number } | undefined = undefined;
  /** What the reader keeps with the call. Each reader has a record of its own. */
  state!: State;
  readonly #recorder: Recorder | undefined;
  /** Undefined if nothing wants to know what passes. */
  readonly wire: WireObserver | undefined;
  readonly #reader: CallReader;
  /** What a gateway inside of this place knows. */
  #entered: Context | undefined = undefined;
  #ms: number | undefined = undefined;
  #forgetCancel: (() => void) | undefined = undefined;

  constructor(reader: CallReader<State>, request: Request, context: Context) {
    this.#reader = reader as CallReader;
    this.request = request;
    this.context = context;
    // If steps are recorded already, the reader gets those that follow here.
    const outer = context.observer?.recorder as Recorder | undefined;
    this.#recorder = outer ?? (reader.steps === true ? new Recorder() : undefined);
    this.wire = reader.passed === undefined && context.observer?.wire === undefined ? undefined : this;
  }

  /** With the part of the gateway that it sees, if there are parts. */
  get caller(): Caller {
    return (this.#entered ?? this.context).caller;
  }

  /** The item that the request names, as the caller sees it. Undefined if it names none. */
  get item(): CalledItem | undefined {
    return this.context.item ?? this.#entered?.item;
  }

  /** The tool, the prompt or the URI. A URI is without its query and user info, which may be secret. */
  get name(): string | undefined {
    const { name, uri } = this.request.params;
    if (typeof name === "string") return name;
    return typeof uri === "string" ? withoutQuery(uri) : undefined;
  }

  /** How long the call took, or has taken so far. A call that has ended is measured when this is first read. */
  get ms(): number {
    if (this.#ms !== undefined) return this.#ms;
    const ms = performance.now() - this.startedAt;
    if (this.status !== "running") this.#ms = ms;
    return ms;
  }

  /** `complete`, another type of result such as `input_required`, `tool_error`, `failed`, `cancelled` or `running`. */
  get outcome(): string {
    if (this.status !== "answered") return this.status;
    const { isError, resultType = "complete" } = this.result ?? {};
    if (isError === true) return "tool_error";
    return typeof resultType === "string" ? resultType : errorMessage(resultType);
  }

  /** Of an answer, such as `tool_not_found`, or its code if it has none; or why there was no answer, such as `timeout`. */
  get errorKind(): string | number | undefined {
    const { kind, code } = failureOf(this.error);
    return kind ?? code;
  }

  /** The code of an error that is an answer. */
  get errorCode(): number | undefined {
    return failureOf(this.error).code;
  }

  /** The length of the result as JSON. */
  get bytes(): number {
    return this.result === undefined ? 0 : Buffer.byteLength(jsonOf(this.result));
  }

  /** The length of the params of the request as JSON. */
  get requestBytes(): number {
    return Buffer.byteLength(jsonOf(this.request.params));
  }

  /** What the transforms, middleware and upstreams that follow got and returned. Empty unless a reader wants steps. */
  get steps(): readonly Step[] {
    return this.#recorder?.steps ?? [];
  }

  get recorder(): StepRecorder | undefined {
    return this.#recorder;
  }

  routed(upstream: string | undefined, request: Request): void {
    this.upstream = upstream;
    this.sent = request;
    this.context.observer?.routed(upstream, request);
  }

  entered(context: Context): void {
    // A middleware may name another item later.
    if (this.#entered?.item === undefined) this.#entered = context;
    this.context.observer?.entered?.(context);
  }

  ran(run: string): void {
    this.#reader.ran?.(this, run);
    this.context.observer?.ran?.(run);
  }

  passed(passage: RawPassage): void {
    const { http } = passage;
    this.#reader.passed?.(this, { ...passage, http: http && shownHead(http) });
    // Who observes further outside watches the client too.
    if (passage.side === "upstream") this.context.observer?.wire?.passed(passage);
  }

  /** Passes the request, or the one that takes its place, on to `next`. */
  run(next: Handler, request: Request = this.request): Promise<Result> {
    return this.#start(next, request).then(
      (result) => {
        this.result = result;
        const read = this.#end("answered");
        return read === undefined ? result : read.then(() => result);
      },
      (error: unknown) => {
        this.error = error;
        const read = this.#end(isCancelled(this.context) ? "cancelled" : "failed");
        if (read === undefined) throw error;
        return read.then(() => Promise.reject(error));
      },
    );
  }

  #start(next: Handler, request: Request): Promise<Result> {
    try {
      const begun = this.#reader.begin?.(this);
      return begun === undefined ? this.#pass(next, request) : begun.then(() => this.#pass(next, request));
    } catch (error) {
      return Promise.reject(error);
    }
  }

  #pass(next: Handler, request: Request): Promise<Result> {
    const { context } = this;
    const { notified, asked, answered, cancelled, passed } = this.#reader;
    if (passed !== undefined) context.wire?.reportTo(this, this.#reader);
    if (cancelled !== undefined) this.#forgetCancel = onCancel(context, () => this.#reader.cancelled?.(this));
    const watches = notified !== undefined || asked !== undefined || answered !== undefined;
    return next(request, copyContext(context, watches ? this.#watchMessages() : { observer: this }));
  }

  #watchMessages(): Pick<Context, "observer" | "notify" | "ask"> {
    const { context } = this;
    const reader = this.#reader;
    const messages = (this.messages = { notifications: 0, questions: 0, waitedMs: 0 });
    return {
      observer: this,
      notify: (notification) => {
        messages.notifications += 1;
        reader.notified?.(this, notification);
        context.notify(notification);
      },
      ask: async (request, options) => {
        const question: Mutable<ObservedQuestion> = { request };
        const askedAt = performance.now();
        messages.questions += 1;
        reader.asked?.(this, question);
        try {
          return (question.result = await context.ask(request, options));
        } catch (error) {
          question.error = error;
          throw error;
        } finally {
          question.ms = performance.now() - askedAt;
          messages.waitedMs += question.ms;
          reader.answered?.(this, question);
        }
      },
    };
  }

  #end(status: "answered" | "failed" | "cancelled"): void | Promise<void> {
    this.#forgetCancel?.();
    this.status = status;
    return this.#reader.end?.(this);
  }
}

type Mutable<Of> = { -readonly [Name in keyof Of]: Of[Name] };

/** A middleware that reports each call to a reader, which may refuse and delay it. */
export function readBy<State>(reader: CallReader<State>): Middleware {
  return (request, context, next) => new ObservedCall(reader, request, context).run(next);
}

/**
 * A middleware that reports each call at its place in the chain to the reader. The reader cannot refuse, change or delay
 * a call, and what it throws is only reported.
 *
 * @example
 * chain(observe({ end: (call) => console.log(call.name, call.upstream, call.outcome, call.ms) })).to(server)
 */
export function observe<State>(reader: CallReader<State>): Middleware {
  const middleware = readBy(guardedReader(reader as CallReader));
  return Object.defineProperty(middleware, "name", { value: "observe" });
}

const READER: Readonly<Record<keyof CallReader, Field>> = {
  ...{ begin: func(), notified: func(), asked: func(), answered: func(), cancelled: func(), end: func() },
  ...{ passed: func(), ran: func() },
  steps: boolean(""),
};

/** Called several times in each call, so it makes no arrays of its arguments. */
function guardedMethod(name: string, method: (call: unknown, more: unknown) => unknown): typeof method {
  return (call, more) => {
    try {
      const returned = method(call, more);
      if (returned instanceof Promise) returned.catch((error: unknown) => reportListenerError(error, name));
    } catch (error) {
      reportListenerError(error, name);
    }
    return undefined;
  };
}

function guardedReader(reader: CallReader): CallReader {
  checkFields(reader, READER, new OptionPlace("observe()"));
  const guarded = Object.keys(READER).flatMap((name) => {
    const method = reader[name as keyof CallReader] as ((call: unknown, more: unknown) => unknown) | undefined;
    if (typeof method !== "function") return [];
    const bound = method.bind(reader);
    return [[name, guardedMethod(name, bound)]];
  });
  const { end, ...others } = Object.fromEntries(guarded) as CallReader;
  const measureAndEnd = (call: ObservedCall): void => {
    // The reader may keep the call, and read how long it took later.
    void call.ms;
    void end?.(call);
  };
  return { ...others, end: measureAndEnd, steps: reader.steps };
}

/** The readers of a running gateway, around its handler. */
export class GatewayReaders {
  /** Undefined if there are no readers. */
  handler: Handler | undefined;
  readonly #inner: Handler;
  #readers: readonly Middleware[] = [];

  constructor(inner: Handler) {
    this.#inner = inner;
  }

  /** Returns a function that removes the reader. Calls that it has seen begin are still reported to it. */
  add<State>(reader: CallReader<State>): () => void {
    const added = observe(reader);
    this.#set([...this.#readers, added]);
    return () => this.#set(this.#readers.filter((reader) => reader !== added));
  }

  #set(readers: readonly Middleware[]): void {
    this.#readers = readers;
    const wrap = (next: Handler, reader: Middleware): Handler => {
      return (request, context) => reader(request, context, next);
    };
    this.handler = readers.length === 0 ? undefined : readers.reduce(wrap, this.#inner);
  }
}

/** Sends a request to an upstream, and reports that. `name` is undefined if the gateway has only this upstream. */
export function sendTo(
  name: string | undefined,
  handler: Handler,
  request: Request,
  context: Context,
): Promise<Result> {
  const { observer } = context;
  if (observer === undefined) return handler(request, context);
  observer.routed(name, request);
  const passedOn =
    name === undefined ? context : copyContext(context, { observer: new NestedObserver(name, observer) });
  const recorded = observer.recorder?.record("upstream", name ?? "upstream", request, passedOn, handler);
  return recorded ?? handler(request, passedOn);
}

/** Puts the name of a gateway before the names of its upstreams. A class, since a closure for each call takes longer. */
class NestedObserver implements Observer, WireObserver {
  readonly recorder: StepRecorder | undefined;
  readonly wire: WireObserver | undefined;
  readonly #name: string;
  readonly #outer: Observer;

  constructor(name: string, outer: Observer) {
    this.recorder = outer.recorder;
    this.wire = outer.wire && this;
    this.#name = name;
    this.#outer = outer;
  }

  routed(upstream: string | undefined, request: Request): void {
    this.#outer.routed(this.#nameOf(upstream), request);
  }

  passed(passage: RawPassage): void {
    this.#outer.wire?.passed({ ...passage, upstream: this.#nameOf(passage.upstream) });
  }

  #nameOf(upstream: string | undefined): string {
    return upstream === undefined ? this.#name : `${this.#name}.${upstream}`;
  }
}

function failureOf(error: unknown): { readonly kind?: string | undefined; readonly code?: number } {
  try {
    if (error instanceof McpError) return { kind: error.kind, code: error.code };
    if (error instanceof ConnectionError) return { kind: error.kind };
  } catch {
    // The thrown value may be a Proxy whose traps throw.
  }
  return {};
}

/** Never throws. */
export function jsonOf(value: unknown): string {
  try {
    return JSON.stringify(value) ?? "";
  } catch {
    return "(not serializable)";
  }
}
