// The central type: a handler takes a request and its context and returns a promise of a result. A server, a connected
// upstream, a chain and a router over many upstreams are all handlers. Requests, results and contexts are immutable:
// middleware that wants a different one passes a copy on.

/// <reference lib="esnext.disposable" preserve="true" />

/** Extra data of a message: `_meta`. */
export type Meta = { readonly [key: string]: unknown };
/** The params of a request or a notification. */
export type Params = { readonly _meta?: Meta; readonly [key: string]: unknown };

/** A request in the shape of the newest revision. */
export interface Request {
  /** Such as `tools/call`. */
  readonly method: string;
  /** Empty if the method needs none. */
  readonly params: Params;
}

/** A notification in the shape of the newest revision. */
export interface Notification {
  /** Such as `notifications/progress`. */
  readonly method: string;
  readonly params?: Params;
}

/** A missing `resultType` means "complete". */
export type Result = { readonly resultType?: string; readonly _meta?: Meta; readonly [key: string]: unknown };

/** Answers requests: a server, a connected upstream, a chain. */
export type Handler = (request: Request, context: Context) => Promise<Result>;

/** The name of the function is its name in a chain. `close` is called when no gateway uses the middleware any more. */
export interface Middleware {
  (request: Request, context: Context, next: Handler): Promise<Result>;
  /** Releases what the middleware holds. */
  close?(): void | Promise<void>;
  /** Called when the gateway has other upstreams or middleware than before, so that what it remembers may be wrong. */
  changed?(): void;
  /**
   * What it has measured, in the text format of Prometheus; an HTTP server shows it at `/metrics`. Gets the upstreams of
   * the gateway by name.
   */
  metrics?(upstreams: Readonly<Record<string, { readonly restarts: number }>>): string;
}

/**
 * What travels with a request: the caller and its revision, the signal that cancels the work, and two functions to
 * reach the caller before the result (`notify`, `ask`). Middleware that wants to intercept them passes on a context
 * with its own functions.
 */
export interface Context {
  /** The caller's revision. */
  readonly revision: string;
  /** Who sent the request. */
  readonly caller: Caller;
  /** Aborted when the caller no longer wants the result. */
  readonly signal: AbortSignal;
  /** The lowest level of log messages that the caller wants with this request. If absent, it wants none. */
  readonly logLevel?: LogLevel;
  /** Timeouts for this request, if the caller set any. */
  readonly timeouts?: { readonly idleMs?: number; readonly totalMs?: number };
  /** Notifies the caller of progress, logs and changes. Notifications that it did not ask for are dropped. */
  notify(notification: Notification): void;
  /** Sends a request to the caller: `elicitation/create`, `sampling/createMessage` or `roots/list`. */
  ask(request: Request, options?: AskOptions): Promise<Result>;
  /** Session-style HTTP only: ends the call's stream, so that the caller reconnects for the rest. */
  hangUp?(retryMs: number): void;
  /** Whether the request is a notification of the caller: its result is dropped, and so is an error. */
  readonly isNotification?: true;
  /** The session of the caller. Stateless callers have none; a client in this process has one. */
  readonly session?: Session;
  /** Whether a call should run as a task, if the caller says so. The newest revision has no field for it. */
  readonly task?: TaskWish;
  /** In a gateway, what the request names, as callers see it at this place of the chain. */
  readonly item?: CalledItem;
  /** What observes the request, if anything does. */
  readonly observer?: Observer | undefined;
  /** The request on the wire of its client. Absent if it came over none: from a client in this process, or from us. */
  readonly wire?: CallWire;
  /**
   * HTTP headers to send with the request, if it goes to a server over HTTP. Middleware may set them. They may be
   * secret. The headers of the protocol and the credentials of the connection replace those with the same name.
   */
  readonly headers?: Readonly<Record<string, string>>;
  /** Whether headers that repeat arguments were compared with them. Middleware may change the arguments afterwards. */
  readonly headersChecked?: true;
  /** The id of the run of `run-code` that made this call, in code mode. Not set for other requests. */
  readonly run?: string;
}

/** What records the life of a request (chain/observe.ts). It can neither refuse nor change it. */
export interface Observer {
  /**
   * A gateway sends the request to an upstream: the name of the upstream (undefined if the gateway has only one), and
   * the request in the upstream's own names. If the upstream is a gateway itself, this is called again, with a name such
   * as `team.notes`.
   */
  routed(upstream: string | undefined, request: Request): void;
  /** A gateway knows more about the request: its item, and which part of the gateway the caller sees. */
  entered?(context: Context): void;
  /** The request runs code, in code mode. The calls that the code makes have this id as `context.run`. */
  ran?(run: string): void;
  /** Records what each middleware and each upstream gets and returns. Undefined unless a reader wants that. */
  readonly recorder?: StepRecorder | undefined;
  /** Takes what passes between a gateway and the upstream for the request. Undefined unless a reader wants that. */
  readonly wire?: WireObserver | undefined;
}

/** What a step of a request is: what did something with it. */
export type StepKind = "transform" | "middleware" | "router" | "upstream";

/** Takes the messages of a request as they are on the wire. It must not change them, and must not throw. */
export interface WireObserver {
  passed(passage: RawPassage): void;
}

/** A passage whose head may have secrets, which are hidden before a reader gets it. */
export interface RawPassage extends Omit<WirePassage, "http"> {
  readonly http?: RawHead | undefined;
}

/** The head of an HTTP request or response as it is on the wire. */
export interface RawHead {
  /** The method and the path, without the query, or the status. */
  readonly line: string | number;
  readonly headers: Readonly<Record<string, string>>;
  /** Whether the value of a header is no secret, if that is not known by its name alone. */
  readonly isShown?: ((name: string) => boolean) | undefined;
}

/** A message on the wire, or only the head of HTTP of one that is still to come. */
export interface WirePassage {
  /** Between the client and us, or between us and an upstream. */
  readonly side: "client" | "upstream";
  /** The name of the upstream, such as `notes` or `team.notes`. Undefined if the gateway has only one. */
  readonly upstream?: string | undefined;
  /** To an upstream, we are the client. */
  readonly sender: "client" | "server";
  /** The JSON-RPC message, in the revision of its side. It is no copy: do not change it. Absent if only the head is known. */
  readonly message?: object | undefined;
  /** The revision of this side. */
  readonly revision?: string | undefined;
  /** The head of the HTTP request or response that carries it, without secrets. */
  readonly http?: HttpHead | undefined;
}

/** The head of an HTTP request or response. */
export interface HttpHead {
  /** Such as `POST /mcp` or `200 OK`. */
  readonly line: string;
  /** By lower-case name. The values of those that carry secrets are hidden. */
  readonly headers: Readonly<Record<string, string>>;
}

/** A request on the wire of its client. */
export interface CallWire {
  /**
   * Reports the request, and then what follows it, up to its response: that comes after the handler has answered. Of the
   * observers of one reader, only the first is told: a request may be run again with answers to its questions.
   */
  reportTo(observer: WireObserver, reader: object): void;
}

/** Records steps of a request. */
export interface StepRecorder {
  /** Runs the handler as a step. Undefined if the step is not recorded, and has not run. */
  record(
    kind: StepKind,
    name: string,
    request: Request,
    context: Context,
    handler: Handler,
  ): Promise<Result> | undefined;
}

/** The tool, prompt, resource, template or task that a request to a gateway names. */
export interface CalledItem {
  readonly kind: "tools" | "prompts" | "resources" | "templates" | "tasks";
  /** The name, URI or id that the request has at this place of the chain. */
  readonly name: string;
  /** The name, URI or id at its upstream; the same as `name` if the gateway does not know it. */
  readonly ownName: string;
  /** The name of its upstream. Undefined if the gateway has only one, or does not know it. */
  readonly upstream: string | undefined;
  /** Whether it is listed at this place of the chain. An item that is not can still be called. Undefined if not known. */
  readonly isListed: boolean | undefined;
  /** As it is listed. Undefined if it is in no list, or no list was read so far. */
  readonly definition: { readonly [field: string]: unknown } | undefined;
  /** What the definition of a tool says about calls of it. Undefined if there is no definition. */
  readonly facts:
    | {
        /** Whether the tool declares itself read-only, and not destructive. */
        readonly isReadOnly: boolean;
        /** Whether the tool declares itself read-only or idempotent. */
        readonly isIdempotent: boolean;
        /** Whether the tool declares itself destructive. */
        readonly isDestructive: boolean;
        /** Whether the tool may destroy something: it does not declare the contrary. */
        readonly mayDestroy: boolean;
      }
    | undefined;
}

/** The session of a client: the same object for all its requests, for middleware and for handlers. */
export interface Session {
  /** No other session of this process has it. */
  readonly id: string;
  /** Values that live as long as the session. All middleware and handlers that serve the session share them. */
  readonly state: Map<string, unknown>;
  /** Aborted when the session ends. */
  readonly ended: AbortSignal;
  /**
   * Sends a notification to the client of this session, also outside of a call: one that the specification does not
   * define, or one such as `notifications/tools/list_changed`. Does nothing once the session has ended.
   *
   * @example
   * const timer = setInterval(() => session.notify({ method: "notifications/acme/tick" }), 1_000);
   * session.ended.addEventListener("abort", () => clearInterval(timer));
   */
  notify(notification: Notification): void;
  /** Calls back when the client's roots have changed, if it notifies of that. Returns a function that stops this. */
  onRootsChanged?(changed: () => void): () => void;
}

/** What a caller says about running a call as a task. */
export interface TaskWish {
  /**
   * "required": the call runs as a task, or fails. "if-supported": the caller can handle a task, so a tool that supports
   * tasks should run as one. A session-style server creates no task otherwise.
   */
  readonly mode: "required" | "if-supported";
  /** The field `task` of the request, as the caller's revision defines it. */
  readonly params?: { readonly [key: string]: unknown };
}

type Settings = { readonly [key: string]: unknown };

/** What a client declares that it can do, in the shape of the newest revision. */
export interface ClientCapabilities {
  /** An empty object means that only forms are supported. */
  readonly elicitation?: { readonly form?: Settings; readonly url?: Settings };
  readonly sampling?: { readonly context?: Settings; readonly tools?: Settings };
  readonly roots?: Settings;
  readonly extensions?: { readonly [name: string]: Settings };
  readonly experimental?: { readonly [name: string]: Settings };
  readonly [key: string]: unknown;
}

/** The client, as a handler sees it. Made once by the side that received the request (protocol/caller.ts). */
export interface Caller extends CallerIdentity {
  /** The style of the caller's revision. */
  readonly style: "session" | "stateless";
  /**
   * The same for all requests of one client, and for no other client. Each session has its own. Stateless requests
   * over HTTP, or over one connection, count as those of one client if they have the same principal, info and
   * capabilities (except for tasks, which a client may declare in only some of its requests).
   */
  readonly key: string;
  /**
   * The key of the part of the gateway that the caller sees; absent if it sees everything. The gateway sets it. What was
   * made for callers of one part must not be given to callers of another.
   */
  readonly part?: string;
  /** What the caller claims to be; proves nothing. */
  readonly info?: { readonly name: string; readonly version: string; readonly [key: string]: unknown };
  /** Client capabilities in the shape of the newest revision. */
  readonly capabilities: ClientCapabilities;
  /** Whether a server may send it requests during a call: it has declared elicitation, sampling or roots. */
  readonly canBeAsked: boolean;
  /**
   * The owner of the sessions that it uses in place of its own, live ones and those with upstreams: a principal, or "" for
   * callers without one. Only the console of this process sets it, for the operator. It is no fact about a sender: no
   * transport can say it.
   */
  readonly actsFor?: string;
  /** Whether it notifies of changed roots. Only session-style callers can. */
  readonly notifiesRoots?: boolean;
  /** The id of the call in the console, if the operator makes it, who may use everything. No transport sets it. */
  readonly operatorCall?: string;
}

/** What a transport knows about the sender of a message. In a session it may differ from message to message. */
export interface CallerIdentity {
  /** The path at which the request arrived, if the HTTP server has several endpoints and this is not the main one. */
  readonly endpoint?: string;
  /** The authenticated identity of the caller; absent if the transport does not authenticate. */
  readonly principal?: string;
  /** The scopes that were granted to the caller; absent if the transport does not authenticate. */
  readonly scopes?: readonly string[];
  /** Other authenticated facts about the caller. */
  readonly claims?: Readonly<Record<string, unknown>>;
  /** HTTP headers by lower-case names, without those that carry secrets. */
  readonly headers?: Readonly<Record<string, string>>;
  /**
   * What handlers need from the host: the `env` that was passed with this request to `fetchHandler` or `nodeHandler`, or
   * the option `env` of what serves them. Handlers of a server find it, typed, as `context.env`.
   */
  readonly env?: unknown;
}

/** The environment that the handlers of a server need: `Env` of `createServer<Env>()`. */
export type EnvOf<Of> = [Of] extends [never]
  ? unknown
  : Of extends { readonly "~env"?: infer Env }
    ? Exclude<Env, undefined>
    : unknown;

/** The option `env`, which a server with a typed environment requires. */
export type EnvOption<Of> = unknown extends EnvOf<Of> ? { readonly env?: unknown } : { readonly env: EnvOf<Of> };

/** The parameter `options`, which may be left out unless it must have `env`. */
export type OptionsWithEnv<Of, Options> =
  unknown extends EnvOf<Of> ? [options?: Options & EnvOption<Of>] : [options: Options & EnvOption<Of>];

/** Options of a request to the caller. */
export interface AskOptions {
  /** The key of this request in `inputRequests`, if the caller is stateless; default: a counter. */
  readonly key?: string | undefined;
  /** Aborted when the result is no longer wanted. */
  readonly signal?: AbortSignal | undefined;
}

/** How urgent a log message is (RFC 5424). */
export type LogLevel = "debug" | "info" | "notice" | "warning" | "error" | "critical" | "alert" | "emergency";

/** The eight levels of RFC 5424, lowest first. */
export const LOG_LEVELS: readonly LogLevel[] = [
  "debug",
  "info",
  "notice",
  "warning",
  "error",
  "critical",
  "alert",
  "emergency",
];

const LEVEL_RANKS: ReadonlyMap<unknown, number> = new Map(LOG_LEVELS.map((level, rank) => [level, rank]));

/** How urgent a level is; -1 if it is none. */
export function levelRank(level: unknown): number {
  return LEVEL_RANKS.get(level) ?? -1;
}

export function isLogLevel(level: unknown): level is LogLevel {
  return LEVEL_RANKS.has(level);
}
