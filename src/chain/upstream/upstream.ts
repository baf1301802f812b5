// `upstream()` turns any target into a handler that many callers can use at once. A handler in this process is called
// directly. A command, a URL, a transport or a source of transports is reached through a pool of sessions.

import type { Command } from "../../client/command.ts";
import { callListener } from "../../core/listeners.ts";
import type { Handler } from "../../core/handler.ts";
import type { LiveServer } from "../../core/live-server.ts";
import { EVALUATES_CODE, evaluatesCode } from "../../core/handler-marks.ts";
import { defined } from "../../core/values.ts";
import { runBy } from "../../process/runners.ts";
import {
  checkTarget,
  checkUpstreamOptions,
  inProcessStatus,
  isCommand,
  isTransport,
  UPSTREAM,
  type UpstreamOptions,
  type UpstreamStatus,
  type UpstreamTarget,
} from "./options.ts";
import type { UpstreamPool } from "./pool.ts";

/** A server behind a gateway. It is a handler too. */
export interface Upstream extends Handler {
  /** Set if the target evaluates code that callers send. */
  [EVALUATES_CODE]?: true;
  /** Sets its name in errors, unless the options did. */
  called(name: string): void;
  /** Its current state. */
  status(): UpstreamStatus;
  /**
   * Starts it for callers without a principal, or for those of this one, unless it runs. Rejects if it cannot be started.
   * Does nothing in this process, or if `share` gives each session or request its own.
   */
  start(principal?: string): Promise<void>;
  /** Its live sessions, if the target has them. For the operator of this process. */
  live?(): ReadonlyMap<string, LiveServer>;
  /** The tools that are known of it, as stored. Starts nothing. Absent in this process, where they are listed at once. */
  knownTools?(principal?: string): Promise<readonly unknown[] | undefined>;
  /** Ends its sessions and processes. Waits at most `budgetMs`. */
  close(budgetMs?: number): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/**
 * A server behind a gateway: a command, a URL or a handler. It is started or connected to on first use.
 *
 * @example
 * const notes = upstream({ command: "npx", args: ["-y", "notes-mcp"] }, { timeoutMs: 30_000 });
 * await serve(chain(log()).to({ notes }));
 */
export function upstream(target: UpstreamTarget, options: UpstreamOptions = {}): Upstream {
  checkUpstreamOptions(options);
  if (typeof target === "function") return inProcess(target);
  checkTarget(target, "upstream(): the target");
  return pooled(isCommand(target) ? commandWith(target, options) : target, options);
}

/** The pool is imported with the first request, so that creating a chain loads no transport. */
function pooled(target: Exclude<UpstreamTarget, Handler>, options: UpstreamOptions): Upstream {
  const description = describe(target);
  let name = options.name ?? description;
  let pool: UpstreamPool | undefined;
  let loading: Promise<UpstreamPool> | undefined;
  let isClosed = false;
  const load = async (): Promise<UpstreamPool> => {
    const { createPool } = await import("./create-pool.ts");
    const onState = (): void => {
      if (options.onState !== undefined) callListener("onState", options.onState, [handler.status()]);
    };
    pool = createPool(target, options, { description, name, onState });
    if (isClosed) await pool.close();
    return pool;
  };
  const handler: Upstream = (request, context) =>
    pool === undefined
      ? (loading ??= load()).then((loaded) => loaded.handle(request, context))
      : pool.handle(request, context);
  handler.called = (nameInChain) => {
    if (options.name === undefined) name = nameInChain;
  };
  handler.status = () =>
    pool?.status() ?? {
      state: isClosed ? "closed" : "idle",
      target: description,
      sessions: 0,
      pids: [],
      restarts: 0,
    };
  handler.start = async (principal) => (await (loading ??= load())).start(principal);
  handler.knownTools = async (principal) => (await (loading ??= load())).knownTools(principal);
  handler.close = async (budgetMs) => {
    isClosed = true;
    await (await loading)?.close(budgetMs);
  };
  handler[Symbol.asyncDispose] = () => handler.close();
  // The failure of a start is in the status. The microtask lets `called` set the name first.
  if (options.start === true) queueMicrotask(() => void handler.start().catch(() => undefined));
  return handler;
}

function inProcess(target: Handler & Partial<Pick<Upstream, "live" | "close">>): Upstream {
  let isClosed = false;
  const handler = target.bind(undefined) as Upstream;
  if (evaluatesCode(target)) handler[EVALUATES_CODE] = true;
  if (target.live !== undefined) handler.live = () => target.live?.() ?? new Map();
  handler.called = () => undefined;
  handler.status = () => inProcessStatus(target, isClosed);
  handler.start = async () => undefined;
  handler.close = async (budgetMs) => {
    isClosed = true;
    await target.close?.(budgetMs);
  };
  handler[Symbol.asyncDispose] = () => handler.close();
  return handler;
}

/** The same upstream, with a handler in front that calls it, and with other methods if they are given. */
export function wrapUpstream(
  inner: Upstream,
  handler: Handler,
  methods: Partial<Pick<Upstream, "status" | "start">> = {},
): Upstream {
  const properties = { ...Object.getOwnPropertyDescriptors(inner), ...Object.getOwnPropertyDescriptors(methods) };
  return Object.defineProperties(handler, properties) as Upstream;
}

/** The command with the options that say how it is started. */
export function commandWith(command: Command, { env, cwd, inheritEnv }: UpstreamOptions): Command {
  // A gateway has the keys of many programs in its environment, so a program gets no more than it needs.
  const inherit = inheritEnv ?? command.inheritEnv ?? UPSTREAM.inheritEnv.default;
  return { ...command, inheritEnv: inherit, ...defined({ env: env && { ...command.env, ...env }, cwd }) };
}

/** The program, and what a runner runs. Other arguments may be secret. */
export function describeCommand({ command, args = [] }: Command): string {
  const name = command.split(/[/\\]/).at(-1) ?? command;
  const first = runBy(name, args);
  return first !== undefined && /^[\w@./+][\w@./+-]{0,99}$/.test(first) ? `${name} ${first}` : command;
}

/** Leaves out what may be secret: arguments, and the path and query of a URL. */
function describe(target: Exclude<UpstreamTarget, Handler>): string {
  if (typeof target === "object" && "transport" in target) return target.description ?? "a transport";
  if (isTransport(target)) return "a transport";
  if (isCommand(target)) return describeCommand(target);
  const text = String(target);
  if (!URL.canParse(text)) return "an invalid address";
  return new URL(text).origin;
}
