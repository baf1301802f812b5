// Requests that stand by themselves: what they are answered with and under which status, that hanging up cancels,
// rounds of questions over several connections, and the listen that stays open (2026-07-28,
// basic/transports/streamable-http and basic/patterns).

import { describe, expect, it } from "vitest";
import { NEWEST, NEWEST_SESSION } from "../../../src/protocol/revisions/index.ts";
import { StatelessClient, SessionClient } from "../../support/http/mcp-clients.ts";
import type { Json } from "../../support/http/http-peer.ts";
import { startServer, textOf } from "./fixture.ts";

const TAG = "io.modelcontextprotocol/subscriptionId";
const NAMED = { "mcp-protocol-version": NEWEST.name };
const aborted = async (signal: AbortSignal): Promise<void> => {
  if (!signal.aborted) await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
};

describe("an exchange", () => {
  it("is one POST and one JSON answer, and leaves no session", async () => {
    const { peer } = await startServer();
    const reply = await new StatelessClient(peer).post(1, "tools/call", { name: "echo", arguments: { text: "hi" } });
    expect(reply.status).toBe(200);
    expect(reply.headers["content-type"]).toMatch(/^application\/json/);
    expect(reply.headers["mcp-session-id"]).toBeUndefined();
    expect(reply.json).toMatchObject({ jsonrpc: "2.0", id: 1, result: { resultType: "complete" } });
  });

  it("is a stream where something comes before the answer, without ids to come back to", async () => {
    const { peer } = await startServer();
    const client = new StatelessClient(peer);
    const params = { name: "count", arguments: { to: 3 }, _meta: { progressToken: 0 } };
    const reply = await client.post(1, "tools/call", params);
    expect(reply.isStream).toBe(true);
    expect(reply.headers["x-accel-buffering"]).toBe("no");
    expect(await reply.ended).toBe("complete");
    expect(reply.messages.map(({ params: said }) => said?.progress)).toEqual([1, 2, 3, undefined]);
    expect(reply.events.every(({ id, retry, message }) => id === undefined && retry === undefined && message)).toBe(
      true,
    );
  });

  it("is a stream after a silence, with comments while nothing happens", async () => {
    const { fixture, peer } = await startServer({ http: { limits: { silenceMs: 10, keepAliveMs: 20 } } });
    const reply = await new StatelessClient(peer).post(1, "tools/call", { name: "hold", arguments: { key: "k" } });
    await reply.untilComments(2);
    fixture.release("k");
    expect(textOf(await reply.answerTo(1))).toBe("released k");
  });

  it.each([
    ["an unknown tool", "tools/call", { name: "nobody" }, 200, -32602],
    ["an unknown resource", "resources/read", { uri: "nowhere://x" }, 200, -32602],
    ["an unknown prompt", "prompts/get", { name: "nobody" }, 200, -32602],
    ["an unknown method", "no/such", {}, 404, -32601],
    ["a caller that cannot answer", "tools/call", { name: "elicit" }, 400, -32021],
  ] as const)("answers %s with its status", async (_title, method, params, status, code) => {
    const { peer } = await startServer();
    const reply = await new StatelessClient(peer).post("x", method, params);
    expect([reply.status, reply.json["error"]?.code, reply.json["id"]]).toEqual([status, code, "x"]);
  });

  it("refuses a posted response, and accepts a notification with 202", async () => {
    const { peer } = await startServer();
    const response = await peer.post({ jsonrpc: "2.0", id: 1, result: {} }, NAMED);
    expect(response.status).toBe(400);
    const told = await peer.post({ jsonrpc: "2.0", method: "notifications/none" }, NAMED);
    expect([told.status, told.text]).toEqual([202, ""]);
  });

  it.each(["GET", "DELETE", "PUT", "PATCH", "HEAD"])("has no %s: 405", async (method) => {
    const { peer } = await startServer();
    const reply = await peer.send({ method, headers: NAMED });
    expect(reply.status).toBe(405);
    expect(reply.headers["allow"]).toContain("POST");
  });

  it("ignores a session id and the id of an event", async () => {
    const { peer } = await startServer();
    const { session } = await SessionClient.open(peer, NEWEST_SESSION.name);
    for (const id of ["nobody", session]) {
      const more = { "mcp-session-id": id, "last-event-id": "7" };
      const reply = await new StatelessClient(peer).post(1, "tools/list", {}, more);
      expect(reply.status).toBe(200);
      expect(reply.headers["mcp-session-id"]).toBeUndefined();
    }
  });

  it("says how long lists and what is read may be kept, and lists the same twice", async () => {
    const { peer } = await startServer();
    const client = new StatelessClient(peer);
    const asked: [string, Json][] = [
      ["server/discover", {}],
      ["tools/list", {}],
      ["prompts/list", {}],
      ["resources/list", {}],
      ["resources/templates/list", {}],
      ["resources/read", { uri: "note://one" }],
    ];
    for (const [method, params] of asked) {
      const first = await client.request(1, method, params);
      expect([method, first["result"]]).toEqual([
        method,
        expect.objectContaining({ ttlMs: expect.any(Number) as number }),
      ]);
      expect(first["result"].cacheScope).toMatch(/^(public|private)$/);
      expect(await client.request(1, method, params)).toEqual(first);
    }
  });

  it("is told of nothing that it did not ask for", async () => {
    const { fixture, peer } = await startServer();
    const client = new StatelessClient(peer);
    const begun = client.begin(1, "tools/call", { name: "hold", arguments: { key: "k" } });
    const context = await fixture.holding("k");
    context.progress(1);
    context.log("error", "nobody wants to know");
    fixture.release("k");
    const reply = await begun.reply;
    expect(reply.isStream).toBe(false);
    expect(textOf(reply.json)).toBe("released k");
  });
});

describe("hanging up", () => {
  it.each(["before the head", "in mid-stream"])("cancels the call %s", async (when) => {
    const { fixture, peer } = await startServer();
    const client = new StatelessClient(peer);
    const params = { name: "hold", arguments: { key: "k" }, _meta: { progressToken: "t" } };
    const begun = client.begin(1, "tools/call", params);
    const context = await fixture.holding("k");
    if (when === "in mid-stream") {
      context.progress(1);
      await (await begun.reply).until(({ message }) => message !== undefined);
    }
    begun.hangUp();
    await aborted(context.signal);
    // Too late for anybody; it must neither throw nor reach the next caller.
    context.progress(2);
    fixture.release("k");
    expect(textOf(await client.request(1, "tools/call", { name: "echo", arguments: { text: "next" } }))).toBe("next");
  });

  it("cancels the listen, and what happens later is sent to nobody", async () => {
    const { fixture, peer } = await startServer();
    const client = new StatelessClient(peer);
    const stream = await client.post("l", "subscriptions/listen", { notifications: { toolsListChanged: true } });
    const { signal } = await fixture.subscribed(0);
    stream.hangUp();
    await aborted(signal);
    fixture.server.tool("later", {}, () => "late");
    expect(await client.request(1, "tools/list")).toMatchObject({ result: { resultType: "complete" } });
  });

  it("leaves the calls of others alone, also those with the same id", async () => {
    const { fixture, peer } = await startServer();
    const client = new StatelessClient(peer);
    const one = client.begin(1, "tools/call", { name: "hold", arguments: { key: "one" } });
    const two = client.begin(1, "tools/call", { name: "hold", arguments: { key: "two" } });
    const { signal } = await fixture.holding("one");
    const other = await fixture.holding("two");
    one.hangUp();
    await aborted(signal);
    expect(other.signal.aborted).toBe(false);
    fixture.release("two");
    expect(textOf((await two.reply).json)).toBe("released two");
  });
});

describe("rounds of questions", () => {
  const who = { action: "accept", content: { name: "Ada" } };

  it("go on over another connection", async () => {
    const { peer } = await startServer();
    const client = new StatelessClient(peer, { capabilities: { elicitation: {} } });
    const first = await client.request(1, "tools/call", { name: "elicit" });
    expect(first["result"].resultType).toBe("input_required");
    const { inputRequests, requestState } = first["result"];
    const [[key, question]] = Object.entries(inputRequests) as [[string, Json]];
    expect(question).toMatchObject({ method: "elicitation/create", params: { message: "Who are you?" } });
    const retry = { name: "elicit", inputResponses: { [key]: who }, requestState };
    const last = await client.request("another id", "tools/call", retry);
    expect(textOf(last)).toBe("accept Ada");
    // Once more: the same answer, and no second run.
    expect(textOf(await client.request(3, "tools/call", retry))).toBe("accept Ada");
    const forged = { ...retry, requestState: `${String(requestState)}x` };
    const refused = await client.post(4, "tools/call", forged);
    expect(refused.json).toMatchObject({ error: { code: -32602 } });
  });

  it("carry no request of ours", async () => {
    const { peer } = await startServer();
    const client = new StatelessClient(peer, { capabilities: { elicitation: {} } });
    const reply = await client.post(1, "tools/call", { name: "elicit", _meta: { progressToken: 1 } });
    const messages = reply.isStream ? reply.messages : [reply.json];
    expect(messages.filter((message) => "method" in message && "id" in message)).toEqual([]);
  });
});

describe("a listen", () => {
  it("is acknowledged first, tags all that it sends, and sends only what was asked for", async () => {
    const { fixture, peer } = await startServer();
    const client = new StatelessClient(peer);
    const notifications = { toolsListChanged: true, resourceSubscriptions: ["note://one"] };
    const stream = await client.post("l-1", "subscriptions/listen", { notifications });
    expect(stream.isStream).toBe(true);
    await stream.until(({ message }) => message !== undefined);
    fixture.server.prompt("unasked", {}, () => "p");
    fixture.server.resourceUpdated("note://other");
    fixture.server.tool("later", {}, () => "late");
    fixture.server.resourceUpdated("note://one");
    await stream.untilMessage(({ method }) => method === "notifications/resources/updated");
    await stream.untilMessage(({ method }) => method === "notifications/tools/list_changed");
    const [first, ...rest] = stream.messages.map(({ method }) => method as string);
    expect(first).toBe("notifications/subscriptions/acknowledged");
    expect(rest.toSorted()).toEqual(["notifications/resources/updated", "notifications/tools/list_changed"]);
    expect(stream.messages[0]).toMatchObject({ params: { notifications } });
    for (const { params } of stream.messages) expect(params._meta[TAG]).toBe("l-1");
  });

  it("is kept alive by comments", async () => {
    const { peer } = await startServer({ http: { limits: { keepAliveMs: 20 } } });
    const client = new StatelessClient(peer);
    const stream = await client.post(5, "subscriptions/listen", { notifications: { toolsListChanged: true } });
    await stream.untilComments(3);
    expect(stream.messages).toHaveLength(1);
  });

  it("ends with its result when the server closes", async () => {
    const { fixture, peer, front } = await startServer();
    const client = new StatelessClient(peer);
    const stream = await client.post(5, "subscriptions/listen", { notifications: { toolsListChanged: true } });
    await fixture.subscribed(0);
    const closed = front.close();
    expect(await stream.answerTo(5)).toMatchObject({ result: { resultType: "complete", _meta: { [TAG]: 5 } } });
    expect(await stream.ended).toBe("complete");
    await closed;
  });

  it("gives every listener its own copy, also under one id", async () => {
    const { fixture, peer } = await startServer();
    const clients = Array.from({ length: 10 }, () => new StatelessClient(peer));
    const listen = { notifications: { toolsListChanged: true } };
    const streams = await Promise.all(clients.map((client) => client.post(1, "subscriptions/listen", listen)));
    await Promise.all(streams.map((stream) => stream.until(({ message }) => message !== undefined)));
    fixture.server.tool("later", {}, () => "late");
    for (const stream of streams) {
      await stream.untilMessage(({ method }) => method === "notifications/tools/list_changed");
      expect(stream.messages).toHaveLength(2);
    }
  });
});
