// Closing a server over HTTP, and deleting a session: what happens to requests in flight, to bodies that are still arriving,
// and to handlers that ignore their signal. Each client gets an answer, and nothing starts afterwards.

import { connect as connectSocket } from "node:net";
import { expect, it } from "vitest";
import { fetchHandler } from "../../../src/http.ts";
import { NEWEST_SESSION, REVISIONS } from "../../../src/protocol/revisions/index.ts";
import {
  initialize,
  LegacySseClient,
  SessionClient,
  StatelessClient,
  toolCall,
} from "../../support/http/mcp-clients.ts";
import { HttpPeer } from "../../support/http/http-peer.ts";
import { Fixture, startServer, textOf } from "./fixture.ts";

const LATEST = NEWEST_SESSION.name;

it("close() answers requests in flight, refuses new ones, and closes the port", async () => {
  const { fixture, peer, front } = await startServer({ graceMs: 10_000 });
  const session = await SessionClient.open(peer, LATEST);
  const held = session.call(1, "hold", { key: "s" });
  const stateless = new StatelessClient(peer).begin(1, "tools/call", { name: "hold", arguments: { key: "e" } });
  await Promise.all([fixture.holding("s"), fixture.holding("e")]);
  const closed = front.close();
  fixture.release("s");
  fixture.release("e");
  expect(textOf((await stateless.reply).json)).toBe("released e");
  expect(textOf(await (await held).answerTo(1))).toBe("released s");
  await closed;
  await expect(peer.post(initialize(LATEST))).rejects.toThrow(/ECONNREFUSED/);
  await front.closed;
  // A second call changes nothing.
  await front.close();
});

it("close() does not wait for idle connections", async () => {
  const { peer, front } = await startServer();
  const session = await SessionClient.open(peer, LATEST);
  const stream = await session.listen();
  const socket = connectSocket(Number(peer.url.port), peer.url.hostname);
  await new Promise((resolve) => socket.once("connect", resolve));
  const gone = new Promise((resolve) => socket.once("close", resolve));
  socket.on("error", () => undefined).resume();
  await front.close();
  await Promise.all([gone, stream.ended]);
  expect(stream.isEnded).toBe(true);
});

it("close() does not wait for handlers that ignore their signal", async () => {
  const { fixture, peer, front } = await startServer({ graceMs: 50 });
  const session = await SessionClient.open(peer, LATEST);
  const ignoring = session.call(1, "ignore", { key: "s" });
  const stateless = new StatelessClient(peer).begin(1, "tools/call", { name: "ignore", arguments: { key: "e" } });
  const legacy = await LegacySseClient.open(peer);
  await legacy.handshake(LATEST);
  await legacy.post(toolCall(1, "ignore", { key: "o" }));
  const contexts = await Promise.all(["s", "e", "o"].map((key) => fixture.holding(key)));
  await front.close();
  expect(contexts.map(({ signal }) => signal.aborted)).toEqual([true, true, true]);
  // The outcomes may differ, but each of them settles.
  await Promise.allSettled([ignoring.then(({ ended }) => ended), stateless.reply, legacy.stream.ended]);
});

it("a handler that ignores its signal does not delay the answer when its session is deleted", async () => {
  const { fixture, peer } = await startServer();
  const client = await SessionClient.open(peer, LATEST);
  const call = client.call("c", "ignore", { key: "k" });
  await fixture.holding("k");
  await client.end();
  expect(await (await call).answerTo("c")).toMatchObject({ id: "c", error: { data: { kind: "unreachable" } } });
});

it("a handler that ignores its signal does not delay the answer when the server closes", async () => {
  const fixture = new Fixture();
  const handler = fetchHandler(fixture.server, { graceMs: 1 });
  const params = { name: "ignore", arguments: { key: "k" } };
  const { body, headers } = new StatelessClient(new HttpPeer("http://localhost/mcp")).build("c", "tools/call", params);
  const init = {
    method: "POST",
    body: JSON.stringify(body),
    headers: { "content-type": "application/json", ...(headers as Record<string, string>) },
  };
  const answer = handler(new Request("http://localhost/mcp", init));
  await fixture.holding("k");
  await handler.close();
  expect(await (await answer).json()).toMatchObject({ id: "c", error: { data: { kind: "unreachable" } } });
});

/** Sends a POST without its last byte; `rest` sends it and returns the response. */
async function postWithoutLastByte(url: string, body: string, headers = ""): Promise<{ rest(): Promise<string> }> {
  const { host, hostname, port, pathname, search } = new URL(url);
  const socket = connectSocket(Number(port), hostname);
  // The server may close the connection instead of answering.
  socket.on("error", () => undefined);
  const type = "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n";
  socket.write(
    `POST ${pathname}${search} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n${type}${headers}Content-Length: ${body.length}\r\n\r\n`,
  );
  await new Promise<void>((resolve) => socket.write(body.slice(0, -1), () => resolve()));
  const rest = async (): Promise<string> => {
    let text = "";
    socket.setEncoding("utf8").on("data", (chunk: string) => {
      text += chunk;
    });
    const closed = new Promise<void>((resolve) => socket.once("close", () => resolve()));
    socket.write(body.slice(-1));
    await closed;
    return text;
  };
  return { rest };
}

it("a body that is still arriving is refused if the legacy SSE session has ended", async () => {
  const { fixture, peer } = await startServer({ http: { limits: { requests: 1 } } });
  const client = await LegacySseClient.open(peer);
  await client.handshake(REVISIONS[0]?.name ?? "");
  const call = JSON.stringify({ jsonrpc: "2.0", ...toolCall("c", "hold", { key: "k" }) });
  const post = await postWithoutLastByte(new URL(client.endpoint, peer.url).href, call);
  client.stream.hangUp();
  await client.stream.ended;
  const other = await SessionClient.open(peer, LATEST);
  await expect.poll(async () => (await other.call(1, "echo", { text: "free" })).status).toBe(200);
  expect(await post.rest()).toMatch(/^HTTP\/1\.1 404 /);
  expect(fixture.runs.size).toBe(0);
});

it("a body that is still arriving is refused if the server is closing", async () => {
  const fixture = new Fixture();
  const { front } = await startServer({ graceMs: 1 }, fixture.handler);
  const init = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"${LATEST}","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`;
  const post = await postWithoutLastByte(front.url ?? "", init);
  // The answer to OPTIONS shows that the server has read the head.
  await (await fetch(front.url ?? "", { method: "OPTIONS" })).text();
  const closing = front.close();
  expect(await post.rest()).toMatch(/^(HTTP\/1\.1 503 |$)/);
  await closing;
});

it("legacy HTTP+SSE is refused if the server closes during authentication", async () => {
  let finish: () => void = () => undefined;
  const released = new Promise<void>((resolve) => {
    finish = resolve;
  });
  let onAuthenticate: () => void = () => undefined;
  const arrived = new Promise<void>((resolve) => {
    onAuthenticate = resolve;
  });
  const auth = {
    authenticate: async () => {
      onAuthenticate();
      await released;
      return { principal: "ada" };
    },
  };
  const handler = fetchHandler(new Fixture().server, { auth });
  const response = handler(new Request("http://localhost/sse"));
  await arrived;
  await handler.close();
  finish();
  expect((await response).status).toBe(503);
});
