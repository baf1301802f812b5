// A server of the last session-style revision asks for a URL elicitation, by a request or by an error: what clients of
// each revision get, and who is notified that it is complete.

import { afterEach, expect, it } from "vitest";
import { rawBridge, type BridgeOptions, type RawBridge } from "../../../test/support/dialogue/raw-bridge.ts";
import { NEWEST, NEWEST_SESSION, REVISIONS } from "../../protocol/revisions/index.ts";

const R4 = NEWEST_SESSION.name;
const R5 = NEWEST.name;
const OLDER = REVISIONS.map(({ name }) => name).filter((name) => name < R4);
const URL = { elicitation: { url: {} } };

const open: RawBridge[] = [];
afterEach(async () => {
  for (const bridge of open.splice(0)) await bridge.close();
});

async function setUp(clients: BridgeOptions["clients"]): Promise<RawBridge> {
  const bridge = await rawBridge({ server: R4, clients });
  open.push(bridge);
  return bridge;
}

const CALL = { id: 1, method: "tools/call", params: { name: "sign" } };
const READ = { id: 1, method: "resources/read", params: { uri: "note://1" } };
const ELICITATION = { mode: "url", message: "Sign here", url: "https://a.example/sign", elicitationId: "e-1" };
const ERROR = { code: -32042, message: "Sign first", data: { elicitations: [ELICITATION] } };
const VISIT = { method: "elicitation/create", params: { mode: "url", message: "Sign here", url: ELICITATION.url } };
const complete = (elicitationId: string) => ({
  method: "notifications/elicitation/complete",
  params: { elicitationId },
});

/** The client's request, answered by the server with the error. */
async function refused(bridge: RawBridge, request: { readonly [key: string]: unknown }, nth = 1) {
  const answer = bridge.request(0, request);
  bridge.server.send({ id: (await bridge.received(String(request["method"]), nth))["id"], error: ERROR });
  return answer;
}

it("the error that requires URL elicitations is passed on to a client of the same revision", async () => {
  const bridge = await setUp([{ revision: R4, capabilities: URL }]);
  const { error } = (await refused(bridge, CALL)) as { error: { data: object } };
  expect(error).toMatchObject(ERROR);
});

it("the error that requires URL elicitations is input_required for a stateless client, and its retry goes to the server again", async () => {
  const bridge = await setUp([{ revision: R5, capabilities: URL }]);
  expect((await refused(bridge, CALL))["result"]).toEqual({
    resultType: "input_required",
    inputRequests: { "visit-1": VISIT },
  });
  const inputResponses = { "visit-1": { action: "accept" } };
  const retry = bridge.request(0, { ...CALL, id: 2, params: { ...CALL.params, inputResponses } });
  const again = await bridge.received("tools/call", 2);
  expect(again["params"]).toEqual(CALL.params);
  bridge.server.send({ id: again["id"], result: { content: [] } });
  expect((await retry)["result"]).toMatchObject({ resultType: "complete", content: [] });
});

it("the error that requires URL elicitations is repeated if the visit was not enough, but not after the person declined", async () => {
  const bridge = await setUp([{ revision: R5, capabilities: URL }]);
  for (const [nth, action] of ["accept", "decline", "cancel"].entries()) {
    const params = { ...CALL.params, inputResponses: { "visit-1": { action } } };
    const answer = await refused(bridge, { ...CALL, id: nth + 1, params }, nth + 1);
    if (action === "accept") expect(answer["result"]).toMatchObject({ resultType: "input_required" });
    else expect(answer["error"]).toMatchObject({ code: -32603, data: { kind: "url_elicitation_required" } });
  }
});

it("the error that requires URL elicitations becomes an error with the URL for a stateless client that cannot be asked", async () => {
  const bridge = await setUp([{ revision: R5, capabilities: { elicitation: {} } }]);
  expect((await refused(bridge, CALL))["error"]).toMatchObject({
    code: -32021,
    message: expect.stringContaining(ELICITATION.url) as string,
    data: { requiredCapabilities: { elicitation: { url: {} } }, elicitations: [VISIT.params] },
  });
});

it.each(OLDER)(
  "the error that requires URL elicitations is a tool result for a client of %s, and an error for other requests",
  async (revision) => {
    const bridge = await setUp([{ revision }]);
    const text = expect.stringContaining(ELICITATION.url) as string;
    expect((await refused(bridge, CALL))["result"]).toEqual({ isError: true, content: [{ type: "text", text }] });
    expect((await refused(bridge, { ...READ, id: 2 }))["error"]).toMatchObject({ code: -32603, message: text });
  },
);

it("the error that requires URL elicitations is passed on unchanged if it names no URL", async () => {
  const bridge = await setUp([{ revision: R5, capabilities: URL }]);
  const answer = bridge.request(0, CALL);
  const data = { elicitations: [{ mode: "url" }, 7] };
  bridge.server.send({ id: (await bridge.received("tools/call"))["id"], error: { ...ERROR, data } });
  expect((await answer)["error"]).toMatchObject({ code: -32603, message: "Sign first" });
});

it("the completion of a URL elicitation is notified to a client of the same revision, even after the call, with the server's id", async () => {
  const bridge = await setUp([{ revision: R4, capabilities: URL }]);
  const { server } = bridge;
  const [caller] = bridge.clients;
  const answer = bridge.request(0, CALL);
  const { id } = await bridge.received("tools/call");
  server.send({ id: "q", method: "elicitation/create", params: ELICITATION });
  const request = await caller!.until(({ method }) => method === "elicitation/create");
  expect(request["params"]).toEqual(ELICITATION);
  caller!.send({ id: request["id"], result: { action: "accept" } });
  await server.answerTo("q");
  server.send({ id, result: { content: [] } });
  await answer;
  server.send(complete("e-2"), complete("e-1"));
  const notified = await caller!.until(({ method }) => method === complete("").method);
  expect(notified).toMatchObject(complete("e-1"));
});

it("the completion of a URL elicitation is notified after the error too, and only to the client that got it", async () => {
  const bridge = await setUp([
    { revision: R4, capabilities: URL },
    { revision: R4, capabilities: URL },
  ]);
  await refused(bridge, CALL);
  bridge.server.send(complete("e-1"), { method: "notifications/tools/list_changed" });
  const [ada, bea] = bridge.clients;
  for (const caller of [ada!, bea!]) await caller.until(({ method }) => method === "notifications/tools/list_changed");
  const notified = [ada!, bea!].map(({ received }) => received.some(({ method }) => method === complete("").method));
  expect(notified).toEqual([true, false]);
  expect(bridge.unattributed).toEqual([]);
});

it.each([R5, ...OLDER])("the completion of a URL elicitation is not notified to a client of %s", async (revision) => {
  const bridge = await setUp([{ revision, capabilities: revision === R5 ? URL : {} }]);
  await refused(bridge, CALL);
  bridge.server.send(complete("e-1"));
  const listed = bridge.request(0, { id: 9, method: "tools/list", params: {} });
  bridge.server.send({ id: (await bridge.received("tools/list"))["id"], result: { tools: [] } });
  await listed;
  expect(bridge.clients[0]!.received.some(({ method }) => method === complete("").method)).toBe(false);
});

it("the completion of a URL elicitation has no id in the input request of a stateless client", async () => {
  const bridge = await setUp([{ revision: R5, capabilities: URL }]);
  const answer = bridge.request(0, CALL);
  await bridge.received("tools/call");
  bridge.server.send({ id: "q", method: "elicitation/create", params: ELICITATION });
  const { result } = (await answer) as { result: { inputRequests: Record<string, unknown> } };
  expect(JSON.parse(JSON.stringify(Object.values(result.inputRequests)))).toEqual([VISIT]);
});
