// Tasks of a session whose messages are authenticated one by one: a remembered task is shown only to callers that may
// get it from the handler, and a principal finds its tasks in all of its sessions.

import { afterEach, expect, it } from "vitest";
import { eventually } from "../../../test/support/waiting.ts";
import { serveAuthenticatedPeer, type AuthenticatedPeer } from "../../../test/support/dialogue/served-connection.ts";
import { taskServer } from "../../../test/support/tasks/task-server.ts";
import type { Caller, Handler } from "../../core/handler.ts";
import { NEWEST_SESSION } from "../../protocol/revisions/index.ts";
import { createServer, type Server } from "../../server/index.ts";

type Loose = { readonly [key: string]: unknown };

const WIDE = { principal: "ada", scopes: ["run"] };
const NARROW = { principal: "ada", scopes: ["look"] };
const BOTH = { principal: "ada", scopes: ["look", "run"] };
const DENIED = { error: { data: { kind: "access_denied", requiredScopes: ["run"] } } };
const NO_PARAMS = { error: { code: -32602 } };

const aborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));

const servers: Server[] = [];
afterEach(async () => {
  for (const server of servers.splice(0)) await server.close();
});

function makeServer(max = 10): Server {
  const server = createServer({ name: "jobs", version: "1", tasks: { max } })
    .tool("guarded", { task: "optional", scopes: ["run"] }, () => "done")
    .tool("hold", { task: "required" }, (_args, { signal }) => aborted(signal));
  servers.push(server);
  return server;
}

let ids = 0;

async function session(
  handler: Handler,
  first: Partial<Caller>,
): Promise<
  AuthenticatedPeer & { ask(method: string, params?: Loose): Promise<Loose>; start(name: string): Promise<string> }
> {
  const wire = await serveAuthenticatedPeer(handler, first);
  await wire.peer.handshake(NEWEST_SESSION.name);
  const ask = (method: string, params: Loose = {}): Promise<Loose> =>
    wire.peer.request({ id: (ids += 1), method, params });
  const start = async (name: string): Promise<string> => {
    const { result } = (await ask("tools/call", { name, task: {} })) as { result: { task: { taskId: string } } };
    return result.task.taskId;
  };
  return { ...wire, ask, start };
}

const listed = async ({ ask }: { ask(method: string): Promise<Loose> }): Promise<readonly unknown[]> => {
  const { result } = (await ask("tasks/list")) as { result: { tasks: readonly { taskId: string }[] } };
  return result.tasks.map(({ taskId }) => taskId);
};

// Without capacity for tasks the call is answered directly, and only the session has its result.
it.each([true, false])(
  "a task of a tool that needs a scope is visible to callers with that scope, even when it is finished; capacity for tasks: %j",
  async (room) => {
    const server = makeServer(1);
    if (!room) await (await session(server, { principal: "eve", scopes: [] })).start("hold");
    const caller = await session(server, BOTH);
    const taskId = await caller.start("guarded");
    expect(await caller.ask("tasks/result", { taskId })).toMatchObject({ result: { content: [{ text: "done" }] } });
    const required = room ? ["run"] : ["look", "run"];
    for (const method of ["tasks/get", "tasks/result", "tasks/cancel"]) {
      caller.setCaller(NARROW);
      const refused = await caller.ask(method, { taskId });
      expect([method, refused]).toMatchObject([
        method,
        { error: { data: { kind: "access_denied", requiredScopes: required } } },
      ]);
    }
    expect(await listed(caller)).toEqual([]);
    caller.setCaller(BOTH);
    expect(await listed(caller)).toEqual([taskId]);
    expect(await caller.ask("tasks/get", { taskId })).toMatchObject({ result: { status: "completed" } });
    caller.setCaller({ principal: "bob", scopes: ["look", "run"] });
    expect(await caller.ask("tasks/get", { taskId })).toMatchObject(NO_PARAMS);
    expect(await listed(caller)).toEqual([]);
  },
);

it("a task of a tool that needs a scope is refused even during a subscription", async () => {
  const server = makeServer().tool("slow", { task: "required", scopes: ["run"] }, (_args, { signal }) =>
    aborted(signal),
  );
  const caller = await session(server, WIDE);
  const taskId = await caller.start("slow");
  await caller.ask("tasks/get", { taskId });
  caller.setCaller(NARROW);
  for (const method of ["tasks/get", "tasks/result", "tasks/cancel"]) {
    expect(await caller.ask(method, { taskId })).toMatchObject(DENIED);
  }
  expect(await listed(caller)).toEqual([]);
  caller.setCaller(WIDE);
  expect(await caller.ask("tasks/cancel", { taskId })).toMatchObject({ result: { status: "cancelled" } });
});

it("the list of tasks of a principal has the tasks of all its sessions, and the local ones of this session", async () => {
  const server = makeServer(3);
  const first = await session(server, WIDE);
  const second = await session(server, { ...WIDE });
  const other = await session(server, { principal: "bob", scopes: ["run"] });
  const held = [await first.start("hold"), await second.start("hold"), await other.start("hold")];
  const local = await second.start("guarded");
  expect(await listed(first)).toEqual([held[0], held[1]]);
  expect(await listed(second)).toEqual([held[0], held[1], local]);
  expect(await listed(other)).toEqual([held[2]]);
  // Exactly the listed tasks can be fetched.
  for (const taskId of await listed(first)) {
    expect(await first.ask("tasks/get", { taskId })).toMatchObject({ result: { taskId } });
  }
  expect(await first.ask("tasks/get", { taskId: local })).toMatchObject(NO_PARAMS);
  await first.ask("tasks/cancel", { taskId: held[1] });
  expect(await second.ask("tasks/list")).toMatchObject({
    result: { tasks: [{ status: "working" }, { status: "cancelled" }, { status: "completed" }] },
  });
});

it("the list of tasks of a principal has pages that lose nothing", async () => {
  const server = makeServer(300);
  const first = await session(server, WIDE);
  const begun: string[] = [];
  for (let n = 0; n < 99; n += 1) begun.push(await first.start("hold"));
  const second = await session(server, WIDE);
  begun.push(await second.start("hold"));
  // One more than is kept for a principal: it is local to the session.
  begun.push(await second.start("guarded"));
  const page = (await second.ask("tasks/list"))["result"] as { tasks: Loose[]; nextCursor: string };
  expect(page.tasks).toHaveLength(100);
  const rest = (await second.ask("tasks/list", { cursor: page.nextCursor }))["result"] as { tasks: Loose[] };
  const all = [...page.tasks, ...rest.tasks].map(({ taskId }) => String(taskId));
  expect(all.toSorted()).toEqual(begun.toSorted());
  expect(rest).not.toHaveProperty("nextCursor");
});

it("the list of tasks of a principal is what the session has seen if the client is unauthenticated or the handler has no list", async () => {
  const server = makeServer();
  const anonymous = [await session(server, {}), await session(server, {})] as const;
  const taskId = await anonymous[0].start("hold");
  expect(await listed(anonymous[1])).toEqual([]);
  expect(await anonymous[1].ask("tasks/get", { taskId })).toMatchObject({ result: { taskId } });
  expect(await listed(anonymous[1])).toEqual([taskId]);
  const forgetful = taskServer();
  const known = [await session(forgetful.handler, WIDE), await session(forgetful.handler, WIDE)] as const;
  await known[0].start("job");
  expect(await listed(known[0])).toEqual(["task-1"]);
  expect(await listed(known[1])).toEqual([]);
  await eventually(() => expect(forgetful.count("subscriptions/listen")).toBeGreaterThan(0));
  expect(await listed(known[0])).toEqual(["task-1"]);
  forgetful.forget("task-1");
  expect(await listed(known[0])).toEqual([]);
});
