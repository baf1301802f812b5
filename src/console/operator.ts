// The calls that the operator makes in the console: a stream of what happens during each, and the questions of servers
// that wait for the operator. A call ends when it is cancelled, or when the page has left.

import type { Notification, Params, Request } from "../core/handler.ts";
import { answerProblem } from "../client/client-requests.ts";
import { onAbort, unref } from "../core/async.ts";
import { ConnectionError } from "../core/errors.ts";
import { defined, errorMessage, isObject } from "../core/values.ts";
import { errorKind, McpError, toMcpError } from "../protocol/errors.ts";
import { checkParams } from "../protocol/params.ts";
import type { ConsoleHost } from "./host.ts";
import { callAsOperator, operatorContext } from "./operator-call.ts";
import { ApiError, EventStream, type ApiRequest, type EventSink } from "./route.ts";
import type { CallDetail, OperatorEvent, Question } from "./types.ts";

/** What of the call log a call that is made again needs. */
export interface LoggedRequests {
  /** The request of a row. "dropped" if it is no longer kept. Undefined if there is no such row. */
  requestOf(row: number): { readonly method: string; readonly params: unknown } | "dropped" | undefined;
}

/** What the operator can send. Subscriptions and tasks belong to a client that stays. */
const METHODS: readonly string[] = [
  "tools/call",
  "resources/read",
  "prompts/get",
  "completion/complete",
  "tools/list",
  "resources/list",
  "resources/templates/list",
  "prompts/list",
  "server/discover",
];

/** How many calls run at once. Each may be a process, and a page that is opened again and again leaves none behind. */
const MAX_CALLS = 50;
/** Progress and log messages are left out while a page has so much to read. */
const MAX_UNREAD_BYTES = 1024 * 1024;

/** How long a question waits for the name of its server. */
const MAX_NAMING_MS = 500;

type Answer =
  | { readonly action: "accept"; readonly content: Params }
  | { readonly action: "decline" }
  | { readonly action: "cancel" };

interface WaitingQuestion {
  readonly question: Question;
  readonly answer: (answer: Answer) => void;
}

export interface OperatorOptions {
  readonly host: ConsoleHost;
  readonly log?: LoggedRequests | undefined;
  /** Called with all questions that wait, when they have changed. */
  readonly onQuestions?: ((questions: readonly Question[]) => void) | undefined;
  /** The upstream that a tool, prompt or resource belongs to, if it is known. */
  readonly serverOf?: ((request: Request) => Promise<string | undefined>) | undefined;
}

export class Operator {
  readonly #options: OperatorOptions;
  readonly #calls = new Map<string, AbortController>();
  readonly #sends = new Map<string, (event: OperatorEvent) => void>();
  readonly #questions = new Map<string, WaitingQuestion>();
  #lastCall = 0;
  #lastQuestion = 0;

  constructor(options: OperatorOptions) {
    this.#options = options;
  }

  /** The questions that wait for the operator, oldest first. */
  get questions(): readonly Question[] {
    return [...this.#questions.values()].map(({ question }) => question);
  }

  /** `POST call`: makes a call and streams what happens. Throws an ApiError if the request is not one. */
  call({ body, signal }: ApiRequest): EventStream {
    const request = this.#requestOf(body);
    if (this.#calls.size >= MAX_CALLS) {
      throw new ApiError(503, `${MAX_CALLS} calls of the console run already`, "cancel one of them, or wait");
    }
    this.#lastCall += 1;
    const call = `c${this.#lastCall}`;
    const cancel = new AbortController();
    this.#calls.set(call, cancel);
    const forget = onAbort(signal, () => cancel.abort(new Error("the page has left")));
    return new EventStream((sink) => {
      void this.#run(call, request, cancel.signal, sink).finally(() => {
        forget();
        this.#calls.delete(call);
      });
    });
  }

  /** `POST cancel`. */
  cancel({ body: { call } }: ApiRequest): object {
    const running = typeof call === "string" ? this.#calls.get(call) : undefined;
    if (running === undefined) throw new ApiError(404, `No call ${quoted(call)} runs`, "it may have ended");
    running.abort(new Error("the operator has cancelled it"));
    return { call };
  }

  /** `POST answer`. */
  answer({ body: { question: id, action, content } }: ApiRequest): object {
    const waiting = typeof id === "string" ? this.#questions.get(id) : undefined;
    if (waiting === undefined) {
      throw new ApiError(404, `No question ${quoted(id)} waits`, "it was answered, or its call has ended");
    }
    if (action !== "accept" && action !== "decline" && action !== "cancel") {
      throw new ApiError(400, `"action" must be accept, decline or cancel; got ${quoted(action)}`);
    }
    if (content !== undefined && !isObject(content)) {
      throw new ApiError(400, '"content" must be an object with a value for each field of the form');
    }
    const { params } = waiting.question;
    const problem =
      action === "accept" && params["mode"] !== "url" ? answerProblem(params as never, { ...content }) : undefined;
    // The question goes on waiting, so that the operator can answer it again.
    if (problem !== undefined) throw new ApiError(400, `"content" does not fit the form: ${problem}`);
    waiting.answer(action === "accept" ? { action, content: { ...content } } : { action });
    return { question: id, action };
  }

  /** A call has its row in Traffic. */
  hasRow(call: string, row: number): void {
    this.#sends.get(call)?.({ type: "row", row });
  }

  /** Ends all calls. */
  close(): void {
    for (const cancel of this.#calls.values()) cancel.abort(new Error("the gateway ends"));
  }

  #requestOf(body: ApiRequest["body"]): Request {
    const { row } = body;
    const { method, params } = row === undefined ? body : this.#logged(row);
    if (typeof method !== "string" || !METHODS.includes(method)) {
      throw new ApiError(400, `The console cannot send ${quoted(method)}`, `it sends ${METHODS.join(", ")}`);
    }
    if (params !== undefined && !isObject(params)) throw new ApiError(400, '"params" must be an object');
    // A call that is made again begins anew: with other tokens, and without the answers to its questions.
    const { inputResponses: _answers, requestState: _state, _meta, ...rest } = (params ?? {}) as Params;
    const meta = row === undefined && isObject(_meta) ? _meta : {};
    const request = { method, params: { ...rest, _meta: { ...meta, progressToken: "console" } } };
    try {
      checkParams(method, request.params);
    } catch (error) {
      throw new ApiError(400, errorMessage(error));
    }
    return request;
  }

  #logged(row: unknown): { readonly method: string; readonly params: unknown } {
    const logged = typeof row === "number" ? this.#options.log?.requestOf(row) : undefined;
    if (logged === undefined) throw new ApiError(404, `There is no call ${quoted(row)}`, "it may be too long ago");
    if (logged !== "dropped") return logged;
    const hint = "the oldest bodies are dropped first; make the call by hand";
    throw new ApiError(409, "The request of this call is no longer kept, so it cannot be made again", hint);
  }

  async #run(call: string, request: Request, signal: AbortSignal, sink: EventSink): Promise<void> {
    const { host, serverOf } = this.#options;
    const { gateway, owner } = host.running;
    const send = (event: OperatorEvent): void => sink.send(event.type, event);
    const notify = (notification: Notification): void => {
      if (sink.bufferedBytes > MAX_UNREAD_BYTES) return;
      const event = eventOf(notification);
      if (event !== undefined) send(event);
    };
    const ask = async (params: Question["params"], asked: { readonly signal: AbortSignal }): Promise<Answer> => {
      // Lists of other servers may take long, and the question must not wait for them.
      const server = await Promise.race([serverOf?.(request).catch(() => undefined), afterMs(MAX_NAMING_MS)]);
      return this.#ask({ ...defined({ server }), method: "elicitation/create", params, call }, asked.signal, send);
    };
    const elicit = { form: ask, url: ask } as never;
    const start = performance.now();
    this.#sends.set(call, send);
    send({ type: "started", call });
    let outcome: Pick<Extract<OperatorEvent, { type: "ended" }>, "result" | "error">;
    try {
      const context = operatorContext({ owner, signal, call, elicit, notify });
      outcome = { result: await callAsOperator(gateway, request, context) };
    } catch (error) {
      outcome = { error: signal.aborted ? { kind: "cancelled", message: cancelMessage(signal) } : errorOf(error) };
    }
    this.#sends.delete(call);
    send({ type: "ended", ms: performance.now() - start, ...outcome });
    sink.end();
  }

  /** Waits for the answer of the operator. */
  #ask(
    asked: Omit<Question, "id" | "since">,
    signal: AbortSignal,
    send: (event: OperatorEvent) => void,
  ): Promise<Answer> {
    this.#lastQuestion += 1;
    const id = `q${this.#lastQuestion}`;
    const question: Question = { id, ...asked, since: Date.now() };
    return new Promise<Answer>((resolve) => {
      const finish = (answer: Answer): void => {
        if (!this.#questions.delete(id)) return;
        forget();
        this.#options.onQuestions?.(this.questions);
        send({ type: "answered", question: id });
        resolve(answer);
      };
      this.#questions.set(id, { question, answer: finish });
      const forget = onAbort(signal, () => finish({ action: "cancel" }));
      send({ type: "question", question });
      this.#options.onQuestions?.(this.questions);
    });
  }
}

/** A notification as the page gets it. Others, such as changed lists, have topics of their own. */
function eventOf({ method, params = {} }: Notification): OperatorEvent | undefined {
  if (method === "notifications/progress") {
    const { progress, total, message } = params;
    if (typeof progress !== "number") return undefined;
    return {
      type: "progress",
      progress,
      ...(typeof total === "number" && { total }),
      ...(typeof message === "string" && { message }),
    };
  }
  if (method !== "notifications/message") return undefined;
  return { type: "log", level: String(params["level"]), data: params["data"] };
}

function errorOf(error: unknown): NonNullable<CallDetail["error"]> {
  if (error instanceof ConnectionError) return { kind: error.kind, message: error.message };
  const { code, message, data } = error instanceof McpError ? error : toMcpError(error);
  return { code, message, ...defined({ kind: errorKind(error), data }) };
}

function afterMs(ms: number): Promise<undefined> {
  return new Promise((resolve) => void unref(setTimeout(() => resolve(undefined), ms)));
}

function cancelMessage({ reason }: AbortSignal): string {
  return `The call was cancelled: ${errorMessage(reason)}`;
}

function quoted(value: unknown): string {
  return value === undefined ? "(none)" : JSON.stringify(value);
}
