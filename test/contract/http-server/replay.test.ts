// Replay of broken streams: a client that resumes with the id of its last event gets the rest of that stream, each message
// once, and nothing of other streams (2025-11-25, basic/transports, "Resumability and Redelivery").

import { expect, it } from "vitest";
import { NEWEST_SESSION, REVISIONS } from "../../../src/protocol/revisions/index.ts";
import { SessionClient } from "../../support/http/mcp-clients.ts";
import { startServer, textOf } from "./fixture.ts";
import { startCall, received, STEPS, allAfter } from "./stepped-call.ts";

const LATEST = NEWEST_SESSION.name;
const NEWER = REVISIONS.filter(({ style }) => style === "session")
  .map(({ name }) => name)
  .slice(1);

it.each(NEWER)("a broken stream is resumed in %s at each point", async (revision) => {
  const started = await startServer();
  const client = await SessionClient.open(started.peer, revision);
  for (let point = 1; point <= STEPS - 1; point += 1) {
    const { reply, go } = await startCall(started, client, `${revision} ${point}`, point);
    reply.hangUp();
    await reply.ended;
    // Half of the calls continue while the client is disconnected.
    if (point % 2 === 0) go(STEPS);
    const rest = await client.resume(reply.lastEventId);
    expect(rest.status).toBe(200);
    if (point % 2 === 1) go(STEPS);
    expect(await rest.ended).toBe("complete");
    expect(received(reply)).toEqual(allAfter(0).slice(0, point));
    expect(received(rest)).toEqual(allAfter(point));
  }
});

it("a broken stream can be resumed from any event", async () => {
  const started = await startServer();
  const client = await SessionClient.open(started.peer, LATEST);
  const { reply, go } = await startCall(started, client, "k", STEPS - 1);
  reply.hangUp();
  go(STEPS);
  for (const { id, message } of reply.events) {
    const rest = await client.resume(id);
    await rest.ended;
    expect(received(rest)).toEqual(allAfter(Number(message?.["params"].progress ?? 0)));
  }
});

it("a broken stream may break at each event", async () => {
  const started = await startServer();
  const client = await SessionClient.open(started.peer, LATEST);
  const { reply, go } = await startCall(started, client, "k", 1);
  const replies = [reply];
  let last = reply.lastEventId;
  reply.hangUp();
  for (let step = 2; step <= STEPS; step += 1) {
    const next = await client.resume(last);
    go(step);
    await next.untilMessage(({ params }) => params?.progress === step);
    if (step === STEPS) await next.ended;
    else next.hangUp();
    await next.ended;
    replies.push(next);
    last = next.lastEventId;
  }
  // A reply may contain more events than the awaited one; none may be repeated.
  expect(received(...replies)).toEqual(allAfter(0));
});

it("a broken stream moves to the last connection that resumes it", async () => {
  const started = await startServer();
  const client = await SessionClient.open(started.peer, LATEST);
  const { reply, go } = await startCall(started, client, "k", 3);
  const second = await client.resume(reply.lastEventId);
  go(6);
  await second.untilMessage(({ params }) => params?.progress === 6);
  go(STEPS);
  await second.ended;
  expect(received(second)).toEqual(allAfter(3));
  expect(received(reply)).toEqual([1, 2, 3]);
});

it("a broken stream may be one of many", async () => {
  const started = await startServer();
  const client = await SessionClient.open(started.peer, LATEST);
  const listen = await client.listen();
  const calls = await Promise.all(Array.from({ length: 20 }, (_, n) => startCall(started, client, `${n}`, 2)));
  for (const { reply } of [...calls, { reply: listen }]) reply.hangUp();
  await Promise.all(calls.map(({ reply }) => reply.ended));
  const rests = await Promise.all(calls.map(({ reply }) => client.resume(reply.lastEventId)));
  await client.listen();
  for (const { go } of calls) go(STEPS);
  await Promise.all(rests.map((rest) => rest.ended));
  for (const rest of rests) expect(received(rest)).toEqual(allAfter(2));
});

it("a broken stream contains no messages of other streams", async () => {
  const started = await startServer();
  const client = await SessionClient.open(started.peer, LATEST);
  const listen = await client.listen();
  const one = await startCall(started, client, "one", 2);
  const two = await startCall(started, client, "two", 2);
  one.reply.hangUp();
  two.reply.hangUp();
  listen.hangUp();
  await Promise.all([one.reply.ended, two.reply.ended, listen.ended]);
  one.go(STEPS);
  two.go(5);
  started.fixture.server.tool("later", {}, () => "late");
  const rest = await client.resume(one.reply.lastEventId);
  await rest.ended;
  expect(received(rest)).toEqual(allAfter(2));
  expect(textOf(await rest.answerTo("one"))).toBe("released one");
  const tokens = new Set(rest.messages.flatMap(({ params }) => params?.progressToken ?? []));
  expect([...tokens]).toEqual(["t-one"]);
  two.go(STEPS);
  const other = await client.resume(two.reply.lastEventId);
  await other.ended;
  expect(received(other)).toEqual(allAfter(2));
});

it("a broken stream is not available to other sessions or with other event ids", async () => {
  const started = await startServer();
  const client = await SessionClient.open(started.peer, LATEST);
  const other = await SessionClient.open(started.peer, LATEST);
  const { reply, go } = await startCall(started, client, "secret", 2);
  reply.hangUp();
  const id = reply.lastEventId ?? "";
  const guesses = [id, `${id}0`, id.slice(0, -1), "0", "-1", "x".repeat(500), '{"a":1}', `${id}, ${id}`];
  for (const guess of guesses) {
    const got = await other.resume(guess);
    expect([guess, got.status >= 400 && got.status < 500, got.messages]).toEqual([guess, true, []]);
    expect(got.text).not.toContain("secret");
  }
  go(STEPS);
  const rest = await client.resume(id);
  await rest.ended;
  expect(received(rest)).toEqual(allAfter(2));
  // The other session still works.
  expect(await other.request("ping")).toMatchObject({ result: {} });
});
