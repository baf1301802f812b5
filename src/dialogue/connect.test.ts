// Toward an end: what it speaks, and what it may and may not do to us.

import { afterEach, describe, expect, it } from "vitest";
import { RawPeer } from "../../test/support/raw-peer.ts";
import type { Context } from "../core/handler.ts";
import type { Notification, Request } from "../core/handler.ts";
import { McpError } from "../protocol/errors.ts";
import { NEWEST, NEWEST_SESSION } from "../protocol/revisions/index.ts";
import { memoryPair } from "../transport/memory.ts";
import { open, type Opened, type OpenOptions } from "./connect.ts";

const DISCOVERED = { resultType: "complete", capabilities: { tools: {} }, ttlMs: 0, cacheScope: "private" };
const found = (versions: readonly string[] = [NEWEST.name]): object => ({ ...DISCOVERED, supportedVersions: versions });
const initialized = {
  protocolVersion: NEWEST_SESSION.name,
  capabilities: { tools: {} },
  serverInfo: { name: "e", version: "1" },
};

const opened: Opened[] = [];
afterEach(async () => {
  for (const one of opened.splice(0)) await one.close();
});

function context(more: Partial<Context> = {}): Context {
  return {
    revision: NEWEST.name,
    caller: { capabilities: {} },
    signal: new AbortController().signal,
    notify: () => undefined,
    ask: async ({ method }: Request) => {
      throw McpError.of("missing_capability", `nobody answers ${method}`);
    },
    ...more,
  };
}

async function facingEnd(options: Partial<OpenOptions> = {}): Promise<{ end: RawPeer; opening: Promise<Opened> }> {
  const [ours, theirs] = memoryPair();
  const end = await new RawPeer(theirs).start();
  const opening = open(() => ours, {
    info: { name: "us", version: "1" },
    capabilities: {},
    home: context(),
    ...options,
  });
  opening.then((one) => opened.push(one)).catch(() => undefined);
  return { end, opening };
}

const asked =
  (method: string) =>
  (message: { readonly [key: string]: unknown }): boolean =>
    message["method"] === method;

async function exchange(): Promise<{ end: RawPeer; handler: Opened["handler"] }> {
  const { end, opening } = await facingEnd();
  const { id } = await end.until(asked("server/discover"));
  end.send({ id, result: found() });
  return { end, handler: (await opening).handler };
}

async function session(): Promise<{ end: RawPeer; handler: Opened["handler"] }> {
  const { end, opening } = await facingEnd({ revision: NEWEST_SESSION.name });
  const { id } = await end.until(asked("initialize"));
  end.send({ id, result: initialized });
  return { end, handler: (await opening).handler };
}

const CALL: Request = { method: "tools/call", params: { name: "x" } };

describe("finding out what an end speaks", () => {
  it("takes a late answer to the probe before an answer to initialize", async () => {
    const { end, opening } = await facingEnd({ probeMs: 10 });
    const probe = await end.until(asked("server/discover"));
    const handshake = await end.until(asked("initialize"));
    end.send({ id: probe["id"], result: found() }, { id: handshake["id"], result: initialized });
    expect((await opening).revision).toBe(NEWEST);
  });

  it("takes an answer to initialize where the probe is never answered", async () => {
    const { end, opening } = await facingEnd({ probeMs: 10 });
    end.send({ id: (await end.until(asked("initialize")))["id"], result: initialized });
    expect((await opening).revision).toBe(NEWEST_SESSION);
  });

  it("does not believe an answer that names only revisions it does not know", async () => {
    const { end, opening } = await facingEnd();
    const failed = expect(opening).rejects.toMatchObject({ kind: "protocol" });
    end.send({ id: (await end.until(asked("server/discover")))["id"], result: found(["2099-01-01"]) });
    await failed;
  });

  it("survives names that are none, also when they come late", async () => {
    const { end, opening } = await facingEnd({ probeMs: 5 });
    const probe = await end.until(asked("server/discover"));
    const handshake = await end.until(asked("initialize"));
    end.send({ id: probe["id"], result: { ...DISCOVERED, supportedVersions: [{ toString: 5 }, null, 7] } });
    end.send({ id: handshake["id"], result: initialized });
    expect((await opening).revision).toBe(NEWEST_SESSION);
  });

  it("answers a ping while it asks, and nothing else", async () => {
    const { end, opening } = await facingEnd();
    expect(await end.request({ id: "p", method: "ping" })).toMatchObject({ result: {} });
    expect(await end.request({ id: "r", method: "roots/list" })).toMatchObject({ error: { code: -32601 } });
    end.send({ id: (await end.until(asked("server/discover")))["id"], result: found() });
    await opening;
  });

  it("tells how long it waited, and what to change", async () => {
    const { opening } = await facingEnd({ probeMs: 5, startMs: 20 });
    await expect(opening).rejects.toMatchObject({
      kind: "timeout",
      message: expect.stringContaining("startTimeout") as string,
    });
  });
});

describe("an exchange-style end", () => {
  it("cannot end a call of ours but by answering it", async () => {
    const { end, handler } = await exchange();
    const answer = handler(CALL, context());
    const { id } = await end.until(asked("tools/call"));
    end.send(
      { method: "notifications/cancelled", params: { requestId: id } },
      { id, result: { content: [], resultType: "complete" } },
    );
    expect(await answer).toMatchObject({ content: [] });
  });

  it("can end a listen of ours", async () => {
    const { end, handler } = await exchange();
    const listen = handler({ method: "subscriptions/listen", params: { notifications: {} } }, context());
    const { id } = await end.until(asked("subscriptions/listen"));
    end.send({ method: "notifications/cancelled", params: { requestId: id } });
    expect(await listen).toMatchObject({ resultType: "complete" });
  });

  it("cannot answer with a kind of result that the caller did not declare, or that the request cannot have", async () => {
    const { end, handler } = await exchange();
    for (const [request, resultType] of [
      [CALL, "task"],
      [CALL, "unheard"],
      [{ method: "tools/list", params: {} }, "input_required"],
    ] as const) {
      end.received.length = 0;
      const refused = expect(handler(request, context())).rejects.toMatchObject({ kind: "protocol" });
      end.send({ id: (await end.until(asked(request.method)))["id"], result: { resultType } });
      await refused;
    }
  });

  it("reaches with its events only the listen that they are tagged for", async () => {
    const { end, handler } = await exchange();
    const heard: Notification[][] = [[], []];
    for (const events of heard) {
      void handler(
        { method: "subscriptions/listen", params: { notifications: {} } },
        context({ notify: (event) => events.push(event) }),
      ).catch(() => undefined);
    }
    await expect.poll(() => end.received.filter(asked("subscriptions/listen")).length).toBe(2);
    const [, second] = end.received.filter(asked("subscriptions/listen"));
    const _meta = { "io.modelcontextprotocol/subscriptionId": second!["id"] };
    end.send({ method: "notifications/tools/list_changed", params: { _meta } });
    end.send({
      method: "notifications/tools/list_changed",
      params: { _meta: { ..._meta, "io.modelcontextprotocol/subscriptionId": 999 } },
    });
    await expect.poll(() => heard[1]!.length).toBe(1);
    expect(heard).toEqual([[], [{ method: "notifications/tools/list_changed", params: {} }]]);
  });
});

describe("a session-style end", () => {
  it("is refused what our caller cannot answer, in the words of the client pages", async () => {
    const { end, handler } = await session();
    const answer = handler(CALL, context());
    const { id } = await end.until(asked("tools/call"));
    const elicit = { message: "m", mode: "url", url: "https://example.com", elicitationId: "1" };
    expect(await end.request({ id: "r", method: "roots/list" })).toMatchObject({ error: { code: -32601 } });
    expect(await end.request({ id: "e", method: "elicitation/create", params: elicit })).toMatchObject({
      error: { code: -32602 },
    });
    expect(await end.request({ id: "u", method: "un/known" })).toMatchObject({ error: { code: -32601 } });
    end.send({ id, result: { content: [] } });
    expect(await answer).toMatchObject({ resultType: "complete", content: [] });
  });

  it("may take back what it asked", async () => {
    const { end, handler } = await session();
    let signal: AbortSignal | undefined;
    const call = handler(
      CALL,
      context({
        ask: async (_question, options) => {
          ({ signal } = options ?? {});
          return new Promise(() => undefined);
        },
      }),
    );
    const { id } = await end.until(asked("tools/call"));
    end.send({ id: 7.5, method: "roots/list" });
    await expect.poll(() => signal !== undefined).toBe(true);
    end.send({ method: "notifications/cancelled", params: { requestId: 7.5, reason: "no longer" } });
    await expect.poll(() => signal!.aborted).toBe(true);
    end.send({ id, result: { content: [] } });
    await call;
    expect(end.received.some((message) => message["id"] === 7.5)).toBe(false);
  });
});
