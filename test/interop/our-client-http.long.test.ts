// Our client over HTTP with the servers that others wrote: sessions with and without events that can be had again,
// exchanges, and the old pair of addresses, in every revision that each of them speaks. The conversation is that of
// stdio; servers that can hold only a part of it (without sessions, with answers that are only JSON) stand below it,
// and after them what only HTTP can show.

import { afterEach, describe, expect, it } from "vitest";
import { connect, type Client, type ConnectOptions } from "../../src/client/index.ts";
import { breakable, type Breakable } from "../support/http/breakable-proxy.ts";
import { openCatenary } from "./catenary-peer.ts";
import { converse, EXCHANGE, SESSIONS } from "./conversation.ts";
import { NOTE, NOTE_TEXT } from "./fixtures/stage.ts";
import { ANSWERS, Ear, Fixture, type Json } from "./peer.ts";

const [oldest = ""] = SESSIONS;
const newest = SESSIONS.at(-1) ?? "";
const common = { client: "catenary", listens: true } as const;

for (const revision of SESSIONS) {
  converse({
    ...common,
    title: `the server of sdk-1 over HTTP, in ${revision}`,
    revision,
    server: "sdk-1",
    serverArgs: ["sessions"],
    open: async (fixture) => openCatenary(await fixture.listen(), { revision }),
  });
  converse({
    ...common,
    title: `the server of sdk-2 over HTTP, in ${revision}`,
    revision,
    server: "sdk-2",
    serverArgs: ["sessions"],
    open: async (fixture) => openCatenary(await fixture.listen(), { revision }),
  });
}
for (const revision of [oldest, newest]) {
  converse({
    ...common,
    title: `the server of sdk-1 over the old HTTP+SSE, in ${revision}`,
    revision,
    server: "sdk-1",
    serverArgs: ["old"],
    open: async (fixture) => openCatenary(await fixture.listen(), { revision }),
  });
}
converse({
  ...common,
  title: "the server of sdk-1 over HTTP, asked what it speaks",
  revision: newest,
  server: "sdk-1",
  serverArgs: ["sessions"],
  open: async (fixture) => openCatenary(await fixture.listen()),
});
converse({
  ...common,
  title: "the server of sdk-1 over the old HTTP+SSE, asked what it speaks",
  revision: newest,
  server: "sdk-1",
  serverArgs: ["old"],
  open: async (fixture) => openCatenary(await fixture.listen()),
});
for (const manner of ["exchanges", "stateless", "sessions"]) {
  converse({
    ...common,
    title: `the server of sdk-2 over HTTP, asked what it speaks (${manner})`,
    revision: EXCHANGE,
    server: "sdk-2",
    serverArgs: [manner],
    open: async (fixture) => openCatenary(await fixture.listen()),
  });
}
converse({
  ...common,
  title: "our own server over HTTP, asked what it speaks",
  revision: EXCHANGE,
  server: "catenary",
  open: async (fixture) => openCatenary(await fixture.listen()),
});

describe("our client over HTTP and a server of others", { timeout: 20_000 }, () => {
  const open: { close(): Promise<void> }[] = [];
  const fixtures: Fixture[] = [];
  const textOf = (result: Json): string => result["content"][0].text;

  afterEach(async () => {
    for (const one of open.splice(0).toReversed()) await one.close();
    for (const fixture of fixtures.splice(0)) {
      await fixture.end();
      expect(fixture.survivors()).toEqual([]);
      fixture.remove();
    }
  });

  async function stage(...of: ConstructorParameters<typeof Fixture>): Promise<Breakable> {
    const fixture = new Fixture(...of);
    fixtures.push(fixture);
    const way = await breakable(await fixture.listen());
    open.push(way);
    return way;
  }

  async function join(url: URL, options?: ConnectOptions): Promise<Client> {
    const client = await connect(url, options);
    open.push(client);
    return client;
  }

  it.each([
    ["sdk-1", "stateless", newest],
    ["sdk-1", "json", newest],
    ["sdk-2", "stateless", newest],
  ] as const)("does with %s, %s, what that can do", async (server, manner, revision) => {
    const { url } = await stage(server, manner);
    const client = await join(url, { revision });
    expect(client.revision).toBe(revision);
    expect((await client.listTools()).tools.map(({ name }) => name)).toContain("add");
    expect(textOf(await client.callTool("add", { a: 1, b: 2 }))).toBe('{"sum":3}');
    expect((await client.callTool("fail")).isError).toBe(true);
    expect((await client.readResource(NOTE)).contents).toMatchObject([{ text: NOTE_TEXT }]);
    expect((await client.getPrompt("greet", { author: "Bronte" })).messages).toHaveLength(1);
    const ref = { type: "ref/prompt", name: "greet" } as const;
    expect((await client.complete(ref, { name: "author", value: "A" })).completion.values).toEqual(["Austen"]);
    await client.ping();
    const many = Array.from({ length: 20 }, (_, n) => client.callTool("add", { a: n, b: 1 }));
    expect((await Promise.all(many)).map((result) => JSON.parse(textOf(result)).sum as number)).toEqual(
      many.map((_, n) => n + 1),
    );
  });

  it.each([
    ["sdk-1", newest],
    ["sdk-2", newest],
  ] as const)("gets the answer of %s in %s to a call whose connection broke", async (server, revision) => {
    const way = await stage(server, "sessions");
    const client = await join(way.url, { revision });
    const other = await join(way.direct, { revision });
    const steps: number[] = [];
    const onProgress = ({ progress }: { progress: number }): void => {
      steps.push(progress);
      if (progress !== 3) return;
      way.break();
      void other.callTool("release");
    };
    expect(textOf(await client.callTool("count", { to: 3, hold: true }, { onProgress }))).toBe("counted to 3");
    expect(steps).toEqual([1, 2, 3]);
  });

  it.each([
    ["sdk-1", "sessions", newest],
    ["sdk-2", "sessions", newest],
    ["sdk-2", "exchanges", EXCHANGE],
  ] as const)("hears of changes of %s (%s) again after all connections broke", async (server, manner, revision) => {
    const way = await stage(server, manner);
    const client = await join(way.url, { revision });
    const ear = new Ear();
    await client.listen({ resourceSubscriptions: [NOTE] }, () => ear.hear({ number: ear.heard.length }));
    await client.callTool("touch");
    await ear.until(({ number }) => number === 0);
    way.break();
    // Whatever the stream was when it broke: a change that comes later is heard.
    for (let tries = 0; ear.heard.length < 2 && tries < 100; tries += 1) {
      await client.callTool("touch").catch(() => undefined);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    await ear.until(({ number }) => number === 1);
  });

  it.each([
    ["sdk-1", "sessions", newest],
    ["sdk-1", "old", newest],
    ["sdk-2", "sessions", newest],
    ["sdk-2", "exchanges", EXCHANGE],
  ] as const)("gives up a silent call of %s (%s), and the server sees it", async (server, manner, revision) => {
    const { url } = await stage(server, manner);
    const client = await join(url, { revision });
    await expect(client.callTool("wait", {}, { timeoutMs: 1_000 })).rejects.toMatchObject({ kind: "timeout" });
    expect(textOf(await client.callTool("aborted"))).toBe("the call was aborted");
  });

  it.each([
    ["sdk-1", "sessions", newest],
    ["sdk-1", "old", newest],
    ["sdk-2", "sessions", newest],
  ] as const)(
    "answers at once what %s (%s) asks in the first call, by whichever way",
    async (server, manner, revision) => {
      const { url } = await stage(server, manner);
      // Ten times, because the question may come by a stream that is only just being opened.
      for (let n = 0; n < 10; n += 1) {
        const client = await join(url, { revision, elicit: () => ANSWERS.elicit, sample: () => ANSWERS.sample });
        expect(JSON.parse(textOf(await client.callTool("sample", {}, { timeoutMs: 3_000 })))).toMatchObject({
          model: ANSWERS.sample.model,
        });
        await client.close();
      }
    },
  );

  it.each([
    ["sdk-1", "sessions"],
    ["sdk-2", "sessions"],
  ] as const)("ends its session with %s, and its name is worth nothing any more", async (server, manner) => {
    const { url } = await stage(server, manner);
    const sent: Record<string, string>[] = [];
    const spy: typeof fetch = (input, init) => {
      sent.push({ method: init?.method ?? "GET", ...Object.fromEntries(new Headers(init?.headers)) });
      return fetch(input, init);
    };
    const client = await join(url, { revision: newest, fetch: spy });
    await client.callTool("add", { a: 1, b: 2 });
    await client.close();
    const { method, "mcp-session-id": session = "" } = sent.at(-1) ?? {};
    expect(method).toBe("DELETE");
    expect(session).not.toBe("");
    const headers = {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      "mcp-session-id": session,
    };
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "ping" });
    expect((await fetch(url, { method: "POST", headers, body })).status).toBe(404);
  });

  it.each(["sdk-1", "sdk-2"] as const)(
    "begins a new session when %s was started anew at the same address",
    async (server) => {
      const first = await stage(server, "sessions");
      const second = await stage(server, "sessions");
      const client = await join(first.url, { revision: newest });
      const ear = new Ear();
      await client.listen({ resourceSubscriptions: [NOTE] }, () => ear.hear({ kind: "updated" }));
      await first.turn(second.direct);
      expect(textOf(await client.callTool("add", { a: 1, b: 2 }))).toBe('{"sum":3}');
      for (let tries = 0; ear.heard.length === 0 && tries < 100; tries += 1) {
        await client.callTool("touch");
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
      await ear.until(({ kind }) => kind === "updated");
    },
  );
});
