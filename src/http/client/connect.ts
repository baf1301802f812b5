// Connects to an MCP server over HTTP and detects its style. The order is that of the specification: stateless first,
// then session style, then legacy HTTP+SSE if the server accepts no POST. A preference for sessions swaps the first
// two. The detected style is remembered per URL and preference until it stops working. If the server
// cannot be reached or refuses authentication, the other styles would fail too, so the detection ends with that error.

import type { Authorizer } from "../../core/authentication.ts";
import { ConnectionError } from "../../core/errors.ts";
import type { Handler } from "../../core/handler.ts";
import { DEFAULT_LIMITS, type Limits } from "../../jsonrpc/codec.ts";
import type { Revision } from "../../protocol/revision.ts";
import { knownRevision, NEWEST } from "../../protocol/revisions/index.ts";
import type { Requester } from "./requester.ts";
import type { Transport } from "../../transport/transport.ts";
import {
  probe,
  revisionRefused,
  serverConnection,
  openSession,
  startPeer,
  START_TIMEOUT_MS,
  type ServerConnection,
  type ServerConnectionOptions,
} from "../../dialogue/connect.ts";
import { StatelessHttpTransport } from "./stateless.ts";
import { HttpConnection } from "./http-connection.ts";
import { resubscribing, learning, retrying } from "./retry.ts";
import { LegacySseTransport } from "./legacy-sse.ts";
import { SessionHttpTransport } from "./session.ts";
import { sharingListens } from "./shared-listens.ts";
import { ToolFacts } from "../../protocol/tool-facts.ts";

export interface HttpTarget {
  readonly url: URL;
  readonly requester: Requester;
  readonly auth?: Authorizer | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly limits?: Partial<Limits> | undefined;
}

type Style = "stateless" | "session" | "legacy-sse";

/** Larger than the limit for stdio, since a response over HTTP may contain a file. */
const MAX_RESPONSE_BYTES = 64 * 1024 * 1024;
const MAX_REMEMBERED = 1_000;
/** The style found last, by preference and URL. */
const remembered = new Map<string, Style>();

export async function openHttp(target: HttpTarget, options: ServerConnectionOptions): Promise<ServerConnection> {
  const revision = options.revision === undefined ? undefined : knownRevision(options.revision);
  const attempt = new ConnectAttempt(target, options, revision);
  const key = `${options.style ?? "stateless"} ${target.url.href}`;
  const known = revision === undefined ? remembered.get(key) : undefined;
  try {
    const found = known === undefined ? undefined : await attempt.try(known).catch(attempt.wrongStyle);
    const { style, connection } = found ?? (await attempt.tryAll(known));
    remembered.delete(key);
    if (remembered.size >= MAX_REMEMBERED) for (const oldest of remembered.keys()) if (remembered.delete(oldest)) break;
    if (revision === undefined) remembered.set(key, style);
    return connection;
  } catch (error) {
    remembered.delete(key);
    target.requester.close();
    throw error;
  }
}

interface Connected {
  readonly style: Style;
  readonly connection: ServerConnection;
}

class ConnectAttempt {
  readonly #target: HttpTarget;
  readonly #options: ServerConnectionOptions;
  readonly #revision: Revision | undefined;
  readonly #failures: string[] = [];
  /** True if the server has listed its revisions and we support none of them. */
  #isUnsupported = false;

  constructor(target: HttpTarget, options: ServerConnectionOptions, revision: Revision | undefined) {
    this.#target = target;
    this.#options = options;
    this.#revision = revision;
  }

  /** Records an error that shows that the server does not speak this style; throws any other error. */
  readonly wrongStyle = (error: unknown): undefined => {
    if (this.#isUnsupported || !showsWrongStyle(error)) throw error;
    this.#failures.push(error.message);
    return undefined;
  };

  /** Tries all styles in order. `except` is the remembered style that has just failed; it is skipped if stateless. */
  async tryAll(except?: Style): Promise<Connected> {
    const style = this.#revision?.style;
    if (style === undefined && this.#options.style === "session") return this.#sessionFirst(except);
    const triesStateless = style !== "session" && except !== "stateless";
    const stateless = triesStateless ? await this.try("stateless").catch(this.#wrongStyleOrThrow(style)) : undefined;
    if (stateless !== undefined) return stateless;
    try {
      return await this.try("session");
    } catch (error) {
      if (!rejectsPost(error)) throw this.#allFailed(error);
      this.wrongStyle(error);
    }
    return this.try("legacy-sse").catch((error: unknown) => {
      throw this.#allFailed(error);
    });
  }

  /**
   * Tries session style, then stateless, then legacy HTTP+SSE. Stateless comes before legacy, because a stateless-only
   * server and a server that accepts no POST reject the handshake in the same way.
   */
  async #sessionFirst(except: Style | undefined): Promise<Connected> {
    let failure: unknown;
    try {
      return await this.try("session");
    } catch (error) {
      this.wrongStyle(error);
      failure = error;
    }
    const stateless = except === "stateless" ? undefined : await this.try("stateless").catch(this.wrongStyle);
    if (stateless !== undefined) return stateless;
    if (!rejectsPost(failure)) throw this.#allFailed(failure);
    return this.try("legacy-sse").catch((error: unknown) => {
      throw this.#allFailed(error);
    });
  }

  try(style: Style): Promise<Connected> {
    const tools = new ToolFacts();
    const { limits, ...target } = this.#target;
    const allLimits = { ...DEFAULT_LIMITS, messageBytes: MAX_RESPONSE_BYTES, ...limits };
    const http = new HttpConnection({ ...target, requester: withoutClose(target.requester), limits: allLimits });
    if (style === "stateless") return this.#stateless(new StatelessHttpTransport(http, tools), tools);
    return this.#session(
      style === "session" ? new SessionHttpTransport(http, tools) : new LegacySseTransport(http, tools),
      tools,
      style,
    );
  }

  async #stateless(transport: Transport, tools: ToolFacts): Promise<Connected> {
    const { startTimeoutMs = START_TIMEOUT_MS, defaultContext } = this.#options;
    const timeouts = { idleMs: startTimeoutMs, totalMs: 0 };
    const probeOptions = { ...this.#options, defaultContext: { ...defaultContext, timeouts } };
    return this.#connect(transport, "stateless", tools, async (peer) => {
      const found = await probe(peer, probeOptions, this.#revision ?? NEWEST);
      if (found.back !== undefined) return serverConnection(peer, found.back, () => found.discovered);
      if (this.#revision !== undefined) throw revisionRefused(this.#revision, found.error);
      // A timeout does not show a wrong style, since a server of another style would reject the unknown request.
      if (found.error instanceof ConnectionError && found.error.kind === "timeout")
        throw startTimedOut(found.error, startTimeoutMs);
      this.#isUnsupported = found.final;
      if (found.final || found.error instanceof ConnectionError) throw found.error;
      throw new ConnectionError("protocol", found.error.message, { cause: found.error });
    });
  }

  #session(transport: Transport, tools: ToolFacts, style: Style): Promise<Connected> {
    return this.#connect(transport, style, tools, (peer) => openSession(peer, this.#options, this.#revision));
  }

  async #connect(
    transport: Transport,
    style: Style,
    tools: ToolFacts,
    open: (peer: Awaited<ReturnType<typeof startPeer>>) => Promise<ServerConnection>,
  ): Promise<Connected> {
    const peer = await startPeer(transport, this.#options);
    try {
      const connection = await open(peer);
      tools.readsHeaders = style === "stateless";
      const warn = (data: string): void =>
        this.#options.defaultContext.notify({
          method: "notifications/message",
          params: { level: "warning", logger: "catenary", data },
        });
      const retried = retrying(learning(connection.handler, tools, connection.revision, warn), tools);
      const handler: Handler = style === "stateless" ? sharingListens(resubscribing(retried)) : retried;
      const close: ServerConnection["close"] = async (budgetMs) => {
        await connection.close(budgetMs);
        this.#target.requester.close();
      };
      return {
        style,
        connection: {
          handler,
          close,
          // A server sends its requests on the stream of the call they belong to. Only legacy SSE has a single stream.
          attributesRequests: style !== "legacy-sse",
          ended: (signal) => connection.ended(signal),
          get revision() {
            return connection.revision;
          },
          get discovered() {
            return connection.discovered;
          },
        },
      };
    } catch (error) {
      await peer.close().catch(() => undefined);
      throw error;
    }
  }

  /** If the options require a stateless revision, there is no other style to try. */
  #wrongStyleOrThrow(style: string | undefined): (error: unknown) => undefined {
    return style === "stateless"
      ? (error) => {
          throw error;
        }
      : this.wrongStyle;
  }

  /** Lists the failures of all styles in one error, since the last one alone is misleading. */
  #allFailed(error: unknown): unknown {
    if (this.#failures.length === 0 || !(error instanceof ConnectionError)) return error;
    const { origin, pathname } = this.#target.url;
    const failures = [...new Set([...this.#failures, error.message])].join("\n  ");
    const message = `No MCP server was found at ${origin}${pathname}:\n  ${failures}`;
    return error.with({ message, mayHaveRun: false });
  }
}

/** All attempts share one requester, so closing one attempt must not close the requester. */
function withoutClose(requester: Requester): Requester {
  const shared: Requester = (request) => requester(request);
  shared.close = () => undefined;
  return shared;
}

/** Transient statuses may come from a gateway in front of the server, so they reveal nothing about the style. */
function showsWrongStyle(error: unknown): error is ConnectionError {
  if (!(error instanceof ConnectionError)) return false;
  return error.kind === "protocol" || (error.kind === "http" && !TRANSIENT_STATUSES.has(error.status ?? 0));
}

const TRANSIENT_STATUSES: ReadonlySet<number> = new Set([408, 429, 502, 503, 504]);

function startTimedOut(cause: ConnectionError, startMs: number): ConnectionError {
  const message = `The server did not answer server/discover within ${startMs} ms`;
  return new ConnectionError("timeout", `${message}; a slow server needs a longer \`startTimeoutMs\``, {
    cause,
  });
}

/** Whether the error is the answer of an address that does not accept POST requests. */
function rejectsPost(error: unknown): boolean {
  if (!(error instanceof ConnectionError) || error.kind !== "http" || error.status === undefined) return false;
  return error.status >= 400 && error.status < 500 && !TRANSIENT_STATUSES.has(error.status);
}
