// The one endpoint: callers of both styles at once, told apart by each message itself. One that says it stands by
// itself, in its body or in its header, is an exchange; everything else belongs to a session, which begins with
// `initialize` and is named by a header from then on.

import type { Identity } from "../../core/authenticator.ts";
import type { Handler } from "../../core/handler.ts";
import { isRequest } from "../../jsonrpc/message.ts";
import type { Revision } from "../../protocol/revision.ts";
import { ReplayStore } from "./replay.ts";
import { Refusal, type Visit } from "./visit.ts";
import { isStateless } from "../../dialogue/stateless/front.ts";
import { serveTransport, type ConnectionOptions } from "../../dialogue/connection.ts";
import { unsupported } from "../../dialogue/calls/faults.ts";
import { callerOf, checkAccept, readMessage } from "./admission.ts";
import type { Exchanges } from "./stateless.ts";
import { REVISION_HEADER, SESSION_HEADER } from "./headers.ts";
import type { Common } from "./options.ts";
import { HttpSession } from "./session.ts";
import { Sessions } from "./sessions.ts";
import type { Taken } from "./taken.ts";
import type { WayBack } from "./way-back.ts";
import type { Over } from "./work.ts";

export class Endpoint {
  readonly #handler: Handler;
  readonly #exchanges: Exchanges;
  readonly #common: Common;
  readonly #connection: ConnectionOptions;
  readonly #store: ReplayStore;
  readonly #sessions: Sessions<HttpSession>;
  readonly #spoken: readonly Revision[];
  readonly #sessionNames: ReadonlySet<string>;
  readonly #statelessNames: ReadonlySet<string>;

  constructor(
    handler: Handler,
    exchanges: Exchanges,
    spoken: readonly Revision[],
    connection: ConnectionOptions,
    common: Common,
  ) {
    const { limits } = common;
    const names = (style: Revision["style"]): Set<string> =>
      new Set(spoken.filter((revision) => revision.style === style).map(({ name }) => name));
    this.#handler = handler;
    this.#exchanges = exchanges;
    this.#spoken = spoken;
    this.#sessionNames = names("session");
    this.#statelessNames = names("stateless");
    this.#connection = connection;
    this.#common = common;
    this.#store = new ReplayStore(limits.replayBytes, limits.replayEvents);
    this.#sessions = new Sessions(common.room, limits.sessionIdleMs);
  }

  async post(way: WayBack, identity: Identity | undefined): Promise<void> {
    const { visit } = way;
    checkAccept(visit, "application/json", "text/event-stream");
    const taken = await readMessage(way, this.#common.limits);
    if (taken === undefined) return;
    if (!this.#isStateless(taken, visit)) await this.#postToSession(taken, way, identity);
    else if (taken.kind === "batch") {
      throw new Refusal(400, "This revision has no batches: send one message at a time");
    } else if (this.#isForeign(taken, visit)) {
      const { id = null, params } = taken.message as { id?: null; params?: { protocolVersion?: unknown } };
      const error = unsupported(params?.protocolVersion, this.#spoken).toBody();
      way.whole({ jsonrpc: "2.0", id, error }, 400);
    } else {
      const over = this.#common.work.begin(taken);
      try {
        await this.#exchanges.take(taken.message, way, callerOf(visit, identity), over);
      } finally {
        over();
      }
    }
  }

  /** A stream for what comes unasked, or the rest of one that broke. */
  get(way: WayBack, identity: Identity | undefined): void {
    const session = this.#find(way, identity);
    checkAccept(way.visit, "text/event-stream");
    session.get(way, way.visit.headers["last-event-id"]);
  }

  async delete(way: WayBack, identity: Identity | undefined): Promise<void> {
    await this.#sessions.end(this.#find(way, identity));
    way.empty(204);
  }

  close(graceMs: number): Promise<void> {
    return this.#sessions.close(graceMs);
  }

  /** A request that stands by itself, or one of a session. */
  #isStateless(taken: Taken, { headers }: Visit): boolean {
    if (this.#statelessNames.size === 0) return false;
    if (this.#sessionNames.size === 0 || this.#statelessNames.has(headers[REVISION_HEADER] ?? "")) return true;
    if (taken.kind === "batch" || !("method" in taken.message)) return false;
    const { message } = taken;
    return isStateless(message) && (message.params?.["_meta"] !== undefined || headers[SESSION_HEADER] === undefined);
  }

  /** A handshake where no sessions are spoken. */
  #isForeign(taken: Taken & { kind: "message" }, { headers }: Visit): boolean {
    if (this.#sessionNames.size > 0 || this.#statelessNames.has(headers[REVISION_HEADER] ?? "")) return false;
    return isRequest(taken.message) && taken.message.method === "initialize" && !isStateless(taken.message);
  }

  async #postToSession(taken: Taken, way: WayBack, identity: Identity | undefined): Promise<void> {
    const begins = taken.kind === "message" && isRequest(taken.message) && taken.message.method === "initialize";
    const known = way.visit.headers[SESSION_HEADER] !== undefined || !begins;
    const session = known ? this.#find(way, identity) : this.#begin(identity);
    if (taken.kind === "batch" && session.revision?.batches !== true) {
      const name = session.revision?.name ?? "of this session";
      throw new Refusal(400, `Revision ${name} has no batches: send one message at a time`);
    }
    let over: Over | undefined;
    try {
      over = this.#common.work.begin(taken);
      await session.post(taken, way, callerOf(way.visit, identity));
    } finally {
      over?.();
      // A handshake that failed leaves no session behind.
      if (!known && session.revision === undefined) void this.#sessions.end(session);
    }
  }

  #begin(identity: Identity | undefined): HttpSession {
    return this.#sessions.add(
      (id) => new HttpSession(id, identity?.principal, this.#store),
      (session) => serveTransport(this.#handler, session, this.#connection),
    );
  }

  /** Throws a Refusal where there is no such session for this caller. */
  #find(way: WayBack, identity: Identity | undefined): HttpSession {
    const { headers, method } = way.visit;
    const revision = headers[REVISION_HEADER];
    if (method !== "POST" && (this.#sessionNames.size === 0 || this.#statelessNames.has(revision ?? ""))) {
      throw new Refusal(405, `This revision has no ${method}: every request is a POST`, { allow: "POST, OPTIONS" });
    }
    const id = headers[SESSION_HEADER];
    if (id === undefined)
      throw new Refusal(400, "The header Mcp-Session-Id is missing; a session begins with initialize");
    const session = this.#sessions.find(id, identity?.principal);
    if (session === undefined) throw new Refusal(404, "There is no such session; begin a new one with initialize");
    if (revision !== undefined && !this.#sessionNames.has(revision)) {
      const names = [...this.#sessionNames].join(", ");
      throw new Refusal(400, `Unsupported MCP-Protocol-Version ${JSON.stringify(revision)}; supported: ${names}`);
    }
    return session;
  }
}
