// The live sessions of a gateway, for the pages: all sessions of all owners, and what happens in them while somebody
// looks. Reads what the servers of live sessions say about themselves; live-actions.ts acts in the sessions.

import type { LiveEvent, LivePlace, LiveServer, LiveStatus } from "../core/live-server.ts";
import { unref } from "../core/async.ts";
import { defined } from "../core/values.ts";
import type { Feed } from "./feed.ts";
import type { ConsoleHost } from "./host.ts";
import { ApiError } from "./route.ts";
import type { LiveDetail, LiveOverview, LiveServerView, LiveSession, TranscriptEvent } from "./types.ts";

/** How often the sessions are looked at while somebody watches them, and how often their output is sent. */
const LOOK_MS = 1_000;
const SEND_MS = 80;
/** How much output of a session is sent at once. A flood is cut: its end is in the result. */
const MAX_OUTPUT = 32_768;

/** What the feed (feed.ts) is asked for here. */
export type LiveFeed = Pick<Feed, "publish" | "addSource" | "isWatched">;

/** A session, and the server that has it. */
export interface FoundSession extends LivePlace {
  readonly id: string;
  readonly serverName: string;
  readonly server: LiveServer;
  readonly status: LiveStatus;
}

export class LiveSessions {
  readonly #host: ConsoleHost;
  readonly #feed: LiveFeed;
  /** The servers that are followed, and what ends that. */
  readonly #followed = new Map<LiveServer, () => void>();
  #look: NodeJS.Timeout | undefined;
  #send: NodeJS.Timeout | undefined;
  #waiting: TranscriptEvent[] = [];
  #lastSent = "";

  constructor(host: ConsoleHost, feed: LiveFeed) {
    this.#host = host;
    this.#feed = feed;
    feed.addSource("live", { onWatched: () => this.#watch(), first: () => this.sessions() });
    feed.addSource("transcript", { onWatched: () => this.#watch() });
  }

  get servers(): ReadonlyMap<string, LiveServer> {
    return this.#host.running.gateway.live();
  }

  overview(): LiveOverview {
    const servers = [...this.servers].map(([name, server]) => viewOf(name, server));
    return { servers, sessions: this.sessions(), ...defined({ owner: this.#host.running.owner }) };
  }

  /** Those of a server together, in the order of their ids, so that none changes its place when it is used. */
  sessions(): readonly LiveSession[] {
    return [...this.servers].flatMap(([name, server]) =>
      server
        .sessions()
        .map((status) => sessionOf(name, server, status))
        .toSorted((one, other) => (one.id < other.id ? -1 : 1)),
    );
  }

  /** Throws an ApiError if there is no such session. */
  find(id: string): FoundSession {
    for (const [serverName, server] of this.servers) {
      for (const status of server.sessions()) {
        const { owner, session } = status;
        if (idOf(serverName, status) === id) return { id, serverName, server, status, owner, session };
      }
    }
    throw new ApiError(404, `There is no live session ${JSON.stringify(id)}`, "it may have been closed");
  }

  async detail(id: string, turns: number): Promise<LiveDetail> {
    const { server, serverName, status, ...place } = this.find(id);
    const [definitions, checkpoints] = await Promise.all([
      server.definitions(place),
      server.checkpoints(place.owner).catch(() => []),
    ]);
    return {
      session: sessionOf(serverName, server, status),
      server: viewOf(serverName, server),
      turns: server.turns(place, turns),
      ...defined({ definitions }),
      checkpoints,
      libraries: status.libraries,
    };
  }

  close(): void {
    clearInterval(this.#look);
    this.#look = undefined;
    this.#lastSent = "";
    this.#unfollow();
  }

  /** Looks while somebody watches, and follows what is evaluated only while somebody sees that. */
  #watch(): void {
    const isSeen = this.#feed.isWatched("transcript");
    if (!isSeen) this.#unfollow();
    if (!isSeen && !this.#feed.isWatched("live")) return this.close();
    this.#look ??= unref(setInterval(() => this.#lookAgain(), LOOK_MS));
    this.#lookAgain();
  }

  #unfollow(): void {
    clearTimeout(this.#send);
    this.#send = undefined;
    this.#waiting = [];
    for (const stop of this.#followed.values()) stop();
    this.#followed.clear();
  }

  /** Sends the sessions if they have changed, and follows servers that are new. */
  #lookAgain(): void {
    if (this.#feed.isWatched("transcript")) this.#followServers();
    const sessions = this.sessions();
    const json = JSON.stringify(sessions);
    if (json === this.#lastSent) return;
    this.#lastSent = json;
    this.#feed.publish("live", sessions);
  }

  #followServers(): void {
    const { servers } = this;
    const known = new Set(servers.values());
    for (const [server, stop] of this.#followed) {
      if (known.has(server)) continue;
      stop();
      this.#followed.delete(server);
    }
    for (const [name, server] of servers) {
      if (!this.#followed.has(server))
        this.#followed.set(
          server,
          server.follow((event) => this.#happened(name, event)),
        );
    }
  }

  #happened(name: string, event: LiveEvent): void {
    const { owner, session, ...rest } = event;
    const id = idOf(name, { owner, session });
    const last = this.#waiting.findLast((waiting) => waiting.session === id);
    if (rest.type === "output" && last?.type === "output" && last.turn === rest.turn) {
      // The pages get no more than they can show.
      const text = `${last.text}${rest.text}`.slice(0, MAX_OUTPUT);
      this.#waiting[this.#waiting.lastIndexOf(last)] = { ...last, text };
    } else {
      this.#waiting.push({ session: id, ...rest });
    }
    this.#send ??= unref(setTimeout(() => this.#sendWaiting(), SEND_MS));
  }

  #sendWaiting(): void {
    this.#send = undefined;
    const events = this.#waiting;
    this.#waiting = [];
    this.#feed.publish("transcript", events);
    this.#lookAgain();
  }
}

/** Readable, the same as long as the session lives, and one segment of a path. */
export function idOf(server: string, { owner, session }: LivePlace): string {
  const part = (text: string): string => text.replaceAll("%", "%25").replaceAll("~", "%7E");
  return [part(server), session, ...(owner === "" ? [] : [part(owner)])].join("~");
}

function viewOf(name: string, { language, title, tools }: LiveServer): LiveServerView {
  return { name, language, title, can: Object.keys(tools) };
}

function sessionOf(name: string, server: LiveServer, status: LiveStatus): LiveSession {
  const { owner, session, state, version, pid, process, memoryMb } = status;
  const { evaluations, waiting, usedAt, busy, users, holdsError } = status;
  const running = busy && server.turns(status, 0).find(({ turn }) => turn === busy.turn);
  return {
    id: idOf(name, status),
    server: name,
    language: server.language,
    name: session,
    ...{ state, version, process, evaluations, waiting, usedAt, users, holdsError },
    ...defined({
      owner: owner === "" ? undefined : owner,
      pid,
      memoryMb,
      busy: busy && { op: busy.op, since: busy.since, ...defined({ client: running?.client, code: running?.code }) },
    }),
  };
}
