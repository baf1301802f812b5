// Opens a dialogue with an end over HTTP. What it speaks is found out in the order that the specification gives: an
// exchange; where the answer is not that of an end that knows exchanges, a handshake; where there is nothing to post
// to, the stream of the first revision. Who prefers a session has the first two the other way round. What was found is
// remembered for the address and the preference, and forgotten when it is no longer true. A refusal of who we are says nothing about the style, nor does an end that cannot be reached.

import type { Authorizer } from "../../core/authentication.ts";
import { ConnectionError } from "../../core/errors.ts";
import type { Handler } from "../../core/handler.ts";
import { DEFAULT_LIMITS, type Limits } from "../../jsonrpc/codec.ts";
import type { Revision } from "../../protocol/revision.ts";
import { knownRevision, NEWEST } from "../../protocol/revisions/index.ts";
import type { Requester } from "./requester.ts";
import type { Transport } from "../../transport/transport.ts";
import { probe } from "../../dialogue/connect.ts";
import { lacks, opened, openSession, start, START_MS, type Opened, type OpenOptions } from "../../dialogue/connect.ts";
import { StatelessHttpTransport } from "./stateless.ts";
import { HttpConnection } from "./http-connection.ts";
import { resubscribing } from "./resubscribe.ts";
import { LegacySseTransport } from "./legacy-sse.ts";
import { retrying } from "./retry.ts";
import { SessionHttpTransport } from "./session.ts";
import { ToolFacts } from "./tool-facts.ts";

export interface HttpTarget {
  readonly url: URL;
  readonly requester: Requester;
  readonly auth?: Authorizer | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly limits?: Partial<Limits> | undefined;
}

type Style = "stateless" | "session" | "old-sse";

/** An answer over HTTP may be a file: more than what a pipe takes for one message. */
const ANSWER_BYTES = 64 * 1024 * 1024;
const MOST_REMEMBERED = 1_000;
/** By preference and address, the style that its end spoke when it was last opened. */
const remembered = new Map<string, Style>();

export async function openHttp(target: HttpTarget, options: OpenOptions): Promise<Opened> {
  const wanted = options.revision === undefined ? undefined : knownRevision(options.revision);
  const opening = new Opening(target, options, wanted);
  const address = `${options.style ?? "stateless"} ${target.url.href}`;
  const known = wanted === undefined ? remembered.get(address) : undefined;
  try {
    const found = known === undefined ? undefined : await opening.try(known).catch(opening.notThat);
    const { style, end } = found ?? (await opening.tryAll(known));
    remembered.delete(address);
    if (remembered.size >= MOST_REMEMBERED)
      for (const oldest of remembered.keys()) if (remembered.delete(oldest)) break;
    if (wanted === undefined) remembered.set(address, style);
    return end;
  } catch (error) {
    remembered.delete(address);
    target.requester.close();
    throw error;
  }
}

interface FoundUpstream {
  readonly style: Style;
  readonly end: Opened;
}

class Opening {
  readonly #target: HttpTarget;
  readonly #options: OpenOptions;
  readonly #wanted: Revision | undefined;
  readonly #tried: string[] = [];
  /** It has said what it speaks, and that is nothing that we do. */
  #isSettled = false;

  constructor(target: HttpTarget, options: OpenOptions, wanted: Revision | undefined) {
    this.#target = target;
    this.#options = options;
    this.#wanted = wanted;
  }

  /** For an error that only says that the end does not speak what was tried: nothing. Any other is thrown. */
  readonly notThat = (error: unknown): undefined => {
    if (this.#isSettled || !isEvidence(error)) throw error;
    this.#tried.push(error.message);
    return undefined;
  };

  /** In their order; but not the one that was remembered, and has just turned out to be false. */
  async tryAll(not?: Style): Promise<FoundUpstream> {
    const style = this.#wanted?.style;
    if (style === undefined && this.#options.style === "session") return this.#sessionFirst(not);
    const tries = style !== "session" && not !== "stateless";
    const exchange = tries ? await this.try("stateless").catch(this.#orElse(style)) : undefined;
    if (exchange !== undefined) return exchange;
    try {
      return await this.try("session");
    } catch (error) {
      if (!hasNoPost(error)) throw this.#nothing(error);
      this.notThat(error);
    }
    return this.try("old-sse").catch((error: unknown) => {
      throw this.#nothing(error);
    });
  }

  /** An end that has no handshake refuses it as one does that has nothing to post to: only the exchange tells them apart. */
  async #sessionFirst(not: Style | undefined): Promise<FoundUpstream> {
    let failure: unknown;
    try {
      return await this.try("session");
    } catch (error) {
      this.notThat(error);
      failure = error;
    }
    const exchange = not === "stateless" ? undefined : await this.try("stateless").catch(this.notThat);
    if (exchange !== undefined) return exchange;
    if (!hasNoPost(failure)) throw this.#nothing(failure);
    return this.try("old-sse").catch((error: unknown) => {
      throw this.#nothing(error);
    });
  }

  try(style: Style): Promise<FoundUpstream> {
    const warn = (data: string): void =>
      this.#options.home.notify({
        method: "notifications/message",
        params: { level: "warning", logger: "catenary", data },
      });
    const tools = new ToolFacts(warn);
    const { limits, ...target } = this.#target;
    const whole = { ...DEFAULT_LIMITS, messageBytes: ANSWER_BYTES, ...limits };
    const link = new HttpConnection({ ...target, requester: kept(target.requester), limits: whole });
    if (style === "stateless") return this.#exchange(new StatelessHttpTransport(link, tools), tools);
    return this.#session(
      style === "session" ? new SessionHttpTransport(link, tools) : new LegacySseTransport(link, tools),
      tools,
      style,
    );
  }

  async #exchange(transport: Transport, tools: ToolFacts): Promise<FoundUpstream> {
    const { startMs = START_MS, home } = this.#options;
    const patient = { ...this.#options, home: { ...home, timeouts: { idleMs: startMs, totalMs: 0 } } };
    return this.#over(transport, "stateless", tools, async (wire) => {
      const found = await probe(wire, patient, this.#wanted ?? NEWEST);
      if (found.back !== undefined) return opened(wire, found.back, () => found.discovered);
      if (this.#wanted !== undefined) throw lacks(this.#wanted, found.error);
      // Silence is no evidence here: every end over HTTP can say that it does not know a request.
      if (found.error instanceof ConnectionError && found.error.kind === "timeout") throw slow(found.error, startMs);
      this.#isSettled = found.final;
      if (found.final || found.error instanceof ConnectionError) throw found.error;
      throw new ConnectionError("protocol", found.error.message, { cause: found.error });
    });
  }

  #session(transport: Transport, tools: ToolFacts, style: Style): Promise<FoundUpstream> {
    return this.#over(transport, style, tools, (wire) => openSession(wire, this.#options, this.#wanted));
  }

  async #over(
    transport: Transport,
    style: Style,
    tools: ToolFacts,
    open: (wire: Awaited<ReturnType<typeof start>>) => Promise<Opened>,
  ): Promise<FoundUpstream> {
    const wire = await start(transport, this.#options);
    try {
      const end = await open(wire);
      tools.mirrors = style === "stateless";
      const again = retrying(tools.over(end.handler, end.revision), tools);
      const handler: Handler = style === "stateless" ? resubscribing(again) : again;
      const close: Opened["close"] = async (budgetMs) => {
        await end.close(budgetMs);
        this.#target.requester.close();
      };
      return {
        style,
        end: {
          handler,
          close,
          // What an end asks in a call comes on the stream of that call's POST; the old one has one stream for all.
          saysWhose: style !== "old-sse",
          ended: (signal) => end.ended(signal),
          get revision() {
            return end.revision;
          },
          get discovered() {
            return end.discovered;
          },
        },
      };
    } catch (error) {
      await wire.close().catch(() => undefined);
      throw error;
    }
  }

  /** With a revision that only this style has, there is nothing else to try. */
  #orElse(style: string | undefined): (error: unknown) => undefined {
    return style === "stateless"
      ? (error) => {
          throw error;
        }
      : this.notThat;
  }

  /** Whatever was tried failed: the last failure alone would tell only a part of it. */
  #nothing(error: unknown): unknown {
    if (this.#tried.length === 0 || !(error instanceof ConnectionError)) return error;
    const { kind, status } = error;
    const { origin, pathname } = this.#target.url;
    const tried = [...new Set([...this.#tried, error.message])].join("\n  ");
    return new ConnectionError(kind, `No MCP end was found at ${origin}${pathname}:\n  ${tried}`, {
      cause: error,
      mayHaveRun: false,
      ...(status === undefined ? undefined : { status }),
    });
  }
}

/** One requester for all that is tried; it is let go of when all are. */
function kept(requester: Requester): Requester {
  const keeping: Requester = (request) => requester(request);
  keeping.close = () => undefined;
  return keeping;
}

/** What a gateway says in the place of its end says nothing about the end. */
function isEvidence(error: unknown): error is ConnectionError {
  if (!(error instanceof ConnectionError)) return false;
  return error.kind === "protocol" || (error.kind === "http" && !PASSING.has(error.status ?? 0));
}

const PASSING: ReadonlySet<number> = new Set([408, 429, 502, 503, 504]);

function slow(cause: ConnectionError, startMs: number): ConnectionError {
  const message = `The end did not answer server/discover in ${startMs} ms`;
  return new ConnectionError("timeout", `${message}; one that starts slowly needs a longer \`startTimeout\``, {
    cause,
  });
}

/** Statuses of an address that does not take what is posted to it. */
function hasNoPost(error: unknown): boolean {
  if (!(error instanceof ConnectionError) || error.kind !== "http" || error.status === undefined) return false;
  return error.status >= 400 && error.status < 500 && !PASSING.has(error.status);
}
