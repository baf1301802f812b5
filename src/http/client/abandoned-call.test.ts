// Calls over HTTP that create a task and are abandoned before their response: a posted call is read on, an unsent one is
// never posted, and the server only gets `tasks/cancel`.

import { afterEach, expect, test, vi } from "vitest";
import { eventually } from "../../../test/support/waiting.ts";
import { answer, scriptedRequester } from "../../../test/support/http/scripted-requester.ts";
import type { Authorizer } from "../../core/authentication.ts";
import type { Context } from "../../core/handler.ts";
import { NEWEST, NEWEST_SESSION } from "../../protocol/revisions/index.ts";
import { TASKS_EXTENSION } from "../../protocol/tasks.ts";
import type { HttpResponse, ClientHttpRequest } from "./requester.ts";
import type { ServerConnection } from "../../dialogue/connect.ts";
import { fakeCaller } from "../../../test/support/handlers/fake-client.ts";
import { openHttp } from "./connect.ts";

type Loose = { readonly [key: string]: unknown };

const TASK = { taskId: "late", status: "working", createdAt: "2026-01-01T00:00:00Z", ttl: null };
const OFFERED = { tools: {}, tasks: { cancel: {}, requests: { tools: { call: {} } } } };
const JOB = { name: "job", inputSchema: { type: "object" }, execution: { taskSupport: "required" } };
const RESULTS: Loose = {
  initialize: { protocolVersion: NEWEST_SESSION.name, capabilities: OFFERED, serverInfo: { name: "e", version: "1" } },
  "tools/list": { tools: [JOB] },
  "tasks/cancel": { ...TASK, status: "cancelled" },
};

const connections: ServerConnection[] = [];
afterEach(async () => {
  vi.useRealTimers();
  for (const one of connections.splice(0)) await one.close();
});

/** A call in flight; `posted` is what the server gets of it. */
async function calling(auth?: Authorizer) {
  const stop = new AbortController();
  let reply = (_result: Loose): void => undefined;
  const replied = new Promise<Loose>((resolve) => (reply = resolve));
  const json = (id: unknown, result: unknown): HttpResponse =>
    answer(200, JSON.stringify({ jsonrpc: "2.0", id, result }), { "content-type": "application/json" });
  const requester = scriptedRequester(async ({ method, body }) => {
    if (method !== "POST") return answer(405);
    const message = JSON.parse(body ?? "") as Loose;
    if (message["id"] === undefined) return answer(202);
    return json(message["id"], RESULTS[String(message["method"])] ?? (await replied));
  });
  const defaultContext: Context = {
    revision: NEWEST.name,
    caller: fakeCaller({ capabilities: { extensions: { [TASKS_EXTENSION]: {} } } }),
    signal: new AbortController().signal,
    notify: () => undefined,
    ask: () => Promise.reject(new Error("not expected")),
  };
  const target = { url: new URL("http://server.test/mcp"), requester, auth };
  const info = { name: "us", version: "1" };
  const one = await openHttp(target, { info, capabilities: {}, defaultContext, revision: NEWEST_SESSION.name });
  connections.push(one);
  const context = { ...defaultContext, signal: stop.signal };
  await one.handler({ method: "tools/list", params: {} }, context);
  const call = one.handler({ method: "tools/call", params: { name: "job" } }, context);
  const posted = (method: string): ClientHttpRequest[] =>
    requester.requests.filter(({ body }) => body?.includes(`"method":"${method}"`));
  return { stop, reply, posted, outcome: call.catch((error: unknown) => error) };
}

test("a posted call is read on, and its task is cancelled by id", async () => {
  const { stop, reply, posted, outcome } = await calling();
  await eventually(() => expect(posted("tools/call")).toHaveLength(1));
  stop.abort(new Error("enough"));
  expect(await outcome).toMatchObject({ kind: "cancelled" });
  expect(posted("tools/call")[0]?.signal?.aborted).toBe(false);
  reply({ task: TASK });
  await eventually(() => expect(posted("tasks/cancel")).toHaveLength(1));
  expect(JSON.parse(posted("tasks/cancel")[0]?.body ?? "")).toMatchObject({ params: { taskId: "late" } });
  expect(posted("notifications/cancelled")).toEqual([]);
});

test("a call that is never answered is read on for a minute", async () => {
  const { stop, posted, outcome } = await calling();
  await eventually(() => expect(posted("tools/call")).toHaveLength(1));
  vi.useFakeTimers();
  stop.abort(new Error("enough"));
  await outcome;
  await vi.advanceTimersByTimeAsync(59_999);
  expect(posted("tools/call")[0]?.signal?.aborted).toBe(false);
  await vi.advanceTimersByTimeAsync(1);
  expect(posted("tools/call")[0]?.signal?.aborted).toBe(true);
  expect(posted("notifications/cancelled")).toEqual([]);
});

test("a call that waits for the user to sign in is never posted", async () => {
  let asked = 0;
  let signIn = (): void => undefined;
  const signedIn = new Promise<void>((resolve) => (signIn = resolve));
  const auth: Authorizer = {
    authorize: async () => {
      asked += 1;
      // The handshake, the stream and the tool list pass.
      if (asked > 4) await signedIn;
      return {};
    },
    refused: async () => false,
  };
  const { stop, posted, outcome } = await calling(auth);
  await eventually(() => expect(asked).toBe(5));
  stop.abort(new Error("enough"));
  expect(await outcome).toMatchObject({ kind: "cancelled" });
  signIn();
  await new Promise((resolve) => setImmediate(resolve));
  // A requester sends nothing once the signal is aborted.
  expect(posted("tools/call").filter(({ signal }) => signal?.aborted !== true)).toEqual([]);
  expect(posted("notifications/cancelled")).toEqual([]);
});
