// Authenticated clients: knowing the session id, the endpoint or the state of another principal gives no access. Each request
// is authorized by its own token, and handlers never see the token.

import { expect, it } from "vitest";
import { AuthError, type Authenticator } from "../../../src/core/authentication.ts";
import { NEWEST_SESSION } from "../../../src/protocol/revisions/index.ts";
import { TASKS_EXTENSION } from "../../../src/protocol/tasks.ts";
import { StatelessClient, LegacySseClient, SessionClient } from "../../support/http/mcp-clients.ts";
import type { Json, Reply, SentHeaders } from "../../support/http/http-peer.ts";
import { startServer, textOf } from "./fixture.ts";

const LATEST = NEWEST_SESSION.name;

/** The token is the name of the principal, with optional scopes. */
const auth: Authenticator = {
  authenticate: async ({ headers }) => {
    const [, principal, scopes] = /^Bearer (\w+)(?::([\w,]+))?$/.exec(headers["authorization"] ?? "") ?? [];
    if (principal === undefined) throw new AuthError(401, "Token missing", 'Bearer realm="test"');
    return { principal, ...(scopes !== undefined && { scopes: scopes.split(",") }) };
  },
  insufficientScope: (scopes) =>
    new AuthError(403, "Scope missing", `Bearer error="insufficient_scope", scope="${scopes.join(" ")}"`),
  document: (path) => (path === "/.well-known/test" ? { hello: "you" } : undefined),
};

const ADA: SentHeaders = { authorization: "Bearer ada" };
const BOB: SentHeaders = { authorization: "Bearer bob" };
const PING = { jsonrpc: "2.0", id: 1, method: "ping" };

it("authenticated clients are known to the handler, in both styles; others are refused", async () => {
  const { peer } = await startServer({ http: { auth } });
  const session = await SessionClient.open(peer, LATEST, { headers: ADA });
  expect(JSON.parse(textOf(await session.request("tools/call", { name: "who" }))).principal).toBe("ada");
  const stateless = new StatelessClient(peer, { headers: BOB });
  expect(JSON.parse(textOf(await stateless.request(1, "tools/call", { name: "who" }))).principal).toBe("bob");
  const legacy = await LegacySseClient.open(peer, "/sse", ADA);
  await legacy.handshake(LATEST);
  expect(JSON.parse(textOf(await legacy.request("tools/call", { name: "who" }))).principal).toBe("ada");
  for (const wrong of [{}, { authorization: "Bearer " }, { authorization: "Basic ada" }]) {
    for (const sent of [
      { method: "POST", body: PING },
      { method: "GET" },
      { method: "GET", path: "/sse" },
      { method: "DELETE" },
    ]) {
      const reply = await peer.send({ ...sent, headers: { ...wrong, "mcp-session-id": session.session } });
      expect([sent.method, reply.status]).toEqual([sent.method, 401]);
      expect(reply.headers["www-authenticate"]).toBe('Bearer realm="test"');
    }
  }
  expect((await peer.get({}, "/.well-known/test")).json).toEqual({ hello: "you" });
});

it("authenticated clients get 404 for the session id of another principal", async () => {
  const { fixture, peer } = await startServer({ http: { auth } });
  const ada = await SessionClient.open(peer, LATEST, { headers: ADA });
  const call = ada.call(1, "hold", { key: "k" });
  const context = await fixture.holding("k");
  context.progress(1);
  const stream = await call;
  await stream.until(({ message }) => message !== undefined);
  const stolen = { ...BOB, "mcp-session-id": ada.session };
  const unknown = await peer.post(PING, { ...BOB, "mcp-session-id": "x".repeat(ada.session.length) });
  const refused = await peer.post(PING, stolen);
  expect([refused.status, refused.text]).toEqual([404, unknown.text]);
  const cancel = { jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: 1 } };
  expect((await peer.post(cancel, stolen)).status).toBe(404);
  expect((await peer.get(stolen)).status).toBe(404);
  expect((await peer.get({ ...stolen, "last-event-id": stream.lastEventId })).status).toBe(404);
  expect((await peer.send({ method: "DELETE", headers: stolen })).status).toBe(404);
  expect(context.signal.aborted).toBe(false);
  fixture.release("k");
  expect(textOf(await stream.answerTo(1))).toBe("released k");
});

it("authenticated clients get 404 for the legacy SSE endpoint of another principal", async () => {
  const { peer } = await startServer({ http: { auth } });
  const ada = await LegacySseClient.open(peer, "/sse", ADA);
  await ada.handshake(LATEST);
  expect((await peer.post(PING, BOB, ada.endpoint)).status).toBe(404);
  expect((await peer.post(PING, {}, ada.endpoint)).status).toBe(401);
  expect(ada.stream.messages.filter(({ id }) => id === 1)).toEqual([]);
});

it("authenticated clients cannot use the requestState of another principal", async () => {
  const { peer } = await startServer({ http: { auth } });
  const capabilities = { elicitation: {} };
  const ada = new StatelessClient(peer, { capabilities, headers: ADA });
  const bob = new StatelessClient(peer, { capabilities, headers: BOB });
  const { result } = await ada.request(1, "tools/call", { name: "elicit" });
  const [key] = Object.keys(result.inputRequests as Json);
  const inputResponses = { [key ?? ""]: { action: "accept", content: { name: "Ada" } } };
  const retry = { name: "elicit", inputResponses, requestState: result.requestState as string };
  expect(await bob.request(2, "tools/call", retry)).toMatchObject({ error: { code: -32602 } });
  expect(textOf(await ada.request(3, "tools/call", retry))).toBe("accept Ada");
});

it("authenticated clients are authorized by the scopes of each request", async () => {
  const { fixture, peer } = await startServer({ http: { auth } });
  fixture.server.tool("write", { scopes: ["write"] }, (_args, { caller }) => `written with ${String(caller.scopes)}`);
  const call = { id: 1, method: "tools/call", params: { name: "write", arguments: {} } };
  const challenge = 'Bearer error="insufficient_scope", scope="write"';
  const as = (who: string): SentHeaders => ({ authorization: `Bearer ${who}` });
  const session = await SessionClient.open(peer, LATEST, { headers: as("ada:read,write") });
  for (const style of ["session", "stateless"]) {
    const send = (who: string): ReturnType<typeof session.post> =>
      style === "session"
        ? session.post(call, as(who))
        : new StatelessClient(peer, { headers: as(who) }).post(1, call.method, call.params);
    expect([style, textOf((await send("ada:write")).json)]).toEqual([style, "written with write"]);
    // Fewer scopes than at the start of the session, and none.
    for (const who of ["ada:read", "ada"]) {
      const refused = await send(who);
      expect([style, who, refused.status, refused.headers["www-authenticate"]]).toEqual([style, who, 403, challenge]);
    }
    expect([style, textOf((await send("ada:write,more")).json)]).toEqual([style, "written with write,more"]);
  }
});

it("authenticated clients are authorized by the scopes of each request for subscriptions and tasks too", async () => {
  const { fixture, peer } = await startServer({ http: { auth } });
  const ended: AbortSignal[] = [];
  fixture.server
    .resource("note://closed", { scopes: ["write"] }, () => "secret")
    .tool("job", { scopes: ["write"], task: "required" }, (_args, { signal }) => {
      ended.push(signal);
      return new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
    });
  const as = (who: string): SentHeaders => ({ authorization: `Bearer ${who}` });
  const denied = [403, 'Bearer error="insufficient_scope", scope="write"'];
  const outcome = ({ status, headers }: Reply): unknown[] => [status, headers["www-authenticate"]];

  const session = await SessionClient.open(peer, LATEST, { headers: as("ada:read,write") });
  const later = await SessionClient.open(peer, LATEST, { headers: as("ada:read") });
  const subscribe = { id: 1, method: "resources/subscribe", params: { uri: "note://closed" } };
  expect(outcome(await session.post(subscribe, as("ada:read")))).toEqual(denied);
  expect((await session.post(subscribe)).json).toMatchObject({ result: {} });
  expect(outcome(await session.post(subscribe, as("ada:read")))).toEqual(denied);
  expect(outcome(await later.post(subscribe))).toEqual(denied);
  expect((await later.post(subscribe, as("ada:write"))).json).toMatchObject({ result: {} });

  const capabilities = { extensions: { [TASKS_EXTENSION]: {} } };
  const wide = new StatelessClient(peer, { capabilities, headers: as("ada:write") });
  const narrow = new StatelessClient(peer, { capabilities, headers: as("ada:read") });
  const { result } = await wide.request(1, "tools/call", { name: "job" });
  const { taskId } = result;
  const task = { id: 2, method: "tasks/get", params: { taskId } };
  expect(outcome(await session.post(task, as("ada:read")))).toEqual(denied);
  expect((await session.post(task)).json).toMatchObject({ result: { status: "working" } });
  const list = { id: 3, method: "tasks/list" };
  expect((await later.post(list, as("ada:write"))).json).toMatchObject({ result: { tasks: [{ taskId }] } });
  expect((await later.post(list)).json).toMatchObject({ result: { tasks: [] } });
  const requests: [string, Json][] = [
    ["tasks/get", { taskId }],
    ["tasks/update", { taskId, inputResponses: {} }],
    ["tasks/cancel", { taskId }],
    ["subscriptions/listen", { notifications: { taskIds: [taskId] } }],
    ["subscriptions/listen", { notifications: { resourceSubscriptions: ["note://closed"] } }],
  ];
  for (const [method, params] of requests) {
    expect([method, ...outcome(await narrow.post(1, method, params))]).toEqual([method, ...denied]);
  }
  expect(ended.map(({ aborted }) => aborted)).toEqual([false]);
  expect((await wide.post(1, "tasks/cancel", { taskId })).status).toBe(200);
  expect(ended.map(({ aborted }) => aborted)).toEqual([true]);
  expect(outcome(await session.post(task, as("ada:read")))).toEqual(denied);
});

it("authenticated clients do not expose their secrets to the handler", async () => {
  const { fixture, peer } = await startServer({ http: { auth } });
  const secrets = { ...ADA, cookie: "id=secret-1", "proxy-authorization": "Basic secret-2", "x-plain": "seen" };
  const session = await SessionClient.open(peer, LATEST, { headers: secrets });
  const stateless = new StatelessClient(peer, { headers: secrets });
  const calls = [
    session.call(1, "hold", { key: "s" }),
    stateless.post(1, "tools/call", { name: "hold", arguments: { key: "e" } }),
  ];
  for (const key of ["s", "e"]) {
    const { caller } = await fixture.holding(key);
    expect(caller.headers).toMatchObject({ "x-plain": "seen" });
    expect(JSON.stringify(caller)).not.toMatch(/secret-|Bearer/);
    fixture.release(key);
  }
  await Promise.all(calls);
});

it("authenticated clients are refused if the authenticator fails or returns no principal", async () => {
  const failing: Authenticator = {
    ...auth,
    authenticate: async ({ headers }) => {
      if (headers["x-mode"] === "throws") throw new Error("the database says: password 1234");
      return (headers["x-mode"] === "empty" ? { principal: "" } : undefined) as unknown as { principal: string };
    },
  };
  const { peer } = await startServer({ http: { auth: failing } });
  const down = await peer.post(PING, { "x-mode": "throws" });
  expect(down.status).toBeGreaterThanOrEqual(500);
  expect(down.text).not.toContain("1234");
  for (const mode of ["empty", "nothing"]) {
    expect([mode, (await peer.post(PING, { "x-mode": mode })).status]).toEqual([mode, 401]);
  }
});
