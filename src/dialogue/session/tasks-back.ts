// How tasks of a session-style end come to our side: what of the requests, questions and notifications is about them,
// and which tools they are made of. The rest is loaded when a tool is called that can be a task, or a task is asked
// for, because most ends have none.

import type { Caller, Context } from "../../core/handler.ts";
import { ConnectionError } from "../../core/errors.ts";
import type { Handler, Notification, Params, Request, Result } from "../../core/handler.ts";
import { abortable } from "../../core/async.ts";
import { isObject } from "../../core/objects.ts";
import { methodNotFound } from "../../protocol/errors.ts";
import { META } from "../../protocol/model/index.ts";
import type { Json, Revision } from "../../protocol/revision.ts";
import { hasTasks, TASK_WANTED, type Wanting } from "../../protocol/tasks.ts";
import type { Besides } from "./subscriptions-back.ts";
import type { SessionTaskBack } from "./server-tasks.ts";
import { TaskSupports } from "./tool-task-support.ts";
import type { Leaving } from "../calls/peer.ts";

/** How a request is sent. */
export interface Sending {
  /** Params that only the end's revision has. */
  readonly more?: Json;
  /** Told the id that it has on the wire. */
  readonly sent?: (id: number) => void;
  /** What becomes of it where its caller leaves. */
  readonly leaving?: Leaving;
}

/** What the back lends. */
export interface TaskBackHost {
  readonly home: Context;
  /** The end, in the newest form. */
  readonly handler: Handler;
  revision(): Revision;
  /** What the end can do, in the newest shape. */
  capabilities(): Json;
  /** The same in the end's own words. */
  offered(): Json;
  /** A request that has nothing to do with tasks. */
  plain(request: Request, context: Context): Promise<Result>;
  /** The end's own answer, in its own revision; its errors are in the newest. */
  send(request: Request, context: Context, how?: Sending): Promise<Result>;
  /** Something of this caller is under way at the end; returns how to say that it is over. */
  enter(caller: Caller): () => void;
}

/** Who answers a question that belongs to a task. */
export type Asker = Pick<Context, "ask" | "caller">;

export class TaskBackDoor {
  readonly #host: TaskBackHost;
  readonly #supports = new TaskSupports();
  #loading: Promise<SessionTaskBack> | undefined;
  #tasks: SessionTaskBack | undefined;

  constructor(host: TaskBackHost) {
    this.#host = host;
  }

  /** Whether both sides know tasks, each in its own form. */
  get #isOpen(): boolean {
    return hasTasks(this.#host.capabilities()) && this.#host.revision().requests.has("tasks/result");
  }

  takes(method: string): boolean {
    return method.startsWith("tasks/") || (method === "tools/call" && this.#isOpen);
  }

  async answer(given: Request, context: Context): Promise<Result> {
    const { method } = given;
    // A field of the end's form, which a caller cannot have meant.
    const { task: _ours, ...params } = given.params;
    const request: Request = { method, params };
    if (method === "tools/call") {
      const list = (cursor?: string): Promise<Result> => this.#list(cursor, context);
      const support = await abortable(context.signal, this.#supports.of(request.params["name"], list));
      const wanted = (request.params as Wanting)[TASK_WANTED];
      // What is wrong with a call of a tool that is not listed, the end will say.
      const isPlain = support === undefined || (support === "forbidden" && wanted !== true);
      return isPlain ? this.#host.plain(request, context) : (await this.#load()).call(request, context, support);
    }
    // Only what was agreed on is asked for.
    if (!this.#isOpen) throw methodNotFound(method);
    return (await this.#load()).answer(request, context);
  }

  /** The same result; what it says of tools is kept in mind. */
  noted(method: string, result: Result): Result {
    if (method === "tools/call" && isObject(result["task"]) && result["content"] === undefined) {
      throw new ConnectionError("protocol", "The end answered tools/call with a task, though none was asked for");
    }
    return method === "tools/list" && this.#isOpen ? this.#supports.note(result) : result;
  }

  isListened({ params }: Request): boolean {
    const filter = params["notifications"];
    return isObject(filter) && Array.isArray(filter["taskIds"]) && this.#isOpen;
  }

  /** What a listen that names tasks is granted; undefined: nothing. */
  async listening({ params }: Request, context: Context): Promise<Besides | undefined> {
    const { taskIds } = params["notifications"] as { readonly taskIds: readonly string[] };
    return (await this.#load()).listening(taskIds, context);
  }

  /** Who answers a question; undefined where it names no task. */
  asker(params: Params): Promise<Asker | undefined> | undefined {
    const related = params._meta?.[META.relatedTask];
    const id = isObject(related) ? related["taskId"] : undefined;
    return typeof id === "string" ? this.#tasks?.asker(id) : undefined;
  }

  /** The end is in a new session: what it said of its tools may no longer hold. */
  renewed(): void {
    this.#supports.changed();
  }

  /** Whether a notification was for a task, and for nobody else. */
  hears({ method, params }: Notification): boolean {
    switch (method) {
      case "notifications/tools/list_changed":
        this.#supports.changed();
        return false;
      case "notifications/tasks/status":
        this.#tasks?.hear(params ?? {});
        return true;
      case "notifications/progress":
        return this.#tasks?.progress(params ?? {}) === true;
      default:
        return false;
    }
  }

  async #load(): Promise<SessionTaskBack> {
    this.#loading ??= import("./server-tasks.ts").then(
      ({ SessionTaskBack }) => (this.#tasks = new SessionTaskBack(this.#host)),
    );
    return this.#loading;
  }

  /** For nobody's sake but ours: its caller may go while others wait for the same list. */
  #list(cursor: string | undefined, { caller }: Context): Promise<Result> {
    const params = cursor === undefined ? {} : { cursor };
    return this.#host.send({ method: "tools/list", params }, { ...this.#host.home, caller });
  }
}
