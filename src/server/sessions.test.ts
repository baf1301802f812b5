// What handlers know about the session of their client, what only some callers see, and messages outside of calls. In
// all revisions, in memory.

import { describe, expect, it } from "vitest";
import { chain } from "../chain/chain.ts";
import { connect } from "../client/connect.ts";
import { deferred } from "../core/async.ts";
import type { Context, Notification, Session } from "../core/handler.ts";
import type { LogMessageParams } from "../protocol/model/index.ts";
import { REVISIONS } from "../protocol/revisions/index.ts";
import { connectInMemory, REVISION_NAMES } from "../testing.ts";
import { createServer, type Server } from "./server.ts";

const info = { name: "test", version: "1" };
const SESSIONS = REVISIONS.filter(({ style }) => style === "session").map(({ name }) => name);
const STATELESS = REVISION_NAMES.filter((name) => !SESSIONS.includes(name));

/** A tool that counts the calls of each session. */
const counting = (ended: string[] = []): Server =>
  createServer(info).tool("count", {}, (_args, { session }) => {
    if (session === undefined) return "no session";
    const count = Number(session.state.get("count") ?? 0) + 1;
    session.state.set("count", count);
    if (count === 1) session.ended.addEventListener("abort", () => ended.push(session.id));
    return `${session.id}: ${count}`;
  });

const count = async (client: { callTool(name: string): Promise<{ content: unknown }> }): Promise<string> => {
  const { content } = await client.callTool("count");
  return (content as [{ text: string }])[0].text;
};

it.each(SESSIONS)("the session of a client has an id and state of its own until it ends: %s", async (revision) => {
  const ended: string[] = [];
  const server = counting(ended);
  const one = await connectInMemory(server, { revision });
  const other = await connectInMemory(server, { revision });
  const first = await count(one.client);
  const id = first.split(":")[0];
  expect(first).toBe(`${id}: 1`);
  expect(await count(other.client)).toMatch(/: 1$/);
  expect(await count(one.client)).toBe(`${id}: 2`);
  await one.close();
  expect(ended).toEqual([id]);
  expect(await count(other.client)).toMatch(/: 2$/);
  await other.close();
  expect(ended).toHaveLength(2);
});

it("the session of a client exists in memory", async () => {
  const ended: string[] = [];
  const server = counting(ended);
  const [one, other] = [await connect(server), await connect(server)];
  expect((await count(one)).split(": ")[1]).toBe("1");
  expect((await count(one)).split(": ")[1]).toBe("2");
  expect((await count(other)).split(": ")[1]).toBe("1");
  await one.close();
  expect(ended).toHaveLength(1);
  await other.close();
});

it.each(STATELESS)("the session of a client does not exist in a stateless revision: %s", async (revision) => {
  await using connection = await connectInMemory(counting(), { revision });
  expect(await count(connection.client)).toBe("no session");
});

describe("the session", () => {
  it.each(SESSIONS)("the session is one object for middleware and handlers, also in a task: %s", async (revision) => {
    const seen: unknown[] = [];
    const note = (_args: unknown, { session }: Pick<Context, "session">): string => {
      seen.push(session);
      return "x";
    };
    const server = createServer(info)
      .tool("plain", {}, note)
      .tool("task", { task: "optional" }, note)
      .use((request, context, next) => {
        if (request.method === "tools/call") seen.push(context.session);
        return next(request, context);
      });
    await using connection = await connectInMemory(server, { revision });
    await connection.client.callTool("plain");
    await (await connection.client.callToolAsTask("task")).result();
    expect(seen).toHaveLength(4);
    expect(seen[0]).toMatchObject({ id: expect.any(String) as string, state: new Map() });
    expect(new Set(seen).size).toBe(1);
  });

  it.each([...SESSIONS, "in memory"])(
    "the session sends notifications to its client alone, outside of calls: %s",
    async (revision) => {
      const sessions: Session[] = [];
      const server = createServer(info).tool("begin", {}, (_args, { session }) => void sessions.push(session!));
      const received: string[][] = [[], []];
      const open = async (at: number) => {
        const onNotification = ({ method, params }: Notification) =>
          void received[at]?.push(`${method} ${String(params?.["n"])}`);
        if (revision === "in memory") return connect(server, { onNotification });
        return (await connectInMemory(server, { revision, onNotification })).client;
      };
      const clients = [await open(0), await open(1)];
      for (const client of clients) await client.callTool("begin");
      sessions[0]?.notify({ method: "notifications/acme/tick", params: { n: 1 } });
      sessions[1]?.notify({ method: "notifications/acme/tick", params: { n: 2 } });
      for (const client of clients) await client.callTool("begin");
      expect(received).toEqual([["notifications/acme/tick 1"], ["notifications/acme/tick 2"]]);
      await clients[0]?.close();
      sessions[0]?.notify({ method: "notifications/acme/tick", params: { n: 3 } });
      expect(received[0]).toHaveLength(1);
      await clients[1]?.close();
    },
  );

  const endless: Record<string, unknown> = {};
  endless["inner"] = [endless];
  it.each<[unknown, string]>([
    [{ method: 5 }, "not a method that is a number"],
    [{ params: {} }, "not a method that is undefined"],
    [null, "A notification is { method: "],
    ["notifications/acme/tick", "not a string"],
    [{ method: "acme/tick", params: "str" }, "acme/tick: `params` must be an object, not a string"],
    [{ method: "acme/tick", params: null }, "acme/tick: `params` must be an object, not null"],
    [
      { method: "acme/tick", params: { n: [1n] } },
      "acme/tick: `params.n[0]` is a BigInt, which cannot be sent; send a",
    ],
    [
      { method: "acme/tick", params: endless },
      "acme/tick: `params` is a value that contains itself, which cannot be sent",
    ],
  ])(
    "the session refuses a notification that cannot be sent, wherever an author sends it: %o",
    async (wrong, problem) => {
      const failures: unknown[] = [];
      const server = createServer(info).tool("send", {}, (_args, { session, notify }) => {
        for (const send of [session!.notify, notify, server.notify]) {
          try {
            send(wrong as Notification);
          } catch (error) {
            failures.push(error);
          }
        }
      });
      await using client = await connect(server);
      await using connection = await connectInMemory(server, { revision: SESSIONS[0]! });
      for (const each of [client, connection.client]) await each.callTool("send");
      expect(failures).toHaveLength(6);
      for (const failure of failures) {
        expect(failure).toBeInstanceOf(TypeError);
        expect(String(failure)).toContain(problem);
      }
      const { method, params } = Object(wrong) as Notification;
      await expect(client.notify(method, params)).rejects.toThrow(TypeError);
    },
  );

  it.each(REVISION_NAMES)(
    "the session of a gateway's client is the one that a server behind it sees: %s",
    async (revision) => {
      await using connection = await connectInMemory(chain().to({ one: counting() }), { revision });
      const answer = await count(connection.client);
      expect(answer).toMatch(SESSIONS.includes(revision) ? /^session \d+: 1$/ : /^no session$/);
    },
  );
});

it.each(REVISION_NAMES)("context.meta is what the client sent beside the arguments: %s", async (revision) => {
  const server = createServer(info).tool("trace", {}, (_args, { meta }) => meta["traceparent"] ?? "none");
  await using connection = await connectInMemory(server, { revision });
  const traced = await connection.client.callTool("trace", {}, { meta: { traceparent: "00-abc-def-01" } });
  expect(traced.content).toEqual([{ type: "text", text: "00-abc-def-01" }]);
  expect((await connection.client.callTool("trace")).content).toEqual([{ type: "text", text: "none" }]);
});

const forAdmins = createServer(info)
  .tool("open", {}, () => "x")
  .tool("secret", { visible: ({ principal }) => principal === "admin" }, () => "x")
  .resource("a:open", {}, () => "x")
  .resource("a:secret", { visible: ({ principal }) => principal === "admin" }, () => "x")
  .template("t:{id}", { visible: ({ principal }) => principal === "admin", complete: { id: () => ["1"] } }, () => "x")
  .prompt("open", { arguments: { a: { complete: () => ["1"] } } }, () => "x")
  .prompt("secret", { visible: ({ principal }) => principal === "admin" }, () => "x");

it.each(REVISION_NAMES)("visible hides what a caller may not see, as if it did not exist: %s", async (revision) => {
  for (const [principal, seen] of [
    ["admin", ["open", "secret"]],
    ["ada", ["open"]],
  ] as const) {
    await using connection = await connectInMemory(forAdmins, { revision, caller: { principal } });
    const { client } = connection;
    expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(seen);
    expect((await client.listPrompts()).prompts.map(({ name }) => name)).toEqual(seen);
    expect((await client.listResources()).resources.map(({ uri }) => uri.slice(2))).toEqual(seen);
    expect((await client.listResourceTemplates()).resourceTemplates).toHaveLength(seen.length - 1);
    const used = await Promise.allSettled([
      client.callTool("secret"),
      client.getPrompt("secret"),
      client.readResource("a:secret"),
      client.readResource("t:1"),
    ]);
    const expected = principal === "admin" ? "fulfilled" : "rejected";
    expect(used.map(({ status }) => status)).toEqual([expected, expected, expected, expected]);
    if (principal === "ada") {
      expect(String((used[0] as PromiseRejectedResult).reason)).toContain("Tool not found: secret");
      const ref = { type: "ref/resource", uri: "t:{id}" } as const;
      await expect(client.complete(ref, { name: "id", value: "" })).rejects.toThrow();
    }
  }
});

it.each(SESSIONS)(
  "visible may depend on the session, and server.notify tells that it has changed: %s",
  async (revision) => {
    const server: Server = createServer(info)
      .tool("unlock", {}, (_args, { session }) => {
        session?.state.set("unlocked", true);
        server.notify({ method: "notifications/tools/list_changed" });
      })
      .tool("extra", { visible: (_caller, session) => session?.state.get("unlocked") === true }, () => "x");
    const changed = deferred();
    await using one = await connectInMemory(server, { revision });
    await one.client.listen({ toolsListChanged: true }, () => changed.resolve());
    await using other = await connectInMemory(server, { revision });
    expect((await one.client.listTools()).tools).toHaveLength(1);
    await one.client.callTool("unlock");
    await changed.promise;
    expect((await one.client.listTools()).tools).toHaveLength(2);
    expect((await other.client.listTools()).tools).toHaveLength(1);
  },
);

it.each(SESSIONS)("server.log reaches sessions that want the level, outside of a call: %s", async (revision) => {
  const server = createServer({ ...info, logging: true }).tool("t", {}, () => "x");
  const logged: LogMessageParams[] = [];
  const done = deferred();
  await using connection = await connectInMemory(server, {
    revision,
    onLog: (message) => {
      logged.push(message);
      if (message.data === "last") done.resolve();
    },
  });
  await connection.client.setLogLevel("warning");
  server.log("info", "too quiet");
  server.log("error", { disk: "full" }, "disks");
  server.log("critical", "last");
  await done.promise;
  expect(logged).toMatchObject([
    { level: "error", logger: "disks", data: { disk: "full" } },
    { level: "critical", data: "last" },
  ]);
  expect(logged).toHaveLength(2);
});

it("server.log needs a known level", () => {
  expect(() => createServer(info).log("loud" as never, "x")).toThrow('Unknown log level "loud"');
});
