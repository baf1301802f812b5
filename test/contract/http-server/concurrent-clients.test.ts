// Callers of every revision and of both styles on one port at once: each gets its own answers and nothing of
// anybody else's, though all of them use the same ids.

import { describe, expect, it } from "vitest";
import { NEWEST, NEWEST_SESSION, REVISIONS } from "../../../src/protocol/revisions/index.ts";
import { StatelessClient, LegacySseClient, SessionClient, toolCall } from "../../support/http/mcp-clients.ts";
import type { HttpPeer, Json, Reply } from "../../support/http/http-peer.ts";
import { startServer, textOf } from "./fixture.ts";

const SESSIONS = REVISIONS.filter(({ style }) => style === "session").map(({ name }) => name);
const LATEST = NEWEST_SESSION.name;

/** One caller, as far as this test needs one: it calls a tool, and shows all that ever came to it. */
interface Caller {
  call(id: number, name: string, args: Json): Promise<string>;
  heard(): string;
}

async function open(peer: HttpPeer, kind: number): Promise<Caller> {
  const replies: Reply[] = [];
  const heard = (): string => replies.map(({ text }) => text).join("\n");
  if (kind === 0) {
    const client = new StatelessClient(peer);
    const call = async (id: number, name: string, args: Json): Promise<string> => {
      const reply = await client.post(id, "tools/call", { name, arguments: args, _meta: { progressToken: id } });
      replies.push(reply);
      return textOf(await reply.answerTo(id));
    };
    return { call, heard };
  }
  if (kind === 1) {
    const client = await LegacySseClient.open(peer);
    await client.handshake(SESSIONS[0] ?? "");
    replies.push(client.stream);
    const call = async (id: number, name: string, args: Json): Promise<string> => {
      await client.post(toolCall(id, name, args));
      return textOf(await client.stream.answerTo(id));
    };
    return { call, heard };
  }
  const client = await SessionClient.open(peer, SESSIONS[(kind - 2) % SESSIONS.length] ?? "");
  replies.push(await client.listen());
  const call = async (id: number, name: string, args: Json): Promise<string> => {
    const reply = await client.call(id, name, args);
    replies.push(reply);
    return textOf(await reply.answerTo(id));
  };
  return { call, heard };
}

describe("all styles on one port", () => {
  it("keeps 500 callers apart who all use the same ids", { timeout: 60_000 }, async () => {
    const { peer } = await startServer();
    const clients = await Promise.all(Array.from({ length: 500 }, (_, n) => open(peer, n % 6)));
    const answers = await Promise.all(
      clients.map(async (client, n) => {
        const secret = `secret-${n}-of-its-own`;
        const said = [await client.call(1, "echo", { text: secret })];
        said.push(
          ...(await Promise.all([client.call(2, "echo", { text: secret }), client.call(3, "count", { to: 2 })])),
        );
        return said;
      }),
    );
    answers.forEach((said, n) => {
      const secret = `secret-${n}-of-its-own`;
      expect(said).toEqual([secret, secret, "counted to 2"]);
    });
    clients.forEach((client, n) => {
      const foreign = (client.heard().match(/secret-\d+-of-its-own/g) ?? []).filter(
        (one) => one !== `secret-${n}-of-its-own`,
      );
      expect(foreign).toEqual([]);
    });
  });

  it("speaks every revision to its caller, at the same time", async () => {
    const { peer } = await startServer();
    const sessions = await Promise.all(SESSIONS.map((revision) => SessionClient.open(peer, revision)));
    const alone = new StatelessClient(peer);
    const [exchanged, ...rest] = await Promise.all([
      alone.request(1, "tools/call", { name: "who" }),
      ...sessions.map((session) => session.request("tools/call", { name: "who", arguments: {} })),
    ]);
    expect(JSON.parse(textOf(exchanged)).revision).toBe(NEWEST.name);
    expect(rest.map((answer) => JSON.parse(textOf(answer)).revision as string)).toEqual(SESSIONS);
    // What a revision has no words for is not said in it.
    const [oldest, newest] = await Promise.all([sessions[0]?.request("tools/list"), alone.request(2, "tools/list")]);
    expect(oldest?.["result"].resultType).toBeUndefined();
    expect(newest["result"].resultType).toBe("complete");
  });

  it("tells a change to all who listen, each in its way", async () => {
    const { fixture, peer } = await startServer();
    const session = await SessionClient.open(peer, LATEST);
    const get = await session.listen();
    const old = await LegacySseClient.open(peer);
    await old.handshake(SESSIONS[0] ?? "");
    const listen = { notifications: { toolsListChanged: true } };
    const exchange = await new StatelessClient(peer).post(1, "subscriptions/listen", listen);
    await exchange.until(({ message }) => message !== undefined);
    await fixture.subscribed(2);
    fixture.server.tool("later", {}, () => "late");
    for (const stream of [get, old.stream, exchange]) {
      await stream.untilMessage(({ method }) => method === "notifications/tools/list_changed");
    }
    expect(get.messages).toEqual([{ jsonrpc: "2.0", method: "notifications/tools/list_changed" }]);
  });

  it("takes the answer to a question only from whom it was asked", async () => {
    const { peer } = await startServer();
    const open = (): Promise<SessionClient> => SessionClient.open(peer, LATEST, { capabilities: { sampling: {} } });
    const [ada, bob] = await Promise.all([open(), open()]);
    const [asked, alike] = await Promise.all([ada.call(1, "sample"), bob.call(1, "sample")]);
    const questions = await Promise.all(
      [asked, alike].map((reply) => reply.untilMessage(({ method }) => method === "sampling/createMessage")),
    );
    const said = (text: string): Json => ({ role: "assistant", model: "parrot", content: { type: "text", text } });
    // Bob answers whatever Ada may have been asked; only what he was asked himself is answered by that.
    for (const id of [questions[0]?.["id"], questions[1]?.["id"]] as unknown[])
      await bob.post({ id, result: said("bob") });
    await ada.post({ id: questions[0]?.["id"], result: said("ada") });
    expect(JSON.parse(textOf(await asked.answerTo(1))).text).toBe("ada");
    expect(JSON.parse(textOf(await alike.answerTo(1))).text).toBe("bob");
  });

  it("takes a request that stands by itself for what it is, also with a session's id", async () => {
    const { peer } = await startServer();
    const session = await SessionClient.open(peer, LATEST);
    const made = new StatelessClient(peer).build(1, "tools/call", { name: "who" });
    const reply = await peer.post(made.body, { ...made.headers, "mcp-session-id": session.session });
    expect(JSON.parse(textOf(reply.json)).revision).toBe(NEWEST.name);
  });
});
