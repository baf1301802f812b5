// Ends that come at the wrong time: of a session, of the front, of a stream, while a body is still on its way or a
// handler does not heed its signal. Whoever waits gets a word, and nothing begins after the end.

import { connect } from "node:net";
import { describe, expect, it, vi } from "vitest";
import { AuthError, type Authenticator } from "../../../src/core/authentication.ts";
import { fetchHandler } from "../../../src/http.ts";
import { NEWEST_SESSION, REVISIONS } from "../../../src/protocol/revisions/index.ts";
import { createServer } from "../../../src/server/index.ts";
import { StatelessClient, LegacySseClient, SessionClient, toolCall } from "../../support/http/mcp-clients.ts";
import { HttpPeer } from "../../support/http/http-peer.ts";
import { Fixture, startServer } from "./fixture.ts";

const LATEST = NEWEST_SESSION.name;
const BATCHED = REVISIONS.find(({ batches }) => batches)?.name ?? "";

describe("a handler that does not heed its signal", () => {
  it("does not keep the callers of a session that was ended waiting", async () => {
    const { fixture, peer } = await startServer();
    const client = await SessionClient.open(peer, LATEST);
    const call = client.call("c", "deaf", { key: "k" });
    await fixture.holding("k");
    await client.end();
    expect(await (await call).answerTo("c")).toMatchObject({ id: "c", error: { data: { kind: "unreachable" } } });
  });

  it("does not keep the callers of a front that is closed waiting", async () => {
    const fixture = new Fixture();
    const handler = fetchHandler(fixture.server, { graceMs: 1 });
    const params = { name: "deaf", arguments: { key: "k" } };
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
});

describe("a body that is still on its way", () => {
  /** A POST of which all but the last byte has been sent. */
  async function almost(url: string, body: string, headers = ""): Promise<{ rest(): Promise<string> }> {
    const { host, hostname, port, pathname, search } = new URL(url);
    const socket = connect(Number(port), hostname);
    // To be cut off is one of the answers that it may get.
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

  it("comes too late for an old session that has ended", async () => {
    const { fixture, peer } = await startServer({ http: { limits: { requests: 1 } } });
    const client = await LegacySseClient.open(peer);
    await client.handshake(REVISIONS[0]?.name ?? "");
    const call = JSON.stringify({ jsonrpc: "2.0", ...toolCall("c", "hold", { key: "k" }) });
    const post = await almost(new URL(client.endpoint, peer.url).href, call);
    client.stream.hangUp();
    await client.stream.ended;
    const other = await SessionClient.open(peer, LATEST);
    await expect.poll(async () => (await other.call(1, "echo", { text: "free" })).status).toBe(200);
    expect(await post.rest()).toMatch(/^HTTP\/1\.1 404 /);
    expect(fixture.runs.size).toBe(0);
  });

  it("comes too late for a front that is being closed", async () => {
    const fixture = new Fixture();
    const { front } = await startServer({ graceMs: 1 }, fixture.handler);
    const init = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"${LATEST}","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`;
    const post = await almost(front.url ?? "", init);
    // Until the server has seen the head of it, it could not be late.
    await (await fetch(front.url ?? "", { method: "OPTIONS" })).text();
    const closing = front.close();
    expect(await post.rest()).toMatch(/^(HTTP\/1\.1 503 |$)/);
    await closing;
  });
});

describe("answers that nobody was there for", () => {
  it("are kept, however many came through since", async () => {
    const { fixture, peer } = await startServer();
    const client = await SessionClient.open(peer, LATEST);
    const reply = client.call("kept", "hold", { key: "kept" });
    const context = await fixture.holding("kept");
    context.hangUp(10);
    const broken = await reply;
    await broken.ended;
    fixture.release("kept", "at last");
    for (let count = 0; count < 60; count += 1) await (await client.call(count, "count", { to: 2 })).answerTo(count);
    const back = await client.resume(broken.lastEventId);
    expect(JSON.stringify(await back.answerTo("kept"))).toContain("at last");
  });
});

describe("a batch", () => {
  it("counts as many requests as it holds", async () => {
    const { peer } = await startServer({ http: { limits: { requests: 3 } } });
    const client = await SessionClient.open(peer, BATCHED);
    const held = client.call("held", "hold", { key: "held" });
    const batch = (size: number) => Array.from({ length: size }, (_, id) => toolCall(id, "echo", { text: "x" }));
    await expect.poll(async () => (await client.post(batch(3))).status).toBe(503);
    expect((await client.post(batch(2))).status).toBe(200);
    await client.post({ method: "notifications/cancelled", params: { requestId: "held" } });
    await (
      await held
    ).ended;
  });
});

describe("an authenticator of any kind", () => {
  const scoped = createServer({ name: "s", version: "1" }).tool("t", { scopes: ["files:read"] }, () => "done");
  const rejecting = (challenge: unknown, status: unknown = 401): Authenticator => ({
    authenticate: () => Promise.reject(new AuthError(status as 401, "no", challenge as string)),
  });

  it.each([["naïve ✓"], ["a\r\nX-Evil: 1"], [undefined], [7], [""]])(
    "may refuse with the words %j",
    async (challenge) => {
      const { peer } = await startServer({ http: { auth: rejecting(challenge) } }, scoped);
      const reply = await peer.post({ jsonrpc: "2.0", id: 1, method: "ping" });
      expect([reply.status, reply.headers["www-authenticate"], reply.headers["x-evil"]]).toEqual([
        401,
        "Bearer",
        undefined,
      ]);
    },
  );

  it("may refuse with no status that there is", async () => {
    const { peer } = await startServer({ http: { auth: rejecting("Bearer", 1e9) } }, scoped);
    expect((await peer.post({ jsonrpc: "2.0", id: 1, method: "ping" })).status).toBe(401);
  });

  it("cannot give scopes as one text, of which each part would be found", async () => {
    const onError = vi.fn();
    const identity = { principal: "ada", scopes: "files:readonly other" as unknown as string[] };
    const { peer } = await startServer({ http: { auth: { authenticate: async () => identity }, onError } }, scoped);
    const reply = await peer.post({ jsonrpc: "2.0", id: 1, method: "ping" });
    expect([reply.status, onError.mock.calls.length]).toEqual([503, 1]);
  });

  it("may show what cannot be shown, and be reported to one who throws", async () => {
    const onError = (): never => {
      throw new Error("no ear");
    };
    const auth = { authenticate: () => Promise.reject(new Error("down")), document: () => ({ n: 1n }) };
    const { peer } = await startServer({ http: { auth, onError } }, scoped);
    expect((await peer.get({}, "/.well-known/oauth-protected-resource")).status).toBe(404);
    expect((await peer.post({ jsonrpc: "2.0", id: 1, method: "ping" })).status).toBe(503);
  });
});
