// Our server over HTTP with the SDK clients, in every revision and over every transport that they have: the common
// tests, and what only HTTP has (a connection that breaks during a call, a session that is ended, a shared port).

import { Client as Client1 } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport as Http1 } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import {
  Client as Client2,
  StreamableHTTPClientTransport as Http2,
  type ClientOptions,
} from "@modelcontextprotocol/client";
import { afterEach, describe, expect, it } from "vitest";
import { breakableProxy, type BreakableProxy } from "../support/http/breakable-proxy.ts";
import { SESSIONS, STATELESS, testPair } from "./common-tests.ts";
import { ANSWERS, EventLog, FixtureServer, type Json } from "./test-client.ts";
import { openSdk1Http, openSdk1Sse } from "./sdk-1-client.ts";
import { openSdk2Http, openSdk2Sse } from "./sdk-2-client.ts";

const [oldest = ""] = SESSIONS;
const newest = SESSIONS.at(-1) ?? "";
const common = { server: "catenary", listens: true } as const;

for (const revision of SESSIONS) {
  testPair({
    ...common,
    title: `the client of SDK 1.x over HTTP, in ${revision}`,
    revision,
    client: "sdk-1",
    serverArgs: revision === newest ? [] : [revision],
    open: openSdk1Http,
  });
  testPair({
    ...common,
    title: `the client of SDK 2.x over HTTP, in ${revision}`,
    revision,
    client: "sdk-2",
    open: (fixture) => openSdk2Http(fixture, revision === newest ? {} : { supportedProtocolVersions: [revision] }),
  });
}
for (const revision of [oldest, newest]) {
  testPair({
    ...common,
    title: `the client of SDK 1.x over legacy HTTP+SSE, in ${revision}`,
    revision,
    client: "sdk-1",
    serverArgs: revision === newest ? [] : [revision],
    open: openSdk1Sse,
  });
}
testPair({
  ...common,
  title: `the client of SDK 2.x over legacy HTTP+SSE, in ${oldest}`,
  revision: oldest,
  client: "sdk-2",
  open: (fixture) => openSdk2Sse(fixture, { supportedProtocolVersions: [oldest] }),
});
testPair({
  ...common,
  title: "the client of SDK 2.x over HTTP, by negotiation",
  revision: STATELESS,
  client: "sdk-2",
  open: (fixture) => openSdk2Http(fixture, { versionNegotiation: { mode: "auto" } }),
});
testPair({
  ...common,
  title: `the client of SDK 2.x over HTTP, pinned to ${STATELESS}`,
  revision: STATELESS,
  client: "sdk-2",
  open: (fixture) => openSdk2Http(fixture, { versionNegotiation: { mode: { pin: STATELESS } } }),
});

describe("our server over HTTP and an SDK client", () => {
  const open: { close(): Promise<void> }[] = [];
  const fixtures: FixtureServer[] = [];
  const info = { name: "interop", version: "1" };
  const stateless: ClientOptions = { versionNegotiation: { mode: { pin: STATELESS } } };
  const quick = {
    initialReconnectionDelay: 10,
    maxReconnectionDelay: 100,
    reconnectionDelayGrowFactor: 1,
    maxRetries: 20,
  };
  const textOf = (result: Json): string => result["content"][0].text;

  afterEach(async () => {
    for (const one of open.splice(0).toReversed()) await one.close();
    for (const fixture of fixtures.splice(0)) {
      await fixture.stop();
      expect(fixture.runningProcesses()).toEqual([]);
      fixture.remove();
    }
  });

  async function startServer(...revisions: string[]): Promise<BreakableProxy> {
    const fixture = new FixtureServer("catenary", ...revisions);
    fixtures.push(fixture);
    const proxy = await breakableProxy(await fixture.listen());
    open.push(proxy);
    return proxy;
  }

  async function open1(url: URL): Promise<{ client: Client1; transport: Http1 }> {
    const client = new Client1(info);
    const transport = new Http1(url, { reconnectionOptions: quick });
    open.push(client);
    await client.connect(transport);
    return { client, transport };
  }

  async function open2(url: URL, options: ClientOptions = {}): Promise<Client2> {
    const client = new Client2(info, options);
    open.push(client);
    await client.connect(new Http2(url, { reconnectionOptions: quick }));
    return client;
  }

  it("our server over HTTP and an SDK client: SDK 1.x gets the result of a call whose connection broke", async () => {
    const proxy = await startServer();
    const { client } = await open1(proxy.url);
    const steps: unknown[] = [];
    const onprogress = ({ progress }: { progress: number }): void => {
      steps.push(progress);
      if (progress === 3) {
        proxy.break();
        // By another client that bypasses the proxy, because this one has no connection for a while.
        void open1(proxy.direct).then(({ client: other }) => other.callTool({ name: "release", arguments: {} }));
      }
    };
    const result = await client.callTool({ name: "count", arguments: { to: 3, hold: true } }, undefined, {
      onprogress,
    });
    expect(textOf(result)).toBe("counted to 3");
    expect(steps).toEqual([1, 2, 3]);
  });

  it("our server over HTTP and an SDK client: SDK 2.x gets the result of a call whose connection broke", async () => {
    const proxy = await startServer();
    const client = await open2(proxy.url);
    const steps: unknown[] = [];
    const onprogress = ({ progress }: { progress: number }): void => {
      steps.push(progress);
      if (progress === 3) {
        proxy.break();
        void open2(proxy.direct).then((other) => other.callTool({ name: "release", arguments: {} }));
      }
    };
    const result = await client.callTool({ name: "count", arguments: { to: 3, hold: true } }, { onprogress });
    expect(textOf(result)).toBe("counted to 3");
    expect(steps).toEqual([1, 2, 3]);
  });

  it("our server over HTTP and an SDK client: SDK 1.x receives changes again after its stream broke", async () => {
    const proxy = await startServer();
    const events = new EventLog();
    const onChanged = (): void => events.add({ kind: "tools", number: events.all.length });
    const client = new Client1(info, { listChanged: { tools: { autoRefresh: false, onChanged } } });
    open.push(client);
    await client.connect(new Http1(proxy.url, { reconnectionOptions: quick }));
    const { client: other } = await open1(proxy.direct);
    await other.callTool({ name: "grow", arguments: {} });
    // Its stream is open now. The SDK opens it in the background and does not retry.
    await events.until(({ number }) => number === 0);
    proxy.break();
    await other.callTool({ name: "grow", arguments: {} });
    await events.until(({ number }) => number === 1);
    expect(events.all).toHaveLength(2);
  });

  it("our server over HTTP and an SDK client: SDK 1.x ends its session, whose id is invalid from then on", async () => {
    const proxy = await startServer();
    const { client, transport } = await open1(proxy.url);
    const session = transport.sessionId ?? "";
    expect(session).toMatch(/^[\x21-\x7e]{22,}$/);
    await transport.terminateSession();
    const headers = { "content-type": "application/json", accept: "application/json, text/event-stream" };
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "ping" });
    const late = await fetch(proxy.url, { method: "POST", headers: { ...headers, "mcp-session-id": session }, body });
    expect(late.status).toBe(404);
    await client.close();
  });

  it.each([
    ["the session style", {}],
    ["the stateless style", stateless],
  ])("our server over HTTP and an SDK client sees the timeout of a call of SDK 2.x in %s", async (_style, options) => {
    const { url } = await startServer();
    const client = await open2(url, options);
    const call = client.callTool({ name: "wait", arguments: {} }, { timeout: 100 });
    await expect(call).rejects.toMatchObject({ code: "REQUEST_TIMEOUT" });
    expect(textOf(await client.callTool({ name: "aborted", arguments: {} }))).toBe("the call was aborted");
  });

  it("our server over HTTP and an SDK client keeps the lists of a stateless SDK 2.x fresh through its subscription", async () => {
    const { url } = await startServer();
    let onChanged: (error: Error | null, items: Json[] | null) => void = () => undefined;
    const fresh = new Promise<Json[]>((resolve, reject) => {
      onChanged = (error, items) => (error === null ? resolve(items ?? []) : reject(error));
    });
    const client = await open2(url, { ...stateless, listChanged: { tools: { onChanged } } });
    expect(client.autoOpenedSubscription?.honoredFilter).toEqual({ toolsListChanged: true });
    await client.callTool({ name: "grow", arguments: {} });
    expect((await fresh).map(({ name }) => name)).toContain("grown");
  });

  it("our server over HTTP and an SDK client accepts retries with input that the client drives by hand", async () => {
    const { url } = await startServer();
    const client = await open2(url, {
      ...stateless,
      capabilities: { elicitation: {} },
      inputRequired: { autoFulfill: false },
    });
    const call = async (more: Json = {}): Promise<Json> =>
      client.request(
        { method: "tools/call", params: { name: "elicit", arguments: {}, ...more } },
        { allowInputRequired: true },
      );
    const { resultType, inputRequests, requestState } = await call();
    expect(resultType).toBe("input_required");
    const [key = ""] = Object.keys(inputRequests as Json);
    const last = await call({ inputResponses: { [key]: ANSWERS.elicit }, requestState });
    expect(JSON.parse(textOf(last))).toEqual(ANSWERS.elicit);
  });

  it("our server over HTTP and an SDK client lets a negotiating client find a server with sessions only", async () => {
    const { url } = await startServer(newest);
    const client = await open2(url, { versionNegotiation: { mode: "auto" } });
    expect([client.getProtocolEra(), client.getNegotiatedProtocolVersion()]).toEqual(["legacy", newest]);
    expect(textOf(await client.callTool({ name: "add", arguments: { a: 1, b: 2 } }))).toBe('{"sum":3}');
  });

  it("our server over HTTP and an SDK client lets a negotiating client find a server without sessions", async () => {
    const { url } = await startServer(STATELESS);
    const client = await open2(url, { versionNegotiation: { mode: "auto" } });
    expect([client.getProtocolEra(), client.getNegotiatedProtocolVersion()]).toEqual(["modern", STATELESS]);
  });

  it("our server over HTTP and an SDK client serves clients of both libraries and both styles at once", async () => {
    const { url } = await startServer();
    const [one, two, three] = await Promise.all([open1(url), open2(url), open2(url, stateless)]);
    const clients = [one.client, two, three];
    const sums = await Promise.all(
      clients.flatMap((client, c) =>
        Array.from({ length: 20 }, async (_, n) =>
          textOf(await client.callTool({ name: "add", arguments: { a: c * 100, b: n } })),
        ),
      ),
    );
    expect(sums.map((text) => JSON.parse(text).sum as number)).toEqual(
      clients.flatMap((_, c) => Array.from({ length: 20 }, (_none, n) => c * 100 + n)),
    );
  });
});
