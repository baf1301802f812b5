// Records which principals were given each task id and `requestState`, so that no other principal can use them. The
// upstream cannot check this, since all our callers are one client to it. Any other principal gets the same error as for a
// value that does not exist. Two principals may be given the same value, since each may have a process of its own.

import { ExpiringMap } from "../../core/expiring-map.ts";
import type { Caller, Request, Result } from "../../core/handler.ts";
import { digest } from "../../core/seal.ts";
import { isObject } from "../../core/values.ts";
import { invalidParams } from "../../protocol/errors.ts";

/** A value that is no longer recorded goes to the upstream, and is only protected by being hard to guess. */
const MAX_OWNED = 10_000;
/** A value that more principals were given is a constant of the upstream, and is not checked. */
const MAX_OWNERS = 1_000;

export class Ownership {
  /** The principals (empty for callers without one) by the digest of what they were given. */
  readonly #owners = new ExpiringMap<string, Set<string>>({ maxEntries: MAX_OWNED });

  /** Records what the result gives to the caller. */
  record({ method }: Request, { resultType, taskId, requestState }: Result, { principal = "" }: Caller): void {
    if (resultType === "task" && method === "tools/call") this.#record("task", taskId, principal);
    if (resultType === "input_required") this.#record("state", requestState, principal);
  }

  /** Throws if the request uses what only others were given. Returns the request without others' tasks. */
  check(request: Request, { principal = "" }: Caller): Request {
    if (this.#owners.size === 0) return request;
    const { method, params } = request;
    if (this.#isForeign("state", params["requestState"], principal)) {
      throw invalidParams("requestState belongs to another call; a retry repeats the same method and arguments");
    }
    const { taskId } = params;
    if (method.startsWith("tasks/") && this.#isForeign("task", taskId, principal)) {
      throw invalidParams("Unknown task: it does not exist, or no longer exists", { taskId });
    }
    return method === "subscriptions/listen" ? this.#withoutForeignTasks(request, principal) : request;
  }

  #withoutForeignTasks(request: Request, principal: string): Request {
    const { notifications } = request.params;
    const ids = isObject(notifications) ? notifications["taskIds"] : undefined;
    if (!isObject(notifications) || !Array.isArray(ids)) return request;
    const taskIds = (ids as readonly unknown[]).filter((id) => !this.#isForeign("task", id, principal));
    if (taskIds.length === ids.length) return request;
    return { ...request, params: { ...request.params, notifications: { ...notifications, taskIds } } };
  }

  #isForeign(kind: string, value: unknown, principal: string): boolean {
    if (typeof value !== "string") return false;
    const owners = this.#owners.get(digest([kind, value]));
    return owners !== undefined && owners.size <= MAX_OWNERS && !owners.has(principal);
  }

  #record(kind: string, value: unknown, principal: string): void {
    if (typeof value !== "string") return;
    const key = digest([kind, value]);
    const owners = this.#owners.get(key);
    if (owners === undefined) this.#owners.set(key, new Set([principal]));
    else if (owners.size <= MAX_OWNERS) owners.add(principal);
  }
}
