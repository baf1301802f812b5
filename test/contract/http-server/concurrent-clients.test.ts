// Clients of all revisions and styles on one port at the same time: each gets only its own messages, although all use the
// same ids.

import { expect, it } from "vitest";
import { NEWEST, NEWEST_SESSION, REVISIONS } from "../../../src/protocol/revisions/index.ts";
import { StatelessClient, LegacySseClient, SessionClient, toolCall } from "../../support/http/mcp-clients.ts";
import type { HttpPeer, Json, Reply } from "../../support/http/http-peer.ts";
import { IS_LONG } from "../../support/thoroughness.ts";
import { startServer, textOf } from "./fixture.ts";

const SESSIONS = REVISIONS.filter(({ style }) => style === "session").map(({ name }) => name);
const LATEST = NEWEST_SESSION.name;
const COUNT = IS_LONG ? 500 : 40;

/** Calls tools; `received` is everything that the client received. */
interface TestClient {
  call(id: number, name: string, args: Json): Promise<string>;
  received(): string;
}

async function open(peer: HttpPeer, kind: number): Promise<TestClient> {
  const replies: Reply[] = [];
  const received = (): string => replies.map(({ text }) => text).join("\n");
  if (kind === 0) {
    const client = new StatelessClient(peer);
    const call = async (id: number, name: string, args: Json): Promise<string> => {
      const reply = await client.post(id, "tools/call", { name, arguments: args, _meta: { progressToken: id } });
      replies.push(reply);
      return textOf(await reply.answerTo(id));
    };
    return { call, received };
  }
  if (kind === 1) {
    const client = await LegacySseClient.open(peer);
    await client.handshake(SESSIONS[0] ?? "");
    replies.push(client.stream);
    const call = async (id: number, name: string, args: Json): Promise<string> => {
      await client.post(toolCall(id, name, args));
      return textOf(await client.stream.answerTo(id));
    };
    return { call, received };
  }
  const client = await SessionClient.open(peer, SESSIONS[(kind - 2) % SESSIONS.length] ?? "");
  replies.push(await client.listen());
  const call = async (id: number, name: string, args: Json): Promise<string> => {
    const reply = await client.call(id, name, args);
    replies.push(reply);
    return textOf(await reply.answerTo(id));
  };
  return { call, received };
}

it(`a server with clients of all styles separates ${COUNT} clients that use the same ids`, async () => {
  const { peer } = await startServer();
  const clients = await Promise.all(Array.from({ length: COUNT }, (_, n) => open(peer, n % 6)));
  const answers = await Promise.all(
    clients.map(async (client, n) => {
      const secret = `secret-${n}-of-its-own`;
      const texts = [await client.call(1, "echo", { text: secret })];
      texts.push(
        ...(await Promise.all([client.call(2, "echo", { text: secret }), client.call(3, "count", { to: 2 })])),
      );
      return texts;
    }),
  );
  answers.forEach((texts, n) => {
    const secret = `secret-${n}-of-its-own`;
    expect(texts).toEqual([secret, secret, "counted to 2"]);
  });
  clients.forEach((client, n) => {
    const foreign = (client.received().match(/secret-\d+-of-its-own/g) ?? []).filter(
      (one) => one !== `secret-${n}-of-its-own`,
    );
    expect(foreign).toEqual([]);
  });
});

it("a server with clients of all styles answers each client in its revision", async () => {
  const { peer } = await startServer();
  const sessions = await Promise.all(SESSIONS.map((revision) => SessionClient.open(peer, revision)));
  const stateless = new StatelessClient(peer);
  const [first, ...rest] = await Promise.all([
    stateless.request(1, "tools/call", { name: "who" }),
    ...sessions.map((session) => session.request("tools/call", { name: "who", arguments: {} })),
  ]);
  expect(JSON.parse(textOf(first)).revision).toBe(NEWEST.name);
  expect(rest.map((answer) => JSON.parse(textOf(answer)).revision as string)).toEqual(SESSIONS);
  // Fields of newer revisions are left out.
  const [oldest, newest] = await Promise.all([sessions[0]?.request("tools/list"), stateless.request(2, "tools/list")]);
  expect(oldest?.["result"].resultType).toBeUndefined();
  expect(newest["result"].resultType).toBe("complete");
});

it("a server with clients of all styles notifies all subscribers of a change, each in its style", async () => {
  const { fixture, peer } = await startServer();
  const session = await SessionClient.open(peer, LATEST);
  const get = await session.listen();
  const legacy = await LegacySseClient.open(peer);
  await legacy.handshake(SESSIONS[0] ?? "");
  const listen = { notifications: { toolsListChanged: true } };
  const subscription = await new StatelessClient(peer).post(1, "subscriptions/listen", listen);
  await subscription.until(({ message }) => message !== undefined);
  await fixture.subscribed(2);
  fixture.server.tool("later", {}, () => "late");
  for (const stream of [get, legacy.stream, subscription]) {
    await stream.untilMessage(({ method }) => method === "notifications/tools/list_changed");
  }
  expect(get.messages).toEqual([{ jsonrpc: "2.0", method: "notifications/tools/list_changed" }]);
});

it("a server with clients of all styles accepts a response only from the client that got the request", async () => {
  const { peer } = await startServer();
  const open = (): Promise<SessionClient> => SessionClient.open(peer, LATEST, { capabilities: { sampling: {} } });
  const [ada, bob] = await Promise.all([open(), open()]);
  const [adaReply, bobReply] = await Promise.all([ada.call(1, "sample"), bob.call(1, "sample")]);
  const requests = await Promise.all(
    [adaReply, bobReply].map((reply) => reply.untilMessage(({ method }) => method === "sampling/createMessage")),
  );
  const sampled = (text: string): Json => ({ role: "assistant", model: "parrot", content: { type: "text", text } });
  // Bob also answers with the id of Ada's request; that answer must be ignored.
  for (const id of [requests[0]?.["id"], requests[1]?.["id"]] as unknown[])
    await bob.post({ id, result: sampled("bob") });
  await ada.post({ id: requests[0]?.["id"], result: sampled("ada") });
  expect(JSON.parse(textOf(await adaReply.answerTo(1))).text).toBe("ada");
  expect(JSON.parse(textOf(await bobReply.answerTo(1))).text).toBe("bob");
});

it("a server with clients of all styles treats a stateless request as such, even with a session id", async () => {
  const { peer } = await startServer();
  const session = await SessionClient.open(peer, LATEST);
  const request = new StatelessClient(peer).build(1, "tools/call", { name: "who" });
  const reply = await peer.post(request.body, { ...request.headers, "mcp-session-id": session.session });
  expect(JSON.parse(textOf(reply.json)).revision).toBe(NEWEST.name);
});
