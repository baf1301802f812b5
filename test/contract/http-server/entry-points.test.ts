// The same behaviour with each entry point: serve(), nodeHandler() and fetchHandler(). Also what only fetchHandler() can
// do: answer a Request without any server.

import { createServer as createHttpServer } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, it } from "vitest";
import { createFront } from "../../../src/http/server/mount.ts";
import { WebHttpRequest } from "../../../src/http/server/web-request.ts";
import { fetchHandler, nodeHandler } from "../../../src/http.ts";
import { NEWEST, NEWEST_SESSION } from "../../../src/protocol/revisions/index.ts";
import { createServer } from "../../../src/server/index.ts";
import {
  StatelessClient,
  initialize,
  LegacySseClient,
  SessionClient,
  toolCall,
} from "../../support/http/mcp-clients.ts";
import { HttpPeer } from "../../support/http/http-peer.ts";
import { ENTRY_POINTS } from "./entry-points.ts";
import { closeAfterTest, Fixture, textOf } from "./fixture.ts";

const LATEST = NEWEST_SESSION.name;
const echo = createServer({ name: "s", version: "1" }).tool(
  "echo",
  { inputSchema: { type: "object", properties: { constructor: { type: "string" } } } },
  () => "done",
);

describe.each(Object.entries(ENTRY_POINTS))("%s", (title, open) => {
  it("an entry point serves a session from its handshake to its end", async () => {
    const { fixture, peer } = await open();
    const client = await SessionClient.open(peer, LATEST);
    const stream = await client.listen();
    await fixture.subscribed(0);
    const reply = await client.call(1, "echo", { text: "ä, 漢, 🙂" });
    expect(reply.isStream).toBe(false);
    expect(textOf(reply.json)).toBe("ä, 漢, 🙂");
    const steps = await client.call(2, "count", { to: 3 });
    await steps.ended;
    expect(steps.messages.map(({ params }) => params?.progress)).toEqual([1, 2, 3, undefined]);
    fixture.server.tool("later", {}, () => "late");
    await stream.untilMessage(({ method }) => method === "notifications/tools/list_changed");
    expect((await client.end()).status).toBeLessThan(300);
    await stream.ended;
    expect((await client.post({ id: 3, method: "ping" })).status).toBe(404);
  });

  it("an entry point resumes a broken stream", async () => {
    const { fixture, peer } = await open();
    const client = await SessionClient.open(peer, LATEST);
    const call = client.call(1, "hold", { key: "k" });
    const context = await fixture.holding("k");
    context.progress(1);
    const reply = await call;
    await reply.until(({ message }) => message !== undefined);
    reply.hangUp();
    await reply.ended;
    context.progress(2);
    fixture.release("k");
    const rest = await client.resume(reply.lastEventId);
    expect(textOf(await rest.answerTo(1))).toBe("released k");
    expect(rest.messages.map(({ params }) => params?.progress)).toEqual([2, undefined]);
  });

  it("an entry point sends requests to the client during a call", async () => {
    const { peer } = await open();
    const client = await SessionClient.open(peer, LATEST, { capabilities: { elicitation: {} } });
    const call = await client.call(1, "elicit");
    const request = await call.untilMessage(({ method }) => method === "elicitation/create");
    await client.post({ id: request["id"], result: { action: "accept", content: { name: "Ada" } } });
    expect(textOf(await call.answerTo(1))).toBe("accept Ada");
  });

  it("an entry point answers stateless requests with their statuses", async () => {
    const { peer } = await open();
    const client = new StatelessClient(peer);
    expect(textOf(await client.request(1, "tools/call", { name: "echo", arguments: { text: "x" } }))).toBe("x");
    expect((await client.post(2, "no/such")).status).toBe(404);
    const mismatch = await client.post(3, "tools/call", { name: "echo" }, { "mcp-name": "hold" });
    expect([mismatch.status, mismatch.json["error"].code]).toEqual([400, -32020]);
    const named = { "mcp-protocol-version": NEWEST.name };
    expect((await peer.send({ method: "GET", headers: named })).status).toBe(405);
  });

  it("an entry point cancels a call when the client disconnects, before the head and during the stream", async () => {
    const { fixture, peer } = await open();
    const client = new StatelessClient(peer);
    for (const key of ["before", "during"]) {
      const params = { name: "hold", arguments: { key }, _meta: { progressToken: key } };
      const begun = client.begin(1, "tools/call", params);
      const context = await fixture.holding(key);
      const aborted = new Promise((resolve) => context.signal.addEventListener("abort", resolve));
      if (key === "during") {
        context.progress(1);
        await (await begun.reply).until(({ message }) => message !== undefined);
      }
      begun.hangUp();
      await aborted;
      expect(context.signal.aborted).toBe(true);
    }
  });

  it("an entry point keeps a subscription open, with comments", async () => {
    const { fixture, peer } = await open({ limits: { keepAliveMs: 20 } });
    const listen = { notifications: { toolsListChanged: true } };
    const stream = await new StatelessClient(peer).post("l", "subscriptions/listen", listen);
    await stream.untilComments(2);
    fixture.server.tool("later", {}, () => "late");
    await stream.untilMessage(({ method }) => method === "notifications/tools/list_changed");
    const { signal } = await fixture.subscribed(0);
    const aborted = new Promise((resolve) => signal.addEventListener("abort", resolve));
    stream.hangUp();
    await aborted;
    expect(stream.messages).toHaveLength(2);
  });

  it("an entry point refuses other origins, other content types, and long bodies", async () => {
    const { peer } = await open({ limits: { messageBytes: 1_000 } });
    const message = initialize(LATEST);
    expect((await peer.post(message, { origin: "http://evil.example.com" })).status).toBe(403);
    expect((await peer.post(message, { host: "evil.example.com" })).status).toBe(403);
    expect((await peer.post(message, { "content-type": "text/plain" })).status).toBe(415);
    expect((await peer.post(message, { accept: "text/html" })).status).toBe(406);
    expect((await peer.post({ ...message, fill: "x".repeat(2_000) })).status).toBe(413);
    expect((await peer.post(message)).status).toBe(200);
  });

  it("an entry point serves legacy HTTP+SSE too", async () => {
    const { peer } = await open();
    // A framework forwards only paths below the mount path.
    const client = await LegacySseClient.open(peer, title === "nodeHandler in a framework" ? "/mcp/sse" : "/sse");
    await client.handshake(LATEST);
    await client.post(toolCall(1, "count", { to: 2 }));
    expect(textOf(await client.stream.answerTo(1))).toBe("counted to 2");
  });
});

const post = (body: unknown, headers: Record<string, string> = {}): Request =>
  new Request("http://localhost/mcp", {
    method: "POST",
    headers: { "content-type": "application/json", accept: "application/json, text/event-stream", ...headers },
    body: JSON.stringify(body),
  });

it("fetchHandler alone answers a Request with a Response", async () => {
  const fetch = closeAfterTest(fetchHandler(new Fixture().handler));
  const response = await fetch(post(initialize(LATEST)));
  expect(response.status).toBe(200);
  expect(await response.json()).toMatchObject({ result: { protocolVersion: LATEST } });
  const session = response.headers.get("mcp-session-id") ?? "";
  const again = await fetch(post({ jsonrpc: "2.0", id: 1, method: "ping" }, { "mcp-session-id": session }));
  expect(await again.json()).toEqual({ jsonrpc: "2.0", id: 1, result: {} });
});

it("fetchHandler alone treats a cancelled reader as a disconnected client", async () => {
  const fixture = new Fixture();
  const fetch = closeAfterTest(fetchHandler(fixture.handler));
  const client = new StatelessClient(new HttpPeer("http://localhost/mcp"));
  const request = client.build(1, "subscriptions/listen", { notifications: { toolsListChanged: true } });
  const response = await fetch(post(request.body, request.headers as Record<string, string>));
  const reader = response.body?.getReader();
  const { value } = (await reader?.read()) ?? {};
  expect(new TextDecoder().decode(value)).toContain("notifications/subscriptions/acknowledged");
  const { signal } = await fixture.subscribed(0);
  await reader?.cancel();
  expect(signal.aborted).toBe(true);
});

it("fetchHandler alone cuts off a client that does not read", async () => {
  const fixture = new Fixture();
  const router = closeAfterTest(createFront(fixture.handler, {}, undefined, { unreadBytes: 64 * 1024 }));
  const uri = `heavy://${"x".repeat(1_000)}`;
  const client = new StatelessClient(new HttpPeer("http://localhost/mcp"));
  const request = client.build(1, "subscriptions/listen", { notifications: { resourceSubscriptions: [uri] } });
  const sent = new WebHttpRequest(post(request.body, request.headers as Record<string, string>));
  router.handle(sent);
  const response = await sent.response;
  const { signal } = await fixture.subscribed(0);
  for (let n = 0; n < 200 && !signal.aborted; n += 1) fixture.server.resourceUpdated(uri);
  expect(signal.aborted).toBe(true);
  await expect(response.text()).rejects.toThrow();
});

it("fetchHandler alone ends its streams when it is closed, and refuses new requests", async () => {
  const fixture = new Fixture();
  const fetch = fetchHandler(fixture.handler);
  const client = new StatelessClient(new HttpPeer("http://localhost/mcp"));
  const request = client.build(9, "subscriptions/listen", { notifications: { toolsListChanged: true } });
  const response = await fetch(post(request.body, request.headers as Record<string, string>));
  await fixture.subscribed(0);
  const [text] = await Promise.all([response.text(), fetch.close()]);
  expect(text).toContain('"resultType":"complete"');
  expect((await fetch(post(initialize(LATEST)))).status).toBe(503);
});

const aborted = (signal: AbortSignal): Request => {
  const { body, headers } = new StatelessClient(new HttpPeer("http://localhost/mcp")).build(1, "tools/list");
  const all = { "content-type": "application/json", ...(headers as Record<string, string>) };
  return new Request("http://localhost/mcp", { method: "POST", body: JSON.stringify(body), headers: all, signal });
};

it("fetchHandler alone answers a Request that is already aborted", async () => {
  expect((await fetchHandler(echo)(aborted(AbortSignal.abort()))).status).toBeGreaterThanOrEqual(400);
});

it("fetchHandler alone answers a Request that is aborted during authentication", async () => {
  const stop = new AbortController();
  const auth = {
    authenticate: async () => {
      stop.abort();
      return { principal: "ada" };
    },
  };
  expect((await fetchHandler(echo, { auth })(aborted(stop.signal))).status).toBeGreaterThanOrEqual(400);
});

it("nodeHandler reads a body even if setEncoding() was called", async () => {
  const handler = nodeHandler(echo);
  const http = createHttpServer((request, response) => {
    request.setEncoding("utf8");
    handler(request, response);
  }).listen(0, "127.0.0.1");
  closeAfterTest({ close: () => new Promise((resolve) => http.close(resolve)) });
  await new Promise((resolve) => http.once("listening", resolve));
  const peer = closeAfterTest(new HttpPeer(`http://127.0.0.1:${(http.address() as AddressInfo).port}/mcp`));
  const client = new StatelessClient(peer);
  const answer = await client.request(1, "tools/call", { name: "echo", arguments: {} });
  expect(JSON.stringify(answer)).toContain("done");
});
