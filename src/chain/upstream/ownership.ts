// Whose is what an end has handed out: tasks, and the states of calls that wait for an answer. To an end over a wire all
// our callers are one, so what it binds to its caller it binds to all of ours. Here it is noted to whom each went, and
// another person is told what they would be told of one that there is not. Only digests are kept, and not for ever:
// what is no longer known goes to the end as it is, whose secret it was in the first place.

import type { Context } from "../../core/handler.ts";
import type { Handler, Request, Result } from "../../core/handler.ts";
import { digest } from "../../core/seal.ts";
import { isObject } from "../../core/objects.ts";
import { invalidParams } from "../../protocol/errors.ts";

const MOST_KEPT = 10_000;

export class Ownership {
  /** By what was handed out, the principal; empty where nothing was proved. The oldest first. */
  readonly #owners = new Map<string, string>();

  async handle(request: Request, context: Context, next: Handler): Promise<Result> {
    const { principal = "" } = context.caller;
    const result = await next(this.#checked(request, principal), context);
    if (result.resultType === "task" && request.method === "tools/call")
      this.#note("task", result["taskId"], principal);
    if (result.resultType === "input_required") this.#note("state", result["requestState"], principal);
    return result;
  }

  #checked(request: Request, principal: string): Request {
    const { method, params } = request;
    if (this.#isAnothers("state", params["requestState"], principal)) {
      throw invalidParams("requestState belongs to another call; a retry repeats the same method and arguments");
    }
    const { taskId } = params;
    if (method.startsWith("tasks/") && this.#isAnothers("task", taskId, principal)) {
      throw invalidParams("Unknown task: there is none with this id, or none any more", { taskId });
    }
    return method === "subscriptions/listen" ? this.#heard(request, principal) : request;
  }

  /** Without the tasks of others, which are not granted then. */
  #heard(request: Request, principal: string): Request {
    const { notifications } = request.params;
    const ids = isObject(notifications) ? notifications["taskIds"] : undefined;
    if (!isObject(notifications) || !Array.isArray(ids)) return request;
    const taskIds = (ids as readonly unknown[]).filter((id) => !this.#isAnothers("task", id, principal));
    if (taskIds.length === ids.length) return request;
    return { ...request, params: { ...request.params, notifications: { ...notifications, taskIds } } };
  }

  #isAnothers(kind: string, what: unknown, principal: string): boolean {
    if (typeof what !== "string" || this.#owners.size === 0) return false;
    const owner = this.#owners.get(digest([kind, what]));
    return owner !== undefined && owner !== principal;
  }

  #note(kind: string, what: unknown, principal: string): void {
    if (typeof what !== "string") return;
    const key = digest([kind, what]);
    this.#owners.delete(key);
    this.#owners.set(key, principal);
    if (this.#owners.size <= MOST_KEPT) return;
    for (const oldest of this.#owners.keys()) if (this.#owners.delete(oldest)) return;
  }
}
