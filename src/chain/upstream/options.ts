// The options of an upstream and their checks, and the status that an upstream reports.

import type { Command } from "../../client/command.ts";
import type { ConnectOptions, Target } from "../../client/connect.ts";
import { evaluatesCode, isUnfinishedChain, NO_UPSTREAM, type Handler } from "../../core/handler.ts";
import { checkOptions, kindOf, optionNames, type OptionNames } from "../../core/options.ts";
import { isObject } from "../../core/values.ts";
import { checkTransport, isTransportSource, type Transport } from "../../transport/transport.ts";

/**
 * `shared`: one session for all callers. `per-session`: one for each session of a caller. `per-caller`: one for each
 * authenticated caller, and one for each session of an unauthenticated caller. `per-request`: a new one for each
 * request.
 */
export type Share = "shared" | "per-session" | "per-caller" | "per-request";

export const SHARES: readonly Share[] = ["shared", "per-session", "per-caller", "per-request"];

/** A URL, a program to start, a handler in this process, or a transport that is not started yet. */
export type UpstreamTarget = Target;

/** How often and how soon an upstream is restarted after failures. */
export interface RestartOptions {
  /** After this many failures within the window, restarts pause until the oldest is outside it. Default: 5. */
  readonly maxFailures?: number | undefined;
  /** The length of the window in milliseconds. Default: 3 minutes. */
  readonly windowMs?: number | undefined;
  /** The first pause in milliseconds. Each pause is about 1.6 times as long as the one before. Default: 1 s. */
  readonly firstMs?: number | undefined;
  /** The longest pause in milliseconds. Default: 60 s. */
  readonly maxMs?: number | undefined;
}

/** Options of `upstream()`. */
export interface UpstreamOptions extends Pick<
  ConnectOptions,
  "auth" | "fetch" | "headers" | "limits" | "onNoise" | "onStderr" | "revision"
> {
  /**
   * For a URL: the names of HTTP headers of callers that are passed on. Callers whose values differ get separate
   * sessions. `Authorization`, `Cookie` and protocol headers are refused. Default: none.
   */
  readonly forwardHeaders?: readonly string[] | undefined;
  /** Its name in errors. Default: its command or URL. */
  readonly name?: string | undefined;
  /**
   * Which callers share a session. Default: one session per principal; once the upstream has sent a request to a client
   * (elicitation, sampling, roots), one per client that can answer.
   */
  readonly share?: Share | undefined;
  /** Added to the environment of a command. */
  readonly env?: Readonly<Record<string, string>> | undefined;
  /**
   * Which variables of our environment a command inherits. `false`: those that most programs need, such as PATH and
   * HOME. `true`: all but the secrets of Catenary. An array: those of `false`, and the variables of these names, in
   * which `*` matches any characters. Default: false.
   */
  readonly inheritEnv?: boolean | readonly string[] | undefined;
  /** The folder in which a command is started. */
  readonly cwd?: string | undefined;
  /** Milliseconds that a request may take without progress. Default: no limit, since the caller has one. */
  readonly timeoutMs?: number | undefined;
  /** Milliseconds that a request may take in all. Default: no limit. */
  readonly maxTimeoutMs?: number | undefined;
  /**
   * Milliseconds that the upstream may take to start and answer the first request. Default: 10 minutes, of which a
   * request waits for 60 s.
   */
  readonly startTimeoutMs?: number | undefined;
  /**
   * Milliseconds without a call after which a session is ended; 0 means never. Default: 30 minutes, but not while a
   * caller with a session is connected.
   */
  readonly idleMs?: number | undefined;
  /** How often and how soon a command is restarted after a failure. */
  readonly restart?: RestartOptions | undefined;
  /**
   * Starts it at once instead of with the first request. Has no effect if `share` gives each session or request its own
   * session. Default: false.
   */
  readonly start?: boolean | undefined;
  /** Whether the lists of a command are cached on disk, so that they are shown without starting it. Default: true. */
  readonly remember?: boolean | undefined;
  /** The most sessions at the same time. Default: 100. */
  readonly maxSessions?: number | undefined;
  /** Called when the status has changed. */
  readonly onState?: ((status: UpstreamStatus) => void) | undefined;
}

/**
 * `idle`: not started, or stopped because it was not used; the next request starts it. `starting`: it has not answered
 * yet. `running`: there is a session with it. `restarting`: it failed; a request can start it again after a pause.
 * `failed`: it failed too often, so the pause is longer. `closed`: closed for good. `incomplete`: a variable in its
 * entry of a config is not set, so it cannot be started.
 */
export type UpstreamState = "idle" | "starting" | "running" | "restarting" | "failed" | "closed" | "incomplete";

/** `start`: the program did not answer, or exited before it did. `crash`: it exited later. */
export type FailureCause = "crash" | "start";

/** The state of an upstream and its sessions at one moment. */
export interface UpstreamStatus {
  readonly state: UpstreamState;
  /** Its command or URL, without secrets. */
  readonly target: string;
  /** Sessions that are open now, for all callers. */
  readonly sessions: number;
  /** The negotiated revision. */
  readonly revision?: string;
  /** Its processes. */
  readonly pids: readonly number[];
  /** How often it was restarted after a failure. */
  readonly restarts: number;
  /** In the state `restarting`: milliseconds until it can be started again. */
  readonly restartInMs?: number;
  /** Its last failure; for a URL, only until it answers again. */
  readonly problem?: string;
  /** Of a program: whether it crashed in its last failure, or did not start. */
  readonly cause?: FailureCause;
  /** Whether it has failed and has not worked since. */
  readonly failing?: true;
  /** Why it is running and cannot be listed. */
  readonly unlisted?: string;
}

/** The status of an upstream that is a handler in this process. */
export function inProcessStatus(target: Handler, isClosed: boolean): UpstreamStatus {
  return {
    state: isClosed ? "closed" : "running",
    target: evaluatesCode(target) ? "runs code on this machine" : "in this process",
    sessions: isClosed ? 0 : 1,
    pids: [],
    restarts: 0,
  };
}

// Typed against the options, so that a new option must be added here too.
const OPTIONS = {
  name: true,
  share: true,
  env: true,
  inheritEnv: true,
  cwd: true,
  revision: true,
  timeoutMs: true,
  maxTimeoutMs: true,
  startTimeoutMs: true,
  idleMs: true,
  restart: true,
  start: true,
  remember: true,
  maxSessions: true,
  headers: true,
  forwardHeaders: true,
  auth: true,
  fetch: true,
  limits: true,
  onState: true,
  onStderr: true,
  onNoise: true,
} as const satisfies Record<keyof UpstreamOptions, true>;

const RESTART_OPTIONS = {
  maxFailures: true,
  windowMs: true,
  firstMs: true,
  maxMs: true,
} as const satisfies Record<keyof RestartOptions, true>;

export function checkUpstreamOptions(options: UpstreamOptions): void {
  checkOptions("upstream()", options, OPTIONS);
  const { share, revision, idleMs, maxSessions, restart, inheritEnv } = options;
  if (restart !== undefined) checkOptions("upstream()", restart, RESTART_OPTIONS, "restart.");
  if (share !== undefined && !SHARES.includes(share)) {
    throw new TypeError(`upstream(): \`share\` must be one of ${SHARES.join(", ")}, not ${JSON.stringify(share)}`);
  }
  // Checks only the format: loading all revisions here would slow down every program that creates a chain.
  if (revision !== undefined && !/^\d{4}-\d{2}-\d{2}$/.test(revision)) {
    throw new TypeError("upstream(): `revision` must be a date as a string: YYYY-MM-DD");
  }
  if (idleMs !== undefined && !(idleMs >= 0)) {
    throw new TypeError("upstream(): `idleMs` must be a number of milliseconds; 0 means never");
  }
  if (inheritEnv !== undefined && typeof inheritEnv !== "boolean" && !isNames(inheritEnv)) {
    throw new TypeError("upstream(): `inheritEnv` must be true, false, or an array of names of variables");
  }
  const wrong = (options.forwardHeaders ?? []).find((name) => !isForwardable(name));
  if (wrong !== undefined) {
    throw new TypeError(`upstream(): \`forwardHeaders\`: ${JSON.stringify(wrong)} cannot be passed on`);
  }
  if (maxSessions !== undefined && !(maxSessions > 0)) {
    throw new TypeError("upstream(): `maxSessions` must be a number above 0");
  }
}

/** Headers that belong to one connection or to the protocol. */
const PROTOCOL_HEADERS =
  /^(?:proxy-.*|host|connection|keep-alive|te|trailer|transfer-encoding|upgrade|expect|accept|accept-encoding|content-.*|mcp-.*|last-event-id)$/i;
/** A token was issued for us, and the specification forbids passing it on. The others describe the caller itself. */
const OWN_HEADERS = /^(?:authorization|cookie|dpop|user-agent|origin)$/i;

/** Whether a header may be added to requests. */
export function isSettable(name: string): boolean {
  return /^[!#$%&'*+.^_`|~\w-]+$/.test(name) && !PROTOCOL_HEADERS.test(name);
}

/** Whether a header of a caller may be passed on. */
export function isForwardable(name: string): boolean {
  return isSettable(name) && !OWN_HEADERS.test(name);
}

/** The headers of a caller that are passed on, by lower-case names. */
export function forwardedHeaders(
  names: readonly string[] = [],
  headers: Readonly<Record<string, string>> = {},
): Record<string, string> {
  const wanted = names.map((name) => name.toLowerCase()).filter((name) => headers[name] !== undefined);
  return Object.fromEntries(wanted.map((name) => [name, headers[name] ?? ""]));
}

function isNames(value: unknown): boolean {
  return Array.isArray(value) && value.every((name) => typeof name === "string");
}

const COMMAND_OPTIONS: OptionNames<Command> = optionNames("command args env inheritEnv cwd");

/** Throws a TypeError for what is not a target. It begins with `where`. */
export function checkTarget(target: unknown, where: string): asserts target is Exclude<UpstreamTarget, Handler> {
  if (isUnfinishedChain(target)) throw new TypeError(`${where}: ${NO_UPSTREAM}`);
  if (target instanceof URL || (typeof target === "string" && target.trim() !== "")) {
    checkAddress(String(target), where);
  } else if (isObject(target) && "command" in target) {
    checkOptions(`${where}: a command`, target, COMMAND_OPTIONS);
    const { command } = target;
    if (typeof command === "string" && command.trim() !== "") return;
    const given = typeof command === "string" ? "an empty string" : kindOf(command);
    throw new TypeError(`${where}: \`command\` must be the name or path of a program, not ${given}`);
  } else if (isObject(target) && isTransportSource(target)) {
    return;
  } else if (isObject(target) && ("start" in target || "send" in target)) {
    checkTransport(target, where);
  } else {
    const keys = isObject(target) ? Object.keys(target).slice(0, 5) : [];
    const given = `${kindOf(target)}${keys.length === 0 ? "" : ` with \`${keys.join("`, `")}\``}`;
    throw new TypeError(
      `${where} must be a URL, a command ({ command, args }), a handler or a transport, not ${given}`,
    );
  }
}

/** The error does not quote the URL, which may contain a secret. */
function checkAddress(text: string, where: string): void {
  if (/^https?:\/\//i.test(text.trim()) && URL.canParse(text)) return;
  throw new TypeError(`${where}: an address must begin with http:// or https://; for a program, use { command, args }`);
}

export function isCommand(target: Exclude<UpstreamTarget, Handler>): target is Command {
  return typeof target === "object" && target !== null && "command" in target;
}

export function isTransport(target: Exclude<UpstreamTarget, Handler>): target is Transport {
  return typeof target === "object" && target !== null && "start" in target && typeof target.start === "function";
}
