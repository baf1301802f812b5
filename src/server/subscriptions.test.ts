// subscriptions/listen: what is granted, what is delivered to whom, and how it ends. Also Broadcaster: every receiver
// gets each broadcast once and in order, and other work runs in between.

import { describe, expect, it } from "vitest";
import { fakeClient, withParamsCheck } from "../../test/support/handlers/fake-client.ts";
import { META } from "../protocol/model/base.ts";
import { createServer } from "./server.ts";
import { Broadcaster } from "./subscriptions.ts";

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

describe("subscriptions/listen", () => {
  it("first acknowledges what is granted", async () => {
    const caller = fakeClient(full());
    const subscription = caller.call("subscriptions/listen", { notifications: { ...everything, unknown: true } });
    expect(caller.notifications).toEqual([acknowledged({ ...everything, resourceSubscriptions: ["r:1", "r:t/1"] })]);
    caller.abort();
    expect(await subscription).toEqual(done);
  });

  it("ends at once if nothing is granted", async () => {
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

  it("reports the changes of a list once for each tick, to its subscribers", async () => {
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

  it("reports the update of a resource to its subscribers", async () => {
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

  it("delivers nothing after it has ended", async () => {
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

  it("ends at once for a call that is already aborted", async () => {
    const caller = fakeClient(full());
    caller.abort();
    expect(await caller.call("subscriptions/listen", { notifications: everything })).toEqual(done);
  });

  it("refuses an invalid filter", async () => {
    const caller = fakeClient(withParamsCheck(full()));
    for (const params of [{}, { notifications: [] }, { notifications: { resourceSubscriptions: [1] } }]) {
      expect((await caller.callError("subscriptions/listen", params)).kind).toBe("invalid_params");
    }
  });
});

describe("Broadcaster", () => {
  const many = Array.from({ length: 1_000 }, (_, index) => index);

  async function until(isDone: () => boolean): Promise<number> {
    let turns = 0;
    for (; !isDone(); turns += 1) await new Promise((resolve) => setImmediate(resolve));
    return turns;
  }

  it("delivers to a few receivers at once", () => {
    const broadcaster = new Broadcaster<number>();
    const received: number[] = [];
    broadcaster.send([1, 2, 3], (receiver) => received.push(receiver));
    broadcaster.send([1], (receiver) => received.push(receiver + 10));
    expect(received).toEqual([1, 2, 3, 11]);
  });

  it("delivers to many receivers once each, over several turns of the event loop", async () => {
    const broadcaster = new Broadcaster<number>();
    const received: number[] = [];
    broadcaster.send(many, (receiver) => received.push(receiver));
    expect(received.length).toBeLessThan(100);
    expect(await until(() => received.length === many.length)).toBeGreaterThan(5);
    expect(received).toEqual(many);
  });

  it("keeps the order of broadcasts for each receiver, even of those sent during a delivery", async () => {
    const broadcaster = new Broadcaster<number>();
    const received = new Map<number, string[]>(many.map((receiver) => [receiver, []]));
    const send = (message: string): void => broadcaster.send(many, (receiver) => received.get(receiver)?.push(message));
    send("one");
    send("two");
    await until(() => (received.get(500)?.length ?? 0) > 0);
    send("three");
    await until(() => received.get(999)?.length === 3);
    expect([...received.values()].every((messages) => messages.join() === "one,two,three")).toBe(true);
  });

  it("goes on after a receiver that throws", () => {
    const broadcaster = new Broadcaster<number>();
    const received: number[] = [];
    broadcaster.send([1, 2, 3], (receiver) => {
      if (receiver === 2) throw new Error("gone");
      received.push(receiver);
    });
    expect(received).toEqual([1, 3]);
  });
});
