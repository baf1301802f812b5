// Our server over HTTP with the clients that others wrote, in every revision that they speak and by every transport
// that they have. The conversation is that of stdio; what only HTTP can show (a connection that breaks in mid-call,
// a session that is ended, a port that is shared) stands below it.

import { Client as Client1 } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport as Http1 } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import {
  Client as Client2,
  StreamableHTTPClientTransport as Http2,
  type ClientOptions,
} from "@modelcontextprotocol/client";
import { afterEach, describe, expect, it } from "vitest";
import { breakable, type Breakable } from "../support/http/breakable-proxy.ts";
import { converse, EXCHANGE, SESSIONS } from "./conversation.ts";
import { ANSWERS, Ear, Fixture, type Json } from "./peer.ts";
import { openSdk1Http, openSdk1Sse } from "./sdk-1-peer.ts";
import { openSdk2Http, openSdk2Sse } from "./sdk-2-peer.ts";

const [oldest = ""] = SESSIONS;
const newest = SESSIONS.at(-1) ?? "";
const common = { server: "catenary", listens: true } as const;

for (const revision of SESSIONS) {
  converse({
    ...common,
    title: `the client of SDK 1.x over HTTP, in ${revision}`,
    revision,
    client: "sdk-1",
    serverArgs: revision === newest ? [] : [revision],
    open: openSdk1Http,
  });
  converse({
    ...common,
    title: `the client of SDK 2.x over HTTP, in ${revision}`,
    revision,
    client: "sdk-2",
    open: (fixture) => openSdk2Http(fixture, revision === newest ? {} : { supportedProtocolVersions: [revision] }),
  });
}
for (const revision of [oldest, newest]) {
  converse({
    ...common,
    title: `the client of SDK 1.x over the old HTTP+SSE, in ${revision}`,
    revision,
    client: "sdk-1",
    serverArgs: revision === newest ? [] : [revision],
    open: openSdk1Sse,
  });
}
converse({
  ...common,
  title: `the client of SDK 2.x over the old HTTP+SSE, in ${oldest}`,
  revision: oldest,
  client: "sdk-2",
  open: (fixture) => openSdk2Sse(fixture, { supportedProtocolVersions: [oldest] }),
});
converse({
  ...common,
  title: "the client of SDK 2.x over HTTP, asked to negotiate",
  revision: EXCHANGE,
  client: "sdk-2",
  open: (fixture) => openSdk2Http(fixture, { versionNegotiation: { mode: "auto" } }),
});
converse({
  ...common,
  title: `the client of SDK 2.x over HTTP, pinned to ${EXCHANGE}`,
  revision: EXCHANGE,
  client: "sdk-2",
  open: (fixture) => openSdk2Http(fixture, { versionNegotiation: { mode: { pin: EXCHANGE } } }),
});

describe("our server over HTTP and a client of others", { timeout: 20_000 }, () => {
  const open: { close(): Promise<void> }[] = [];
  const fixtures: Fixture[] = [];
  const info = { name: "interop", version: "1" };
  const exchange: ClientOptions = { versionNegotiation: { mode: { pin: EXCHANGE } } };
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
      await fixture.end();
      expect(fixture.survivors()).toEqual([]);
      fixture.remove();
    }
  });

  async function stage(...revisions: string[]): Promise<Breakable> {
    const fixture = new Fixture("catenary", ...revisions);
    fixtures.push(fixture);
    const way = await breakable(await fixture.listen());
    open.push(way);
    return way;
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

  it("SDK 1.x gets the answer to a call whose connection broke", async () => {
    const way = await stage();
    const { client } = await open1(way.url);
    const steps: unknown[] = [];
    const onprogress = ({ progress }: { progress: number }): void => {
      steps.push(progress);
      if (progress === 3) {
        way.break();
        // By another client and another way, because this one is without connections for a while.
        void open1(way.direct).then(({ client: other }) => other.callTool({ name: "release", arguments: {} }));
      }
    };
    const result = await client.callTool({ name: "count", arguments: { to: 3, hold: true } }, undefined, {
      onprogress,
    });
    expect(textOf(result)).toBe("counted to 3");
    expect(steps).toEqual([1, 2, 3]);
  });

  it("SDK 2.x gets the answer to a call whose connection broke", async () => {
    const way = await stage();
    const client = await open2(way.url);
    const steps: unknown[] = [];
    const onprogress = ({ progress }: { progress: number }): void => {
      steps.push(progress);
      if (progress === 3) {
        way.break();
        void open2(way.direct).then((other) => other.callTool({ name: "release", arguments: {} }));
      }
    };
    const result = await client.callTool({ name: "count", arguments: { to: 3, hold: true } }, { onprogress });
    expect(textOf(result)).toBe("counted to 3");
    expect(steps).toEqual([1, 2, 3]);
  });

  it("SDK 1.x hears of changes again after its stream broke", async () => {
    const way = await stage();
    const ear = new Ear();
    const onChanged = (): void => ear.hear({ kind: "tools", number: ear.heard.length });
    const client = new Client1(info, { listChanged: { tools: { autoRefresh: false, onChanged } } });
    open.push(client);
    await client.connect(new Http1(way.url, { reconnectionOptions: quick }));
    const { client: other } = await open1(way.direct);
    await other.callTool({ name: "grow", arguments: {} });
    // The stream is open: it is opened in the background, and is not tried again where that fails.
    await ear.until(({ number }) => number === 0);
    way.break();
    await other.callTool({ name: "grow", arguments: {} });
    await ear.until(({ number }) => number === 1);
    expect(ear.heard).toHaveLength(2);
  });

  it("SDK 1.x ends its session, and its id is worth nothing any more", async () => {
    const way = await stage();
    const { client, transport } = await open1(way.url);
    const session = transport.sessionId ?? "";
    expect(session).toMatch(/^[\x21-\x7e]{22,}$/);
    await transport.terminateSession();
    const headers = { "content-type": "application/json", accept: "application/json, text/event-stream" };
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "ping" });
    const late = await fetch(way.url, { method: "POST", headers: { ...headers, "mcp-session-id": session }, body });
    expect(late.status).toBe(404);
    await client.close();
  });

  it.each([
    ["the session style", {}],
    ["exchanges", exchange],
  ])("sees a call of SDK 2.x in %s end when its time is up", async (_style, options) => {
    const { url } = await stage();
    const client = await open2(url, options);
    const call = client.callTool({ name: "wait", arguments: {} }, { timeout: 100 });
    await expect(call).rejects.toMatchObject({ code: "REQUEST_TIMEOUT" });
    expect(textOf(await client.callTool({ name: "aborted", arguments: {} }))).toBe("the call was aborted");
  });

  it("keeps the lists of SDK 2.x fresh in exchanges, by its own listen", async () => {
    const { url } = await stage();
    let onChanged: (error: Error | null, items: Json[] | null) => void = () => undefined;
    const fresh = new Promise<Json[]>((resolve, reject) => {
      onChanged = (error, items) => (error === null ? resolve(items ?? []) : reject(error));
    });
    const client = await open2(url, { ...exchange, listChanged: { tools: { onChanged } } });
    expect(client.autoOpenedSubscription?.honoredFilter).toEqual({ toolsListChanged: true });
    await client.callTool({ name: "grow", arguments: {} });
    expect((await fresh).map(({ name }) => name)).toContain("grown");
  });

  it("goes through rounds that are driven by hand", async () => {
    const { url } = await stage();
    const client = await open2(url, {
      ...exchange,
      capabilities: { elicitation: {} },
      inputRequired: { autoFulfill: false },
    });
    const ask = async (more: Json = {}): Promise<Json> =>
      client.request(
        { method: "tools/call", params: { name: "elicit", arguments: {}, ...more } },
        { allowInputRequired: true },
      );
    const { resultType, inputRequests, requestState } = await ask();
    expect(resultType).toBe("input_required");
    const [who = ""] = Object.keys(inputRequests as Json);
    const last = await ask({ inputResponses: { [who]: ANSWERS.elicit }, requestState });
    expect(JSON.parse(textOf(last))).toEqual(ANSWERS.elicit);
  });

  it("lets a client that would negotiate find a server of sessions only", async () => {
    const { url } = await stage(newest);
    const client = await open2(url, { versionNegotiation: { mode: "auto" } });
    expect([client.getProtocolEra(), client.getNegotiatedProtocolVersion()]).toEqual(["legacy", newest]);
    expect(textOf(await client.callTool({ name: "add", arguments: { a: 1, b: 2 } }))).toBe('{"sum":3}');
  });

  it("lets a client that would negotiate find a server of exchanges only", async () => {
    const { url } = await stage(EXCHANGE);
    const client = await open2(url, { versionNegotiation: { mode: "auto" } });
    expect([client.getProtocolEra(), client.getNegotiatedProtocolVersion()]).toEqual(["modern", EXCHANGE]);
  });

  it("serves clients of both libraries and both styles at once", async () => {
    const { url } = await stage();
    const [one, two, three] = await Promise.all([open1(url), open2(url), open2(url, exchange)]);
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
