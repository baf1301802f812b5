// What goes wrong where nobody looks: a caller who hung up before anything was said to it, several streams for what
// comes unasked, options that are none, an authenticator that fails. None of it may cost anybody else anything.

import { describe, expect, it, vi } from "vitest";
import type { Authenticator } from "../../../src/core/authentication.ts";
import { fetchHandler } from "../../../src/http.ts";
import { NEWEST_SESSION } from "../../../src/protocol/revisions/index.ts";
import { createServer } from "../../../src/server/index.ts";
import { SessionClient, toolCall } from "../../support/http/mcp-clients.ts";
import { startServer } from "./fixture.ts";

const LATEST = NEWEST_SESSION.name;
const CHANGED = ({ data = "" }: { data?: string }): boolean => data.includes("list_changed");

describe("a caller in a session who hung up before the head", () => {
  it("is not missed when the silence has become too long", async () => {
    const { fixture, peer } = await startServer({ http: { limits: { silenceMs: 20 } } });
    const client = await SessionClient.open(peer, LATEST);
    const headers = { "mcp-session-id": client.session };
    const begun = peer.begin({ jsonrpc: "2.0", ...toolCall(1, "hold", { key: "k" }) }, headers);
    const context = await fixture.holding("k");
    begun.hangUp();
    // Another call that is silent for long, and longer: its stream begins after the first one's would have.
    const other = await client.call(2, "hold", { key: "other" });
    expect(other.headers["content-type"]).toBe("text/event-stream");
    expect(context.signal.aborted).toBe(false);
    context.progress(1);
    fixture.release("k");
    fixture.release("other", "alive");
    expect(JSON.stringify(await other.answerTo(2))).toContain("alive");
    expect(await client.request("ping")).toMatchObject({ result: {} });
  });
});

describe("what comes unasked", () => {
  it("has ids of its own on each stream, and is never told again on another", async () => {
    const { peer, fixture } = await startServer();
    const client = await SessionClient.open(peer, LATEST);
    const first = await client.listen();
    await fixture.subscribed(0);
    fixture.server.tool("a", {}, () => "a");
    await first.until(CHANGED);
    const second = await client.listen();
    await second.until(({ id }) => id !== undefined);
    fixture.server.tool("b", {}, () => "b");
    await second.until(CHANGED);
    expect(first.messages).toHaveLength(1);
    const ids = [...first.events, ...second.events].map(({ id }) => id);
    expect(new Set(ids).size).toBe(ids.length);
    first.hangUp();
    await first.ended;
    const back = await client.resume(first.lastEventId);
    expect(back.status).toBe(200);
    fixture.server.tool("c", {}, () => "c");
    await second.until(({ id }) => id === "1-2");
    expect([second.messages.length, back.messages.length]).toEqual([2, 0]);
  });
});

describe("options", () => {
  const server = createServer({ name: "s", version: "1" });
  it.each([
    [{ limits: { request: 1 } }, /no option `limits\.request`; did you mean `requests`/],
    [{ limits: { requests: -1 } }, /limits.requests must be a number above 0/],
    [{ limits: { requests: "10" } }, /limits.requests must be/],
    [{ limits: { messageBytes: Number.NaN } }, /limits.messageBytes must be/],
    [{ auth: {} }, /auth must be an authenticator/],
    [{ auth: true }, /auth must be/],
    [{ auth: () => true }, /auth must be/],
    [{ auth: null }, /auth must be/],
    [{ path: "mcp" }, /must begin with a slash/],
  ])("%j are refused", (options, message) => {
    expect(() => fetchHandler(server, options as object)).toThrow(message);
  });

  it("that say nothing are as if they were not there", () => {
    expect(() => fetchHandler(server, { limits: { requests: undefined } } as object)).not.toThrow();
  });
});

describe("an authenticator", () => {
  const scoped = createServer({ name: "s", version: "1" }).tool("t", { scopes: ["w"] }, () => "done");
  const identity = { principal: "ada", scopes: [] };

  it("may be no more than the one question", async () => {
    const { peer } = await startServer({ http: { auth: { authenticate: async () => identity } } }, scoped);
    const client = await SessionClient.open(peer, LATEST);
    const reply = await client.call(1, "t");
    expect([reply.status, reply.headers["www-authenticate"]]).toEqual([403, 'Bearer error="insufficient_scope"']);
    expect((await peer.get({}, "/.well-known/oauth-protected-resource")).status).toBe(404);
  });

  it("that throws elsewhere denies all the same, and ends nothing", async () => {
    const fails = (): never => {
      throw new Error("out of order");
    };
    const auth: Authenticator = { authenticate: async () => identity, insufficientScope: fails, document: fails };
    const { peer } = await startServer({ http: { auth } }, scoped);
    const client = await SessionClient.open(peer, LATEST);
    expect((await client.call(1, "t")).status).toBe(403);
    expect((await peer.get({}, "/.well-known/oauth-protected-resource")).status).toBe(404);
  });

  it("that is out of order is reported to us, and not shown to callers", async () => {
    const onError = vi.fn();
    const auth = { authenticate: () => Promise.reject(new Error("the database of secrets is down")) };
    const { peer } = await startServer({ http: { auth, onError } }, scoped);
    const reply = await peer.post({ jsonrpc: "2.0", id: 7, method: "ping" });
    expect([reply.status, reply.headers["retry-after"]]).toEqual([503, "5"]);
    expect(reply.text).not.toContain("secrets");
    expect(onError.mock.calls).toEqual([[new Error("the database of secrets is down"), expect.any(String)]]);
  });
});

it("what is refused after it was read is refused under its id", async () => {
  const { peer } = await startServer();
  const reply = await peer.post({ jsonrpc: "2.0", id: "mine", method: "tools/list" });
  expect([reply.status, reply.json["id"]]).toEqual([400, "mine"]);
});
