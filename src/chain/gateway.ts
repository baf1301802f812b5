// A gateway: middleware in front of upstreams, as one handler. Its methods list and replace the middleware, return the
// status of the upstreams, and close everything. chain.ts creates the upstreams and combines several into one handler.

import { attempt, deferred, onAbort, unref, within } from "../core/async.ts";
import { ConnectionError } from "../core/errors.ts";
import {
  type Context,
  type Handler,
  type Middleware,
  type Request,
  type Result,
  evaluatesCode,
  EVALUATES_CODE,
} from "../core/handler.ts";
import { kindOf } from "../core/options.ts";
import { McpError } from "../protocol/errors.ts";
import { checkHeaderParams } from "../protocol/headers.ts";
import { keepSubscribed } from "../protocol/subscription.ts";
import { ToolFacts } from "../protocol/tool-facts.ts";
import { compose, type ChainEntry } from "./compose.ts";
import { inProcessStatus, type UpstreamStatus } from "./upstream/options.ts";

export interface Gateway extends Handler {
  /** The current middleware with its names, outermost first. */
  readonly middleware: readonly ChainEntry[];
  /** Replaces the middleware with this name; the new one keeps the name. Throws if there is no such name. */
  replace(name: string, middleware: Middleware): void;
  /** The status of each upstream, by name. */
  status(): Record<string, UpstreamStatus>;
  /** Closes upstreams and middleware. Further calls wait for the first. Waits at most `budgetMs` (default: 10 s). */
  close(budgetMs?: number): Promise<void>;
}

/** An upstream of a gateway: a handler, which may have these methods. */
export type GatewayUpstream = Handler & {
  /** Called with the name of the upstream in the chain. */
  called?(name: string): void;
  status?(): UpstreamStatus | Record<string, UpstreamStatus>;
  close?(budgetMs?: number): Promise<void> | void;
};

const CLOSE_MS = 10_000;

/** `handler` is all upstreams as one. `isNameless`: whether the only upstream was given without a name. */
export function createGateway(
  middleware: readonly Middleware[],
  upstreams: ReadonlyMap<string, GatewayUpstream>,
  handler: Handler,
  isNameless: boolean,
): Gateway {
  let closing: Promise<void> | undefined;
  const stack = middleware.length === 0 ? undefined : new MiddlewareStack(namedEntries(middleware), handler);
  const run = stack?.run ?? handler;
  const gate = headerGate(run);
  const gateway = (request: Request, context: Context): Promise<Result> => {
    if (closing !== undefined) return Promise.reject(closed());
    return context.caller.headers === undefined ? run(request, context) : gate(request, context);
  };
  const close = async (budgetMs: number): Promise<void> => {
    const all = [...upstreams.values()].map(async (upstream) => upstream.close?.(budgetMs));
    const failures: unknown[] = [];
    const settled = Promise.allSettled([...all, ...(stack?.close() ?? [])]).then((outcomes) => {
      for (const one of outcomes) if (one.status === "rejected") failures.push(one.reason);
    });
    await within(budgetMs, settled);
    if (failures.length > 0) throw failures.length === 1 ? failures[0] : new AggregateError(failures, CLOSE_FAILED);
  };
  return Object.defineProperties(gateway, {
    [EVALUATES_CODE]: { value: [...upstreams.values()].some(evaluatesCode) },
    // A gateway that is itself an upstream has a name. If its only upstream has none, the gateway passes its name on.
    called: {
      value: (name: string): void => {
        if (isNameless) for (const upstream of upstreams.values()) upstream.called?.(name);
      },
    },
    middleware: { enumerable: true, get: () => stack?.entries ?? [] },
    replace: {
      value: (name: string, by: Middleware): void => {
        if (closing !== undefined) throw closed();
        checkMiddleware(by, "replace()");
        if (stack === undefined)
          throw new TypeError(`Cannot replace ${JSON.stringify(name)}: the chain has no middleware`);
        stack.replace(name, by);
      },
    },
    status: { value: () => statusOf(upstreams, closing !== undefined) },
    close: { value: (budgetMs: number = CLOSE_MS): Promise<void> => (closing ??= close(budgetMs)) },
  }) as unknown as Gateway;
}

/** Throws a TypeError if the value is not middleware. */
export function checkMiddleware(given: unknown, where: string): void {
  if (typeof given !== "function") {
    throw new TypeError(`${where} takes middleware, (request, context, next) => result, not ${kindOf(given)}`);
  }
  const { close } = given as Partial<Middleware>;
  if (close !== undefined && typeof close !== "function") {
    throw new TypeError(`${where}: \`close\` of the middleware ${given.name} must be a function`);
  }
}

/** Gives each middleware the name of its function. The second one named `log` becomes `log-2`. */
function namedEntries(all: readonly Middleware[]): ChainEntry[] {
  const taken = new Set<string>();
  return all.map((middleware) => {
    const own = middleware.name === "" ? "middleware" : middleware.name;
    let name = own;
    for (let count = 2; taken.has(name); count += 1) name = `${own}-${count}`;
    taken.add(name);
    return { name, middleware };
  });
}

/** The middleware of a gateway. Calls finish with the middleware they began with; subscriptions move to the new one. */
class MiddlewareStack {
  readonly #handler: Handler;
  /** All that still have requests; the last one gets new requests. */
  readonly #versions = new Set<StackVersion>();
  #version: StackVersion;
  #isClosed = false;

  constructor(entries: readonly ChainEntry[], handler: Handler) {
    this.#handler = handler;
    this.#version = this.#add(entries);
  }

  get entries(): readonly ChainEntry[] {
    return this.#version.entries;
  }

  readonly run: Handler = (request, context) => {
    if (request.method !== "subscriptions/listen") return this.#version.run(request, context);
    const grant = { granted: undefined };
    const open = async (own: Context, move: () => void): Promise<Result> => {
      if (this.#isClosed) return { resultType: "complete" };
      const version = this.#version;
      version.onReplaced.add(move);
      return version.run(request, own).finally(() => version.onReplaced.delete(move));
    };
    return keepSubscribed(context, grant, { open });
  };

  replace(name: string, middleware: Middleware): void {
    const { entries } = this;
    const at = entries.findIndex((entry) => entry.name === name);
    if (at === -1) {
      const names = entries.map((entry) => entry.name).join(", ");
      throw new TypeError(`The chain has no middleware ${JSON.stringify(name)}; it has ${names}`);
    }
    const before = this.#version;
    this.#version = this.#add(entries.with(at, { name, middleware }));
    void before
      .retire()
      .then(async () => (this.#versions.delete(before) ? Promise.all(before.release()) : []))
      .catch(() => undefined);
  }

  /** Ends the subscriptions and closes all middleware, even if requests still use it. */
  close(): Promise<void>[] {
    this.#isClosed = true;
    const all = [...this.#versions];
    this.#versions.clear();
    return all.flatMap((version) => {
      for (const end of version.onReplaced) end();
      return version.release();
    });
  }

  #add(entries: readonly ChainEntry[]): StackVersion {
    const version = new StackVersion(entries, this.#handler);
    this.#versions.add(version);
    return version;
  }
}

/** How many versions use a middleware. One function may be in several gateways, and is closed with the last of them. */
const users = new WeakMap<Middleware, number>();

/** How long a request whose caller has left may still use its middleware. */
const LEFT_MS = 250;

interface RunningRequest {
  readonly context: Context;
}

/** The middleware as it is until the next replacement, composed once, and the requests that run through it. */
class StackVersion {
  readonly entries: readonly ChainEntry[];
  /** Move the subscriptions elsewhere. */
  readonly onReplaced = new Set<() => void>();
  readonly #handler: Handler;
  readonly #running = new Set<RunningRequest>();
  readonly #drained = deferred();
  #isRetired = false;

  constructor(entries: readonly ChainEntry[], handler: Handler) {
    this.entries = entries;
    this.#handler = compose(entries, handler);
    for (const { middleware } of entries) users.set(middleware, (users.get(middleware) ?? 0) + 1);
  }

  async run(request: Request, context: Context): Promise<Result> {
    const running: RunningRequest = { context };
    this.#running.add(running);
    try {
      return await this.#handler(request, context);
    } finally {
      this.#remove(running);
    }
  }

  /** Resolves when the last request is finished. No request may be started after this call. */
  async retire(): Promise<void> {
    this.#isRetired = true;
    for (const move of [...this.onReplaced]) move();
    if (this.#running.size === 0) this.#drained.resolve();
    for (const running of this.#running) {
      // Middleware that never answers must not delay closing once its caller has left.
      const { signal } = running.context;
      const remove = (): void => void unref(setTimeout(() => this.#remove(running), LEFT_MS));
      if (signal.aborted) remove();
      else onAbort(signal, remove);
    }
    await this.#drained.promise;
  }

  /** Closes the middleware that no other version uses. */
  release(): Promise<void>[] {
    return this.entries.map(async ({ middleware }) => {
      const left = (users.get(middleware) ?? 1) - 1;
      users.set(middleware, left);
      if (left === 0) await attempt(async () => middleware.close?.());
    });
  }

  #remove(running: RunningRequest): void {
    if (this.#running.delete(running) && this.#isRetired && this.#running.size === 0) this.#drained.resolve();
  }
}

/**
 * Compares the headers of a tool call with its arguments, before middleware can change the arguments. A tool's schema
 * may require that a header repeats an argument (specification, basic/transports/streamable-http, server behavior for
 * custom headers). A server checks this for its own tools; a gateway checks it for its upstreams, which may not get the
 * headers. Only calls over HTTP of a stateless revision are checked, since older revisions have no such headers.
 */
function headerGate(handler: Handler): Handler {
  const tools = new ToolFacts(true);
  const list: Handler = async (request, context) => {
    const result = await handler(request, context);
    tools.learn(result);
    return result;
  };
  const check: Handler = async (request, context) => {
    const { name, arguments: given } = request.params;
    const { headers = {} } = context.caller;
    const mismatch = (): string | undefined => checkHeaderParams(tools.get(name)?.headers ?? [], given, headers);
    if (tools.get(name) === undefined) await tools.find(name, handler, context);
    // The schema may be outdated, so it is read again before the call is refused.
    else if (mismatch() !== undefined) await tools.refresh(handler, context);
    const problem = mismatch();
    if (problem !== undefined) throw McpError.of("header_mismatch", problem);
    return handler(request, tools.get(name) === undefined ? context : { ...context, headersChecked: true });
  };
  return (request, context) => {
    const { caller, headersChecked } = context;
    const { method, params } = request;
    if (caller.headers === undefined || caller.style !== "stateless") return handler(request, context);
    if (method === "tools/list") return list(request, context);
    if (method !== "tools/call" || headersChecked === true) return handler(request, context);
    // The usual case: no header repeats an argument.
    return tools.get(params["name"])?.headers.length === 0 ? handler(request, context) : check(request, context);
  };
}

function statusOf(upstreams: ReadonlyMap<string, GatewayUpstream>, isClosed: boolean): Record<string, UpstreamStatus> {
  return Object.fromEntries(
    [...upstreams].flatMap(([name, upstream]): [string, UpstreamStatus][] => {
      const status = upstream.status?.() ?? inProcessStatus(upstream, isClosed);
      if (isStatus(status)) return [[name, status]];
      // The upstream is a gateway. Its upstreams get its name as a prefix, unless it has only one.
      const inner = Object.entries(status);
      return inner.map(([own, one]) => [inner.length === 1 ? name : `${name}.${own}`, one]);
    }),
  );
}

function isStatus(status: UpstreamStatus | Record<string, UpstreamStatus>): status is UpstreamStatus {
  return typeof status["state"] === "string";
}

function closed(): ConnectionError {
  return new ConnectionError("closed", "The gateway is closed", { mayHaveRun: false });
}

const CLOSE_FAILED = "Several upstreams or middleware could not be closed";
