// The options of an upstream and their checks, and the status that an upstream reports.

import type { Command } from "../../client/command.ts";
import type { ConnectOptions, Target } from "../../client/connect.ts";
import type { ConnectionErrorKind } from "../../core/errors.ts";
import type { Handler } from "../../core/handler.ts";
import { evaluatesCode, isUnfinishedChain, NO_UPSTREAM } from "../../core/handler-marks.ts";
import {
  boolean,
  choice,
  code,
  count,
  documented,
  either,
  field,
  msOrZero,
  object,
  path,
  refine,
  secretMap,
  strings,
  text,
  type OptionsOf,
} from "../../core/fields.ts";
import { checkFields, checkOptions, kindOf, OptionPlace, optionNames, type OptionNames } from "../../core/options.ts";
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

export const RESTART = {
  maxFailures: count(
    "After this many failures within the window, it is not restarted until the oldest is outside it.",
  ).or(5),
  windowMs: msOrZero("The window in milliseconds.").or(180_000),
  firstMs: msOrZero("Milliseconds before the first restart; each further delay is 1.6 times the previous one.").or(
    1_000,
  ),
  maxMs: msOrZero("The longest delay in milliseconds.").or(60_000),
};

/** How often and how soon an upstream is restarted after failures. */
export type RestartOptions = OptionsOf<typeof RESTART>;

export const UPSTREAM = {
  name: text("Its name in errors. Default: its command or URL."),
  share: choice(
    "Which callers share a session with the server. shared: all. per-session: each client session has its own. per-caller: each authenticated caller has its own. per-request: each request has its own. Default: all callers of one identity share one; if the server asks its clients (elicitation, sampling, roots), each client that can be asked has its own.",
    SHARES,
  ),
  env: secretMap("Variables to add to the environment of a command."),
  inheritEnv: either(
    "Which variables of our environment its processes inherit. false: those that most programs need, such as PATH and HOME. true: all but the secrets of Catenary. An array: those of false, and the variables of these names, in which `*` matches any characters.",
    boolean(""),
    strings(""),
  ).or(false),
  cwd: path("The folder in which a command is started."),
  // Only the format is checked: loading all revisions would slow down every program that creates a chain.
  revision: field(
    "The protocol revision to use with the server, by its date. Default: negotiated.",
    { type: "string" },
    "a date as a string: YYYY-MM-DD",
    (value): value is string => typeof value === "string" && /^\d{4}-\d{2}-\d{2}$/.test(value),
  ),
  timeoutMs: msOrZero("Milliseconds without a response or progress after which a call fails; 0: never.").or(
    0,
    "0, since the caller has a limit",
  ),
  maxTimeoutMs: msOrZero("Milliseconds after which a call fails even if it makes progress; 0: never.").or(0),
  startTimeoutMs: msOrZero("Milliseconds that the server may take to start and to answer its first request.").or(
    600_000,
  ),
  idleMs: msOrZero("Milliseconds without a call after which a session ends; 0: never.").or(1_800_000, "30 minutes"),
  restart: object(
    "How often and how soon a crashed command is restarted.",
    RESTART,
    "an object, such as {maxFailures: 5, windowMs: 180000}",
  ),
  start: boolean(
    "true: start the server with the gateway instead of with the first request. Has no effect with a share of per-session or per-request.",
  ).or(false),
  remember: boolean(
    "Whether to cache what a command offers, so that it can be listed without starting the command.",
  ).or(true),
  maxSessions: count("Maximum open sessions with the server.").or(100),
  /** For a URL: headers to send with every HTTP request. */
  headers: code<NonNullable<ConnectOptions["headers"]>>(),
  forwardHeaders: refine(
    strings(
      "For a URL: the names of HTTP headers of callers that are passed on. Callers whose values differ get separate sessions. `Authorization`, `Cookie` and protocol headers are refused. Default: none.",
    ),
    (names, place) => {
      const wrong = names.find((name) => !isForwardable(name));
      if (wrong !== undefined) throw place.error(`has ${JSON.stringify(wrong)}, which cannot be passed on`);
    },
  ),
  /** For a URL: how to sign in. */
  auth: code<NonNullable<ConnectOptions["auth"]>>(),
  /** For a URL: sends HTTP requests, in place of Node. */
  fetch: code<NonNullable<ConnectOptions["fetch"]>>(),
  /** Limits on messages. */
  limits: code<NonNullable<ConnectOptions["limits"]>>(),
  onState: documented("Called when the status has changed.", code<(status: UpstreamStatus) => void>()),
  /** Gets what a command writes to stderr. */
  onStderr: code<NonNullable<ConnectOptions["onStderr"]>>(),
  /** Gets lines of a command that are not messages. */
  onNoise: code<NonNullable<ConnectOptions["onNoise"]>>(),
};

/** Options of `upstream()`. */
export type UpstreamOptions = OptionsOf<typeof UPSTREAM>;

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
  /** `problem` without the output of the program. */
  readonly reason?: string;
  /** What to do about the problem, if that is known. `problem` and `reason` say it too. */
  readonly hint?: string;
  /** The kind of its last failure, if it was one of the connection. */
  readonly kind?: ConnectionErrorKind;
  /** Set if it asks for a sign-in, and no tokens are there or they are no longer valid. */
  readonly needsSignIn?: true;
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

export function checkUpstreamOptions(options: UpstreamOptions): void {
  checkFields(options, UPSTREAM, new OptionPlace("upstream()"));
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
  const forwarded = names.map((name) => name.toLowerCase()).filter((name) => headers[name] !== undefined);
  return Object.fromEntries(forwarded.map((name) => [name, headers[name] ?? ""]));
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
    const actual = typeof command === "string" ? "an empty string" : kindOf(command);
    throw new TypeError(`${where}: \`command\` must be the name or path of a program, not ${actual}`);
  } else if (isObject(target) && isTransportSource(target)) {
    return;
  } else if (isObject(target) && ("start" in target || "send" in target)) {
    checkTransport(target, where);
  } else {
    const keys = isObject(target) ? Object.keys(target).slice(0, 5) : [];
    const actual = `${kindOf(target)}${keys.length === 0 ? "" : ` with \`${keys.join("`, `")}\``}`;
    throw new TypeError(
      `${where} must be a URL, a command ({ command, args }), a handler or a transport, not ${actual}`,
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
