// What may be said of a front over HTTP, and the limits that hold where nothing is said. All of them are on.

import type { Authenticator } from "../../core/authentication.ts";
import { DEFAULT_LIMITS, type Limits } from "../../jsonrpc/codec.ts";
import type { ConnectionOptions } from "../../dialogue/connection.ts";
import type { SessionLimiter } from "./session.ts";
import type { RequestLimiter } from "./admission.ts";

/** Those of one message, and those of the wire. */
export interface HttpLimits extends Limits {
  /** Bytes of all headers of a request together. */
  readonly headerBytes: number;
  /** How long a caller may take over its headers. */
  readonly headerMs: number;
  /** How long a caller may take over its body. */
  readonly bodyMs: number;
  /** SessionTable that are open at once. */
  readonly sessions: number;
  /** How long a session without a stream may be silent before it is over. */
  readonly sessionIdleMs: number;
  /** Requests in flight at once, in all; one more is answered 503. */
  readonly requests: number;
  /** `subscriptions/listen` requests that are open at once. */
  readonly listens: number;
  /** Bytes that a caller has not read: beyond this it is cut off at once. */
  readonly unreadBytes: number;
  /** Beyond this it is cut off if it stays so for `lingeringMs`. */
  readonly lingeringBytes: number;
  readonly lingeringMs: number;
  /** A comment goes out on each stream this often, so that nobody between takes it for dead. */
  readonly keepAliveMs: number;
  /** How long an answer is held back for the chance that it is nothing but a result. */
  readonly silenceMs: number;
  /** Bytes that are kept for callers who come back for what they missed, in all. */
  readonly replayBytes: number;
  /** Events of one stream that are kept for the same. */
  readonly replayEvents: number;
}

const HTTP_LIMITS: HttpLimits = {
  ...DEFAULT_LIMITS,
  headerBytes: 16 * 1024,
  headerMs: 10_000,
  bodyMs: 30_000,
  sessions: 10_000,
  sessionIdleMs: 1_800_000,
  requests: 1_024,
  listens: 10_000,
  unreadBytes: 8 * 1024 * 1024,
  lingeringBytes: 1024 * 1024,
  lingeringMs: 10_000,
  keepAliveMs: 15_000,
  silenceMs: 5_000,
  replayBytes: 64 * 1024 * 1024,
  replayEvents: 1_000,
};

/** What all parts of a front go by. */
export interface SharedLimits {
  readonly limits: HttpLimits;
  readonly work: RequestLimiter;
  /** SessionTable of every kind count together. */
  readonly room: SessionLimiter;
}

/** The given ones, the others as they are by default. Throws where one is none, or no number above 0. */
export function httpLimits(given: Partial<HttpLimits> = {}): HttpLimits {
  const said = Object.entries(given).filter(([, value]) => value !== undefined);
  for (const [name, value] of said) {
    if (!Object.hasOwn(HTTP_LIMITS, name)) {
      throw new TypeError(`There is no limit \`${name}\`; there are ${Object.keys(HTTP_LIMITS).join(", ")}`);
    }
    if (typeof value !== "number" || !(value > 0)) throw new TypeError(`limits.${name} must be a number above 0`);
  }
  return { ...HTTP_LIMITS, ...Object.fromEntries(said) };
}

export interface HttpRouterOptions extends Omit<ConnectionOptions, "mayShutDown"> {
  /** Where the endpoint is. "/mcp". */
  readonly path?: string;
  /** Whether the transport of the first revision is served beside it, at `/sse` with `/messages`, and the same below PATH. True. */
  readonly oldSse?: boolean;
  /** Asks callers who they are; without it anybody may call. */
  readonly auth?: Authenticator;
  readonly limits?: Partial<HttpLimits>;
  /**
   * Told of what went wrong on our side and what no caller is shown: an authenticator that is out of order, say. Where
   * it is left out, one line goes to stderr.
   */
  readonly onError?: (error: unknown, doing: string) => void;
}
