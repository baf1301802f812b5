// Reads the calls of a gateway and makes them the rows of Traffic. Requests that belong together are one logical call:
// retries with the answers to its questions, polls of its task, the questions themselves, and the calls of code that it
// runs are nested under it. What is kept of them, and for how long, is in kept-calls.ts.

import type { CallReader, ObservedCall, ObservedQuestion } from "../chain/observe.ts";
import type { Caller, Context, Params, Request, Result, WirePassage } from "../core/handler.ts";
import { copyFirstChars } from "../core/text.ts";
import { OPERATOR } from "../core/authentication.ts";
import { defined, errorMessage, isObject } from "../core/values.ts";
import { isTaskFinished } from "../protocol/tasks.ts";
import { askedKey, clientName, firstText, isOfAll, isRequest, nameOf } from "./call-facts.ts";
import { CallRecord, type LoggedCall } from "./call-record.ts";
import { countedLength, estimateLength } from "./lengths.ts";
import { Row } from "./call-row.ts";
import { KEPT, KeptCalls, type KeptLimits } from "./kept-calls.ts";
import type { Question, RowKind } from "./types.ts";

export interface CallLogOptions {
  readonly limits?: KeptLimits;
  /** The name of the only server, since the gateway does not name it. */
  readonly onlyServer?: () => string | undefined;
  /** Hides secrets in the text of an error. */
  readonly hide?: (text: string) => string;
  /** A logical call has begun. */
  readonly onBegan?: (row: Row, context: Context) => void;
  /** A logical call or a call of code has ended, with its retries and its task. */
  readonly onEnded?: (row: Row, caller: Caller) => void;
  /** Hides secrets in the params of a question that is shown. */
  readonly hideParams?: (params: Params) => Params;
  /** A client is asked, or has answered. */
  readonly onQuestions?: () => void;
  /** A request has ended, whatever it belongs to. */
  readonly onRequestEnded?: (row: Row, call: ObservedCall) => void;
}

/** A call that runs, or waits for its answers or its task. */
class Entry {
  readonly row: Row;
  readonly caller: Caller;
  /** The logical call that it is nested under. */
  readonly logical: Entry | undefined;
  /** The call that this one retries. */
  readonly retried: Entry | undefined;
  /** Until it has ended. */
  call: ObservedCall<Entry> | undefined;
  /** Questions of a session that are not answered, since when, and how long the call has waited for answers. */
  openQuestions = 0;
  askedAt = 0;
  waitedMs = 0;
  /** With its retries. */
  workedMs = 0;

  constructor(row: Row, call: ObservedCall<Entry>, logical: Entry | undefined, retried: Entry | undefined) {
    this.row = row;
    this.caller = call.context.caller;
    this.logical = logical;
    this.retried = retried;
    this.call = call;
  }
}

/** A call that has ended with questions, and waits for a retry. */
interface Asked {
  readonly entry: Entry;
  readonly at: number;
  readonly questions: readonly { readonly key: string; readonly row: Row }[];
}

/** Calls that wait, tasks and runs of code: as many of each are remembered. */
const MAX_WAITING = 10_000;
const MAX_ERROR_LENGTH = 300;
/** Names repeat, so what is hidden in them is looked for once. */
const MAX_NAMES = 1_000;
/** A client that has not answered for so long has gone: stateless clients do not say so. */
const MAX_QUESTION_MS = 3_600_000;

/** Whether the pages read a list, which no person has asked for. */
function isOfPages({ context }: ObservedCall<Entry>): boolean {
  return context.caller.operatorCall === "";
}

export class CallLog {
  readonly kept: KeptCalls;
  /** Called with each row that is new or has changed; undefined if nobody looks. */
  onRow: ((row: Row) => void) | undefined;
  readonly #options: CallLogOptions;
  readonly #asked = new Map<string, Asked>();
  readonly #tasks = new Map<string, Entry>();
  readonly #runs = new Map<string, Entry>();
  readonly #questions = new WeakMap<ObservedQuestion, Row>();
  /** Rows of questions that wait for an answer. */
  readonly #waiting = new Map<number, Row>();
  readonly #names = new Map<string, string>();
  readonly #clients = new WeakMap<NonNullable<Caller["info"]>, string>();

  constructor(options: CallLogOptions = {}) {
    this.#options = options;
    this.kept = new KeptCalls(options.limits ?? KEPT);
  }

  /** For `gateway.observe()`. */
  readonly reader: CallReader<Entry> = {
    steps: true,
    begin: (call) => (isOfPages(call) ? undefined : this.#begin(call)),
    asked: (call, question) => (isOfPages(call) ? undefined : this.#ask(call.state, question)),
    answered: (call, question) => (isOfPages(call) ? undefined : this.#answered(call.state, question)),
    notified: (_call, { method, params }) => {
      if (method === "notifications/tasks" && params !== undefined) this.#taskIs(params, Date.now());
    },
    ran: (call, run) => (isOfPages(call) ? undefined : remember(this.#runs, run, call.state)),
    passed: (call, passage) => (isOfPages(call) ? undefined : this.#passed(call.state, passage)),
    end: (call) => (isOfPages(call) ? undefined : this.#end(call)),
  };

  /** The row as it is now: the server of a call that runs becomes known on the way. */
  refreshed(row: Row): Row {
    if (row.server === undefined && row.status === "running") {
      const call = this.kept.running(row.id)?.call;
      if (call !== undefined) row.server = this.#serverOf(call);
    }
    return row;
  }

  /** Undefined if it is no longer kept. */
  row(id: number): Row | undefined {
    return this.kept.row(id);
  }

  /** Whether the request, the result or the error has the text, without regard to case. */
  readonly hasText = ({ id }: { readonly id: number }, text: string): boolean => this.kept.hasText(id, text);

  /** The questions that wait for the answers of clients, but for those of the console, which has its own list. */
  questions(): readonly Question[] {
    const since = Date.now() - MAX_QUESTION_MS;
    return [...this.#waiting.values()].flatMap((row): Question[] => {
      if (row.at < since || row.principal === OPERATOR) return [];
      const { parent, server, client, method, at } = row;
      const { hideParams = (all) => all } = this.#options;
      const params = hideParams(this.kept.record(row.id)?.request.params ?? {});
      return [{ id: `r${row.id}`, method, params, since: at, ...defined({ row: parent, server, client }) }];
    });
  }

  #begin(call: ObservedCall<Entry>): void {
    const { request, context } = call;
    const at = Date.now();
    const asked = this.#askedBefore(request, context.caller);
    const code = context.run === undefined ? undefined : this.#runs.get(context.run);
    const task = asked === undefined && code === undefined ? this.#taskOf(request) : undefined;
    const retried = asked?.entry;
    const nearest = retried ?? code ?? task;
    const logical = nearest?.logical ?? nearest;
    const kind = retried !== undefined ? "retry" : code !== undefined ? "code" : task !== undefined ? "poll" : "call";
    const entry = this.#add(kind, call, logical, retried, at);
    call.state = entry;
    if (asked !== undefined) this.#retry(asked, request, at);
    this.#changed(entry.row);
    if (kind === "call") this.#options.onBegan?.(entry.row, context);
  }

  #add(
    kind: RowKind,
    call: ObservedCall<Entry>,
    logical: Entry | undefined,
    retried: Entry | undefined,
    at: number,
  ): Entry {
    const { request, context } = call;
    const name = this.#nameOf(call);
    const row = this.#row(kind, request, context.caller, at, logical?.row, context.revision, name);
    const record = new CallRecord(row.id, at, request, call.startedAt, call);
    record.lengths[0] = countedLength(request.params);
    row.sent = record.lengths[0] ?? estimateLength(request.params);
    this.kept.add(row, record);
    return new Entry(row, call, logical, retried);
  }

  #row(
    kind: RowKind,
    { method }: Request,
    caller: Caller,
    at: number,
    parent: Row | undefined,
    revision: string | undefined,
    name: string | undefined,
  ): Row {
    const { principal } = caller;
    const client = this.#client(caller);
    return new Row({ id: this.kept.next, kind, at, method, parent, revision, principal, name, client });
  }

  /** What the request names. A URI may have a secret of the config in it. */
  #nameOf(call: ObservedCall): string | undefined {
    const name = nameOf(call);
    const { hide } = this.#options;
    if (name === undefined || hide === undefined) return name;
    let shown = this.#names.get(name);
    if (shown === undefined) {
      shown = hide(name);
      if (this.#names.size >= MAX_NAMES) this.#names.clear();
      if (name.length <= MAX_ERROR_LENGTH) this.#names.set(name, shown);
    }
    return shown;
  }

  /** What a client calls itself. */
  #client({ info }: Caller): string | undefined {
    if (info === undefined) return undefined;
    let name = this.#clients.get(info);
    if (name === undefined) {
      name = clientName(info);
      this.#clients.set(info, name);
    }
    return name;
  }

  /** The call whose questions this request answers. */
  #askedBefore({ method, params }: Request, caller: Caller): Asked | undefined {
    if (this.#asked.size === 0) return undefined;
    const { requestState, inputResponses } = params;
    if (requestState === undefined && inputResponses === undefined) return undefined;
    const key = askedKey(caller, method, params, requestState, inputResponses);
    const asked = this.#asked.get(key);
    this.#asked.delete(key);
    return asked;
  }

  #retry({ entry, at, questions }: Asked, { params }: Request, now: number): void {
    const answers = isObject(params["inputResponses"]) ? params["inputResponses"] : {};
    for (const { key, row } of questions) {
      const answer = answers[key];
      this.#endQuestion(row, isObject(answer) ? answer : undefined, undefined, now - row.at, now);
    }
    this.#waited(entry, now - at);
    entry.row.status = "running";
    entry.row.ms = undefined;
    entry.row.endedAt = undefined;
    this.#changed(entry.row);
  }

  #waited(entry: Entry, ms: number): void {
    for (let waiting: Entry | undefined = entry; waiting !== undefined; waiting = waiting.logical) {
      waiting.row.waitMs = (waiting.row.waitMs ?? 0) + ms;
    }
  }

  #taskOf({ method, params }: Request): Entry | undefined {
    const { taskId } = params;
    return method.startsWith("tasks/") && typeof taskId === "string" ? this.#tasks.get(taskId) : undefined;
  }

  #ask(entry: Entry, question: ObservedQuestion): void {
    const row = this.#question(entry, question.request);
    this.#questions.set(question, row);
    if (entry.openQuestions === 0) {
      entry.askedAt = row.at;
      this.#waited(entry, 0);
      this.#changed(entry.row);
    }
    entry.openQuestions += 1;
  }

  #question(entry: Entry, request: Request): Row {
    const logical = entry.logical ?? entry;
    const row = this.#row("question", request, entry.caller, Date.now(), logical.row, entry.row.revision, undefined);
    const { call } = entry;
    row.server = call === undefined ? entry.row.server : this.#serverOf(call);
    row.sent = estimateLength(request.params);
    const record = new CallRecord(row.id, row.at, request, performance.now());
    this.kept.add(row, record);
    this.kept.end(row.id);
    remember(this.#waiting, row.id, row);
    this.#changed(row);
    this.#options.onQuestions?.();
    return row;
  }

  #answered(entry: Entry, question: ObservedQuestion): void {
    const now = Date.now();
    entry.openQuestions -= 1;
    if (entry.openQuestions === 0) {
      entry.waitedMs += now - entry.askedAt;
      this.#waited(entry, now - entry.askedAt);
      this.#changed(entry.row);
    }
    const row = this.#questions.get(question);
    if (row === undefined) return;
    const { result, error, ms = 0 } = question;
    if (error !== undefined) this.#failed(row, undefined, error);
    this.#endQuestion(row, result, error, ms, now);
  }

  #endQuestion(row: Row, result: Result | undefined, error: unknown, waitMs: number, now: number): void {
    this.#waiting.delete(row.id);
    if (row.status === "running") row.status = "ok";
    row.ms = 0;
    row.waitMs = waitMs;
    row.endedAt = now;
    row.received = result === undefined ? undefined : estimateLength(result);
    this.kept.change(row.id, (record) => {
      record.result = result;
      record.error = error;
    });
    this.#changed(row);
    this.#options.onQuestions?.();
  }

  #passed({ row, call }: Entry, passage: WirePassage): void {
    if (row.server === undefined && passage.side === "upstream" && call !== undefined) {
      row.server = passage.upstream ?? this.#serverOf(call);
      // A call that starts its server may run for long.
      if (row.server !== undefined) this.#changed(row);
    }
    const record = this.kept.running(row.id);
    if (record !== undefined) record.passed(passage, Date.now());
    // The response of a batch passes when all its calls are over.
    else this.kept.change(row.id, (written) => written.passed(passage, Date.now()));
  }

  #end(call: ObservedCall<Entry>): void {
    const entry = call.state;
    const { row } = entry;
    const now = Date.now();
    row.server = this.#serverOf(call);
    const { result } = call;
    const length = result === undefined ? undefined : countedLength(result);
    row.received = result === undefined ? undefined : (length ?? estimateLength(result));
    this.kept.running(row.id)?.end(call, length);
    const workedMs = Math.max(0, call.ms - entry.waitedMs);
    this.#statusOf(call, row);
    row.ms = workedMs;
    row.endedAt = now;
    this.kept.end(row.id);
    const subject = entry.retried ?? entry;
    subject.workedMs += workedMs;
    if (subject !== entry) this.#continued(subject, row, now);
    else if (row.kind === "poll") this.#polled(call, now);
    if (call.result?.resultType === "input_required") this.#inputRequired(subject, entry, call, call.result, now);
    else if (typeof call.result?.["taskId"] === "string" && call.result.resultType === "task") {
      this.#becameTask(subject, call.result);
    }
    this.#changed(row);
    this.#options.onRequestEnded?.(row, call);
    entry.call = undefined;
    const isDone = subject.row.status !== "running" && subject.row.status !== "asked";
    if (isDone && subject.row.kind !== "poll") this.#options.onEnded?.(subject.row, subject.caller);
  }

  #statusOf(call: ObservedCall<Entry>, row: Row): void {
    if (call.status === "answered" && call.result?.["isError"] !== true) {
      row.status = call.result?.resultType === "input_required" ? "asked" : "ok";
    } else if (call.status === "cancelled") row.status = "cancelled";
    else this.#failed(row, call.result, call.error, call.errorKind);
  }

  #failed(row: Row, result: Result | undefined, error: unknown, kind?: string | number): void {
    row.status = "error";
    row.error = result === undefined ? String(kind ?? "failed") : "tool_error";
    const text = result === undefined ? errorMessage(error) : firstText(result);
    const { hide = (shown) => shown } = this.#options;
    // Cut first, since it may be long, and again, since a reference may be longer than its value.
    row.errorText = copyFirstChars(hide(copyFirstChars(text, 2 * MAX_ERROR_LENGTH)), MAX_ERROR_LENGTH);
  }

  /** A retry has ended: so has the call that it continues. */
  #continued(subject: Entry, retry: Row, now: number): void {
    const { row } = subject;
    row.status = retry.status;
    row.error = retry.error;
    row.errorText = retry.errorText;
    row.server ??= retry.server;
    row.received = retry.received;
    row.ms = subject.workedMs;
    row.endedAt = now;
    this.#changed(row);
  }

  #inputRequired(subject: Entry, entry: Entry, { request }: ObservedCall, result: Result, now: number): void {
    const requests = isObject(result["inputRequests"]) ? Object.entries(result["inputRequests"]) : [];
    const questions = requests.flatMap(([key, asked]) =>
      isRequest(asked) ? [{ key, row: this.#question(entry, asked) }] : [],
    );
    const key = askedKey(entry.caller, request.method, request.params, result["requestState"], result["inputRequests"]);
    remember(this.#asked, key, { entry: subject, at: now, questions });
  }

  #becameTask(subject: Entry, result: Result): void {
    const { row } = subject;
    const isRunning = !isTaskFinished(result["status"]);
    remember(this.#tasks, result["taskId"] as string, subject);
    if (!isRunning) return;
    row.status = "running";
    row.ms = undefined;
    row.endedAt = undefined;
  }

  #polled({ request, result }: ObservedCall<Entry>, now: number): void {
    const { taskId } = request.params;
    if (result === undefined) return;
    if (request.method === "tasks/get") this.#taskIs({ ...result, taskId }, now);
    if (request.method === "tasks/cancel") this.#taskIs({ taskId, status: "cancelled" }, now);
  }

  /** What is known of a task, from a poll or a notification. */
  #taskIs({ taskId, status, result, error }: { readonly [field: string]: unknown }, now: number): void {
    const entry = typeof taskId === "string" ? this.#tasks.get(taskId) : undefined;
    if (entry === undefined) return;
    const { row } = entry;
    if (row.status !== "running" && row.status !== "asked") return;
    const before = row.status;
    // A person answers between two polls.
    if (before === "asked" && status !== "input_required") this.#waited(entry, now - entry.askedAt);
    if (!isTaskFinished(status)) {
      row.status = status === "input_required" ? "asked" : "running";
      if (before !== row.status) entry.askedAt = now;
      if (row.status !== before) this.#changed(row);
      return;
    }
    row.status = status === "cancelled" ? "cancelled" : "ok";
    if (isObject(result)) {
      this.kept.change(row.id, (record) => (record.result = result));
      row.received = estimateLength(result);
      if (result["isError"] === true) this.#failed(row, result, undefined);
    }
    if (status === "failed") {
      const { message, code } = isObject(error) ? error : {};
      this.#failed(row, undefined, message, typeof code === "number" ? code : undefined);
    }
    const endedAt = Math.max(now, row.at);
    row.endedAt = endedAt;
    row.ms = Math.max(0, endedAt - row.at - (row.waitMs ?? 0));
    this.#changed(row);
    this.#options.onEnded?.(row, entry.caller);
  }

  /**
   * The server that got it, or that has what it names: a middleware may answer or refuse the call. A list goes to all
   * servers, so it is of none.
   */
  #serverOf(call: LoggedCall): string | undefined {
    const only = this.#options.onlyServer?.();
    const { upstream, sent, item } = call;
    if (only !== undefined) return upstream ?? (sent === undefined ? undefined : only);
    if (isOfAll(call.request.method)) return undefined;
    return upstream ?? (item?.isListed === true ? item.upstream : undefined);
  }

  #changed(row: Row): void {
    this.onRow?.(row);
  }
}

function remember<Key, Value>(map: Map<Key, Value>, key: Key, value: Value): void {
  const [oldest] = map.size >= MAX_WAITING ? map.keys() : [];
  if (oldest !== undefined) map.delete(oldest);
  map.set(key, value);
}
