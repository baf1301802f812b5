// A gateway: links in front of ends, as one handler, with what an operator may do to it: look at its links and ends,
// replace a link while requests run (see replaceable), close it. What the ends are, and how many become one, is decided
// by chain.ts.

import type { Context } from "../core/handler.ts";
import { ConnectionError } from "../core/errors.ts";
import type { Handler, Link, Middleware, Request, Result } from "../core/handler.ts";
import { evaluatesCode, EVALUATES_CODE } from "../core/evaluates-code.ts";
import { within } from "../core/async.ts";
import type { UpstreamStatus } from "./upstream/status.ts";
import { checkMiddleware, hold, letGo, missing, place, type Place } from "./link-places.ts";
import type { Replaceable } from "./replaceable.ts";

export interface Gateway extends Handler {
  /** As they are now, the outermost first. */
  readonly links: readonly Link[];
  /** Another link in the place of this name, which the place keeps. Throws where there is no such place. */
  replace(name: string, link: Link | Middleware): void;
  /** How each end stands, by its name. */
  status(): Record<string, UpstreamStatus>;
  /** Closes ends and links, once; gives up waiting for them after so many milliseconds (10 s). */
  close(budgetMs?: number): Promise<void>;
}

/** An end as a gateway holds it. */
export type Held = Handler & {
  called?(name: string): void;
  status?(): UpstreamStatus | Record<string, UpstreamStatus>;
  close?(budgetMs?: number): Promise<void> | void;
};

export interface GatewayParts {
  readonly places: readonly Place[];
  /** By the names of the ends. */
  readonly ends: ReadonlyMap<string, Held>;
  /** Whether the one end there is was given without a name. */
  readonly isNameless: boolean;
  /** All of them as one. */
  readonly handler: Handler;
}

/** What closing may take where nobody says. */
const CLOSE_MS = 10_000;

export function gatewayOf({ places, ends, isNameless, handler }: GatewayParts): Gateway {
  const state = { closing: undefined as Promise<void> | undefined };
  const links = places.length === 0 ? undefined : middlewareOf(places, handler);
  const run = heldToHeaders(links === undefined ? handler : (request, context) => links.run(request, context));
  const gateway = (request: Request, context: Context): Promise<Result> =>
    state.closing === undefined ? run(request, context) : Promise.reject(closed());
  const close = async (budgetMs: number): Promise<void> => {
    const closing = [...ends.values()].map(async (end) => end.close?.(budgetMs));
    const outcome = Promise.allSettled([...closing, ...(links?.close() ?? [])]);
    const failures: unknown[] = [];
    const looked = outcome.then((all) => {
      for (const one of all) if (one.status === "rejected") failures.push(one.reason);
    });
    await within(budgetMs, looked);
    if (failures.length > 0) throw failures.length === 1 ? failures[0] : new AggregateError(failures, CLOSE_FAILED);
  };
  return Object.defineProperties(gateway, {
    [EVALUATES_CODE]: { value: [...ends.values()].some(evaluatesCode) },
    // As an end of another chain: what it stands in front of is called what it is called itself.
    called: {
      value: (name: string): void => {
        if (isNameless) for (const end of ends.values()) end.called?.(name);
      },
    },
    links: { enumerable: true, get: () => links?.places ?? [] },
    replace: {
      value: (name: string, link: Link | Middleware): void => {
        if (state.closing !== undefined) throw closed();
        checkMiddleware(link, "replace()");
        if (links === undefined) throw new TypeError(`There is no link ${JSON.stringify(name)}: the chain has none`);
        links.replace(name, link);
      },
    },
    status: { value: () => statusOf(ends, state.closing !== undefined) },
    close: { value: (budgetMs: number = CLOSE_MS): Promise<void> => (state.closing ??= close(budgetMs)) },
  }) as unknown as Gateway;
}

const provided: { Replaceable?: new (places: readonly Place[], end: Handler) => Replaceable } = {};

/** Once what runs links is loaded, nobody waits for it. */
export function provide(Loaded: new (places: readonly Place[], end: Handler) => Replaceable): void {
  provided.Replaceable = Loaded;
}

type Links = Pick<Replaceable, "places" | "run" | "replace" | "close">;

/** What runs them is loaded with the first request; until then they can be replaced by simply putting in others. */
function middlewareOf(given: readonly Place[], handler: Handler): Links {
  let places = given;
  for (const one of places) hold(one);
  let running = provided.Replaceable && new provided.Replaceable(places, handler);
  let loading: Promise<Replaceable> | undefined;
  const load = async (): Promise<Replaceable> => {
    const begun = places;
    const { Replaceable } = await import("./replaceable.ts");
    provide(Replaceable);
    return (running = new Replaceable(begun, handler));
  };
  return {
    get places() {
      return running?.places ?? places;
    },
    run: (request, context) =>
      running === undefined
        ? (loading ??= load()).then((loaded) => loaded.run(request, context))
        : running.run(request, context),
    replace: (name, link) => {
      if (running !== undefined) {
        running.replace(name, link);
        return;
      }
      const at = places.findIndex((one) => one.name === name);
      const old = places[at];
      if (old === undefined) throw missing(name, places);
      const added = place(name, link);
      places = places.with(at, added);
      // A request that has begun goes on with the links that there were.
      if (loading !== undefined) void loading.then((loaded) => loaded.replace(name, link));
      else {
        hold(added);
        void letGo(old).catch(() => undefined);
      }
    },
    close: () => {
      if (running !== undefined) return running.close();
      if (loading === undefined) return places.map((one) => letGo(one));
      return [loading.then(async (loaded) => void (await Promise.all(loaded.close())))];
    },
  };
}

/** Headers that repeat arguments are checked before the links; what that takes is loaded by the first such caller. */
function heldToHeaders(handler: Handler): Handler {
  let gate: Handler | undefined;
  const load = async (): Promise<Handler> => {
    const { headerGate } = await import("./header-gate.ts");
    return (gate ??= headerGate(handler));
  };
  return (request, context) => {
    const { method } = request;
    const isTool = method === "tools/call" || method === "tools/list";
    if (!isTool || context.caller.headers === undefined) return handler(request, context);
    return gate === undefined ? load().then((loaded) => loaded(request, context)) : gate(request, context);
  };
}

function statusOf(ends: ReadonlyMap<string, Held>, isClosed: boolean): Record<string, UpstreamStatus> {
  return Object.fromEntries(
    [...ends].flatMap(([name, end]): [string, UpstreamStatus][] => {
      const told = end.status?.();
      if (told === undefined) return [[name, inProcess(end, isClosed)]];
      if (isStatus(told)) return [[name, told]];
      // A chain of its own: the names of its ends mean something only together with its own, unless it has but one.
      const inner = Object.entries(told);
      return inner.map(([own, status]) => [inner.length === 1 ? name : `${name}.${own}`, status]);
    }),
  );
}

function isStatus(told: UpstreamStatus | Record<string, UpstreamStatus>): told is UpstreamStatus {
  return typeof told["state"] === "string";
}

function inProcess(end: Held, isClosed: boolean): UpstreamStatus {
  const target = evaluatesCode(end) ? "live sessions" : "in this process";
  return { state: isClosed ? "closed" : "running", target, sessions: 0, pids: [], restarts: 0 };
}

function closed(): ConnectionError {
  return new ConnectionError("closed", "The gateway is closed", { mayHaveRun: false });
}

const CLOSE_FAILED = "Some of the gateway's ends or links could not be closed";
