// Local errors: failures between us and the other side of a connection. Only McpErrors are sent to the other side.
// `kind` has a fixed set of values, so that code can switch over it. If `mayHaveRun` is false, the failed request can
// be sent again without running twice. A process may hold several copies of this package (a user's module may bring its
// own), so `instanceof` recognizes our errors by a mark and not by their class.

/**
 * For `static [Symbol.hasInstance]` of a class whose prototype has the mark: also true for instances of another copy of
 * the package. A subclass is recognized by its prototype, as usual.
 */
export function isMarked(asked: object, marked: object, mark: symbol, value: unknown): boolean {
  if (asked !== marked) return Function.prototype[Symbol.hasInstance].call(asked, value);
  return typeof value === "object" && value !== null && Reflect.get(value, mark) === true;
}

const CONNECTION_ERROR = Symbol.for("catenary.ConnectionError");
const USER_ERROR = Symbol.for("catenary.UserError");

/** What failed, for code that switches over it. */
export type ConnectionErrorKind =
  | "closed"
  | "timeout"
  | "cancelled"
  | "refused"
  | "spawn"
  | "http"
  | "unauthorized"
  | "protocol";

/** What to do about an error. */
export interface Hint {
  /** In the words of the API, as the message of the error has it. */
  readonly text: string;
  /** The same on the command line, where options are flags; empty if nothing can be done there. Default: `text`. */
  readonly flags?: string | undefined;
  /** For programs that offer to do it: sign in to the server, with OAuth. */
  readonly action?: "sign-in" | undefined;
}

// For messages that begin so.
export const THE_SERVER = { subject: "The server" } as const;
export const THE_UPSTREAM = { subject: "The upstream" } as const;

/** The third argument of `new ConnectionError()`. */
export interface ConnectionErrorOptions {
  /** The error that led to this one. */
  readonly cause?: unknown;
  /** False only if the server certainly has not begun to work on the request. */
  readonly mayHaveRun?: boolean | undefined;
  /** The status of the HTTP response, if there was one. */
  readonly status?: number | undefined;
  /** The first words of the message, if they say what has failed: `The server`. A gateway has its own name for that. */
  readonly subject?: string | undefined;
  /** What to do about it: added to the message. */
  readonly hint?: Hint | undefined;
  /** Output of the server's process, for its operator: added to the message, but never sent to callers. */
  readonly diagnostics?: string | undefined;
}

/** There was no answer: the connection failed, or the call was cancelled or timed out. Never sent to the other side. */
export class ConnectionError extends Error {
  static {
    Object.defineProperty(this.prototype, CONNECTION_ERROR, { value: true });
  }

  /** Also true for errors of another copy of this package. */
  static override [Symbol.hasInstance](value: unknown): boolean {
    return isMarked(this, ConnectionError, CONNECTION_ERROR, value);
  }

  /** What kind of failure it was. */
  readonly kind: ConnectionErrorKind;
  /** Whether the server may have begun to work on the request; true unless the contrary is certain. */
  readonly mayHaveRun: boolean;
  /** The status of the HTTP response, if there was one. */
  readonly status: number | undefined;
  /** The message without the hint and the diagnostics, for a message with others. */
  readonly problem: string;
  /** The first words of the message, if they say what has failed. */
  readonly subject: string | undefined;
  /** What to do about it, as the message says. */
  readonly hint: Hint | undefined;
  /** The last part of the message, which callers must not see. */
  readonly diagnostics: string | undefined;

  constructor(kind: ConnectionErrorKind, message: string, options: ConnectionErrorOptions = {}) {
    const { mayHaveRun = true, status, subject, hint, diagnostics } = options;
    super(
      message + (hint === undefined ? "" : `; ${hint.text}`) + (diagnostics ?? ""),
      options.cause === undefined ? undefined : options,
    );
    this.name = "ConnectionError";
    this.kind = kind;
    this.mayHaveRun = mayHaveRun;
    this.status = status;
    this.problem = message;
    this.subject = subject;
    this.hint = hint;
    this.diagnostics = diagnostics;
  }

  /** Whether the same request may succeed later. It cannot if rights are missing, or if the server does not speak MCP. */
  get isTemporary(): boolean {
    const { kind, status } = this;
    if (kind === "http") return status === undefined || status === 429 || status >= 500;
    return kind === "closed" || kind === "timeout" || kind === "spawn" || (kind === "refused" && status === undefined);
  }

  /** A copy with another `problem`, hint or `mayHaveRun`. This error becomes its cause. */
  with(
    changes: Pick<ConnectionErrorOptions, "hint" | "mayHaveRun" | "subject"> & { readonly problem?: string },
  ): ConnectionError {
    const { kind, problem: before, subject: known, ...rest } = this;
    const { problem = before } = changes;
    const subject = problem === before ? known : undefined;
    return new ConnectionError(kind, problem, { ...rest, subject, ...changes, cause: this });
  }
}

/** For what cannot be used, so that the request has not run. */
export function refused(message: string, cause?: unknown): ConnectionError {
  return new ConnectionError("refused", message, { mayHaveRun: false, cause });
}

/**
 * An error whose message is meant for the caller of a tool, a resource or a prompt. Messages of other errors may be
 * hidden from callers; see the option `maskErrors` of `createServer`.
 *
 * @example
 * throw new UserError(`There is no city ${name}; list-cities has all names`);
 */
export class UserError extends Error {
  static {
    Object.defineProperty(this.prototype, USER_ERROR, { value: true });
  }

  /** Also true for errors of another copy of this package. */
  static override [Symbol.hasInstance](value: unknown): boolean {
    return isMarked(this, UserError, USER_ERROR, value);
  }

  constructor(message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = "UserError";
  }
}
