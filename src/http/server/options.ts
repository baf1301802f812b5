// Options and default limits of the HTTP server. Every limit is on by default.

import type { HttpRequest } from "./http-request.ts";
import type { Authenticator } from "../../core/authentication.ts";
import { checkOptions } from "../../core/options.ts";
import { defined } from "../../core/values.ts";
import type { ConnectionOptions } from "../../dialogue/connection.ts";
import { DEFAULT_LIMITS } from "../../jsonrpc/codec.ts";
import { LIMIT_DEFAULTS } from "./defaults.ts";
import type { HttpLimits, ListenOptions } from "./fields.ts";

/** What /readyz reports, besides whether the server is shutting down. */
export interface Health {
  /** False: /readyz answers with status 503. */
  readonly isReady: boolean;
  /** Added to the answer, but only for callers that may call. */
  readonly details?: { readonly [key: string]: unknown } | undefined;
}

/** The limits of a server, with the defaults. */
export type LimitValues = Readonly<Record<keyof HttpLimits, number>>;

const HTTP_LIMITS: LimitValues = { ...DEFAULT_LIMITS, ...LIMIT_DEFAULTS };

const FIXED_LIMITS = {
  /**
   * Unread bytes above which a slow client is disconnected at once: more than a client that reads leaves unread between
   * two events, even if the network is slow for a moment.
   */
  unreadBytes: 8 * 1024 * 1024,
  /**
   * Unread bytes above which a slow client is disconnected after `lingeringMs`. Less costs little memory, and a client
   * that reads at all needs less than ten seconds for it.
   */
  lingeringBytes: 1024 * 1024,
  lingeringMs: 10_000,
  /**
   * Bytes held at once for all clients: unread output, and bodies that are still arriving. Above this, the clients that
   * hold the most for the longest time are disconnected. Long requests in flight may have as many together; one more
   * gets a 503. Four messages of the default length are little for a machine that serves thousands of clients.
   */
  heldBytes: 256 * 1024 * 1024,
  /**
   * How long a response head is delayed in case a single JSON body is enough. After that, a stream is opened. Less than
   * any proxy waits for a head; most calls are over by then.
   */
  silenceMs: 5_000,
  /** Events kept per stream, so that many small ones do not use all of `replayBytes`. */
  replayEvents: 1_000,
};

/** Limits that no machine or network needs otherwise, so they are not options. Tests set them. */
export type FixedLimits = Readonly<Record<keyof typeof FIXED_LIMITS, number>>;

/** Adds the defaults to the given limits. Throws a TypeError for an unknown name, or a value that is not above 0. */
export function httpLimits(limitOptions: HttpLimits = {}, fixed: Partial<FixedLimits> = {}): LimitValues & FixedLimits {
  checkOptions("The HTTP server", limitOptions, HTTP_LIMITS, "limits.");
  const set = defined(limitOptions);
  for (const [name, value] of Object.entries(set)) {
    if (typeof value !== "number" || !(value > 0)) throw new TypeError(`limits.${name} must be a number above 0`);
  }
  const limits = { ...HTTP_LIMITS, ...set };
  // A message of the greatest length must fit, or its client would be disconnected.
  const heldBytes = Math.max(FIXED_LIMITS.heldBytes, 2 * limits.messageBytes);
  return { ...limits, ...FIXED_LIMITS, heldBytes, ...fixed };
}

export interface HttpRouterOptions extends Omit<ConnectionOptions, "mayShutDown">, Pick<ListenOptions, "path"> {
  /**
   * Whether another path is an endpoint too, for this caller. All spellings of a path (/a%62c, /abc) are one. The handler
   * finds the path in `context.caller.endpoint`.
   * Legacy HTTP+SSE is served only at the main endpoint. Default: there is only the main endpoint.
   */
  readonly paths?: ((path: string, principal: string | undefined) => boolean) | undefined;
  /** Whether to serve legacy HTTP+SSE at `/sse` and `/messages`, both at the root and below `path`. Default: true. */
  readonly legacySse?: boolean | undefined;
  /**
   * Keeps nothing in memory between requests, so that any of several processes can answer any request. Session-style
   * callers then get no session: the server sends them nothing outside of their requests. In return, `context.ask`,
   * tasks and legacy HTTP+SSE are not available. Default: false.
   */
  readonly stateless?: boolean | undefined;
  /** Authenticates callers. Without it anyone may call. */
  readonly auth?: Authenticator | undefined;
  /**
   * Answers GET /healthz and GET /readyz beside the endpoint. Called for each GET of /readyz with the principal of the
   * caller, if there is one.
   */
  readonly health?: ((principal: string | undefined) => Health) | undefined;
  /**
   * Answers GET /metrics beside the endpoint, for callers that may call. Undefined: this caller gets a 404. Default: the
   * figures of a gateway whose chain has the middleware `metrics`.
   */
  readonly metrics?: ((principal: string | undefined) => string | undefined) | undefined;
  /**
   * Answers requests for pages beside the endpoint, whose Host and Origin were checked, and which are not authenticated.
   * Returns false for a path that is none of its own. Never throws.
   */
  readonly pages?: ((request: HttpRequest) => boolean) | undefined;
  readonly limits?: HttpLimits | undefined;
  /**
   * The key that seals session ids. A server with the same key opens the sessions of a former one again, so that clients
   * go on after a restart. Default: `parkedCalls.sealKey`. Without a key, sessions end with the server.
   */
  readonly sealKey?: string | Uint8Array | undefined;
  /**
   * Called for internal errors that clients must not see, such as a failing authenticator. Default: prints one line on
   * stderr.
   */
  readonly onError?: ((error: unknown, doing: string) => void) | undefined;
}
