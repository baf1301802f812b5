// One task of a session-style server. The newest revision puts input requests and the outcome into the task itself. A
// session-style server sends an input request as a JSON-RPC request, and the outcome as the answer to a blocking
// `tasks/result`. Both are fetched when the status says that they exist. If the tool returned `isError`, the task is
// completed; only a protocol error makes it failed.

import { type Deferred, deferred, within } from "../../core/async.ts";
import type {
  AskOptions,
  Caller,
  Context,
  Handler,
  Notification,
  Params,
  Request,
  Result,
} from "../../core/handler.ts";
import { isObject } from "../../core/values.ts";
import { checkClientRequest } from "../../protocol/client-requests.ts";
import { INVALID_PARAMS, McpError, METHOD_NOT_FOUND } from "../../protocol/errors.ts";
import { META } from "../../protocol/model/base.ts";
import type { Json } from "../../protocol/revision.ts";
import { isTaskFinished } from "../../protocol/tasks.ts";
import { PendingInputs } from "../../tasks/pending-inputs.ts";
import { initialTaskState, taskRequest, TaskWatch } from "../../tasks/watch.ts";
import type { Abandonment } from "../calls/peer.ts";
import type { SessionHost } from "./handshake.ts";

/** How long to wait for the input request of a task whose status is `input_required`. */
const INPUT_WAIT_MS = 500;
/** If a pending `tasks/result` is not answered in this time, another is sent: some servers answer the first late. */
const RESULT_WAIT_MS = 50;
const MAX_INPUT_REQUESTS = 100;
/** Error codes of a server that cannot cancel the task, or has nothing left to cancel. */
const CANCEL_REFUSALS: ReadonlySet<number> = new Set([INVALID_PARAMS, METHOD_NOT_FOUND]);
const NO_TIMEOUT = { idleMs: 0, totalMs: 0 };

export interface TaskRequestOptions {
  /** Extra params that only the server's revision has. */
  readonly extraParams?: Json;
  /** Called with the JSON-RPC id. */
  readonly onSent?: (id: number) => void;
  readonly abandonment?: Abandonment;
}

/** The side of a session that faces the server, as tasks use it. */
export interface ServerTasksHost extends SessionHost {
  /** The server, in the form of the newest revision. */
  readonly handler: Handler;
  /** Sends a request that has nothing to do with tasks. */
  plain(request: Request, context: Context): Promise<Result>;
  /** Returns the answer in the server's revision; errors are in the newest. */
  send(request: Request, context: Context, options?: TaskRequestOptions): Promise<Result>;
  /** Marks work of this caller as running on the server; returns a function to call when it has ended. */
  attribute(caller: Caller): () => void;
}

export class ServerTask extends TaskWatch {
  /** The progress token: the id of the call that created the task, if that call has one. */
  readonly token: number | undefined;
  readonly #onProgress: ((notification: Notification) => void) | undefined;
  readonly #host: ServerTasksHost;
  /** The context of requests about the task: what the server asks while it answers them is asked by the task. */
  readonly #context: Context;
  readonly #stop = new AbortController();
  readonly inputs: PendingInputs = new PendingInputs(() => this.#inputsChanged());
  readonly #ended: () => void;
  /** The last fields from the server. */
  #fields: Json;
  /** The pending `tasks/result`, on whose stream the server may send input requests. */
  #waiting: Promise<void> | undefined;
  /** Resolved by the next input request. */
  #input: Deferred<void> = deferred();
  #fetching: Promise<Json> | undefined;
  /** The fields `status` and `result`, or `status` and `error`. */
  #outcome: Json | undefined;

  constructor(
    host: ServerTasksHost,
    caller: Caller,
    raw: Json,
    token?: number,
    onProgress?: (notification: Notification) => void,
  ) {
    const context = { ...host.defaultContext, caller };
    const fields = initialTaskState(liftTask(host, raw));
    super(host.handler, context, fields);
    this.#host = host;
    this.#fields = fields;
    this.token = token;
    this.#onProgress = onProgress;
    this.#ended = host.attribute(caller);
    this.#context = { ...context, ask: (request, options) => this.ask(request, options) };
  }

  async take(raw: Json): Promise<void> {
    if (!this.isFinished) this.update(await this.#detailed(liftTask(this.#host, raw)));
  }

  passProgress(params: Params): void {
    if (!this.isFinished) this.#onProgress?.({ method: "notifications/progress", params });
  }

  /** Handles an input request that the server sends on behalf of this task. */
  async ask({ method, params }: Request, { signal }: AskOptions = {}): Promise<Result> {
    if (this.#stop.signal.aborted)
      throw new Error("The task is finished; it can no longer send requests to the client");
    if (this.inputs.size >= MAX_INPUT_REQUESTS) {
      throw McpError.of("rate_limited", `The task already waits for ${MAX_INPUT_REQUESTS} answers`);
    }
    const request: Request = { method, params: withoutRelatedTask(params) };
    checkClientRequest(request, this.caller.capabilities);
    const answer = await this.inputs.ask(request, signal === undefined ? {} : { signal });
    return { ...answer, _meta: { ...answer._meta, [META.relatedTask]: { taskId: this.id } } };
  }

  /** Succeeds even if the task is finished or cannot be cancelled: `tasks/cancel` promises only an acknowledgement. */
  async cancel(context: Context): Promise<void> {
    if (this.isFinished) return;
    if (!canCancel(this.#host)) {
      // The task ends only for the client.
      return this.setCancelled("Cancelled by request; the server cannot cancel tasks and may still be working on it");
    }
    try {
      const raw = await this.#host.send(taskRequest("tasks/cancel", this.id), context);
      if (raw["status"] === "cancelled") await this.take(raw);
    } catch (error) {
      if (!(error instanceof McpError) || !CANCEL_REFUSALS.has(error.code)) throw error;
    }
  }

  override close(): void {
    super.close();
    if (this.#stop.signal.aborted) return;
    const reason = new Error("The task is finished");
    this.inputs.drop(reason);
    this.#stop.abort(reason);
    this.#ended();
  }

  /** The server of a session has no subscriptions to tasks. */
  override subscribe(): void {}

  protected override async fetch(): Promise<Json> {
    if (this.isFinished) return this.state;
    // A finished task does not change any more; only its outcome may be missing.
    if (isTaskFinished(this.#fields["status"])) return this.#detailed(this.#fields);
    const raw = await this.#host.send(taskRequest("tasks/get", this.id), this.#context);
    return this.#detailed(liftTask(this.#host, raw));
  }

  /** Adds the fields that belong to the status. */
  async #detailed(fields: Json): Promise<Json> {
    // The last status to arrive is the newest, but a finished task does not change any more.
    if (!isTaskFinished(this.#fields["status"])) this.#fields = fields;
    const { status } = this.#fields;
    if (status === "cancelled") return this.#fields;
    if (isTaskFinished(status)) return { ...this.#fields, ...(await this.#fetchOutcome()) };
    // An answer to `tasks/result` before the task is finished is not its outcome.
    this.#outcome = undefined;
    if (status === "input_required") await this.#waitForInput();
    // The task may have finished meanwhile. The update with the final status fetches the outcome.
    return isTaskFinished(this.#fields["status"]) ? this.state : this.#unfinished();
  }

  /** The state of an unfinished task, which is `input_required` only while an input request is actually pending. */
  #unfinished(): Json {
    const inputRequests = this.inputs.requests;
    if (inputRequests === undefined) return { ...this.#fields, status: "working" };
    return { ...this.#fields, status: "input_required", inputRequests };
  }

  #inputsChanged(): void {
    if (!isTaskFinished(this.#fields["status"])) this.update(this.#unfinished());
    this.#input.resolve();
  }

  /** Sends `tasks/result`, so that the server can send its input request, and waits a moment for that request. */
  async #waitForInput(): Promise<void> {
    if (this.#waiting !== undefined || this.#stop.signal.aborted) return;
    this.#input = deferred();
    const waiting = this.#waitForResult();
    this.#waiting = waiting;
    void waiting.then(async () => {
      // The task is most likely finished, so notify subscribers now. If not, the next poll sends `tasks/result` again.
      if (!this.#stop.signal.aborted) await this.refresh().catch(() => this.wake());
      this.#waiting = undefined;
    });
    if (this.inputs.size === 0) await within(INPUT_WAIT_MS, Promise.race([this.#input.promise, waiting]));
  }

  /** Never throws: after a failure the next poll sends `tasks/result` again, and reports the problem if it persists. */
  async #waitForResult(): Promise<void> {
    const context = { ...this.#context, signal: this.#stop.signal, timeouts: NO_TIMEOUT };
    const outcome = await this.#result(context).catch(() => undefined);
    if (outcome !== undefined) this.#outcome = outcome;
  }

  async #fetchOutcome(): Promise<Json> {
    if (this.#waiting !== undefined) await within(RESULT_WAIT_MS, this.#waiting);
    if (this.#outcome !== undefined) return this.#outcome;
    this.#fetching ??= this.#result(this.#context).finally(() => (this.#fetching = undefined));
    this.#outcome = await this.#fetching;
    return this.#outcome;
  }

  async #result(context: Context): Promise<Json> {
    try {
      const answer = await this.#host.send(taskRequest("tasks/result", this.id), context);
      const result = this.#host.terms.revision.lift.result("tools/call", answer);
      return { status: "completed", result: withoutRelatedTask(result) };
    } catch (error) {
      if (!(error instanceof McpError)) throw error;
      return { status: "failed", error: error.toBody() };
    }
  }
}

/** The fields of a task in the shape of the newest revision. */
export function liftTask(host: ServerTasksHost, raw: Json): Json {
  const { resultType: _complete, ...fields } = host.terms.revision.lift.result("tasks/get", raw);
  return fields;
}

export function canCancel({ terms }: ServerTasksHost): boolean {
  const { tasks } = terms.rawCapabilities;
  return isObject(tasks) && Boolean(tasks["cancel"]);
}

/** Removes the related-task id from `_meta`. It has a meaning only in the server's revision. */
function withoutRelatedTask<T extends Params | Result>(fields: T): T {
  const { _meta, ...rest } = fields;
  if (_meta?.[META.relatedTask] === undefined) return fields;
  const { [META.relatedTask]: _task, ...meta } = _meta;
  return (Object.keys(meta).length === 0 ? rest : { ...rest, _meta: meta }) as T;
}
