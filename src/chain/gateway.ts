// A gateway: middleware in front of upstreams, as one handler. Its methods list and replace the middleware, return the
// status of the upstreams, and close everything. chain.ts creates the upstreams and combines several into one handler.

import { within } from "../core/async.ts";
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
import { checkMiddleware, noSuchEntry, release, retain, type ChainEntry } from "./entries.ts";
import type { MiddlewareStack } from "./middleware-stack.ts";
import type { UpstreamStatus } from "./upstream/options.ts";

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

export interface GatewayParts {
  readonly entries: readonly ChainEntry[];
  readonly upstreams: ReadonlyMap<string, GatewayUpstream>;
  /** Whether the only upstream was given without a name. */
  readonly isNameless: boolean;
  /** All upstreams as one handler. */
  readonly handler: Handler;
}

const CLOSE_MS = 10_000;

export function createGateway({ entries, upstreams, isNameless, handler }: GatewayParts): Gateway {
  const state = { closing: undefined as Promise<void> | undefined };
  const stack = entries.length === 0 ? undefined : lazyStack(entries, handler);
  const run = withHeaderCheck(stack === undefined ? handler : (request, context) => stack.run(request, context));
  const gateway = (request: Request, context: Context): Promise<Result> =>
    state.closing === undefined ? run(request, context) : Promise.reject(closed());
  const close = async (budgetMs: number): Promise<void> => {
    const closing = [...upstreams.values()].map(async (upstream) => upstream.close?.(budgetMs));
    const outcome = Promise.allSettled([...closing, ...(stack?.close() ?? [])]);
    const failures: unknown[] = [];
    const settled = outcome.then((all) => {
      for (const one of all) if (one.status === "rejected") failures.push(one.reason);
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
      value: (name: string, middleware: Middleware): void => {
        if (state.closing !== undefined) throw closed();
        checkMiddleware(middleware, "replace()");
        if (stack === undefined)
          throw new TypeError(`Cannot replace ${JSON.stringify(name)}: the chain has no middleware`);
        stack.replace(name, middleware);
      },
    },
    status: { value: () => statusOf(upstreams, state.closing !== undefined) },
    close: { value: (budgetMs: number = CLOSE_MS): Promise<void> => (state.closing ??= close(budgetMs)) },
  }) as unknown as Gateway;
}

const loaded: { Stack?: typeof MiddlewareStack } = {};

/** After this call, new gateways run their middleware without a dynamic import. */
export function useLoadedStack(Stack: typeof MiddlewareStack): void {
  loaded.Stack = Stack;
}

type Stack = Pick<MiddlewareStack, "entries" | "run" | "replace" | "close">;

/** Loads middleware-stack.ts with the first request. Before that, `replace` only swaps the entry. */
function lazyStack(given: readonly ChainEntry[], handler: Handler): Stack {
  let entries = given;
  for (const entry of entries) retain(entry);
  let stack = loaded.Stack && new loaded.Stack(entries, handler);
  let loading: Promise<MiddlewareStack> | undefined;
  const load = async (): Promise<MiddlewareStack> => {
    const begun = entries;
    const { MiddlewareStack } = await import("./middleware-stack.ts");
    useLoadedStack(MiddlewareStack);
    return (stack = new MiddlewareStack(begun, handler));
  };
  return {
    get entries() {
      return stack?.entries ?? entries;
    },
    run: (request, context) =>
      stack === undefined
        ? (loading ??= load()).then((created) => created.run(request, context))
        : stack.run(request, context),
    replace: (name, middleware) => {
      if (stack !== undefined) {
        stack.replace(name, middleware);
        return;
      }
      const at = entries.findIndex((entry) => entry.name === name);
      const old = entries[at];
      if (old === undefined) throw noSuchEntry(name, entries);
      const added: ChainEntry = { name, middleware };
      entries = entries.with(at, added);
      // Requests that wait for the import run with the middleware that they began with.
      if (loading !== undefined) void loading.then((created) => created.replace(name, middleware));
      else {
        retain(added);
        void release(old).catch(() => undefined);
      }
    },
    close: () => {
      if (stack !== undefined) return stack.close();
      if (loading === undefined) return entries.map((entry) => release(entry));
      return [loading.then(async (created) => void (await Promise.all(created.close())))];
    },
  };
}

/**
 * Checks headers that repeat tool arguments, before middleware can change the arguments. Loads header-gate.ts with the
 * first request over HTTP that calls or lists tools.
 */
function withHeaderCheck(handler: Handler): Handler {
  let gate: Handler | undefined;
  const load = async (): Promise<Handler> => {
    const { headerGate } = await import("./header-gate.ts");
    return (gate ??= headerGate(handler));
  };
  return (request, context) => {
    const { method } = request;
    const isTool = method === "tools/call" || method === "tools/list";
    if (!isTool || context.caller.headers === undefined) return handler(request, context);
    return gate === undefined ? load().then((created) => created(request, context)) : gate(request, context);
  };
}

function statusOf(upstreams: ReadonlyMap<string, GatewayUpstream>, isClosed: boolean): Record<string, UpstreamStatus> {
  return Object.fromEntries(
    [...upstreams].flatMap(([name, upstream]): [string, UpstreamStatus][] => {
      const status = upstream.status?.();
      if (status === undefined) return [[name, inProcessStatus(upstream, isClosed)]];
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

function inProcessStatus(upstream: GatewayUpstream, isClosed: boolean): UpstreamStatus {
  const target = evaluatesCode(upstream) ? "live sessions" : "in this process";
  return { state: isClosed ? "closed" : "running", target, sessions: 0, pids: [], restarts: 0 };
}

function closed(): ConnectionError {
  return new ConnectionError("closed", "The gateway is closed", { mayHaveRun: false });
}

const CLOSE_FAILED = "Several upstreams or middleware could not be closed";
