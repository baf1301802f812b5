// server/discover of many upstreams: the combined capabilities, and the upstreams that did not answer.

import { afterEach, expect, it, vi } from "vitest";
import { createServer } from "../../server/index.ts";
import { ConnectionError } from "../../core/errors.ts";
import { fakeClient } from "../../../test/support/handlers/fake-client.ts";
import { scriptedServer, toolList } from "../../../test/support/handlers/scripted-server.ts";
import { createRouter } from "./router.ts";

const info = { name: "many", version: "3" };
const SERVER_INFO = "io.modelcontextprotocol/serverInfo";

afterEach(() => {
  vi.useRealTimers();
});

it("discover of many upstreams combines the capabilities that the router supports, and those of vendors", async () => {
  const a = scriptedServer({
    "server/discover": {
      capabilities: {
        tools: {},
        logging: {},
        experimental: { flying: {} },
        extensions: { "x/one": { a: 1 } },
        unheardOf: {},
      },
    },
  });
  const b = scriptedServer({
    "server/discover": {
      capabilities: {
        tools: { listChanged: true },
        resources: { subscribe: true },
        completions: {},
        extensions: { "x/one": { a: 2 }, "x/two": {} },
      },
    },
  });
  const { capabilities, _meta } = await fakeClient(createRouter({ a, b }, { info })).call("server/discover");
  expect(capabilities).toEqual({
    logging: {},
    completions: {},
    tools: { listChanged: true },
    resources: { subscribe: true },
    extensions: { "x/one": { a: 1 }, "x/two": {} },
    experimental: { flying: {} },
  });
  expect(_meta).toEqual({ [SERVER_INFO]: info });
});

it("discover of many upstreams joins instructions under the names of the upstreams, after its own", async () => {
  const a = createServer({ name: "a", version: "1", instructions: "Be quick." });
  const b = createServer({ name: "b", version: "1" });
  const c = createServer({ name: "c", version: "1", instructions: "Be kind." });
  const { instructions } = await fakeClient(createRouter({ a, b, c }, { instructions: "Two servers." })).call(
    "server/discover",
  );
  expect(instructions).toBe("Two servers.\n\n# a\n\nBe quick.\n\n# c\n\nBe kind.");
  expect(await fakeClient(createRouter({ b })).call("server/discover")).not.toHaveProperty("instructions");
});

it("discover of many upstreams is named catenary by default", async () => {
  const { _meta } = await fakeClient(createRouter({ a: scriptedServer({}) })).call("server/discover");
  expect(_meta?.[SERVER_INFO]).toMatchObject({ name: "catenary", version: expect.any(String) as string });
});

it("discover of many upstreams has the shortest ttl of all, and is public if all are", async () => {
  const kept = (ttlMs: number, cacheScope: string): ReturnType<typeof scriptedServer> =>
    scriptedServer({ "server/discover": { capabilities: {}, ttlMs, cacheScope } });
  const hints = async (...upstreams: ReturnType<typeof scriptedServer>[]): Promise<unknown> => {
    const { ttlMs, cacheScope } = await fakeClient(createRouter(Object.fromEntries(upstreams.entries()))).call(
      "server/discover",
    );
    return [ttlMs, cacheScope];
  };
  expect(await hints(kept(9, "public"), kept(5, "public"))).toEqual([5, "public"]);
  expect(await hints(kept(9, "public"), kept(5, "private"))).toEqual([5, "private"]);
  expect(await hints(kept(9, "public"), scriptedServer({}))).toEqual([0, "private"]);
});

it("discover of many upstreams leaves out an upstream that fails, and reports it", async () => {
  const broken = async (): Promise<never> => {
    throw new ConnectionError("refused", "connection refused");
  };
  const a = scriptedServer({ "server/discover": { capabilities: { tools: {} }, ttlMs: 9, cacheScope: "public" } });
  const result = await fakeClient(createRouter({ a, broken })).call("server/discover");
  expect(result).toMatchObject({ capabilities: { tools: { listChanged: true } }, ttlMs: 0, cacheScope: "private" });
  expect(result._meta?.["catenary/unavailable"]).toEqual([
    { upstream: "broken", message: "The upstream broken failed: connection refused" },
  ]);
  const error = await fakeClient(createRouter({ broken })).callError("server/discover");
  expect(error.kind).toBe("unreachable");
  expect(error.message).toBe(
    "No upstream could answer server/discover: The upstream broken failed: connection refused",
  );
});

it("discover of many upstreams times out, and declares the lists that a late upstream may have", async () => {
  vi.useFakeTimers();
  const slow = scriptedServer({ "server/discover": () => new Promise(() => undefined) });
  const caller = fakeClient(createRouter({ slow, quick: scriptedServer({ "tools/list": toolList("x") }) }));
  const answer = caller.call("server/discover");
  await vi.advanceTimersByTimeAsync(1_000);
  const result = await answer;
  expect(result["capabilities"]).toEqual({
    logging: {},
    completions: {},
    tools: { listChanged: true },
    prompts: { listChanged: true },
    resources: { subscribe: true, listChanged: true },
  });
  expect(result._meta?.["catenary/unavailable"]).toEqual([
    { upstream: "slow", message: "The upstream slow is still starting; ask again" },
  ]);
  // No second request is sent while the first is unanswered.
  const again = caller.call("server/discover");
  await vi.advanceTimersByTimeAsync(1_000);
  await again;
  expect(slow.requests).toHaveLength(1);
});

it("discover of many upstreams reports upstreams of nested routers", async () => {
  const broken = async (): Promise<never> => {
    throw new Error("out of order");
  };
  const inner = createRouter({ broken, fine: scriptedServer({ "tools/list": toolList("x") }) });
  const outer = fakeClient(createRouter({ inner, b: scriptedServer({ "tools/list": toolList("y") }) }));
  const shown = [{ upstream: "inner.broken", message: "The upstream broken failed: out of order" }];
  expect((await outer.call("server/discover"))._meta?.["catenary/unavailable"]).toEqual(shown);
  expect((await outer.call("tools/list"))._meta?.["catenary/unavailable"]).toEqual(shown);
});
