// A gateway: middleware in front of upstreams, as one handler. Its methods list and replace the middleware and the
// upstreams, return the status of the upstreams, and close everything. chain.ts creates the upstreams and combines
// several into one handler; driver.ts runs each request through the transforms and the middleware.

import { abortable, attempt, deferred, onAbort, unref, within } from "../core/async.ts";
import { copyContext } from "../core/cancel.ts";
import { SlotTable } from "../core/collections.ts";
import { ConnectionError } from "../core/errors.ts";
import type { Caller, Context, Handler, Middleware, Notification, Request, Result } from "../core/handler.ts";
import { evaluatesCode, EVALUATES_CODE } from "../core/handler-marks.ts";
import type { LiveServer } from "../core/live-server.ts";
import { kindOf } from "../core/options.ts";
import { isObject } from "../core/values.ts";
import { McpError, METHOD_NOT_FOUND } from "../protocol/errors.ts";
import { checkHeaderParams } from "../tools/header-params.ts";
import { keepSubscribed } from "../protocol/keep-subscribed.ts";
import { LIST_CAPABILITIES } from "../protocol/lists.ts";
import type { SubscriptionFilter } from "../protocol/model/index.ts";
import type { Json } from "../protocol/revision.ts";
import { acknowledgement, filterFor, filterOf, grantedIn, grantsNothing, listsIn } from "../protocol/subscription.ts";
import type { ChainEntry } from "../protocol/compose.ts";
import type { Item, ItemKind, ItemSource } from "./item.ts";
import { Driver } from "./driver.ts";
import type { ItemHandler } from "./layer.ts";
import { GatewayReaders, type CallReader } from "./observe.ts";
import type { SelectPart } from "./router/naming.ts";
import { inProcessStatus, type UpstreamStatus } from "./upstream/options.ts";

/** Middleware in front of one upstream or many. It is a handler: pass it to `serve` or `connect`. */
export interface Gateway extends Handler {
  /** The current middleware with its names, outermost first. */
  readonly middleware: readonly ChainEntry[];
  /** The current upstreams, by name. */
  readonly upstreams: ReadonlyMap<string, GatewayUpstream>;
  /** Replaces the middleware with this name; the new one keeps the name. Throws if there is no such name. */
  replace(name: string, middleware: Middleware): void;
  /**
   * Takes over the middleware and the upstreams of another gateway, which can no longer be used on its own. New requests
   * go to them at once; requests in flight finish as they began; subscriptions move, and their callers are notified
   * that the lists may have changed. Upstreams and middleware that both gateways have stay open. The others are closed
   * when no request uses them any more; the promise then resolves.
   *
   * @example
   * await gateway.update(chain(log()).to({ notes: gateway.upstreams.get("notes"), lisp: lisp() }));
   */
  update(next: Gateway): Promise<void>;
  /** The status of each upstream, by name. */
  status(): Record<string, UpstreamStatus>;
  /** The servers of live sessions among the upstreams, by the name of the upstream, for the operator of this process. */
  live(): ReadonlyMap<string, LiveServer>;
  /** What GET /metrics shows, in the text format of Prometheus. Undefined if no middleware measures anything. */
  metrics(): string | undefined;
  /**
   * Reports every request to the reader, from now on, as it gets to the gateway, before the first middleware. Returns a
   * function that stops this.
   */
  observe<State>(reader: CallReader<State>): () => void;
  /** Closes upstreams and middleware. Further calls wait for the first. Waits at most `budgetMs` (default: 10 s). */
  close(budgetMs?: number): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** An upstream of a gateway: a handler, which may have these methods. */
export type GatewayUpstream = Handler & {
  /** Called with the name of the upstream in the chain. */
  called?(name: string): void;
  /** Its state; by name if it is a gateway itself. */
  status?(): UpstreamStatus | Record<string, UpstreamStatus>;
  /** The servers of live sessions behind it, by name; "" is the upstream itself. For the operator of this process. */
  live?(): ReadonlyMap<string, LiveServer>;
  /** Called when the gateway is closed. */
  close?(budgetMs?: number): Promise<void> | void;
};

const CLOSE_MS = 10_000;

export interface GatewayParts {
  readonly middleware: readonly Middleware[];
  readonly upstreams: ReadonlyMap<string, GatewayUpstream>;
  /** All upstreams as one. */
  readonly handler: ItemHandler;
  /** Which part of the upstreams a caller sees. */
  readonly select?: SelectPart | undefined;
  /** Whether the only upstream was given without a name. */
  readonly isNameless: boolean;
  /** Whether the lists are declared as changing even if no upstream declares it, since `update` may change them. */
  readonly isChanging: boolean;
  /** Called when the gateway is closed. */
  readonly onClose?: () => Promise<void>;
}

/** The stack of each gateway, so that `update` can take it from another one. */
const stacks = new WeakMap<Gateway, GatewayStack>();

export function createGateway(parts: GatewayParts): Gateway {
  const { middleware, upstreams, handler, select, isNameless, isChanging, onClose } = parts;
  let closing: Promise<void> | undefined;
  const stack = new GatewayStack(new StackVersion(namedEntries(middleware), upstreams, handler, select), isChanging);
  const readers = new GatewayReaders(stack.run);
  const run: Handler = (request, context) =>
    closing === undefined ? (readers.handler ?? stack.run)(request, context) : Promise.reject(closed());
  const close = async (budgetMs: number): Promise<void> => {
    const failures: unknown[] = [];
    const settled = Promise.allSettled([...stack.close(budgetMs), onClose?.()]).then((outcomes) => {
      for (const outcome of outcomes) if (outcome.status === "rejected") failures.push(outcome.reason);
    });
    await within(budgetMs, settled);
    if (failures.length > 0) throw failures.length === 1 ? failures[0] : new AggregateError(failures, CLOSE_FAILED);
  };
  const closeOnce = (budgetMs: number = CLOSE_MS): Promise<void> => (closing ??= close(budgetMs));
  const gateway = Object.defineProperties(run, {
    [EVALUATES_CODE]: { get: () => [...stack.version.upstreams.values()].some(evaluatesCode) },
    // A gateway that is itself an upstream has a name. If its only upstream has none, the gateway passes its name on.
    called: {
      value: (name: string): void => {
        if (isNameless) for (const upstream of stack.version.upstreams.values()) upstream.called?.(name);
      },
    },
    middleware: { enumerable: true, get: () => stack.version.entries },
    upstreams: { enumerable: true, get: () => stack.version.upstreams },
    replace: {
      value: (name: string, by: Middleware): void => {
        if (closing !== undefined) throw closed();
        checkMiddleware(by, "replace()");
        stack.replace(name, by);
      },
    },
    update: {
      value: (next: Gateway): Promise<void> => {
        if (closing !== undefined) throw closed();
        const other = stacks.get(next);
        if (other === undefined || other === stack) {
          throw new TypeError("update() takes another gateway, made by chain(...).to(...)");
        }
        return stack.update(other.handOver());
      },
    },
    items: { value: stack.items },
    status: { value: () => statusOf(stack.version.upstreams, closing !== undefined) },
    live: { value: () => liveOf(stack.version.upstreams) },
    metrics: {
      value: (): string | undefined => {
        const { entries, upstreams: current } = stack.version;
        const measured = entries.find(({ middleware }) => middleware.metrics !== undefined)?.middleware;
        return measured?.metrics?.(statusOf(current, closing !== undefined));
      },
    },
    observe: { value: (reader: CallReader) => readers.add(reader) },
    close: { value: closeOnce },
    [Symbol.asyncDispose]: { value: () => closeOnce() },
  }) as unknown as Gateway;
  stacks.set(gateway, stack);
  return gateway;
}

/** Throws a TypeError if the value is not middleware. */
export function checkMiddleware(middleware: unknown, where: string): void {
  if (typeof middleware !== "function") {
    throw new TypeError(`${where} takes middleware, (request, context, next) => result, not ${kindOf(middleware)}`);
  }
  const { close } = middleware as Partial<Middleware>;
  if (close !== undefined && typeof close !== "function") {
    throw new TypeError(`${where}: \`close\` of the middleware ${middleware.name} must be a function`);
  }
}

/** Gives each middleware the name of its function. The second one named `log` becomes `log-2`. */
export function namedEntries(all: readonly Middleware[]): ChainEntry[] {
  const takenNames = new Set<string>();
  return all.map((middleware) => {
    const baseName = middleware.name === "" ? "middleware" : middleware.name;
    let name = baseName;
    for (let count = 2; takenNames.has(name); count += 1) name = `${baseName}-${count}`;
    takenNames.add(name);
    return { name, middleware };
  });
}

/**
 * The middleware and upstreams of a gateway. Calls finish with those they began with; subscriptions move to the new ones.
 */
class GatewayStack {
  /** All that still have requests; the last one gets new requests. */
  readonly #versions = new Set<StackVersion>();
  readonly #isChanging: boolean;
  #version: StackVersion;
  #isClosed = false;

  constructor(version: StackVersion, isChanging: boolean) {
    this.#version = version;
    this.#versions.add(version);
    this.#isChanging = isChanging;
  }

  get version(): StackVersion {
    return this.#version;
  }

  readonly items: ItemSource = {
    find: (kind, name, context) => this.#version.find(kind, name, context),
    version: (caller) => this.#version.itemsVersion(caller),
  };

  readonly run: Handler = (request, context) => {
    if (request.method === "subscriptions/listen") return this.#listen(request, context);
    const result = this.#version.run(request, context);
    return this.#isChanging && request.method === "server/discover" ? result.then(withChangingLists) : result;
  };

  #listen(request: Request, context: Context): Promise<Result> {
    const grant = { granted: undefined };
    const open = async (listenContext: Context, move: () => void): Promise<Result> => {
      if (this.#isClosed) return { resultType: "complete" };
      const version = this.#version;
      version.onReplaced.add(move);
      const listening = this.#isChanging
        ? listenToChanges(version, request, listenContext)
        : version.run(request, listenContext);
      return listening.finally(() => version.onReplaced.delete(move));
    };
    return keepSubscribed(context, grant, { open });
  }

  replace(name: string, middleware: Middleware): void {
    const { entries, upstreams, handler, select } = this.#version;
    const at = entries.findIndex((entry) => entry.name === name);
    if (at === -1) {
      const quotedName = JSON.stringify(name);
      const names = entries.map((entry) => entry.name).join(", ");
      if (names === "") throw new TypeError(`Cannot replace ${quotedName}: the chain has no middleware`);
      throw new TypeError(`The chain has no middleware ${quotedName}; it has ${names}`);
    }
    void this.update(new StackVersion(entries.with(at, { name, middleware }), upstreams, handler, select));
  }

  /** Resolves when what only the version before has used is closed. */
  async update(version: StackVersion): Promise<void> {
    const before = this.#version;
    this.#versions.add(version);
    this.#version = version;
    const keptMiddleware = new Set(before.entries.map(({ middleware }) => middleware));
    for (const { middleware } of version.entries) if (keptMiddleware.has(middleware)) middleware.changed?.();
    await before.retire();
    if (this.#versions.delete(before)) await Promise.allSettled(before.release());
  }

  /** Gives its version to another stack. */
  handOver(): StackVersion {
    if (this.#isClosed) throw closed();
    this.#isClosed = true;
    this.#versions.clear();
    for (const end of this.#version.onReplaced) end();
    return this.#version;
  }

  /** Ends the subscriptions and closes all middleware and upstreams, even if requests still use them. */
  close(budgetMs: number): Promise<void>[] {
    this.#isClosed = true;
    const all = [...this.#versions];
    this.#versions.clear();
    return all.flatMap((version) => {
      for (const end of version.onReplaced) end();
      return version.release(budgetMs);
    });
  }
}

/** A client with a session reads the capabilities once. Only if a list can change does it subscribe to changes. */
function withChangingLists(result: Result): Result {
  const { capabilities } = result;
  if (!isObject(capabilities)) return result;
  const lists = LIST_CAPABILITIES.filter((list) => isObject(capabilities[list]));
  const changing = lists.map((list) => [list, { ...(capabilities[list] as Json), listChanged: true }] as const);
  return { ...result, capabilities: { ...capabilities, ...Object.fromEntries(changing) } };
}

/** Grants the changes of lists also if no upstream does. Such a subscription ends when it moves, or its caller ends it. */
async function listenToChanges(version: StackVersion, request: Request, context: Context): Promise<Result> {
  const ours = filterFor(listsIn(filterOf(request)));
  if (grantsNothing(ours)) return version.run(request, context);
  let granted: SubscriptionFilter | undefined;
  const notify = (notification: Notification): void => {
    const { method, params } = notification;
    const theirs = grantedIn(notification);
    if (theirs === undefined) return context.notify(notification);
    granted = theirs;
    context.notify({ method, params: { ...params, notifications: { ...theirs, ...ours } } });
  };
  try {
    const result = await version.run(request, { ...context, notify });
    if (granted !== undefined && !grantsNothing(granted)) return result;
  } catch (error) {
    if (granted !== undefined || !(error instanceof McpError) || error.code !== METHOD_NOT_FOUND) throw error;
  }
  if (granted === undefined) context.notify(acknowledgement(ours));
  return abortable(context.signal, new Promise<never>(() => undefined));
}

/** How many versions use a middleware or an upstream. Each is closed with the last of them. */
const users = new WeakMap<Part, number>();

/** A middleware or an upstream. */
interface Part {
  close?(budgetMs?: number): Promise<void> | void;
}

/** How long a request whose caller has left may still use its middleware. */
const LEFT_MS = 250;

/** Middleware and upstreams as they are until the next change, composed once, and the requests that run through them. */
class StackVersion {
  readonly entries: readonly ChainEntry[];
  readonly upstreams: ReadonlyMap<string, GatewayUpstream>;
  /** All upstreams as one. */
  readonly handler: ItemHandler;
  readonly select: SelectPart | undefined;
  /** Move the subscriptions elsewhere. */
  readonly onReplaced = new Set<() => void>();
  readonly #driver: Driver;
  readonly #running = new SlotTable<Context>();
  readonly #drained = deferred();
  #isRetired = false;

  constructor(
    entries: readonly ChainEntry[],
    upstreams: ReadonlyMap<string, GatewayUpstream>,
    handler: ItemHandler,
    select: SelectPart | undefined,
  ) {
    this.entries = entries;
    this.upstreams = upstreams;
    this.handler = handler;
    this.select = select;
    this.#driver = new Driver(entries, handler);
    for (const part of this.#parts()) users.set(part, (users.get(part) ?? 0) + 1);
  }

  async run(request: Request, context: Context): Promise<Result> {
    const slot = this.#running.add(context);
    try {
      const seen = this.select === undefined ? context : withPart(this.select, context);
      if (seen !== context) context.observer?.entered?.(seen);
      const { caller } = seen;
      // Only calls over HTTP of a stateless revision have headers that repeat arguments.
      const mustCheck = caller.headers !== undefined && caller.style === "stateless" && request.method === "tools/call";
      if (!mustCheck || seen.headersChecked === true) return await this.#driver.run(request, seen);
      return await this.#driver.runItem(request, await checkHeaders(this.#driver, request, seen));
    } finally {
      this.#running.remove(slot);
      if (this.#isRetired) this.#resolveIfDrained();
    }
  }

  find(kind: ItemKind, name: string, context: Context): Item | Promise<Item> {
    return this.#driver.items.find(kind, name, this.select === undefined ? context : withPart(this.select, context));
  }

  itemsVersion(caller: Caller): number {
    return this.#driver.items.version(caller);
  }

  /** Resolves when the last request is finished. No request may be started after this call. */
  async retire(): Promise<void> {
    this.#isRetired = true;
    for (const move of [...this.onReplaced]) move();
    this.#resolveIfDrained();
    for (const [slot, { signal }] of this.#running.entries()) {
      // Middleware that never answers must not delay closing once its caller has left.
      const leave = (): void => {
        this.#running.remove(slot);
        this.#resolveIfDrained();
      };
      const remove = (): void => void unref(setTimeout(leave, LEFT_MS));
      if (signal.aborted) remove();
      else onAbort(signal, remove);
    }
    await this.#drained.promise;
  }

  /** Closes what no other version uses, also of other gateways. */
  release(budgetMs?: number): Promise<void>[] {
    return this.#parts().map(async (part) => {
      const usersLeft = (users.get(part) ?? 1) - 1;
      users.set(part, usersLeft);
      if (usersLeft === 0) await attempt(async () => part.close?.(budgetMs));
    });
  }

  #parts(): Part[] {
    return [...this.entries.map(({ middleware }) => middleware), ...this.upstreams.values()];
  }

  #resolveIfDrained(): void {
    if (this.#running.size === 0) this.#drained.resolve();
  }
}

/** Middleware must not share results between callers of different parts, so it can see which part a caller has. */
function withPart(select: SelectPart, context: Context): Context {
  let part: string | undefined;
  try {
    part = select(context.caller)?.key;
  } catch {
    // The router refuses this caller with the same error, after the middleware has seen the request.
    part = "refused";
  }
  return part === undefined ? context : copyContext(context, { caller: { ...context.caller, part } });
}

/**
 * Compares the headers of a tool call with its arguments, before middleware can change the arguments. A tool's schema
 * may require that a header repeats an argument (specification, basic/transports/streamable-http, server behavior for
 * custom headers). A server checks this for its own tools; a gateway checks it for its upstreams, which may not get the
 * headers. The error for a tool that is hidden from a caller is the same as for one that does not exist.
 */
function checkHeaders(driver: Driver, request: Request, context: Context): Context | Promise<Context> {
  const item = driver.items.define("tools", request.params["name"] as string, context);
  if (item instanceof Promise || mismatchOf(item, request, context) !== undefined) {
    return checkHeadersAgain(driver, request, context, item);
  }
  return withCheckedItem(driver, context, item);
}

/** The list of tools is being read, or a header seems to be wrong. */
async function checkHeadersAgain(
  driver: Driver,
  request: Request,
  context: Context,
  first: Item | Promise<Item>,
): Promise<Context> {
  const { items } = driver;
  const find = async (lookup: Item | Promise<Item>): Promise<Item> => {
    const item = await lookup;
    context.signal.throwIfAborted();
    return item;
  };
  const version = items.version(context.caller);
  let item = await find(first);
  if (mismatchOf(item, request, context) !== undefined && version === items.version(context.caller)) {
    // The list was not read just now. The schema may be outdated, so it is read again before the call is refused.
    await items.refresh("tools", context);
    item = await find(items.define("tools", request.params["name"] as string, context));
  }
  const problem = mismatchOf(item, request, context);
  if (problem !== undefined) throw McpError.of("header_mismatch", problem);
  return withCheckedItem(driver, context, item);
}

/** What is wrong with the headers, if the tool is known. */
function mismatchOf({ facts, hiddenBy }: Item, request: Request, { caller }: Context): string | undefined {
  if (facts === undefined || facts.headers.length === 0 || hiddenBy !== undefined) return undefined;
  return checkHeaderParams(facts.headers, request.params["arguments"], caller.headers ?? {});
}

function withCheckedItem(driver: Driver, context: Context, item: Item): Context {
  // Behind an empty chain nothing needs the item.
  if (driver.isEmpty && context.observer === undefined && item.facts?.headers.length === 0) return context;
  return copyContext(context, item.facts === undefined ? { item } : { item, headersChecked: true });
}

function statusOf(upstreams: ReadonlyMap<string, GatewayUpstream>, isClosed: boolean): Record<string, UpstreamStatus> {
  return Object.fromEntries(
    [...upstreams].flatMap(([name, upstream]): [string, UpstreamStatus][] => {
      const status = upstream.status?.() ?? inProcessStatus(upstream, isClosed);
      if (isStatus(status)) return [[name, status]];
      // The upstream is a gateway. Its upstreams get its name as a prefix, unless it has only one.
      const inner = Object.entries(status);
      return inner.map(([innerName, status]) => [inner.length === 1 ? name : `${name}.${innerName}`, status]);
    }),
  );
}

/** With the names that the statuses have. */
function liveOf(upstreams: ReadonlyMap<string, GatewayUpstream>): ReadonlyMap<string, LiveServer> {
  const named = [...upstreams].flatMap(([name, upstream]): [string, LiveServer][] => {
    const found = [...(upstream.live?.() ?? [])];
    const status = upstream.status?.();
    const isOne = status === undefined || isStatus(status) || Object.keys(status).length === 1;
    return found.map(([innerName, live]) => [isOne ? name : `${name}.${innerName}`, live]);
  });
  return new Map(named);
}

function isStatus(status: UpstreamStatus | Record<string, UpstreamStatus>): status is UpstreamStatus {
  return typeof status["state"] === "string";
}

function closed(): ConnectionError {
  return new ConnectionError("closed", "The gateway is closed", { mayHaveRun: false });
}

const CLOSE_FAILED = "Several upstreams or middleware could not be closed";
