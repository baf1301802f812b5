// Connects to an MCP server over HTTP and detects its style. The order is that of the specification: stateless first,
// then session style, then legacy HTTP+SSE if the server accepts no POST. A preference for sessions swaps the first
// two. The detected style is remembered per URL and preference until it stops working. If the server
// cannot be reached or refuses authentication, the other styles would fail too, so the detection ends with that error.

import { ConnectionError, THE_SERVER } from "../../core/errors.ts";
import type { Handler } from "../../core/handler.ts";
import type { Revision } from "../../protocol/revision.ts";
import { knownRevision, NEWEST } from "../../protocol/revisions/index.ts";
import { PendingCalls } from "../../dialogue/calls/pending-calls.ts";
import {
  discover,
  revisionRefused,
  openSession,
  startPeer,
  START_TIMEOUT_MS,
  type ServerConnection,
  type ServerConnectionOptions,
  slowStart,
} from "../../dialogue/connect.ts";
import { type StatelessBackOptions, tapUnary, UnaryBack } from "../../dialogue/stateless/back.ts";
import type { Transport } from "../../transport/transport.ts";
import { HttpConnection, type HttpTarget } from "./http-connection.ts";
import { LegacySseTransport } from "./legacy-sse.ts";
import { learning } from "./learned-tools.ts";
import { resubscribing, retrying } from "./retry.ts";
import { SessionHttpTransport } from "./session.ts";
import { sharingListens } from "./shared-listens.ts";
import { StatelessHttp } from "./stateless.ts";
import { ToolFacts } from "../../tools/facts.ts";

const SESSION_TRANSPORTS = { session: SessionHttpTransport, "legacy-sse": LegacySseTransport } as const;
type Style = "stateless" | keyof typeof SESSION_TRANSPORTS;

const MAX_REMEMBERED = 1_000;
/** The style found last, by preference and URL. */
const remembered = new Map<string, Style>();

export async function openHttp(target: HttpTarget, options: ServerConnectionOptions): Promise<ServerConnection> {
  const revision = options.revision === undefined ? undefined : knownRevision(options.revision);
  const key = `${options.style ?? "stateless"} ${target.url.href}`;
  const known = revision === undefined ? remembered.get(key) : undefined;
  try {
    const { style, connection } = await new ConnectAttempt(target, options, revision).open(known);
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

class ConnectAttempt {
  readonly #target: HttpTarget;
  readonly #options: ServerConnectionOptions;
  readonly #revision: Revision | undefined;
  /** True if the server has listed its revisions and we support none of them. */
  #isUnsupported = false;

  constructor(target: HttpTarget, options: ServerConnectionOptions, revision: Revision | undefined) {
    this.#target = target;
    this.#options = options;
    this.#revision = revision;
  }

  /** Tries the style that was found last, and then all in order. */
  async open(known: Style | undefined): Promise<{ readonly style: Style; readonly connection: ServerConnection }> {
    const failures: string[] = [];
    let sessionFailure: unknown;
    const styles = this.#styles(known);
    for (const [at, style] of styles.entries()) {
      if (style === "legacy-sse" && at > 0 && !rejectsPost(sessionFailure)) break;
      try {
        return { style, connection: await this.#connect(style) };
      } catch (error) {
        if (style === "session") sessionFailure = error;
        const isLast = at === styles.length - 1;
        if (isLast || this.#isUnsupported || !showsWrongStyle(error))
          throw style === "stateless" ? error : this.#allFailed(error, failures);
        failures.push(error.problem);
      }
    }
    throw this.#allFailed(sessionFailure, failures);
  }

  #styles(known: Style | undefined): readonly Style[] {
    if (this.#revision?.style === "stateless") return ["stateless"];
    if (this.#revision !== undefined) return ["session", "legacy-sse"];
    // Stateless comes before legacy in any case, because a stateless-only server and a server that accepts no POST
    // reject the handshake in the same way.
    const all: readonly Style[] =
      this.#options.style === "session"
        ? ["session", "stateless", "legacy-sse"]
        : ["stateless", "session", "legacy-sse"];
    if (known === undefined) return all;
    // If it is not stateless, it is tried again in its turn.
    return [known, ...all.filter((style) => style !== "stateless" || known !== "stateless")];
  }

  async #connect(style: Style): Promise<ServerConnection> {
    const { defaultContext } = this.#options;
    const warn = (data: string): void =>
      defaultContext.notify({
        method: "notifications/message",
        params: { level: "warning", logger: "catenary", data },
      });
    const tools = new ToolFacts();
    const http = new HttpConnection(this.#target);
    const connection =
      style === "stateless"
        ? await this.#openStateless(new StatelessHttp(http, tools))
        : await this.#openSession(new SESSION_TRANSPORTS[style](http, tools));
    tools.readsHeaders = style === "stateless";
    const retried = retrying(learning(connection.handler, tools, connection.revision, warn), tools);
    const listens = sharingListens(resubscribing(retried));
    const stateless: Handler = (request, context) =>
      request.method === "subscriptions/listen" ? listens(request, context) : retried(request, context);
    const handler = style === "stateless" ? stateless : retried;
    return {
      handler,
      close: async (budgetMs) => {
        await connection.close(budgetMs);
        this.#target.requester.close();
      },
      // A server sends its requests on the stream of the call they belong to. Only legacy SSE has a single stream.
      attributesRequests: style !== "legacy-sse",
      ended: (signal) => connection.ended(signal),
      get revision() {
        return connection.revision;
      },
      get discovered() {
        return connection.discovered;
      },
    };
  }

  async #openSession(transport: Transport): Promise<ServerConnection> {
    const peer = await startPeer(transport, this.#options);
    try {
      return await openSession(peer, this.#options, this.#revision);
    } catch (error) {
      await peer.close().catch(() => undefined);
      throw error;
    }
  }

  async #openStateless(transport: StatelessHttp): Promise<ServerConnection> {
    const { startTimeoutMs = START_TIMEOUT_MS, defaultContext } = this.#options;
    const calls = new PendingCalls("The server", this.#options.timeouts);
    const timeouts = { idleMs: startTimeoutMs, totalMs: 0 };
    const probeOptions = { ...this.#options, defaultContext: { ...defaultContext, timeouts } };
    const { tap } = this.#options;
    const tapped = tap === undefined ? transport : tapUnary(transport, tap);
    const createBack = (options: StatelessBackOptions): UnaryBack => new UnaryBack(tapped, calls, options);
    const ask = (): ReturnType<typeof discover<UnaryBack>> =>
      discover(createBack, probeOptions, this.#revision ?? NEWEST);
    let probed = await ask();
    // A server may close an idle connection just as it is used again. The probe only reads, so it is sent once more.
    if (probed.back === undefined && probed.error instanceof ConnectionError && probed.error.kind === "closed") {
      probed = await ask();
    }
    if (probed.back !== undefined) {
      const { back, discovered } = probed;
      return {
        handler: back.handler,
        revision: back.revision,
        discovered,
        attributesRequests: true,
        ended: (signal) => calls.ended(signal),
        close: async () => calls.close(new ConnectionError("closed", "The connection was closed")),
      };
    }
    const { error, final } = probed;
    if (this.#revision !== undefined) throw revisionRefused(this.#revision, error);
    // A timeout does not show a wrong style, since a server of another style would reject the unknown request.
    if (error instanceof ConnectionError && error.kind === "timeout") {
      const problem = `The server did not answer server/discover within ${startTimeoutMs} ms`;
      throw error.with({ ...THE_SERVER, problem, hint: slowStart("a slow server") });
    }
    this.#isUnsupported = final;
    if (final || error instanceof ConnectionError) throw error;
    throw new ConnectionError("protocol", error.message, { cause: error });
  }

  /** Lists the failures of all styles in one error, since the last one alone is misleading. */
  #allFailed(error: unknown, failures: readonly string[]): unknown {
    if (!(error instanceof ConnectionError) || failures.every((problem) => problem === error.problem)) return error;
    const { origin } = this.#target.url;
    const all = [...new Set([...failures, error.problem])].join("\n  ");
    const problem = `No MCP server was found at ${origin}:\n  ${all}`;
    return error.with({ problem, mayHaveRun: false });
  }
}

const TRANSIENT_STATUSES: ReadonlySet<number> = new Set([408, 429, 502, 503, 504]);

/** Transient statuses may come from a gateway in front of the server, so they reveal nothing about the style. */
function showsWrongStyle(error: unknown): error is ConnectionError {
  if (!(error instanceof ConnectionError)) return false;
  return error.kind === "protocol" || (error.kind === "http" && !TRANSIENT_STATUSES.has(error.status ?? 0));
}

/** Whether the error is the answer of an address that does not accept POST requests. */
function rejectsPost(error: unknown): boolean {
  if (!showsWrongStyle(error) || error.kind !== "http") return false;
  const { status = 0 } = error;
  return status >= 400 && status < 500;
}
