// An end and its callers that speak messages and nothing else, with a bridge of ours between them: the end's handler,
// served again to each caller on a wire of its own. Handshakes are made where a revision has them; all else, on either
// side, is for the test to say.

import type { Context } from "../../src/core/context.ts";
import type { Notification } from "../../src/core/handler.ts";
import { open, type Opened } from "../../src/dialogue/open.ts";
import { serveTransport } from "../../src/dialogue/serve.ts";
import { knownRevision, NEWEST } from "../../src/protocol/revisions/index.ts";
import { memoryPair } from "../../src/transport/memory.ts";
import { RawPeer, stamp } from "./raw-peer.ts";

type Loose = { readonly [key: string]: unknown };

export interface RawCaller {
  readonly revision: string;
  /** In the words of its revision. */
  readonly capabilities?: Loose;
}

export interface BridgeOptions {
  readonly end: string;
  /** Capabilities of the end, in the words of its revision. */
  readonly offers?: Loose;
  /** What the bridge declares to its end, in the newest shape. */
  readonly declares?: Loose;
  readonly callers: readonly RawCaller[];
}

export interface RawBridge {
  readonly end: RawPeer;
  readonly opened: Opened;
  readonly callers: readonly RawPeer[];
  /** Who is told what belongs to no caller. */
  readonly home: readonly Notification[];
  /** Asks as that caller's revision does: an exchange says by itself who asks. */
  ask(index: number, message: Loose): Promise<Loose>;
  /** The first request or notification with this name that the end has got, come or to come, after those before it. */
  heard(method: string, nth?: number): Promise<Loose>;
  close(): Promise<void>;
}

const ALL = { elicitation: { form: {}, url: {} }, sampling: { tools: {} }, roots: {} };

export async function rawBridge({ end: revision, offers, declares = ALL, callers }: BridgeOptions): Promise<RawBridge> {
  const [back, endSide] = memoryPair();
  const end = await new RawPeer(endSide).start();
  const told: Notification[] = [];
  const home: Context = {
    revision: NEWEST.name,
    caller: { capabilities: declares },
    signal: new AbortController().signal,
    notify: (notification) => told.push(notification),
    ask: () => Promise.reject(new Error("Nobody is at home")),
  };
  const info = { name: "bridge", version: "1" };
  const opening = open(() => back, { info, capabilities: declares, home, revision });
  const capabilities = offers ?? { tools: { listChanged: true }, prompts: {}, resources: { subscribe: true }, logging: {} };
  const isSession = knownRevision(revision).style === "session";
  const { id } = await end.until(({ method }) => method === (isSession ? "initialize" : "server/discover"));
  const hints = { resultType: "complete", ttlMs: 0, cacheScope: "private" };
  const result = isSession
    ? { protocolVersion: revision, capabilities, serverInfo: { name: "end", version: "1" } }
    : { ...hints, supportedVersions: [revision], capabilities };
  end.send({ id, result });
  const opened = await opening;
  const fronts = await Promise.all(callers.map((caller) => join(opened, caller)));
  return {
    end,
    opened,
    callers: fronts.map(({ peer }) => peer),
    home: told,
    ask: (index, message) => {
      const { peer } = fronts[index]!;
      return peer.request(asSaid(callers[index]!, message));
    },
    heard: async (method, nth = 1) => {
      const fits = (): readonly Loose[] => end.received.filter((message) => message["method"] === method);
      await end.until(() => fits().length >= nth);
      return fits()[nth - 1]!;
    },
    close: async () => {
      await Promise.all(fronts.map(({ served }) => served.close()));
      await opened.close();
    },
  };
}

async function join(opened: Opened, { revision, capabilities = {} }: RawCaller) {
  const [front, side] = memoryPair();
  const served = await serveTransport(opened.handler, front);
  const peer = await new RawPeer(side).start();
  if (knownRevision(revision).style === "session") await peer.handshake(revision, capabilities);
  return { peer, served };
}

function asSaid({ revision, capabilities }: RawCaller, message: Loose): Loose {
  if (knownRevision(revision).style === "session") return message;
  const params = (message["params"] ?? {}) as { readonly _meta?: Loose };
  return { ...message, params: { ...params, _meta: { ...stamp(revision, capabilities), ...params._meta } } };
}
