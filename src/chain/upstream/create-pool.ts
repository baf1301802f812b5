// Creates the session pool of an upstream that is a command, a URL or a transport. Also remembers the revision
// that a program speaks, and which caller owns each task and `requestState` of the upstream.

import { openTarget, ownInfo, type TargetOptions } from "../../client/connect.ts";
import { ConnectionError } from "../../core/errors.ts";
import { BoundedMap } from "../../core/bounded-map.ts";
import type { Context, Handler, Request, Result } from "../../core/handler.ts";
import { isObject } from "../../core/values.ts";
import { digest } from "../../core/seal.ts";
import type { ServerConnectionOptions } from "../../dialogue/connect.ts";
import { fingerprint } from "../../protocol/caller.ts";
import { invalidParams } from "../../protocol/errors.ts";
import { knownRevision } from "../../protocol/revisions/index.ts";
import { CatalogueFile } from "./catalogue.ts";
import { isCommand, isTransport, MESSAGE_BYTES, type UpstreamOptions, type UpstreamTarget } from "./options.ts";
import { UpstreamPool, type CreateSession } from "./pool.ts";
import { RestartPolicy } from "./restart-policy.ts";
import { UpstreamSession } from "./session.ts";
import type { UpstreamConnection } from "./supervisor.ts";

/** How long a request waits for the first answer of the upstream, unless `startTimeoutMs` is set. */
const START_WAIT_MS = 60_000;
/** The start itself goes on for this long, since a package manager may have to download the program first. */
const START_TIMEOUT_MS = 10 * 60_000;

export interface PoolContext {
  /** The command or URL, without secrets. */
  readonly description: string;
  readonly name: () => string;
  readonly onState: () => void;
}

export interface PooledUpstream extends Pick<UpstreamPool, "status" | "close"> {
  readonly handle: Handler;
}

export function createPool(
  target: Exclude<UpstreamTarget, Handler>,
  options: UpstreamOptions,
  { description, name, onState }: PoolContext,
): PooledUpstream {
  if (options.revision !== undefined) knownRevision(options.revision);
  const isProgram = isCommand(target);
  const revisions = new RevisionMemory(options.revision, isProgram);
  const startFailures = isProgram ? new RestartPolicy(options.restart) : undefined;
  const createSession: CreateSession = (client, host) => {
    const { style } = client;
    const { revision: offers } = host;
    const open = (background: Context, onAsked: () => void): Promise<UpstreamConnection> =>
      revisions.open(offers ?? style, async (revision) => {
        const preferred = { style, ...(offers !== undefined && { offers }) };
        const how = { ...connectionOptions(options, background, revision), ...preferred, onAsked };
        const { opened: connection, program } = await openTarget(target, connectOptions(options), how);
        return { connection, ...(program && { program }) };
      });
    return new UpstreamSession({
      name: name(),
      client,
      host,
      startFailures,
      open,
      restart: isProgram ? (options.restart ?? {}) : undefined,
      startWaitMs: options.startTimeoutMs ?? START_WAIT_MS,
      idleMs: options.idleMs,
      onState,
    });
  };
  const pool = new UpstreamPool({
    name,
    target: description,
    // A transport can be started only once, so all callers must share it.
    share: isTransport(target) ? "shared" : options.share,
    createSession,
    catalogueFile: (principal) =>
      isProgram && options.remember !== false ? new CatalogueFile([target, options.revision, principal]) : undefined,
    ...(options.maxSessions === undefined ? undefined : { maxSessions: options.maxSessions }),
  });
  const owners = new Ownership();
  const handle: Handler = (request, context) => pool.handle(request, context);
  return {
    handle: (request, context) => owners.handle(request, context, handle),
    status: () => pool.status(),
    close: (budgetMs) => pool.close(budgetMs),
  };
}

function connectOptions({ auth, fetch, headers, limits, onNoise, onStderr }: UpstreamOptions): TargetOptions {
  return {
    ...(auth && { auth }),
    ...(fetch && { fetch }),
    ...(headers && { headers }),
    limits: { messageBytes: MESSAGE_BYTES, ...limits },
    ...(onNoise && { onNoise }),
    ...(onStderr && { onStderr }),
  };
}

function connectionOptions(
  options: UpstreamOptions,
  background: Context,
  revision: string | undefined,
): ServerConnectionOptions {
  // The caller sets its own limit and cancels, so by default a call has none here.
  const { timeoutMs = 0, maxTimeoutMs = 0, startTimeoutMs = START_TIMEOUT_MS } = options;
  return {
    info: background.caller.info ?? ownInfo(),
    capabilities: background.caller.capabilities,
    defaultContext: background,
    timeouts: { idleMs: timeoutMs, totalMs: maxTimeoutMs },
    startTimeoutMs,
    ...(revision === undefined ? undefined : { revision }),
  };
}

/**
 * Remembers the negotiated revision so that a restart skips the probe (a first `server/discover`). Otherwise, a program
 * that crashes during the probe would look like one that does not support the probe. If the program rejects the
 * remembered revision, the revision is negotiated again.
 */
export class RevisionMemory {
  readonly #required: string | undefined;
  readonly #isProgram: boolean;
  /** Revisions by what was preferred: the style of the callers, or the revision of one. */
  readonly #known = new Map<string, string>();

  /**
   * `required`: the revision in the options. `isProgram`: revisions are remembered only for programs. For URLs,
   * http/client/connect.ts remembers the style.
   */
  constructor(required: string | undefined, isProgram: boolean) {
    this.#required = required;
    this.#isProgram = isProgram;
  }

  async open(
    preferred: string,
    open: (revision: string | undefined) => Promise<UpstreamConnection>,
  ): Promise<UpstreamConnection> {
    const known = this.#required ?? this.#known.get(preferred);
    try {
      return this.#remember(preferred, await open(known));
    } catch (error) {
      if (known === this.#required || !isWrongRevision(error)) throw error;
      this.#known.delete(preferred);
      return this.#remember(preferred, await open(undefined));
    }
  }

  #remember(preferred: string, opened: UpstreamConnection): UpstreamConnection {
    if (this.#isProgram) this.#known.set(preferred, opened.connection.revision.name);
    return opened;
  }
}

/** Whether the program runs, but does not speak the revision. */
function isWrongRevision(error: unknown): boolean {
  return error instanceof ConnectionError && (error.kind === "protocol" || error.kind === "timeout");
}

const MAX_OWNED = 10_000;
/** A value that more principals were given is a constant of the upstream, and is not checked. */
const MAX_OWNERS = 1_000;

/**
 * Records which principals were given each task id and requestState. The upstream cannot check this, since all our
 * callers are one client to it. Any other principal gets the same error as for a value that does not exist. Two
 * principals may be given the same value, since each may have a process of its own. Stores only digests, and a limited
 * number: a value that is no longer recorded goes to the upstream, and is only protected by being hard to guess.
 */
export class Ownership {
  /** The principals (empty for callers without one) by the digest of what they were given. */
  readonly #owners = new BoundedMap<string, Set<string>>(MAX_OWNED);

  async handle(request: Request, context: Context, next: Handler): Promise<Result> {
    const { principal = "" } = context.caller;
    const result = await next(this.#check(request, principal), context);
    if (result.resultType === "task" && request.method === "tools/call")
      this.#record("task", result["taskId"], principal);
    if (result.resultType === "input_required") this.#record("state", result["requestState"], principal);
    return result;
  }

  #check(request: Request, principal: string): Request {
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
    if (typeof value !== "string" || this.#owners.size === 0) return false;
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
