// subscriptions/listen: what is granted, what is delivered to whom, and how it ends.

import { expect, it, vi } from "vitest";
import { fakeClient, withParamsCheck } from "../../test/support/handlers/fake-client.ts";
import { META } from "../protocol/model/base.ts";
import { REVISIONS } from "../protocol/revisions/index.ts";
import { connectInMemory } from "../testing.ts";
import { createServer } from "./server.ts";

const info = { name: "test", version: "1" };
const done = { resultType: "complete", _meta: { [META.serverInfo]: info } };
const acknowledged = (notifications: object): object => ({
  method: "notifications/subscriptions/acknowledged",
  params: { notifications },
});
const changed = (list: string): object => ({ method: `notifications/${list}/list_changed` });
const updated = (uri: string): object => ({ method: "notifications/resources/updated", params: { uri } });

const full = () =>
  createServer(info)
    .tool("t", {}, () => "x")
    .resource("r:1", {}, () => "x")
    .template("r:t/{id}", {}, () => "x")
    .prompt("p", {}, () => "x");

const everything = {
  toolsListChanged: true,
  promptsListChanged: true,
  resourcesListChanged: true,
  resourceSubscriptions: ["r:1", "r:t/1", "r:none"],
};

it("subscriptions/listen: first acknowledges what is granted", async () => {
  const caller = fakeClient(full());
  const subscription = caller.call("subscriptions/listen", { notifications: { ...everything, unknown: true } });
  expect(caller.notifications).toEqual([acknowledged({ ...everything, resourceSubscriptions: ["r:1", "r:t/1"] })]);
  caller.abort();
  expect(await subscription).toEqual(done);
});

it("subscriptions/listen ends at once if nothing is granted", async () => {
  const cases = [
    [full(), {}],
    [full(), { toolsListChanged: false, resourceSubscriptions: [] }],
    [full(), { resourceSubscriptions: ["r:none"] }],
    [createServer(info).tool("t", {}, () => "x"), { promptsListChanged: true, resourcesListChanged: true }],
    [createServer({ ...info, listChanged: false }).tool("t", {}, () => "x"), { toolsListChanged: true }],
    [createServer({ ...info, subscribe: false }).resource("r:1", {}, () => "x"), { resourceSubscriptions: ["r:1"] }],
  ] as const;
  for (const [server, notifications] of cases) {
    const caller = fakeClient(server);
    expect(await caller.call("subscriptions/listen", { notifications })).toEqual(done);
    expect(caller.notifications).toEqual([acknowledged({})]);
  }
});

it("subscriptions/listen reports the changes of a list once for each tick, to its subscribers", async () => {
  const server = full();
  const all = fakeClient(server);
  const prompts = fakeClient(server);
  const subscriptions = [
    all.call("subscriptions/listen", { notifications: everything }),
    prompts.call("subscriptions/listen", { notifications: { promptsListChanged: true } }),
  ];
  server.tool("u", {}, () => "x").tool("v", {}, () => "x");
  server.removeTool("u");
  server.removeTool("not there");
  server.template("x:{y}", {}, () => "x").resource("r:2", {}, () => "x");
  expect(all.notifications).toHaveLength(1);
  await Promise.resolve();
  expect(all.notifications.slice(1)).toEqual([changed("tools"), changed("resources")]);
  server.removePrompt("p");
  await Promise.resolve();
  expect(all.notifications.slice(3)).toEqual([changed("prompts")]);
  expect(prompts.notifications.slice(1)).toEqual([changed("prompts")]);
  server.removeTool("unknown");
  await Promise.resolve();
  expect(all.notifications).toHaveLength(4);
  await server.close();
  expect(await Promise.all(subscriptions)).toEqual([done, done]);
});

it("subscriptions/listen reports the update of a resource to its subscribers", async () => {
  const server = full();
  const one = fakeClient(server);
  const other = fakeClient(server);
  void one.call("subscriptions/listen", { notifications: { resourceSubscriptions: ["r:1"] } });
  void other.call("subscriptions/listen", { notifications: { resourceSubscriptions: ["r:t/7"] } });
  server.resourceUpdated("r:1");
  server.resourceUpdated("r:t/7");
  server.resourceUpdated("r:t/8");
  expect(one.notifications.slice(1)).toEqual([updated("r:1")]);
  expect(other.notifications.slice(1)).toEqual([updated("r:t/7")]);
  one.abort();
  server.resourceUpdated("r:1");
  expect(one.notifications).toHaveLength(2);
  await server.close();
});

it("subscriptions/listen reports the update of a part to those who subscribed to the whole and may read the part", async () => {
  const server = createServer(info)
    .template("notes://{id}", {}, () => "x")
    .template("notes://{id}/title", {}, () => "x")
    .resource("notes://1/secret", { visible: () => false }, () => "x")
    .resource("notes://1/key", { scopes: ["keys"] }, () => "x");
  const caller = fakeClient(server, { caller: { principal: "someone" } });
  void caller.call("subscriptions/listen", { notifications: { resourceSubscriptions: ["notes://1"] } });
  const uris = ["notes://1/title", "notes://10/title", "notes://1/secret", "notes://1/key", "notes://1/nothing"];
  for (const uri of uris) server.resourceUpdated(uri);
  expect(caller.notifications.slice(1)).toEqual([updated("notes://1/title")]);
  await server.close();
});

it("subscriptions/listen delivers nothing after it has ended", async () => {
  const server = full();
  const caller = fakeClient(server);
  const subscription = caller.call("subscriptions/listen", { notifications: everything });
  server.tool("u", {}, () => "x");
  await server.close();
  expect(await subscription).toEqual(done);
  await Promise.resolve();
  expect(caller.notifications).toHaveLength(1);
  const again = caller.call("subscriptions/listen", { notifications: { toolsListChanged: true } });
  expect(caller.notifications).toHaveLength(2);
  await server.close();
  expect(await again).toEqual(done);
});

it("subscriptions/listen ends at once for a call that is already aborted", async () => {
  const caller = fakeClient(full());
  caller.abort();
  expect(await caller.call("subscriptions/listen", { notifications: everything })).toEqual(done);
});

it("subscriptions/listen refuses an invalid filter", async () => {
  const caller = fakeClient(withParamsCheck(full()));
  for (const params of [{}, { notifications: [] }, { notifications: { resourceSubscriptions: [1] } }]) {
    expect((await caller.callError("subscriptions/listen", params)).kind).toBe("invalid_params");
  }
});

it.each(REVISIONS.map(({ name }) => name))(
  "an update reaches a client of %s once for each listener that it concerns",
  async (revision) => {
    const uris = ["n://1", "n://1/a", "n://1/a/b"];
    const server = createServer(info);
    for (const uri of uris) server.resource(uri, {}, () => "x");
    const { client, close } = await connectInMemory(server, { revision });
    const seen: string[] = [];
    for (const uri of [...uris, "n://10"]) await client.listen({ resourceSubscriptions: [uri] }, () => seen.push(uri));
    server.resourceUpdated("n://1/a/b");
    await vi.waitFor(() => expect(seen.toSorted()).toEqual(uris));
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(seen.toSorted()).toEqual(uris);
    await close();
  },
);

it("a `visible` that throws hides the resource, and other subscribers get the update", async () => {
  const server = createServer(info)
    .resource("n://1", {}, () => "x")
    .resource(
      "n://1/part",
      {
        visible: (caller) => {
          if (caller.info?.name === "bad") throw new Error("no such user");
          return true;
        },
      },
      () => "y",
    );
  const seen: string[] = [];
  const connections = [];
  for (const name of ["first", "bad", "last"]) {
    const connection = await connectInMemory(server, { info: { name, version: "1" } });
    await connection.client.listen({ resourceSubscriptions: ["n://1"] }, () => seen.push(name));
    connections.push(connection);
  }
  server.resourceUpdated("n://1/part");
  await vi.waitFor(() => expect(seen).toEqual(["first", "last"]));
  await Promise.all(connections.map(({ close }) => close()));
});
