// Our client over HTTP with the SDK servers, in every revision that each of them speaks: the common tests with sessions,
// stateless and over legacy HTTP+SSE, a shorter test for servers without sessions or streams, and what only HTTP has.

import { afterEach, describe, expect, it } from "vitest";
import { connect, type Client, type ConnectOptions } from "../../src/client/index.ts";
import { breakableProxy, type BreakableProxy } from "../support/http/breakable-proxy.ts";
import { openCatenary } from "./catenary-client.ts";
import { SESSIONS, STATELESS, testPair } from "./common-tests.ts";
import { NOTE, NOTE_TEXT } from "./fixtures/server-data.ts";
import { ANSWERS, EventLog, FixtureServer, type Json } from "./test-client.ts";

const [oldest = ""] = SESSIONS;
const newest = SESSIONS.at(-1) ?? "";
const common = { client: "catenary", listens: true } as const;

for (const revision of SESSIONS) {
  testPair({
    ...common,
    title: `the server of sdk-1 over HTTP, in ${revision}`,
    revision,
    server: "sdk-1",
    serverArgs: ["sessions"],
    open: async (fixture) => openCatenary(await fixture.listen(), { revision }),
  });
  testPair({
    ...common,
    title: `the server of sdk-2 over HTTP, in ${revision}`,
    revision,
    server: "sdk-2",
    serverArgs: ["sessions"],
    open: async (fixture) => openCatenary(await fixture.listen(), { revision }),
  });
}
for (const revision of [oldest, newest]) {
  testPair({
    ...common,
    title: `the server of sdk-1 over legacy HTTP+SSE, in ${revision}`,
    revision,
    server: "sdk-1",
    serverArgs: ["legacy-sse"],
    open: async (fixture) => openCatenary(await fixture.listen(), { revision }),
  });
}
testPair({
  ...common,
  title: "the server of sdk-1 over HTTP, by negotiation",
  revision: newest,
  server: "sdk-1",
  serverArgs: ["sessions"],
  open: async (fixture) => openCatenary(await fixture.listen()),
});
testPair({
  ...common,
  title: "the server of sdk-1 over legacy HTTP+SSE, by negotiation",
  revision: newest,
  server: "sdk-1",
  serverArgs: ["legacy-sse"],
  open: async (fixture) => openCatenary(await fixture.listen()),
});
for (const mode of ["stateless", "sessionless", "sessions"]) {
  testPair({
    ...common,
    title: `the server of sdk-2 over HTTP, by negotiation (${mode})`,
    revision: STATELESS,
    server: "sdk-2",
    serverArgs: [mode],
    open: async (fixture) => openCatenary(await fixture.listen()),
  });
}
testPair({
  ...common,
  title: "our own server over HTTP, by negotiation",
  revision: STATELESS,
  server: "catenary",
  open: async (fixture) => openCatenary(await fixture.listen()),
});

describe("our client over HTTP and an SDK server", () => {
  const open: { close(): Promise<void> }[] = [];
  const fixtures: FixtureServer[] = [];
  const textOf = (result: Json): string => result["content"][0].text;

  afterEach(async () => {
    for (const one of open.splice(0).toReversed()) await one.close();
    for (const fixture of fixtures.splice(0)) {
      await fixture.stop();
      expect(fixture.runningProcesses()).toEqual([]);
      fixture.remove();
    }
  });

  async function startServer(...args: ConstructorParameters<typeof FixtureServer>): Promise<BreakableProxy> {
    const fixture = new FixtureServer(...args);
    fixtures.push(fixture);
    const proxy = await breakableProxy(await fixture.listen());
    open.push(proxy);
    return proxy;
  }

  async function connectClient(url: URL, options?: ConnectOptions): Promise<Client> {
    const client = await connect(url, options);
    open.push(client);
    return client;
  }

  it.each([
    ["sdk-1", "sessionless", newest],
    ["sdk-1", "json", newest],
    ["sdk-2", "sessionless", newest],
  ] as const)(
    "our client over HTTP and an SDK server uses what %s offers in its mode %s",
    async (server, mode, revision) => {
      const { url } = await startServer(server, mode);
      const client = await connectClient(url, { revision });
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
    },
  );

  it.each([
    ["sdk-1", newest],
    ["sdk-2", newest],
  ] as const)(
    "our client over HTTP and an SDK server gets the result of a call of %s in %s whose connection broke",
    async (server, revision) => {
      const proxy = await startServer(server, "sessions");
      const client = await connectClient(proxy.url, { revision });
      const other = await connectClient(proxy.direct, { revision });
      const steps: number[] = [];
      const onProgress = ({ progress }: { progress: number }): void => {
        steps.push(progress);
        if (progress !== 3) return;
        proxy.break();
        void other.callTool("release");
      };
      expect(textOf(await client.callTool("count", { to: 3, hold: true }, { onProgress }))).toBe("counted to 3");
      expect(steps).toEqual([1, 2, 3]);
    },
  );

  it.each([
    ["sdk-1", "sessions", newest],
    ["sdk-2", "sessions", newest],
    ["sdk-2", "stateless", STATELESS],
  ] as const)(
    "our client over HTTP and an SDK server receives changes of %s (%s) again after all connections broke",
    async (server, mode, revision) => {
      const proxy = await startServer(server, mode);
      const client = await connectClient(proxy.url, { revision });
      const events = new EventLog();
      await client.listen({ resourceSubscriptions: [NOTE] }, () => events.add({ number: events.all.length }));
      await client.callTool("touch");
      await events.until(({ number }) => number === 0);
      proxy.break();
      // Changes are received again as soon as the stream was reopened.
      for (let tries = 0; events.all.length < 2 && tries < 100; tries += 1) {
        await client.callTool("touch").catch(() => undefined);
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
      await events.until(({ number }) => number === 1);
    },
  );

  it.each([
    ["sdk-1", "sessions", newest],
    ["sdk-1", "legacy-sse", newest],
    ["sdk-2", "sessions", newest],
    ["sdk-2", "stateless", STATELESS],
  ] as const)(
    "our client over HTTP and an SDK server times out a silent call of %s (%s), and the server sees it",
    async (server, mode, revision) => {
      const { url } = await startServer(server, mode);
      const client = await connectClient(url, { revision });
      await expect(client.callTool("wait", {}, { timeoutMs: 1_000 })).rejects.toMatchObject({ kind: "timeout" });
      expect(textOf(await client.callTool("aborted"))).toBe("the call was aborted");
    },
  );

  it.each([
    ["sdk-1", "sessions", newest],
    ["sdk-1", "legacy-sse", newest],
    ["sdk-2", "sessions", newest],
  ] as const)(
    "our client over HTTP and an SDK server answers a request of %s (%s) in the first call at once, on any stream",
    async (server, mode, revision) => {
      const { url } = await startServer(server, mode);
      // Ten times, because the request may come on a stream that is just being opened.
      for (let n = 0; n < 10; n += 1) {
        const client = await connectClient(url, {
          revision,
          elicit: () => ANSWERS.elicit,
          sample: () => ANSWERS.sample,
        });
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
  ] as const)(
    "our client over HTTP and an SDK server ends its session with %s, whose id is invalid from then on",
    async (server, mode) => {
      const { url } = await startServer(server, mode);
      const sent: Record<string, string>[] = [];
      const spy: typeof fetch = (input, init) => {
        sent.push({ method: init?.method ?? "GET", ...Object.fromEntries(new Headers(init?.headers)) });
        return fetch(input, init);
      };
      const client = await connectClient(url, { revision: newest, fetch: spy });
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
    },
  );

  it.each(["sdk-1", "sdk-2"] as const)(
    "our client over HTTP and an SDK server begins a new session when %s was restarted at the same address",
    async (server) => {
      const first = await startServer(server, "sessions");
      const second = await startServer(server, "sessions");
      const client = await connectClient(first.url, { revision: newest });
      const events = new EventLog();
      await client.listen({ resourceSubscriptions: [NOTE] }, () => events.add({ kind: "updated" }));
      await first.switchTo(second.direct);
      expect(textOf(await client.callTool("add", { a: 1, b: 2 }))).toBe('{"sum":3}');
      for (let tries = 0; events.all.length === 0 && tries < 100; tries += 1) {
        await client.callTool("touch");
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
      await events.until(({ kind }) => kind === "updated");
    },
  );
});
