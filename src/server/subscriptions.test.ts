// subscriptions/listen: what is granted, who hears of what, how often, and how listening ends. The tags on what is
// sent are the dialogue's, and tested there.

import { describe, expect, it } from "vitest";
import { desk } from "../../test/support/desk.ts";
import { META } from "../protocol/model/index.ts";
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

describe("subscriptions/listen", () => {
  it("first says what is granted", async () => {
    const caller = desk(full());
    const listening = caller.call("subscriptions/listen", { notifications: { ...everything, unknown: true } });
    expect(caller.told).toEqual([acknowledged({ ...everything, resourceSubscriptions: ["r:1", "r:t/1"] })]);
    caller.abort();
    expect(await listening).toEqual(done);
  });

  it("ends at once where nothing is granted", async () => {
    const cases = [
      [full(), {}],
      [full(), { toolsListChanged: false, resourceSubscriptions: [] }],
      [full(), { resourceSubscriptions: ["r:none"] }],
      [createServer(info).tool("t", {}, () => "x"), { promptsListChanged: true, resourcesListChanged: true }],
      [createServer({ ...info, listChanged: false }).tool("t", {}, () => "x"), { toolsListChanged: true }],
      [createServer({ ...info, subscribe: false }).resource("r:1", {}, () => "x"), { resourceSubscriptions: ["r:1"] }],
    ] as const;
    for (const [server, notifications] of cases) {
      const caller = desk(server);
      expect(await caller.call("subscriptions/listen", { notifications })).toEqual(done);
      expect(caller.told).toEqual([acknowledged({})]);
    }
  });

  it("tells each change of a list once for each tick, to those who asked for it", async () => {
    const server = full();
    const all = desk(server);
    const prompts = desk(server);
    const listening = [
      all.call("subscriptions/listen", { notifications: everything }),
      prompts.call("subscriptions/listen", { notifications: { promptsListChanged: true } }),
    ];
    server.tool("u", {}, () => "x").tool("v", {}, () => "x");
    server.removeTool("u");
    server.removeTool("not there");
    server.template("x:{y}", {}, () => "x").resource("r:2", {}, () => "x");
    expect(all.told).toHaveLength(1);
    await Promise.resolve();
    expect(all.told.slice(1)).toEqual([changed("tools"), changed("resources")]);
    server.removePrompt("p");
    await Promise.resolve();
    expect(all.told.slice(3)).toEqual([changed("prompts")]);
    expect(prompts.told.slice(1)).toEqual([changed("prompts")]);
    server.removeTool("nobody");
    await Promise.resolve();
    expect(all.told).toHaveLength(4);
    await server.close();
    expect(await Promise.all(listening)).toEqual([done, done]);
  });

  it("tells of changed resources to those who asked for just them", async () => {
    const server = full();
    const one = desk(server);
    const other = desk(server);
    void one.call("subscriptions/listen", { notifications: { resourceSubscriptions: ["r:1"] } });
    void other.call("subscriptions/listen", { notifications: { resourceSubscriptions: ["r:t/7"] } });
    server.updated("r:1");
    server.updated("r:t/7");
    server.updated("r:t/8");
    expect(one.told.slice(1)).toEqual([updated("r:1")]);
    expect(other.told.slice(1)).toEqual([updated("r:t/7")]);
    one.abort();
    server.updated("r:1");
    expect(one.told).toHaveLength(2);
    await server.close();
  });

  it("says nothing after it has ended, and holds nothing", async () => {
    const server = full();
    const caller = desk(server);
    const listening = caller.call("subscriptions/listen", { notifications: everything });
    server.tool("u", {}, () => "x");
    await server.close();
    expect(await listening).toEqual(done);
    await Promise.resolve();
    expect(caller.told).toHaveLength(1);
    const again = caller.call("subscriptions/listen", { notifications: { toolsListChanged: true } });
    expect(caller.told).toHaveLength(2);
    await server.close();
    expect(await again).toEqual(done);
  });

  it("ends at once for a caller that has gone", async () => {
    const caller = desk(full());
    caller.abort();
    expect(await caller.call("subscriptions/listen", { notifications: everything })).toEqual(done);
  });

  it("refuses a filter that is none", async () => {
    const caller = desk(full());
    for (const params of [{}, { notifications: [] }, { notifications: { resourceSubscriptions: [1] } }]) {
      expect((await caller.refused("subscriptions/listen", params)).kind).toBe("invalid_params");
    }
  });
});
