// `end`: whatever can answer, as a handler that many callers may use at once. A handler in this process is called as
// it is. A command or an address is reached by sessions of its own, begun when they are needed (see end-making). Here
// stand what a person may say of an end and the checks of it.

import type { ConnectOptions, Target } from "../../client/connect.ts";
import type { Command } from "../../client/command.ts";
import type { Handler } from "../../core/handler.ts";
import { evaluatesCode, EVALUATES_CODE } from "../../core/evaluates-code.ts";
import { checkOptions } from "../../core/options.ts";
import type { Transport } from "../../transport/transport.ts";
import type { Reached } from "./end-making.ts";
import type { UpstreamStatus } from "./status.ts";
import type { RestartOptions } from "./restarts.ts";

/**
 * `shared`: one session for all callers. `per-session`: one for each session of a caller. `per-caller`: one for each
 * person, and for each session of those whom the wire does not know. `per-request`: a new one for each request.
 */
export type Share = "shared" | "per-session" | "per-caller" | "per-request";

/** How long a message of an end may be where nobody says otherwise: by a program as over HTTP. */
export const MESSAGE_BYTES: number = 64 * 1024 * 1024;

export const SHARES: readonly Share[] = ["shared", "per-session", "per-caller", "per-request"];

/** An address, a program to start, a handler in this process, or a transport that is not started yet. */
export type UpstreamTarget = Target;

export interface UpstreamOptions extends Pick<
  ConnectOptions,
  "auth" | "fetch" | "headers" | "limits" | "onNoise" | "onStderr" | "revision" | "startTimeout" | "timeout"
> {
  /** What errors call it; how it is reached, where it is left out. */
  readonly name?: string;
  /** Who shares a session with it; callers who are the same to it, where it is left out. */
  readonly share?: Share;
  /** For a command: added to our own environment. */
  readonly env?: Readonly<Record<string, string>>;
  /** For a command: the folder in which it is started. */
  readonly cwd?: string;
  /**
   * Milliseconds without a call after which a session is ended; 0: never. Left out: 30 minutes, and not while a caller
   * with a session is there.
   */
  readonly idle?: number;
  /** For a command: how often and how soon it is started again after it has failed. */
  readonly restart?: RestartOptions;
  /** For a command: whether what it offers is remembered, so that it is shown without being started; true. */
  readonly remember?: boolean;
  /** Sessions at once; 100. */
  readonly sessions?: number;
  /** Told whenever its status has changed. */
  readonly onState?: (status: UpstreamStatus) => void;
}

export interface Upstream extends Handler {
  /** It evaluates what callers send. */
  [EVALUATES_CODE]?: true;
  /** Says what errors call it, where nobody has said so before. */
  called(name: string): void;
  status(): UpstreamStatus;
  close(budgetMs?: number): Promise<void>;
}

export function upstream(target: UpstreamTarget, options: UpstreamOptions = {}): Upstream {
  check(options);
  if (typeof target === "function") return inProcess(target);
  if (typeof target === "string" || target instanceof URL) checkAddress(String(target));
  return pooled(isCommand(target) ? withOptions(target, options) : target, options);
}

/** Loaded with the first request: whoever only makes a chain pays for no wire. */
function pooled(target: Exclude<UpstreamTarget, Handler>, options: UpstreamOptions): Upstream {
  const shown = describe(target);
  let name = options.name ?? shown;
  let pool: Reached | undefined;
  let loading: Promise<Reached> | undefined;
  let isClosed = false;
  const load = async (): Promise<Reached> => {
    const { poolOf } = await import("./end-making.ts");
    pool = poolOf(target, options, { shown, name: () => name, onState: () => options.onState?.(handler.status()) });
    if (isClosed) await pool.close();
    return pool;
  };
  const handler: Upstream = async (request, context) => (pool ?? (await (loading ??= load()))).handle(request, context);
  handler.called = (given) => {
    if (options.name === undefined) name = given;
  };
  handler.status = () =>
    pool?.status() ?? { state: isClosed ? "closed" : "asleep", target: shown, sessions: 0, pids: [], restarts: 0 };
  handler.close = async (budgetMs) => {
    isClosed = true;
    await (await loading)?.close(budgetMs);
  };
  return handler;
}

function inProcess(target: Handler & { close?(budgetMs?: number): Promise<void> | void }): Upstream {
  let isClosed = false;
  const handler: Upstream = (request, context) => target(request, context);
  if (evaluatesCode(target)) handler[EVALUATES_CODE] = true;
  handler.called = () => undefined;
  handler.status = () => ({
    state: isClosed ? "closed" : "running",
    target: evaluatesCode(target) ? "live sessions" : "in this process",
    sessions: isClosed ? 0 : 1,
    pids: [],
    restarts: 0,
  });
  handler.close = async (budgetMs) => {
    isClosed = true;
    await target.close?.(budgetMs);
  };
  return handler;
}

function withOptions(command: Command, { env, cwd }: UpstreamOptions): Command {
  return {
    ...command,
    ...(env === undefined ? undefined : { env: { ...command.env, ...env } }),
    ...(cwd === undefined ? undefined : { cwd }),
  };
}

// By the types, so that an option which is added there must be added here.
const OPTIONS = {
  name: true,
  share: true,
  env: true,
  cwd: true,
  revision: true,
  timeout: true,
  startTimeout: true,
  idle: true,
  restart: true,
  remember: true,
  sessions: true,
  headers: true,
  auth: true,
  fetch: true,
  limits: true,
  onState: true,
  onStderr: true,
  onNoise: true,
} as const satisfies Record<keyof UpstreamOptions, true>;

function check(options: UpstreamOptions): void {
  checkOptions("upstream()", options, OPTIONS);
  const { share, revision, idle, sessions } = options;
  if (share !== undefined && !SHARES.includes(share)) {
    throw new TypeError(`upstream(): \`share\` must be one of ${SHARES.join(", ")}; got ${JSON.stringify(share)}`);
  }
  // Which revisions there are is known where one is spoken: loading them all is not worth a word here.
  if (revision !== undefined && !/^\d{4}-\d{2}-\d{2}$/.test(revision))
    throw new TypeError("upstream(): `revision` is a date, as text: YYYY-MM-DD");
  if (idle !== undefined && !(idle >= 0))
    throw new TypeError("upstream(): `idle` is a number of milliseconds; 0: never");
  if (sessions !== undefined && !(sessions > 0)) throw new TypeError("upstream(): `sessions` must be a number above 0");
}

/** What was given is not repeated: it may hold a secret. */
function checkAddress(text: string): void {
  if (/^https?:\/\//i.test(text.trim()) && URL.canParse(text)) return;
  throw new TypeError("upstream(): an address begins with http:// or https://; a program is { command, args }");
}

export function isCommand(target: Exclude<UpstreamTarget, Handler>): target is Command {
  return typeof target === "object" && target !== null && "command" in target;
}

export function isTransport(target: Exclude<UpstreamTarget, Handler>): target is Transport {
  return typeof target === "object" && target !== null && "start" in target && typeof target.start === "function";
}

/** Programs that say nothing of what they run; their first argument does. */
const RUNNERS: ReadonlySet<string> = new Set(["bun", "bunx", "deno", "node", "npx", "python", "python3", "tsx", "uvx"]);

/** Flags of theirs behind which no value stands: behind any other it may, and it may be secret. */
export const BARE_FLAGS: ReadonlySet<string> = new Set([
  ...["-y", "--yes", "-q", "--quiet", "-u", "--no-install", "--bun"],
  ...["--enable-source-maps", "--no-warnings", "--experimental-strip-types"],
]);

function commandLine({ command, args = [] }: Command): string {
  const name = command.split(/[/\\]/).at(-1) ?? command;
  const first = RUNNERS.has(name) ? args.find((arg) => !BARE_FLAGS.has(arg)) : undefined;
  return first !== undefined && /^[\w@./+][\w@./+-]{0,99}$/.test(first) ? `${name} ${first}` : command;
}

/** Without what may be secret: arguments, the query of an address, and what looks like a key in its path. */
function describe(target: Exclude<UpstreamTarget, Handler>): string {
  if (isTransport(target)) return "a transport";
  if (isCommand(target)) return commandLine(target);
  const text = String(target);
  if (!URL.canParse(text)) return "an address that is none";
  const { origin, pathname } = new URL(text);
  return origin + pathname.replace(/[^/]{16,}/g, (part) => (/\d/.test(part) ? "..." : part));
}
