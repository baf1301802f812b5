// The one arrow of the house: a request and its context go in, a promise of a result comes out.
// A server, a connected end, a middleware's product and many ends merged are all this one type.
// Requests and results are immutable: who wants another one makes a new one and passes that on.


export type Meta = { readonly [key: string]: unknown };
export type Params = { readonly _meta?: Meta; readonly [key: string]: unknown };

/** A request in the shape of the newest revision. */
export interface Request {
  readonly method: string;
  readonly params: Params;
}

export interface Notification {
  readonly method: string;
  readonly params?: Params;
}

/** What came of a request; `resultType` says which kind it is and is "complete" where it is left out. */
export type Result = { readonly resultType?: string; readonly _meta?: Meta; readonly [key: string]: unknown };

export type Handler = (request: Request, context: Context) => Promise<Result>;
export type Middleware = (request: Request, context: Context, next: Handler) => Promise<Result>;

/** A named place in a chain: what the config names, the console shows, and an operator may replace while it runs. */
export interface Link {
  readonly name: string;
  readonly run: Middleware;
  close?(): Promise<void>;
}

// What travels with a request: who asks and in which revision, the signal that ends the work, and the
// two ways back that are not the result: `notify` (progress, logs, changes) and `ask` (the caller is
// asked for something in mid-call). A middleware that wants to see either passes a wrapped context on.


export type LogLevel = "debug" | "info" | "notice" | "warning" | "error" | "critical" | "alert" | "emergency";

/** Eight levels of RFC 5424, least urgent first. */
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

export interface Caller {
  /** What the caller says it is; never proof of anything. */
  readonly info?: { readonly name: string; readonly version: string; readonly [key: string]: unknown };
  /** Client capabilities in the shape of the newest revision. */
  readonly capabilities: { readonly [key: string]: unknown };
  /** Where its calls come from: one object for all calls of one connection, and of nobody else. */
  readonly origin?: object;
  /** Who the wire has proved the caller to be; absent where it proves nothing. */
  readonly principal?: string;
  /** What the wire has proved the caller may do; absent where it proves nothing. */
  readonly scopes?: readonly string[];
  /** What else the wire has proved about the caller. */
  readonly claims?: Readonly<Record<string, unknown>>;
  /** As they came over HTTP, by lower-case names; without those that carry secrets. */
  readonly headers?: Readonly<Record<string, string>>;
}

export interface AskOptions {
  /** The name under which an exchange-style caller sees the question; a counter where it is left out. */
  readonly key?: string;
  /** Aborted when whoever asked no longer wants the answer. */
  readonly signal?: AbortSignal;
}

export interface Context {
  /** The caller's revision, by its date. */
  readonly revision: string;
  readonly caller: Caller;
  /** Aborted when the caller no longer wants the result. */
  readonly signal: AbortSignal;
  /** The least urgent log message that the caller wants with this request; none where it is absent. */
  readonly logLevel?: LogLevel;
  /** How long an end may take over this request, where the caller has a say in it. */
  readonly timeouts?: { readonly idleMs?: number; readonly totalMs?: number };
  /** Progress, logs and changes, toward the caller. What the caller did not ask for is dropped on the way. */
  notify(notification: Notification): void;
  /** Asks the caller: `elicitation/create`, `sampling/createMessage` or `roots/list`. */
  ask(request: Request, options?: AskOptions): Promise<Result>;
  /** Session-style HTTP only: ends the call's stream so that the caller comes back for the rest. */
  hangUp?(retryMs: number): void;
}
