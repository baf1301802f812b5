// Which messages are sent on which stream of a session: messages of a call on the stream of the call, others on the GET
// stream, and each message on one stream only (2025-11-25, basic/transports, "Sending Messages to the Server" to "Multiple
// Connections").

import { expect, it } from "vitest";
import { NEWEST_SESSION, REVISIONS } from "../../../src/protocol/revisions/index.ts";
import { SessionClient, toolCall } from "../../support/http/mcp-clients.ts";
import type { Json, Reply } from "../../support/http/http-peer.ts";
import { startServer, textOf, startLimited } from "./fixture.ts";

const LATEST = NEWEST_SESSION.name;
const NEWER = REVISIONS.filter(({ style }) => style === "session")
  .map(({ name }) => name)
  .slice(1);

const isListChanged = ({ data = "" }: { data?: string }): boolean => data.includes("list_changed");
const methods = (reply: Reply): unknown[] => reply.messages.map(({ method }) => method);

it.each(NEWER)("an answer in a session is JSON in %s if there is only the result", async (revision) => {
  const { peer } = await startServer();
  const client = await SessionClient.open(peer, revision);
  const reply = await client.call(1, "echo", { text: "hi" });
  expect(reply.headers["content-type"]).toMatch(/^application\/json/);
  expect(textOf(reply.json)).toBe("hi");
});

it.each(NEWER)(
  "an answer in a session is the last event of a stream in %s if other messages come before it",
  async (revision) => {
    const { peer } = await startServer();
    const client = await SessionClient.open(peer, revision);
    const reply = await client.call(1, "count", { to: 3 });
    expect(reply.isStream).toBe(true);
    expect(reply.headers["cache-control"]).toMatch(/no-(cache|store)/);
    expect(reply.headers["x-accel-buffering"]).toBe("no");
    expect(await reply.ended).toBe("complete");
    expect(reply.messages.map(({ params }) => params?.progress)).toEqual([1, 2, 3, undefined]);
    expect(textOf(reply.messages.at(-1) ?? {})).toBe("counted to 3");
    const [first] = reply.events;
    // Older clients would parse the empty data as JSON.
    if (revision === LATEST) {
      expect(first).toEqual({ id: expect.stringMatching(/./), data: "", retry: expect.stringMatching(/^\d+$/) });
    } else expect(first?.message).toBeDefined();
    expect(reply.events.slice(1).every(({ retry, message }) => retry === undefined && message)).toBe(true);
    const ids = reply.events.map(({ id }) => id);
    expect(new Set(ids).size).toBe(ids.length);
    for (const id of ids) expect(id).toMatch(/^[\x21-\x7e]+$/);
    for (const { event } of reply.events) expect(event ?? "message").toBe("message");
  },
);

it("an answer in a session is a stream after silenceMs", async () => {
  const { fixture, peer } = await startLimited({ silenceMs: 20 });
  const client = await SessionClient.open(peer, LATEST);
  const reply = await client.call(1, "hold", { key: "k" });
  expect(reply.isStream).toBe(true);
  fixture.release("k");
  expect(textOf(await reply.answerTo(1))).toBe("released k");
  expect(await reply.ended).toBe("complete");
});

it("an answer in a session is a stream with comments while nothing happens", async () => {
  const { fixture, peer } = await startLimited({ silenceMs: 10 }, { keepAliveMs: 20 });
  const client = await SessionClient.open(peer, LATEST);
  const reply = await client.call(1, "hold", { key: "k" });
  await reply.untilComments(3);
  expect(reply.messages).toEqual([]);
  fixture.release("k");
  await reply.answerTo(1);
});

it("an answer in a session to a notification or a response is 202 without a body", async () => {
  const { peer } = await startServer();
  const client = await SessionClient.open(peer, LATEST);
  for (const message of [{ method: "notifications/none" }, { id: "unknown", result: {} }] as Json[]) {
    const reply = await client.post(message);
    expect([reply.status, reply.text]).toEqual([202, ""]);
  }
});

it("the stream of a call can be disconnected without cancelling the call", async () => {
  const { fixture, peer } = await startServer();
  const client = await SessionClient.open(peer, LATEST);
  const call = client.call(1, "hold", { key: "k" });
  const context = await fixture.holding("k");
  context.progress(1);
  const reply = await call;
  await reply.until(({ message }) => message !== undefined);
  reply.hangUp();
  await client.request("ping");
  expect(context.signal.aborted).toBe(false);
  fixture.release("k");
  const rest = await client.resume(reply.lastEventId);
  expect(textOf(await rest.answerTo(1))).toBe("released k");
  expect(fixture.runs.get("k")).toBe(1);
});

it("the stream of a call can be disconnected before its head without cancelling the call", async () => {
  const { fixture, peer } = await startServer();
  const client = await SessionClient.open(peer, LATEST);
  const started = peer.begin(
    { jsonrpc: "2.0", ...toolCall(1, "hold", { key: "k" }) },
    { "mcp-session-id": client.session },
  );
  const { signal } = await fixture.holding("k");
  started.hangUp();
  await client.request("ping");
  expect(signal.aborted).toBe(false);
  fixture.release("k");
  // The id can be used again after the call.
  const again = async (): Promise<string> => textOf(await (await client.call(1, "echo", { text: "free" })).answerTo(1));
  await expect.poll(again).toBe("free");
});

it.each(["before its head", "during the stream"])(
  "the stream of a call ends without an answer when the call is cancelled %s",
  async (when) => {
    const { fixture, peer } = await startServer();
    const client = await SessionClient.open(peer, LATEST);
    const call = client.call("c", "hold", { key: "k" });
    const context = await fixture.holding("k");
    if (when === "during the stream") {
      context.progress(1);
      await call;
    }
    await client.post({ method: "notifications/cancelled", params: { requestId: "c", reason: "enough" } });
    expect(context.signal.aborted).toBe(true);
    const reply = await call;
    await reply.ended;
    expect(reply.text).not.toContain('"result"');
    expect(reply.messages.filter(({ id }) => id === "c" || id === null)).toEqual([]);
  },
);

it("the stream of a call ends when the call is cancelled, even if the handler ignores its signal, and the id can be used again", async () => {
  const { fixture, peer } = await startServer();
  const client = await SessionClient.open(peer, LATEST);
  const call = client.call("c", "ignore", { key: "k" });
  await fixture.holding("k");
  await client.post({ method: "notifications/cancelled", params: { requestId: "c" } });
  await (
    await call
  ).ended;
  expect(textOf(await (await client.call("c", "echo", { text: "again" })).answerTo("c"))).toBe("again");
});

it("the stream of a call carries requests to the client, whose responses come by POST", async () => {
  const { peer } = await startServer();
  const client = await SessionClient.open(peer, LATEST, { capabilities: { elicitation: {} } });
  const getStream = await client.listen();
  const call = await client.call(1, "elicit");
  const request = await call.untilMessage(({ method }) => method === "elicitation/create");
  expect(request["params"].message).toBe("Who are you?");
  const answer = { id: request["id"], result: { action: "accept", content: { name: "Ada" } } };
  expect((await client.post(answer)).status).toBe(202);
  expect(textOf(await call.answerTo(1))).toBe("accept Ada");
  expect(getStream.messages).toEqual([]);
});

it("the stream of a call ends when the handler calls hangUp(), and can be resumed", async () => {
  const { fixture, peer } = await startServer();
  const client = await SessionClient.open(peer, LATEST);
  const call = client.call(1, "hold", { key: "k" });
  const context = await fixture.holding("k");
  context.hangUp(120);
  const reply = await call;
  expect(await reply.ended).toBe("complete");
  expect(reply.messages).toEqual([]);
  expect(reply.events.findLast(({ retry }) => retry !== undefined)?.retry).toBe("120");
  expect(reply.lastEventId).toMatch(/./);
  expect(context.signal.aborted).toBe(false);
  context.progress(1);
  fixture.release("k");
  const rest = await client.resume(reply.lastEventId);
  expect(textOf(await rest.answerTo(1))).toBe("released k");
  expect(rest.messages.map(({ params }) => params?.progress)).toEqual([1, undefined]);
});

it("the GET stream carries change notifications, and no answers", async () => {
  const { fixture, peer } = await startServer();
  const client = await SessionClient.open(peer, LATEST);
  const stream = await client.listen();
  expect(stream.status).toBe(200);
  await fixture.subscribed(0);
  await client.request("resources/subscribe", { uri: "note://one" });
  await client.request("tools/call", { name: "add", arguments: { name: "new" } });
  await stream.untilMessage(({ method }) => method === "notifications/tools/list_changed");
  await client.request("tools/call", { name: "update", arguments: { uri: "note://one" } });
  const { params } = await stream.untilMessage(({ method }) => method === "notifications/resources/updated");
  expect(params).toEqual({ uri: "note://one" });
  expect(stream.messages.every((message) => !("id" in message))).toBe(true);
});

it("the GET stream carries requests to the client outside of any call", async () => {
  const { fixture, peer } = await startServer();
  const client = await SessionClient.open(peer, LATEST, { capabilities: { roots: {} } });
  const stream = await client.listen();
  const context = await fixture.subscribed(0);
  const asked = context.ask({ method: "roots/list", params: {} });
  const request = await stream.untilMessage(({ method }) => method === "roots/list");
  const roots = [{ uri: "file:///here" }];
  expect((await client.post({ id: request["id"], result: { roots } })).status).toBe(202);
  expect(await asked).toMatchObject({ roots });
});

it("the GET stream carries each message once, even if there are several streams", async () => {
  const { fixture, peer } = await startServer();
  const client = await SessionClient.open(peer, LATEST);
  const streams = [await client.listen(), await client.listen()];
  await fixture.subscribed(0);
  await client.request("resources/subscribe", { uri: "note://one" });
  for (let n = 0; n < 5; n += 1) fixture.server.resourceUpdated("note://one");
  const all = (): Json[] => streams.filter(({ status }) => status === 200).flatMap(({ messages }) => messages);
  await expect.poll(() => all().length).toBe(5);
  await client.request("ping");
  expect(all()).toHaveLength(5);
});

it("the GET stream keeps messages while it is disconnected", async () => {
  const { fixture, peer } = await startServer();
  const client = await SessionClient.open(peer, LATEST);
  await fixture.subscribed(0);
  const first = await client.listen();
  fixture.server.tool("one", {}, () => "1");
  await first.untilMessage(({ method }) => method === "notifications/tools/list_changed");
  first.hangUp();
  await client.request("ping");
  fixture.server.prompt("two", {}, () => "2");
  const second = await client.resume(first.lastEventId);
  await second.untilMessage(({ method }) => method === "notifications/prompts/list_changed");
  expect(methods(second)).toEqual(["notifications/prompts/list_changed"]);
});

it("the GET stream has comments while nothing happens", async () => {
  const { peer } = await startServer({ http: { limits: { keepAliveMs: 20 } } });
  const client = await SessionClient.open(peer, LATEST);
  const stream = await client.listen();
  await stream.untilComments(3);
  expect(stream.messages).toEqual([]);
});

it("the GET stream requires a client that accepts event streams", async () => {
  const { peer } = await startServer();
  const client = await SessionClient.open(peer, LATEST);
  expect((await client.listen({ accept: "application/json" })).status).toBe(406);
  expect((await client.listen({ accept: "*/*" })).status).toBe(200);
});

it("several GET streams have their own event ids, and do not repeat each other's messages", async () => {
  const { peer, fixture } = await startServer();
  const client = await SessionClient.open(peer, LATEST);
  const first = await client.listen();
  await fixture.subscribed(0);
  fixture.server.tool("a", {}, () => "a");
  await first.until(isListChanged);
  const second = await client.listen();
  await second.until(({ id }) => id !== undefined);
  fixture.server.tool("b", {}, () => "b");
  await second.until(isListChanged);
  expect(first.messages).toHaveLength(1);
  const ids = [...first.events, ...second.events].map(({ id }) => id);
  expect(new Set(ids).size).toBe(ids.length);
  first.hangUp();
  await first.ended;
  const back = await client.resume(first.lastEventId);
  expect(back.status).toBe(200);
  fixture.server.tool("c", {}, () => "c");
  await second.until(({ id }) => id === "g1-2");
  expect([second.messages.length, back.messages.length]).toEqual([2, 0]);
});

it("a client that hangs up before the head does not get a stream after the silence", async () => {
  const { fixture, peer } = await startLimited({ silenceMs: 20 });
  const client = await SessionClient.open(peer, LATEST);
  const headers = { "mcp-session-id": client.session };
  const started = peer.begin({ jsonrpc: "2.0", ...toolCall(1, "hold", { key: "k" }) }, headers);
  const context = await fixture.holding("k");
  started.hangUp();
  // The stream of another silent call begins later than that of the first would have.
  const other = await client.call(2, "hold", { key: "other" });
  expect(other.headers["content-type"]).toBe("text/event-stream");
  expect(context.signal.aborted).toBe(false);
  context.progress(1);
  fixture.release("k");
  fixture.release("other", "alive");
  expect(JSON.stringify(await other.answerTo(2))).toContain("alive");
  expect(await client.request("ping")).toMatchObject({ result: {} });
});
