// A client of one revision in front of a server of another, where more than the shape differs: errors with another
// meaning, what a session says only once, and to whom a message belongs.

import { afterEach, expect, it } from "vitest";
import { eventually } from "../../test/support/waiting.ts";
import { rawBridge, type BridgeOptions, type RawBridge } from "../../test/support/dialogue/raw-bridge.ts";
import { NEWEST, NEWEST_SESSION, REVISIONS } from "../protocol/revisions/index.ts";

const [R1 = "", , R3 = ""] = REVISIONS.map(({ name }) => name);
const R4 = NEWEST_SESSION.name;
const R5 = NEWEST.name;

type Loose = { readonly [key: string]: unknown };

const open: RawBridge[] = [];
afterEach(async () => {
  for (const bridge of open.splice(0)) await bridge.close();
});

async function openBridge(server: string, clients: BridgeOptions["clients"], more: Partial<BridgeOptions> = {}) {
  const bridge = await rawBridge({ server, clients, ...more });
  open.push(bridge);
  return bridge;
}

const CALL = { id: 1, method: "tools/call", params: { name: "job" } };
const LEVEL = { "io.modelcontextprotocol/logLevel": "debug" };

/** A call, and the server's answer to it. */
async function answered(bridge: RawBridge, reply: Loose): Promise<Loose> {
  const answer = bridge.request(0, CALL);
  bridge.server.send({ id: (await bridge.received("tools/call"))["id"], ...reply });
  return answer;
}

it.each([
  [-32601, R5, { code: -32602, data: { kind: "tool_not_found", upstream: { code: -32601 } } }],
  [-32601, R4, { code: -32601 }],
  [-32021, R5, { code: -32603, data: { upstream: { code: -32021 } } }],
  [-32050, R5, { code: -32603, data: { upstream: { code: -32050 } } }],
  [-32050, R3, { code: -32050 }],
] as const)("an error of a server of the session style, %i, for a client of %s", async (code, revision, error) => {
  const bridge = await openBridge(R4, [{ revision }]);
  expect((await answered(bridge, { error: { code, message: "so it is" } }))["error"]).toMatchObject(error);
});

it.each([R1, R4, R5])(
  "an error of a server about our own headers or revision is not passed on to a client of %s",
  async (revision) => {
    const bridge = await openBridge(R5, [{ revision }]);
    for (const [nth, code] of [-32020, -32022].entries()) {
      const answer = bridge.request(0, { ...CALL, id: nth + 1 });
      const { id } = await bridge.received("tools/call", nth + 1);
      bridge.server.send({ id, error: { code, message: "Not like that" } });
      expect((await answer)["error"]).toMatchObject({
        code: -32603,
        message: expect.stringContaining("The server rejected the headers or revision"),
      });
    }
  },
);

it("what a session says only once about its server is in every stateless result, and in none of a session", async () => {
  const results = await Promise.all(
    [R4, R5].map(async (revision) => answered(await openBridge(R4, [{ revision }]), { result: { content: [] } })),
  );
  expect(results.map(({ result }) => (result as Loose)["_meta"])).toEqual([
    undefined,
    { "io.modelcontextprotocol/serverInfo": { name: "server", version: "1" } },
  ]);
});

it("what a session says only once about changed roots is sent to a session-style server, and to no other", async () => {
  const telling = { revision: R4, capabilities: { roots: { listChanged: true } } };
  const promising = { bridgeCapabilities: { roots: {} }, notifiesRoots: true };
  const bridge = await openBridge(R4, [telling], promising);
  const { params } = (await bridge.received("initialize")) as { params: { capabilities: Loose } };
  expect(params.capabilities).toEqual({ roots: { listChanged: true } });
  await answered(bridge, { result: { content: [] } });
  bridge.clients[0]!.send({ method: "notifications/roots/list_changed" });
  await bridge.received("notifications/roots/list_changed");

  const other = await openBridge(R5, [telling], promising);
  other.clients[0]!.send({ method: "notifications/roots/list_changed" });
  await answered(other, { result: { resultType: "complete", content: [] } });
  expect(other.server.received.some(({ method }) => String(method).includes("roots"))).toBe(false);
});

it("what a session says only once about changed roots is not sent to a server that was not promised it", async () => {
  const bridge = await openBridge(R4, [{ revision: R4, capabilities: { roots: { listChanged: true } } }]);
  await answered(bridge, { result: { content: [] } });
  bridge.clients[0]!.send({ method: "notifications/roots/list_changed" });
  const listed = bridge.request(0, { id: 2, method: "tools/list" });
  bridge.server.send({ id: (await bridge.received("tools/list"))["id"], result: { tools: [] } });
  await listed;
  expect(bridge.server.received.some(({ method }) => String(method).includes("roots"))).toBe(false);
});

const serverCapabilities = { tools: {}, tasks: { list: {}, cancel: {}, requests: { tools: { call: {} } } } };
const tools = [{ name: "job", inputSchema: { type: "object" }, execution: { taskSupport: "optional" } }];
const TASK = { taskId: "t", status: "working", createdAt: "2026-01-01T00:00:00Z", lastUpdatedAt: "", ttl: 5 };

it.each([{ ttl: 5 }, {}, { ttl: 7, mine: true }])(
  "a task is requested from the server with the client's own params: %j",
  async (task) => {
    const bridge = await openBridge(R4, [{ revision: R4 }], { serverCapabilities });
    const made = bridge.request(0, { ...CALL, params: { ...CALL.params, task } });
    bridge.server.send({ id: (await bridge.received("tools/list"))["id"], result: { tools } });
    const { id, params } = await bridge.received("tools/call");
    // As it would be encoded.
    expect(JSON.parse(JSON.stringify(params))).toEqual({ name: "job", task });
    bridge.server.send({ id, result: { task: TASK } });
    expect((await made)["result"]).toMatchObject({ task: { taskId: "t", ttl: 5 } });
  },
);

const several = { type: "object", properties: { a: { type: "array", items: { type: "string", enum: ["x"] } } } };
const form = { mode: "form", message: "Which?", requestedSchema: several };
const text = { type: "text", text: "?" };
const sampling = { messages: [{ role: "user", content: [text, text] }], maxTokens: 1 };
const capabilities = { elicitation: {}, sampling: {} };

it.each([
  ["elicitation/create", form, -32602],
  ["sampling/createMessage", sampling, -32601],
] as const)(
  "a server request that the client's revision does not have is refused to a session-style server: %s",
  async (method, params, code) => {
    const bridge = await openBridge(R4, [{ revision: R3, capabilities }]);
    const call = bridge.request(0, CALL);
    const { id } = await bridge.received("tools/call");
    expect(await bridge.server.request({ id: "q", method, params })).toMatchObject({
      error: { code, message: expect.stringContaining("cannot express") },
    });
    bridge.server.send({ id, result: { content: [] } });
    await call;
  },
);

it("a server request that the client's revision does not have is answered with cancel if it is a form, and otherwise fails the tool", async () => {
  const bridge = await openBridge(R5, [{ revision: R3, capabilities }]);
  const call = bridge.request(0, CALL);
  const ask = (method: string, params: Loose): Loose => ({
    resultType: "input_required",
    inputRequests: { k: { method, params } },
  });
  bridge.server.send({ id: (await bridge.received("tools/call"))["id"], result: ask("elicitation/create", form) });
  const again = (await bridge.received("tools/call", 2)) as { id: unknown; params: Loose };
  expect(again.params["inputResponses"]).toEqual({ k: { action: "cancel" } });
  bridge.server.send({ id: again.id, result: ask("sampling/createMessage", sampling) });
  expect((await call)["result"]).toMatchObject({
    isError: true,
    content: [{ text: expect.stringContaining("cannot express") }],
  });
});

it("progress keeps increasing for a session, though the server starts over with every round", async () => {
  const bridge = await openBridge(R5, [{ revision: R4, capabilities: { roots: {} } }]);
  const [caller] = bridge.clients;
  const call = bridge.request(0, { ...CALL, params: { ...CALL.params, _meta: { progressToken: "mine" } } });
  const say = (message: Loose, ...values: readonly number[]): void => {
    const { _meta } = message["params"] as { _meta: Loose };
    for (const progress of values) {
      bridge.server.send({
        method: "notifications/progress",
        params: { progressToken: _meta["progressToken"], progress },
      });
    }
  };
  const first = await bridge.received("tools/call");
  say(first, 1, 2);
  bridge.server.send({
    id: first["id"],
    result: { resultType: "input_required", inputRequests: { r: { method: "roots/list" } } },
  });
  const question = await caller!.until(({ method }) => method === "roots/list");
  caller!.send({ id: question["id"], result: { roots: [] } });
  const second = await bridge.received("tools/call", 2);
  say(second, 1, 2, 3);
  bridge.server.send({ id: second["id"], result: { resultType: "complete", content: [] } });
  await call;
  const seen = caller!.received.filter(({ method }) => method === "notifications/progress");
  expect(seen.map(({ params }) => params)).toEqual([1, 2, 3].map((progress) => ({ progressToken: "mine", progress })));
});

const log = (data: string): Loose => ({ method: "notifications/message", params: { level: "error", data } });
const logs = (bridge: RawBridge): unknown[] =>
  bridge.clients.map(({ received }) =>
    received.flatMap(({ method, params }) => (method === log("").method ? (params as Loose)["data"] : [])),
  );

async function twoCalls(
  levels: readonly (object | undefined)[],
): Promise<{ bridge: RawBridge; finish(): Promise<void> }> {
  const bridge = await openBridge(R5, [{ revision: R5 }, { revision: R5 }]);
  const calls = levels.map((_meta, index) =>
    bridge.request(index, { ...CALL, params: { ...CALL.params, ...(_meta && { _meta }) } }),
  );
  const { id: one } = await bridge.received("tools/call", 1);
  const { id: two } = await bridge.received("tools/call", 2);
  const finish = async (): Promise<void> => {
    for (const id of [one, two]) bridge.server.send({ id, result: { resultType: "complete", content: [] } });
    await Promise.all(calls);
  };
  return { bridge, finish };
}

it("a log of a stateless server, on a transport that does not say for which call it is goes to the only call that wants any", async () => {
  const { bridge, finish } = await twoCalls([undefined, LEVEL]);
  bridge.server.send(log("of the second"));
  await finish();
  expect(logs(bridge)).toEqual([[], ["of the second"]]);
});

it("a log of a stateless server, on a transport that does not say for which call it is goes to no call if calls of two clients want some", async () => {
  const { bridge, finish } = await twoCalls([LEVEL, LEVEL]);
  bridge.server.send(log("of one of them"));
  await finish();
  expect(logs(bridge)).toEqual([[], []]);
  expect(bridge.unattributed).toMatchObject([log("of one of them")]);
});

it("a log of a stateless server, on a transport that does not say for which call it is goes to no client's subscription if it may be another's", async () => {
  const bridge = await openBridge(R5, [{ revision: R4 }, { revision: R5 }]);
  await bridge.received("subscriptions/listen");
  const call = bridge.request(1, CALL);
  const { id } = await bridge.received("tools/call");
  bridge.server.send(log("not asked for"), { id, result: { resultType: "complete", content: [] } });
  await call;
  expect(logs(bridge)).toEqual([[], []]);
});

it("a log of a stateless server, on a transport that does not say for which call it is goes to a session that has several calls in flight", async () => {
  const bridge = await openBridge(R5, [{ revision: R4 }]);
  const calls = [1, 2].map((id) => bridge.request(0, { ...CALL, id }));
  const ids = [(await bridge.received("tools/call", 1))["id"], (await bridge.received("tools/call", 2))["id"]];
  bridge.server.send(log("of one of them"));
  for (const id of ids) bridge.server.send({ id, result: { resultType: "complete", content: [] } });
  await Promise.all(calls);
  expect(logs(bridge)).toEqual([["of one of them"]]);
});

const TICK = { method: "notifications/acme/tick", params: { count: 1 } };

it.each([R1, R4])(
  "what the specification does not define: a notification of a server of %s reaches every client of the session once",
  async (server) => {
    const bridge = await openBridge(server, [{ revision: R4 }, { revision: R1 }]);
    // Each client has its subscription once it has sent a request.
    for (const index of [0, 1]) await bridge.request(index, { id: 1, method: "ping" });
    bridge.server.send(TICK);
    for (const client of bridge.clients) {
      expect(await client.until(({ method }) => method === TICK.method)).toMatchObject(TICK);
      expect(client.received.filter(({ method }) => method === TICK.method)).toHaveLength(1);
    }
    expect(bridge.unattributed).toEqual([]);
  },
);

it("what the specification does not define: a notification of a server reaches no context if no client has subscribed", async () => {
  const bridge = await openBridge(R5, [{ revision: R5 }]);
  bridge.server.send(TICK);
  await eventually(() => expect(bridge.unattributed).toEqual([TICK]));
});

it.each([R1, R4])(
  "what the specification does not define: a request of a server of %s reaches the client of the session, in its own words",
  async (server) => {
    const bridge = await openBridge(server, [{ revision: R4 }]);
    await bridge.request(0, { id: 1, method: "ping" });
    const [client] = bridge.clients;
    bridge.server.send({ id: "ask", method: "acme/pick", params: { of: [1] } });
    const asked = await client?.until(({ method }) => method === "acme/pick");
    expect(asked).toMatchObject({ params: { of: [1] } });
    client?.send({ id: asked?.["id"], result: { picked: 1, resultType: "x" } });
    expect(await bridge.server.answerTo("ask")).toMatchObject({ result: { picked: 1, resultType: "x" } });
  },
);

it.each([R1, R4, R5])(
  "what the specification does not define: a notification of a client reaches a server of %s",
  async (server) => {
    const bridge = await openBridge(server, [{ revision: R4 }]);
    bridge.clients[0]?.send({ method: "acme/opened", params: { file: "a" } });
    expect(await bridge.received("acme/opened")).toMatchObject({ params: { file: "a" } });
  },
);
