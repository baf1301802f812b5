// The revisions by example: their methods, and every change when messages are lowered and lifted. The properties that hold
// for all messages are in laws.test.ts.

import { expect, it } from "vitest";
import type { ErrorBody } from "../../jsonrpc/message.ts";
import { codeOf, McpError } from "../errors.ts";
import { META } from "../model/base.ts";
import type { Json, Revision } from "../revision.ts";
import { isVendorMethod, NEWEST, NEWEST_SESSION, REVISIONS, revisionNamed } from "./index.ts";

const [R1, R2, R3, R4] = REVISIONS as unknown as [Revision, Revision, Revision, Revision];
const SESSIONS = [R1, R2, R3, R4];

function thrown(action: () => unknown): McpError {
  try {
    action();
  } catch (error) {
    if (error instanceof McpError) return error;
    throw error;
  }
  throw new Error("Nothing was thrown");
}

it("the revisions are five, oldest first, and can be looked up by name", () => {
  expect(REVISIONS.map((revision) => revision.name)).toEqual([
    "2024-11-05",
    "2025-03-26",
    "2025-06-18",
    "2025-11-25",
    "2026-07-28",
  ]);
  expect(revisionNamed("2025-06-18")).toBe(R3);
  expect(revisionNamed("2025-06-19")).toBeUndefined();
  expect(NEWEST.style).toBe("stateless");
  expect(NEWEST_SESSION).toBe(R4);
  expect(REVISIONS.filter((revision) => revision.batches)).toEqual([R2]);
});

it("the revisions list their methods by sender", () => {
  for (const { requests, clientRequests, clientNotifications } of SESSIONS) {
    for (const method of ["initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"]) {
      expect(requests).toContain(method);
    }
    expect(requests).not.toContain("server/discover");
    expect(requests).not.toContain("subscriptions/listen");
    expect(clientRequests).toContain("ping");
    expect(clientNotifications).toContain("notifications/roots/list_changed");
  }
  expect(NEWEST.requests).not.toContain("initialize");
  expect(NEWEST.clientRequests).toEqual(new Set(["sampling/createMessage", "elicitation/create", "roots/list"]));
  expect(NEWEST.clientNotifications).toEqual(new Set(["notifications/cancelled"]));
  expect(REVISIONS.filter(({ clientRequests }) => clientRequests.has("elicitation/create"))).toEqual([R3, R4, NEWEST]);
  expect(REVISIONS.filter(({ requests }) => requests.has("tasks/get"))).toEqual([R4, NEWEST]);
  expect(REVISIONS.filter(({ requests }) => requests.has("tasks/result"))).toEqual([R4]);
  expect(REVISIONS.filter(({ requests }) => requests.has("tasks/update"))).toEqual([NEWEST]);
  expect(
    REVISIONS.filter(({ serverNotifications }) => serverNotifications.has("notifications/elicitation/complete")),
  ).toEqual([R4]);
});

it("the revisions never copy a message that does not change", () => {
  const params = Object.freeze({ name: "echo", arguments: { text: "hi" }, _meta: { progressToken: 1 }, extra: 1 });
  const result = Object.freeze({ content: [{ type: "text", text: "hi" }], isError: false });
  for (const { lift, lower } of REVISIONS) {
    expect(lower.request("tools/call", params)).toBe(params);
    expect(lift.request("tools/call", params)).toBe(params);
    expect(lower.result("tools/call", result)).toBe(result);
    expect(lower.request("vendor/method", params)).toBe(params);
  }
  const notification = { method: "notifications/tools/list_changed" };
  for (const { lift, lower } of REVISIONS) {
    expect(lift.notification(notification)).toBe(notification);
    expect(lower.notification(notification)).toBe(notification);
  }
  expect(NEWEST.lift.result("tools/call", result)).toBe(result);
});

it("the revisions treat names such as constructor as plain methods", () => {
  for (const { lift, lower } of REVISIONS) {
    for (const method of ["__proto__", "constructor", "toString"]) {
      expect(lift.request(method, { a: 1 })).toEqual({ a: 1 });
      expect(lower.request(method, { a: 1 })).toEqual({ a: 1 });
      expect(lower.notification({ method, params: { a: 1 } })).toEqual({ method, params: { a: 1 } });
    }
  }
});

it("the revisions ignore values of an unexpected type", () => {
  for (const { lower } of REVISIONS) {
    expect(lower.result("tools/list", { tools: "none" })).toEqual({ tools: "none" });
    expect(lower.result("tools/list", { tools: [1, null] })).toEqual({ tools: [1, null] });
    expect(lower.request("completion/complete", { ref: 5 })).toEqual({ ref: 5 });
  }
});

it("from stateless to session, a result loses its type, its caching hints and the server info", () => {
  const result = {
    resultType: "complete",
    tools: [],
    ttlMs: 5,
    cacheScope: "public",
    _meta: { [META.serverInfo]: { name: "a", version: "1" }, kept: 1 },
  };
  expect(R4.lower.result("tools/list", result)).toEqual({ tools: [], _meta: { kept: 1 } });
  const named = { resultType: "complete", _meta: { [META.serverInfo]: {} } };
  expect(R4.lower.result("resources/subscribe", named)).toEqual({});
  expect(R4.lower.result("tools/call", { content: [], _meta: {} })).toEqual({ content: [], _meta: {} });
});

it("from stateless to session, a result that is not complete is refused", () => {
  const asks = { resultType: "input_required", inputRequests: {} };
  expect(thrown(() => R4.lower.result("tools/call", asks)).kind).toBe("internal_error");
});

it("from stateless to session, a request loses its envelope and its input responses, and keeps the rest of its _meta", () => {
  const _meta = {
    [META.revision]: "x",
    [META.clientCapabilities]: {},
    [META.clientInfo]: {},
    [META.logLevel]: "info",
  };
  const params = { name: "a", inputResponses: {}, requestState: "s", _meta: { ..._meta, progressToken: 7 } };
  expect(R4.lower.request("tools/call", params)).toEqual({ name: "a", _meta: { progressToken: 7 } });
  expect(R4.lower.request("tools/list", { _meta })).toEqual({});
});

it("from stateless to session, a notification loses its subscription id, and one that does not exist is dropped", () => {
  const method = "notifications/resources/updated";
  const marked = { method, params: { uri: "a:b", _meta: { [META.subscriptionId]: 1 } } };
  expect(R4.lower.notification(marked)).toEqual({ method, params: { uri: "a:b" } });
  const ack = { method: "notifications/subscriptions/acknowledged", params: { notifications: {} } };
  expect(R4.lower.notification(ack)).toBeUndefined();
  expect(R4.lift.notification({ method: "notifications/roots/list_changed" })).toBeUndefined();
  expect(R4.lift.notification({ method: "notifications/cancelled", params: { reason: "a task" } })).toBeUndefined();
});

it("from stateless to session requests that a session does not have are refused", () => {
  expect(thrown(() => R4.lower.request("server/discover", {})).kind).toBe("method_not_found");
  expect(thrown(() => R2.lower.request("elicitation/create", {})).kind).toBe("method_not_found");
});

it("from stateless to session, structured content must be an object; otherwise it becomes text", () => {
  const lower = (result: Json): Json => R4.lower.result("tools/call", result);
  const block = { type: "text", text: "[1]" };
  expect(lower({ content: [block], structuredContent: [1] })).toEqual({ content: [block] });
  expect(lower({ content: [], structuredContent: [1] })).toEqual({ content: [block] });
  expect(lower({ content: [], structuredContent: { a: 1 } })).toEqual({ content: [], structuredContent: { a: 1 } });
});

it("from stateless to session tools keep schemas that are supported", () => {
  const input = { type: "object", properties: { a: true, b: false, c: { type: "string" } } };
  const lowered = R4.lower.result("tools/list", {
    tools: [{ name: "a", inputSchema: input, outputSchema: { type: "array" } }],
  });
  const properties = { a: {}, b: { not: {} }, c: { type: "string" } };
  expect(lowered).toEqual({ tools: [{ name: "a", inputSchema: { type: "object", properties } }] });
});

it("from stateless to session, a URL elicitation gets an id, or keeps the one it has", () => {
  const params = { mode: "url", message: "m", url: "https://a.example/" };
  const [one, two] = [1, 2].map(() => R4.lower.request("elicitation/create", params)["elicitationId"]);
  expect([typeof one, one === two]).toEqual(["string", false]);
  const named = { ...params, elicitationId: "7" };
  expect(R4.lower.request("elicitation/create", R4.lift.request("elicitation/create", named))).toEqual(named);
});

it("the data of an error may have any field names", () => {
  const error = { code: -32020, message: "", data: { constructor: false } };
  const lowered = R4.lower.error(error, { method: "initialize", params: {} });
  expect(lowered).toEqual({ code: -32600, message: "", data: { kind: "header_mismatch", constructor: false } });
});

it("from session to stateless, results get their type, and lists a hint not to be cached", () => {
  for (const { lift } of SESSIONS) {
    expect(lift.result("tools/call", { content: [] })).toEqual({ content: [], resultType: "complete" });
    const hints = { resultType: "complete", ttlMs: 0, cacheScope: "private" };
    expect(lift.result("resources/read", { contents: [] })).toEqual({ contents: [], ...hints });
  }
});

it("from session to stateless, results of the client get no type", () => {
  const answers: Record<string, Json> = {
    "elicitation/create": { action: "decline" },
    "roots/list": { roots: [] },
    "sampling/createMessage": { role: "user", content: { type: "text", text: "" }, model: "m" },
  };
  for (const [method, answer] of Object.entries(answers)) {
    for (const { lift } of SESSIONS) expect(lift.result(method, answer)).toBe(answer);
  }
});

it("from session to stateless, a completion has at most a hundred values", () => {
  const values = Array.from({ length: 101 }, (_, index) => String(index));
  const lifted = R1.lift.result("completion/complete", { completion: { values } });
  expect(lifted).toEqual({ completion: { values: values.slice(0, 100), hasMore: true }, resultType: "complete" });
});

it("from session to stateless, capabilities declare only what the other side can use", () => {
  const caller = { roots: { listChanged: true }, tasks: {}, elicitation: {}, sampling: {} };
  const lifted = R4.lift.clientCapabilities(caller);
  expect(lifted).toEqual({ roots: {}, elicitation: {}, sampling: {} });
  expect(R4.lift.serverCapabilities({ tasks: {}, tools: {} })).toEqual({ tools: {} });
  expect(R1.lower.serverCapabilities({ completions: {}, tools: {} })).toEqual({ tools: {} });
  expect(R1.lift.serverCapabilities({ tools: {} })).toEqual({ tools: {} });
});

it("from session to stateless, extensions and experimental capabilities pass in both directions, in every revision", () => {
  const capabilities = { extensions: { "acme/ui": { a: [1] } }, experimental: { b: {} } };
  for (const { lift, lower } of REVISIONS) {
    for (const codec of [lift, lower]) {
      expect(codec.clientCapabilities(capabilities)).toEqual(capabilities);
      expect(codec.serverCapabilities(capabilities)).toEqual(capabilities);
    }
  }
});

it("from session to stateless, completion is not declared for a server that cannot declare it", () => {
  expect(R1.lift.serverCapabilities({ prompts: {}, resources: {} })).toEqual({ prompts: {}, resources: {} });
});

it("from session to stateless, no method that a revision defines is a vendor's", () => {
  const names = REVISIONS.flatMap(({ requests, clientRequests, clientNotifications, serverNotifications }) => [
    ...[...requests, ...clientRequests, ...clientNotifications, ...serverNotifications],
  ]);
  expect(names.filter(isVendorMethod)).toEqual([]);
  expect(["acme/search", "notifications/acme/tick", "tools/search", ""].every(isVendorMethod)).toBe(true);
});

it("from session to stateless, a vendor's own messages pass unchanged, except for what a stateless server adds to a result", () => {
  const params = { a: 1, ttlMs: 5, _meta: { "acme/b": 1 } };
  const result = { resultType: "page", ttlMs: 5, cacheScope: "x", a: 1 };
  const notification = { method: "notifications/acme/tick", params };
  for (const { lift, lower } of REVISIONS) {
    for (const codec of [lift, lower]) {
      expect(codec.request("acme/search", params)).toEqual(params);
      expect(codec.result("acme/search", result)).toEqual(result);
      expect(codec.notification(notification)).toEqual(notification);
    }
  }
  const stateless = { a: 1, ttlMs: 5, resultType: "complete", _meta: { [META.serverInfo]: {}, b: 1 } };
  for (const { lower } of SESSIONS) {
    expect(lower.result("acme/search", stateless)).toEqual({ a: 1, ttlMs: 5, _meta: { b: 1 } });
  }
});

it("from session to stateless, tasks are an extension in the newest, a capability in the previous one, and unknown to all others", () => {
  const extensions = { "io.modelcontextprotocol/tasks": {} };
  const tasks = { list: {}, cancel: {}, requests: { tools: { call: {} } } };
  expect(R4.lower.serverCapabilities({ extensions, tools: {} })).toEqual({ tools: {}, tasks });
  expect(R3.lower.serverCapabilities({ extensions, tools: {} })).toEqual({ tools: {} });
  // A session cannot declare what its revision does not define.
  expect(R4.lift.clientCapabilities({ extensions })).toEqual({});
  expect(R4.lift.clientCapabilities({ extensions: { ...extensions, other: {} } })).toEqual({
    extensions: { other: {} },
  });
});

it("from session to stateless, a task loses its result, and has failed if its tool has", () => {
  const task = { taskId: "1", createdAt: "a", lastUpdatedAt: "b" };
  const times = { ttlMs: 5, pollIntervalMs: 6 };
  const lowered = { ...task, ttl: 5, pollInterval: 6 };
  const down = (fields: object): unknown => R4.lower.result("tasks/get", { ...task, ...times, ...fields });
  expect(down({ status: "input_required", inputRequests: {} })).toEqual({ ...lowered, status: "input_required" });
  expect(down({ status: "completed", result: { content: [], isError: false } })).toEqual({
    ...lowered,
    status: "completed",
  });
  const text = { type: "text", text: "No paper" };
  expect(down({ status: "completed", result: { content: [text], isError: true } })).toEqual({
    ...lowered,
    status: "failed",
    statusMessage: "No paper",
  });
  expect(down({ status: "completed", result: { content: "none", isError: true } })).toMatchObject({
    status: "failed",
    statusMessage: "The tool has failed",
  });
  expect(down({ status: "failed", error: { code: 1, message: "Broken" } })).toEqual({
    ...lowered,
    status: "failed",
    statusMessage: "Broken",
  });
  expect(() => R4.lower.result("tools/call", { resultType: "task", ...task })).toThrow("task");
});

it("from session to stateless, fields that only the older revision has survive a round trip", () => {
  const result = { tools: [{ name: "a", inputSchema: { type: "object" }, execution: { taskSupport: "optional" } }] };
  expect(R4.lower.result("tools/list", R4.lift.result("tools/list", result))).toEqual(result);
});

const read = { method: "resources/read", params: { uri: "a:b" } };
const call = { method: "tools/call", params: { name: "a" } };

it("errors have the code of their kind in each revision", () => {
  for (const revision of SESSIONS) expect(codeOf("resource_not_found", revision)).toBe(-32002);
  expect(codeOf("resource_not_found", NEWEST)).toBe(-32602);
  expect(codeOf("url_elicitation_required", R4)).toBe(-32042);
  expect(codeOf("url_elicitation_required", R3)).toBe(-32603);
  expect(codeOf("missing_capability", NEWEST)).toBe(-32021);
  expect(codeOf("missing_capability", R1)).toBe(-32603);
});

it("errors identify a missing resource by URI or kind", () => {
  for (const { lift, lower } of SESSIONS) {
    const up = lift.error({ code: -32002, message: "m" }, read);
    expect(up).toEqual({ code: -32602, message: "m", data: { kind: "resource_not_found", uri: "a:b" } });
    expect(lower.error(up, read).code).toBe(-32002);
    expect(lower.error({ code: -32602, message: "m", data: { uri: "a:b" } }, read).code).toBe(-32002);
    expect(lower.error({ code: -32602, message: "m", data: { uri: "other:" } }, read).code).toBe(-32602);
    expect(lower.error({ code: -32602, message: "m", data: { kind: "invalid_params", uri: "a:b" } }, read).code).toBe(
      -32602,
    );
  }
});

it("errors keep data that is not an object in details", () => {
  const up = R4.lift.error({ code: -32002, message: "m", data: "a:b" }, read);
  expect(up.data).toEqual({ kind: "resource_not_found", uri: "a:b", details: "a:b" });
});

it("errors with a code that the newest reserves are wrapped when lifted and unwrapped when lowered", () => {
  for (const { lift, lower } of SESSIONS) {
    for (const code of [-32020, -32021, -32050, -32099]) {
      const error = { code, message: "m", data: [1] };
      const up = lift.error(error, call);
      expect(up).toEqual({ code: -32603, message: "m", data: { kind: "internal_error", upstream: error } });
      expect(lower.error(up, call)).toBe(error);
    }
    const untouched: ErrorBody = { code: -32019, message: "m" };
    expect(lift.error(untouched, call)).toBe(untouched);
  }
});

it("errors with a field upstream of their own are not unwrapped", () => {
  const upstream = { code: -32050, message: "m" };
  const own: readonly ErrorBody[] = [
    { code: -32603, message: "m", data: { kind: "timeout", upstream } },
    { code: -32603, message: "m", data: { kind: "internal_error", upstream, mine: 1 } },
    { code: -32603, message: "Mine", data: { kind: "internal_error", upstream } },
    { code: -32603, message: "m", data: { kind: "internal_error", upstream: { ...upstream, code: -32601 } } },
  ];
  for (const { lower } of SESSIONS) for (const error of own) expect(lower.error(error, call)).toBe(error);
});

it("errors that only the newest has get an older code and their kind", () => {
  const data = { requiredCapabilities: { sampling: {} } };
  const lowered = R3.lower.error({ code: -32021, message: "m", data }, call);
  expect(lowered).toEqual({ code: -32603, message: "m", data: { kind: "missing_capability", ...data } });
  expect(R3.lower.error({ code: -32022, message: "m" }, call).code).toBe(-32602);
});

it("errors for an unknown tool with the code of an unknown method are converted, and restored", () => {
  const error = { code: -32601, message: "Unknown tool: x", data: { any: 1 } };
  const asked = { method: "tools/call", params: { name: "x" } };
  const up = { code: -32602, message: "Unknown tool: x", data: { kind: "tool_not_found", upstream: error } };
  for (const { lift, lower } of SESSIONS) {
    expect(lift.error(error, asked)).toEqual(up);
    expect(lower.error(up, asked)).toBe(error);
    expect(lift.error(error, { method: "prompts/get", params: {} })).toBe(error);
    expect(lower.error({ ...up, message: "Mine" }, asked).code).toBe(-32602);
  }
});

it("errors for required URL elicitations follow their kind", () => {
  const data = { elicitations: [{ mode: "url", message: "m", url: "https://a.example/", elicitationId: "1" }] };
  const up = R4.lift.error({ code: -32042, message: "m", data }, call);
  expect(up).toEqual({ code: -32603, message: "m", data: { kind: "url_elicitation_required", ...data } });
  expect(R4.lower.error(up, call).code).toBe(-32042);
  expect(R3.lower.error(up, call)).toEqual(up);
});
