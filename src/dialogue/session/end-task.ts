// One task of a session-style end, as the newest form has it: with what it asks and what came of it inside. The end
// gives the one as requests of its own and the other by a request that waits, so both are fetched when the status says
// that there is something to fetch. A tool that failed is a completed task here, and only an error is a failed one.
// Who may ask about it, and how long it is kept, is for the table.

import type { AskOptions, Caller, Context } from "../../core/context.ts";
import type { Handler, Notification, Params, Request, Result } from "../../core/handler.ts";
import { within } from "../../core/async.ts";
import type { ErrorBody } from "../../jsonrpc/message.ts";
import { checkAsk } from "../../protocol/asks.ts";
import { McpError, methodNotFound } from "../../protocol/errors.ts";
import { META } from "../../protocol/model/index.ts";
import { OpenQuestions } from "../../protocol/open-questions.ts";
import type { Json } from "../../protocol/revision.ts";
import { isOver } from "../../protocol/tasks.ts";
import type { TaskBackHost } from "./task-back-door.ts";
import { seedOf, TaskWatch } from "../calls/task-watch.ts";
import { canCancel } from "./unheard-task.ts";

/** How long a look waits for the question that the end says it has. */
const QUESTION_MS = 500;
/** How long a result may take that is asked for already; some ends look only now and then whether there is one. */
const RESULT_MS = 50;
const MOST_QUESTIONS = 100;
/** What an end answers that has nothing to cancel any more, or cannot. */
const UNCANCELLED: ReadonlySet<number> = new Set([-32602, -32601]);
const FOR_EVER = { idleMs: 0, totalMs: 0 };

type Outcome =
  | { readonly status: "completed"; readonly result: Result }
  | { readonly status: "failed"; readonly error: ErrorBody };

export class ServerTask {
  readonly watch: TaskWatch;
  readonly caller: Caller;
  /** Takes progress under the token of its call, for as long as it lives. */
  readonly progress: ((notification: Notification) => void) | undefined;
  readonly #host: TaskBackHost;
  readonly #context: Context;
  /** Ends the request that waits. */
  readonly #stop = new AbortController();
  readonly #questions = new OpenQuestions(() => this.#retell());
  readonly #leave: () => void;
  /** What the end said of it last. */
  #fields: Json;
  /** The request that waits for the result, and in whose stream the end may ask. */
  #waiting: Promise<void> | undefined;
  #fetching: Promise<Outcome> | undefined;
  #outcome: Outcome | undefined;
  #asked = (): void => undefined;
  #isReleased = false;

  constructor(host: TaskBackHost, caller: Caller, said: Json, progress?: (notification: Notification) => void) {
    this.#host = host;
    this.#fields = seedOf(fieldsOf(host, said));
    this.caller = caller;
    this.progress = progress;
    this.#leave = host.enter(caller);
    this.#context = {
      ...host.home,
      caller,
      ask: (question, options) => this.ask(question, options),
    };
    // Who listens to it is told by us; where the end says nothing, somebody has to look.
    const handler: Handler = async ({ method }) => {
      if (method !== "tasks/get") throw methodNotFound(method);
      return this.#look();
    };
    // Whose it is the table knows: nobody is proved here.
    const nobody: Context = { ...host.home, caller: { capabilities: {} } };
    this.watch = new TaskWatch(handler, nobody, this.#fields, ({ status }) => {
      if (isOver(status)) this.release();
    });
  }

  /** The end has said how it stands; resolves with that in the newest shape. */
  async take(said: Json): Promise<Json> {
    const state = await this.#detailed(fieldsOf(this.#host, said));
    this.watch.take(state);
    return this.watch.state;
  }

  /** A question of the end, on behalf of this task. */
  async ask({ method, params }: Request, { signal }: AskOptions = {}): Promise<Result> {
    if (this.#isReleased) throw new Error("The task is over: nobody can be asked on its behalf any more");
    if (this.#questions.size >= MOST_QUESTIONS) {
      throw McpError.of("rate_limited", `The task waits for ${MOST_QUESTIONS} answers already`);
    }
    const request: Request = { method, params: unrelated(params) };
    checkAsk(request, this.caller.capabilities);
    const answer = await this.#questions.ask(request, signal === undefined ? {} : { signal });
    return { ...answer, _meta: { ...answer._meta, [META.relatedTask]: { taskId: this.watch.id } } };
  }

  update(responses: Json): void {
    this.#questions.answer(responses);
  }

  /** Nothing is owed but the acknowledgement: it may be over, or the end unable to cancel it. */
  async cancel(context: Context): Promise<void> {
    if (this.watch.isOver) return;
    if (!canCancel(this.#host)) {
      this.#giveUp();
      return;
    }
    try {
      const said = await this.#host.send({ method: "tasks/cancel", params: { taskId: this.watch.id } }, context);
      if (said["status"] === "cancelled") await this.take(said);
    } catch (error) {
      if (!(error instanceof McpError) || !UNCANCELLED.has(error.code)) throw error;
    }
  }

  /** Nothing more is asked or waited for on its behalf. */
  release(): void {
    if (this.#isReleased) return;
    this.#isReleased = true;
    const reason = new Error("The task is over");
    this.watch.close();
    this.#questions.drop(reason);
    this.#stop.abort(reason);
    this.#leave();
  }

  /** The end has not said that it can be told so: it is over for us alone. */
  #giveUp(): void {
    const statusMessage = "Cancelled by request; the end cannot cancel tasks, and may still be at work on it";
    this.#fields = { ...this.#fields, status: "cancelled", statusMessage, lastUpdatedAt: new Date().toISOString() };
    this.watch.take(this.#fields);
  }

  async #look(): Promise<Json> {
    const request: Request = { method: "tasks/get", params: { taskId: this.watch.id } };
    return this.#detailed(fieldsOf(this.#host, await this.#host.send(request, this.#context)));
  }

  /** With what belongs to its status, which is fetched first. */
  async #detailed(fields: Json): Promise<Json> {
    // Of what comes while something is fetched, the last is the newest; but nothing comes after the end.
    if (!isOver(this.#fields["status"])) this.#fields = fields;
    const { status } = this.#fields;
    if (status === "completed" || status === "failed") return { ...this.#fields, ...(await this.#fetched()) };
    if (status === "cancelled") return this.#fields;
    // What was answered before the end was no outcome.
    this.#outcome = undefined;
    if (status === "input_required") await this.#letAsk();
    // While we waited it may have come to its end: whoever heard that goes on from there.
    return isOver(this.#fields["status"]) ? this.watch.state : this.#shown();
  }

  /** Before the end: what counts is whether something is asked, not whether the end says so. */
  #shown(): Json {
    const inputRequests = this.#questions.requests;
    if (inputRequests === undefined) return { ...this.#fields, status: "working" };
    return { ...this.#fields, status: "input_required", inputRequests };
  }

  #retell(): void {
    if (!isOver(this.#fields["status"])) this.watch.take(this.#shown());
    this.#asked();
  }

  /** Opens the way by which the end asks, and lets the question come. */
  async #letAsk(): Promise<void> {
    if (this.#waiting !== undefined || this.#isReleased) return;
    const asked = new Promise<void>((resolve) => {
      this.#asked = resolve;
    });
    const waiting = this.#wait();
    this.#waiting = waiting;
    void waiting.then(async () => {
      // Over, most likely: who listens to it hears so at once. If not, it is for the next look to open it anew.
      if (!this.#isReleased) await this.watch.refresh().catch(() => this.watch.wake());
      this.#waiting = undefined;
    });
    if (this.#questions.size === 0) await within(QUESTION_MS, Promise.race([asked, waiting]));
  }

  /** Never throws: where the way fails, the next look opens it anew. */
  async #wait(): Promise<void> {
    try {
      this.#outcome = await this.#result({ ...this.#context, signal: this.#stop.signal, timeouts: FOR_EVER });
    } catch {
      // Whoever looks hears why, if it is of any importance.
    }
  }

  async #fetched(): Promise<Outcome> {
    if (this.#waiting !== undefined) await within(RESULT_MS, this.#waiting);
    if (this.#outcome !== undefined) return this.#outcome;
    this.#fetching ??= this.#result(this.#context).finally(() => (this.#fetching = undefined));
    this.#outcome = await this.#fetching;
    return this.#outcome;
  }

  async #result(context: Context): Promise<Outcome> {
    const request: Request = { method: "tasks/result", params: { taskId: this.watch.id } };
    try {
      const answer = this.#host.revision().lift.result("tools/call", await this.#host.send(request, context));
      return { status: "completed", result: unrelated(answer) };
    } catch (error) {
      if (!(error instanceof McpError)) throw error;
      return { status: "failed", error: error.toBody() };
    }
  }
}

/** What an end says of a task, in the words of the newest form. */
export function fieldsOf(host: TaskBackHost, said: Json): Json {
  const { resultType: _complete, ...fields } = host.revision().lift.result("tasks/get", said);
  return fields;
}

/** Without the name of the task, which is the end's own. */
function unrelated<T extends Params | Result>(fields: T): T {
  const { _meta, ...rest } = fields;
  if (_meta?.[META.relatedTask] === undefined) return fields;
  const { [META.relatedTask]: _task, ...meta } = _meta;
  return (Object.keys(meta).length === 0 ? rest : { ...rest, _meta: meta }) as T;
}
