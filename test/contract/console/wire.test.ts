// What a reader of a gateway gets of the wire: the messages of each call on the side of its client and of its upstream, each
// in its own revision and joined to the right call, with the heads of HTTP, without secrets.

import { beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { connect, type Client, type ConnectOptions } from "../../../src/client/index.ts";
import type { WirePassage } from "../../../src/core/handler.ts";
import { serveTransport } from "../../../src/dialogue/connection.ts";
import { chain } from "../../../src/chain/chain.ts";
import type { Gateway } from "../../../src/chain/gateway.ts";
import type { ObservedCall } from "../../../src/chain/observe.ts";
import { upstream } from "../../../src/chain/upstream/upstream.ts";
import { META } from "../../../src/protocol/model/base.ts";
import { NEWEST, REVISIONS } from "../../../src/protocol/revisions/index.ts";
import { serve } from "../../../src/serve.ts";
import { memoryPair } from "../../../src/transport/memory.ts";
import type { Json } from "../../support/http/http-peer.ts";
import { compiled } from "../../support/programs.ts";
import { eventually } from "../../support/waiting.ts";
import { folder } from "../chain/callers.ts";
import { wireServer } from "./wire-server.ts";

/** With sessions, and with elicitation. */
const OLD = REVISIONS[2]?.name ?? "";
const NEW = NEWEST.name;
const PROGRAM = compiled("wire-program.ts", import.meta.url);

beforeEach(() => {
  vi.stubEnv("CATENARY_CACHE", folder());
  return () => vi.unstubAllEnvs();
});

interface Seen {
  readonly call: ObservedCall;
  readonly passages: WirePassage[];
  hasEnded: boolean;
}

/** Records the calls of tools. */
function watch(gateway: Gateway): Seen[] {
  const all: Seen[] = [];
  gateway.observe<Seen | undefined>({
    begin: (call) => {
      if (call.request.method !== "tools/call") return;
      call.state = { call, passages: [], hasEnded: false };
      all.push(call.state);
    },
    passed: ({ state }, passage) => void state?.passages.push(passage),
    end: ({ state }) => state && void (state.hasEnded = true),
  });
  return all;
}

/** What passed, in short. */
function summary(passages: readonly WirePassage[], side: WirePassage["side"]): string[] {
  return passages
    .filter((passage) => passage.side === side)
    .map(({ sender, message, http }) => {
      const { method, result } = (message ?? {}) as Json;
      const what = message === undefined ? [] : [method ?? (result === undefined ? "error" : "result")];
      return [sender, ...(http === undefined ? [] : [http.line]), ...what].join(" ");
    });
}

function messages(passages: readonly WirePassage[], side: WirePassage["side"]): Json[] {
  return passages.flatMap((passage) => (passage.side === side && passage.message ? [passage.message as Json] : []));
}

async function gatewayTo(kind: "http" | "lines", revision: string): Promise<Gateway> {
  let gateway: Gateway;
  if (kind === "http") {
    const server = await serve(wireServer, { http: { port: 0, revisions: [revision] } });
    onTestFinished(() => server.close());
    const headers = { authorization: "Bearer abc-secret", "x-own": "own-secret" };
    gateway = chain().to({ wire: upstream(server.url, { headers }) });
  } else gateway = chain().to({ wire: { command: process.execPath, args: [PROGRAM, revision] } });
  onTestFinished(() => gateway.close());
  return gateway;
}

/** Two clients of one gateway. */
async function clientsOf(kind: "http" | "lines", gateway: Gateway, revision: string): Promise<Client[]> {
  const options: ConnectOptions = {
    revision,
    elicit: async () => ({ action: "accept", content: { answer: "this" } }),
  };
  if (kind === "http") {
    const front = await serve(gateway, { http: { port: 0 } });
    onTestFinished(() => front.close());
    const headers = { cookie: "id=client-secret", "x-api-key": "key-secret", "x-client": "cursor" };
    const clients = [
      await connect(front.url, { ...options, headers }),
      await connect(front.url, { ...options, headers }),
    ];
    for (const client of clients) onTestFinished(() => client.close());
    return clients;
  }
  const open = async (): Promise<Client> => {
    const [ours, theirs] = memoryPair();
    const served = await serveTransport(gateway, theirs);
    const client = await connect(ours, options);
    onTestFinished(async () => {
      await client.close();
      await served.close();
    });
    return client;
  };
  return [await open(), await open()];
}

const KINDS = ["http", "lines"] as const;
const CASES = KINDS.flatMap((client) =>
  KINDS.flatMap((server) => [[client, NEW, server, OLD] as const, [client, OLD, server, NEW] as const]),
);

describe.each(CASES)(
  "a client on %s in revision %s, an upstream on %s in revision %s",
  (kind, ours, server, theirs) => {
    it("the messages of concurrent calls are joined to their calls, in the revision of each side", async () => {
      const gateway = await gatewayTo(server, theirs);
      const clients = await clientsOf(kind, gateway, ours);
      for (const client of clients) await client.listTools();
      const seen = watch(gateway);
      const texts = ["first", "second"];
      const call = (client: Client, at: number): Promise<unknown> =>
        client.callTool("echo", { text: texts[at] }, { onProgress: () => undefined });
      await Promise.all(clients.map(call));
      await eventually(() => {
        expect(seen.map(({ passages }) => messages(passages, "client").at(-1)?.["result"])).not.toContain(undefined);
      });
      expect(seen).toHaveLength(2);
      const ids: unknown[] = [];
      for (const { passages, call: observed } of seen) {
        const { text } = observed.request.params["arguments"] as { text: string };
        const [atClient, atUpstream] = [messages(passages, "client"), messages(passages, "upstream")];
        const expected = ["client tools/call", "server notifications/progress", "server result"];
        const withoutHeads = (lines: string[]): string[] =>
          lines.map((line) => line.replace(/ (POST|\d+) \S+(?= |$)/, ""));
        const heads = (lines: string[]): string[] => lines.filter((line) => / (POST|\d+) /.test(line));
        for (const [side, isHttp] of [
          ["client", kind === "http"],
          ["upstream", server === "http"],
        ] as const) {
          const lines = summary(passages, side);
          expect(withoutHeads(lines).filter((line) => line !== "server")).toEqual(expected);
          expect(heads(lines)).toEqual(isHttp ? ["client POST /mcp tools/call", "server 200 OK"] : []);
        }
        for (const side of [atClient, atUpstream]) {
          expect(side[0]?.["params"].arguments).toEqual({ text });
          expect(side[2]?.["result"].content[0].text).toBe(text);
          expect(side[2]?.id).toBe(side[0]?.id);
        }
        expect(atClient[0]?.["params"]._meta[META.revision]).toBe(ours === NEW ? NEW : undefined);
        expect(atUpstream[0]?.["params"]._meta[META.revision]).toBe(theirs === NEW ? NEW : undefined);
        expect(atClient[2]?.["result"].resultType).toBe(ours === NEW ? "complete" : undefined);
        expect(atUpstream[2]?.["result"].resultType).toBe(theirs === NEW ? "complete" : undefined);
        expect(new Set(passages.map(({ side, revision }) => `${side} ${revision}`))).toEqual(
          new Set([`client ${ours}`, `upstream ${theirs}`]),
        );
        const all = JSON.stringify(passages);
        expect(all).not.toMatch(/-secret/);
        for (const { http } of passages) {
          const session = http?.headers["mcp-session-id"];
          if (session !== undefined) expect(session).toMatch(/^.{8}\.\.\.$/);
        }
        if (kind === "http") expect(all).toContain('"x-client":"cursor"');
        if (server === "http") expect(all).toContain('"authorization":"[redacted]","x-own":"[redacted]"');
        ids.push(atClient[0]?.id);
      }
      expect(new Set(ids).size).toBe(1);
    });

    it("questions of the upstream are messages of the call that asks", async () => {
      const gateway = await gatewayTo(server, theirs);
      const [client] = await clientsOf(kind, gateway, ours);
      // Over HTTP, the list of tools is read for the first call.
      await client?.listTools();
      const seen = watch(gateway);
      const result = await client?.callTool("ask");
      expect(JSON.stringify(result)).toContain("You said this");
      const all = seen.flatMap(({ passages }) => passages.filter(({ message }) => message !== undefined));
      const short = (side: WirePassage["side"]): string[] =>
        summary(
          all.map(({ http: _head, ...rest }) => rest),
          side,
        );
      await eventually(() => expect(short("client").at(-1)).toBe("server result"));
      const asSession = ["client tools/call", "server elicitation/create", "client result", "server result"];
      const asRetry = ["client tools/call", "server result", "client tools/call", "server result"];
      expect(short("client")).toEqual(ours === NEW ? asRetry : asSession);
      expect(short("upstream")).toEqual(theirs === NEW ? asRetry : asSession);
      // A retry of a parked call belongs to the call that it continues. An upstream's wish for input ends its call.
      expect(seen).toHaveLength(theirs === NEW ? 2 : 1);
    });
  },
);
