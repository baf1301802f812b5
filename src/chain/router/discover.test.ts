// What many ends say of themselves as one server: the union of what is relayed, and who could not be asked.

import { afterEach, describe, expect, it, vi } from "vitest";
import { createServer } from "../../server/index.ts";
import { ConnectionError } from "../../core/errors.ts";
import { desk } from "../../../test/support/desk.ts";
import { madeServer, tools } from "../../../test/support/made-end.ts";
import { merge } from "./merge.ts";

const info = { name: "many", version: "3" };
const SERVER_INFO = "io.modelcontextprotocol/serverInfo";

afterEach(() => {
  vi.useRealTimers();
});

describe("discover of many ends", () => {
  it("is the union of what they offer and merge relays", async () => {
    const a = madeServer({
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
    const b = madeServer({
      "server/discover": {
        capabilities: {
          tools: { listChanged: true },
          resources: { subscribe: true },
          completions: {},
          extensions: { "x/one": { a: 2 }, "x/two": {} },
        },
      },
    });
    const { capabilities, _meta } = await desk(merge({ a, b }, { info })).call("server/discover");
    expect(capabilities).toEqual({
      logging: {},
      completions: {},
      tools: { listChanged: true },
      resources: { subscribe: true },
      extensions: { "x/one": { a: 1 }, "x/two": {} },
    });
    expect(_meta).toEqual({ [SERVER_INFO]: info });
  });

  it("joins instructions under the names of the ends, after its own", async () => {
    const a = createServer({ name: "a", version: "1", instructions: "Be quick." });
    const b = createServer({ name: "b", version: "1" });
    const c = createServer({ name: "c", version: "1", instructions: "Be kind." });
    const { instructions } = await desk(merge({ a, b, c }, { instructions: "Two servers." })).call("server/discover");
    expect(instructions).toBe("Two servers.\n\n# a\n\nBe quick.\n\n# c\n\nBe kind.");
    expect(await desk(merge({ b })).call("server/discover")).not.toHaveProperty("instructions");
  });

  it("says it is Catenary where nobody says otherwise", async () => {
    const { _meta } = await desk(merge({ a: madeServer({}) })).call("server/discover");
    expect(_meta?.[SERVER_INFO]).toMatchObject({ name: "catenary", version: expect.any(String) as string });
  });

  it("may be kept for as long as the least of them, and is public where all are", async () => {
    const kept = (ttlMs: number, cacheScope: string): ReturnType<typeof madeServer> =>
      madeServer({ "server/discover": { capabilities: {}, ttlMs, cacheScope } });
    const hints = async (...ends: ReturnType<typeof madeServer>[]): Promise<unknown> => {
      const { ttlMs, cacheScope } = await desk(merge(Object.fromEntries(ends.entries()))).call("server/discover");
      return [ttlMs, cacheScope];
    };
    expect(await hints(kept(9, "public"), kept(5, "public"))).toEqual([5, "public"]);
    expect(await hints(kept(9, "public"), kept(5, "private"))).toEqual([5, "private"]);
    expect(await hints(kept(9, "public"), madeServer({}))).toEqual([0, "private"]);
  });

  it("leaves out an end that fails, and shows it", async () => {
    const broken = async (): Promise<never> => {
      throw new ConnectionError("refused", "connection refused");
    };
    const a = madeServer({ "server/discover": { capabilities: { tools: {} }, ttlMs: 9, cacheScope: "public" } });
    const result = await desk(merge({ a, broken })).call("server/discover");
    expect(result).toMatchObject({ capabilities: { tools: { listChanged: true } }, ttlMs: 0, cacheScope: "private" });
    expect(result._meta?.["catenary/unavailable"]).toEqual([
      { end: "broken", message: "The end broken failed: connection refused" },
    ]);
    const error = await desk(merge({ broken })).refused("server/discover");
    expect(error.kind).toBe("unreachable");
    expect(error.message).toBe("No end could answer server/discover: The end broken failed: connection refused");
  });

  it("does not wait for ever for an end, and keeps room for what it may have", async () => {
    vi.useFakeTimers();
    const slow = madeServer({ "server/discover": () => new Promise(() => undefined) });
    const caller = desk(merge({ slow, quick: madeServer({ "tools/list": tools("x") }) }));
    const answer = caller.call("server/discover");
    await vi.advanceTimersByTimeAsync(8_000);
    const result = await answer;
    expect(result["capabilities"]).toEqual({
      tools: { listChanged: true },
      prompts: { listChanged: true },
      resources: { listChanged: true },
    });
    expect(result._meta?.["catenary/unavailable"]).toEqual([
      { end: "slow", message: "The end slow did not answer in 8000 ms" },
    ]);
    // The second time it is known to be slow, and is not asked twice at once.
    const again = caller.call("server/discover");
    await vi.advanceTimersByTimeAsync(1_000);
    await again;
    expect(slow.asked).toHaveLength(1);
  });

  it("tells of ends within ends", async () => {
    const broken = async (): Promise<never> => {
      throw new Error("out of order");
    };
    const inner = merge({ broken, fine: madeServer({ "tools/list": tools("x") }) });
    const outer = desk(merge({ inner, b: madeServer({ "tools/list": tools("y") }) }));
    const shown = [{ end: "inner.broken", message: "The end broken failed: out of order" }];
    expect((await outer.call("server/discover"))._meta?.["catenary/unavailable"]).toEqual(shown);
    expect((await outer.call("tools/list"))._meta?.["catenary/unavailable"]).toEqual(shown);
  });
});
