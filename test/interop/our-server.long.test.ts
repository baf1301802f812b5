// Our server with the clients that others wrote, in every revision that they speak, and beside the common
// conversation what only these clients can show: time limits of theirs, lists that they keep fresh by
// themselves, a connection without any probe, and rounds that are driven by hand.

import { Client as Client1 } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport as Stdio1 } from "@modelcontextprotocol/sdk/client/stdio.js";
import { Client as Client2, type ClientOptions } from "@modelcontextprotocol/client";
import { StdioClientTransport as Stdio2 } from "@modelcontextprotocol/client/stdio";
import { afterEach, describe, expect, it } from "vitest";
import { converse, EXCHANGE, SESSIONS } from "./conversation.ts";
import { ANSWERS, Fixture, type Json } from "./peer.ts";
import { openSdk1 } from "./sdk-1-peer.ts";
import { openSdk2 } from "./sdk-2-peer.ts";

const newest = SESSIONS.at(-1);

for (const revision of SESSIONS) {
  converse({
    title: `the client of SDK 1.x, in ${revision}`,
    revision,
    client: "sdk-1",
    server: "catenary",
    // It offers the newest; a server that speaks only an older one answers with that.
    serverArgs: revision === newest ? [] : [revision],
    open: openSdk1,
  });
  converse({
    title: `the client of SDK 2.x, in ${revision}`,
    revision,
    client: "sdk-2",
    server: "catenary",
    // Left alone it offers the newest.
    open: (fixture) => openSdk2(fixture, revision === newest ? {} : { supportedProtocolVersions: [revision] }),
  });
}
converse({
  title: "the client of SDK 2.x, asked to negotiate",
  revision: EXCHANGE,
  client: "sdk-2",
  server: "catenary",
  open: (fixture) => openSdk2(fixture, { versionNegotiation: { mode: "auto" } }),
});
converse({
  title: `the client of SDK 2.x, pinned to ${EXCHANGE}`,
  revision: EXCHANGE,
  client: "sdk-2",
  server: "catenary",
  open: (fixture) => openSdk2(fixture, { versionNegotiation: { mode: { pin: EXCHANGE } } }),
});

describe("our server and a client of others", { timeout: 20_000 }, () => {
  const fixtures: Fixture[] = [];
  const clients: { close(): Promise<void> }[] = [];
  const info = { name: "interop", version: "1" };
  const exchange: ClientOptions = { versionNegotiation: { mode: { pin: EXCHANGE } } };

  afterEach(async () => {
    await Promise.all(clients.splice(0).map((client) => client.close()));
    for (const fixture of fixtures.splice(0)) {
      expect(fixture.survivors()).toEqual([]);
      fixture.remove();
    }
  });

  function stage(): { command: string; args: string[] } {
    const fixture = new Fixture("catenary");
    fixtures.push(fixture);
    return { command: fixture.command, args: fixture.args };
  }

  async function open2(options: ClientOptions): Promise<Client2> {
    const client = new Client2(info, options);
    clients.push(client);
    await client.connect(new Stdio2(stage()));
    return client;
  }

  const textOf = (result: Json): string => result["content"][0].text;

  it("sees a call of SDK 1.x end when its time is up", async () => {
    const client = new Client1(info);
    clients.push(client);
    await client.connect(new Stdio1(stage()));
    const call = client.callTool({ name: "wait", arguments: {} }, undefined, { timeout: 100 });
    await expect(call).rejects.toMatchObject({ code: -32001 });
    expect(textOf(await client.callTool({ name: "aborted", arguments: {} }))).toBe("the call was aborted");
  });

  it.each([
    ["the session style", {}],
    ["exchanges", exchange],
  ])("sees a call of SDK 2.x in %s end when its time is up", async (_style, options) => {
    const client = await open2(options);
    const call = client.callTool({ name: "wait", arguments: {} }, { timeout: 100 });
    await expect(call).rejects.toMatchObject({ code: "REQUEST_TIMEOUT" });
    expect(textOf(await client.callTool({ name: "aborted", arguments: {} }))).toBe("the call was aborted");
  });

  it("keeps the lists of SDK 1.x fresh", async () => {
    const { promise, onChanged } = firstChange();
    const client = new Client1(info, { listChanged: { tools: { onChanged } } });
    clients.push(client);
    await client.connect(new Stdio1(stage()));
    await client.callTool({ name: "grow", arguments: {} });
    // It fetches one page only.
    expect((await promise).length).toBeGreaterThan(0);
  });

  it.each([
    ["the session style", {}],
    ["exchanges", exchange],
  ])("keeps the lists of SDK 2.x in %s fresh", async (style, options) => {
    const { promise, onChanged } = firstChange();
    const client = await open2({ ...options, listChanged: { tools: { onChanged } } });
    if (style === "exchanges") {
      expect(client.autoOpenedSubscription?.honoredFilter).toEqual({ toolsListChanged: true });
    }
    await client.callTool({ name: "grow", arguments: {} });
    expect((await promise).map(({ name }) => name)).toContain("grown");
  });

  it("takes a client that knows us from an earlier time, without a probe", async () => {
    const first = await open2(exchange);
    const discover = await first.discover();
    const second = new Client2(info);
    clients.push(second);
    await second.connect(new Stdio2(stage()), { prior: { kind: "modern", discover } });
    expect(second.getProtocolEra()).toBe("modern");
    const sum = await second.callTool({ name: "add", arguments: { a: 20, b: 22 } });
    expect(sum.structuredContent).toEqual({ sum: 42 });
  });

  it("goes through rounds that are driven by hand, and never runs a finished round again", async () => {
    const client = await open2({
      ...exchange,
      capabilities: { elicitation: {}, sampling: {}, roots: {} },
      inputRequired: { autoFulfill: false },
    });
    const call = { name: "interview", arguments: {} };
    const ask = async (more: Json = {}): Promise<Json> =>
      client.request({ method: "tools/call", params: { ...call, ...more } }, { allowInputRequired: true });
    const first = await ask();
    expect(first["resultType"]).toBe("input_required");
    const [[who, question]] = Object.entries(first["inputRequests"]) as [[string, Json]];
    expect(question["method"]).toBe("elicitation/create");
    const answered = { inputResponses: { [who]: ANSWERS.elicit }, requestState: first["requestState"] };
    const second = await ask(answered);
    const asked = Object.entries(second["inputRequests"]) as [string, Json][];
    expect(asked.map(([, { method }]) => method)).toEqual(["sampling/createMessage", "roots/list"]);
    expect(await ask(answered)).toMatchObject({ requestState: second["requestState"] });
    const inputResponses = Object.fromEntries(
      asked.map(([key, { method }]) => [key, method === "roots/list" ? { roots: ANSWERS.roots } : ANSWERS.sample]),
    );
    const last = await ask({ inputResponses, requestState: second["requestState"] });
    expect(JSON.parse(textOf(last))).toEqual({ name: "Ada", model: "parrot-1", roots: 1 });
    await expect(ask({ inputResponses, requestState: `${second["requestState"]}x` })).rejects.toMatchObject({
      code: -32602,
    });
  });

  it("asks nothing of a client that has not said that it can answer", async () => {
    const client = await open2(exchange);
    await expect(client.callTool({ name: "elicit", arguments: {} })).rejects.toMatchObject({ code: -32021 });
  });
});

function firstChange(): {
  promise: Promise<Json[]>;
  onChanged: (error: Error | null, items: Json[] | null) => void;
} {
  let onChanged: (error: Error | null, items: Json[] | null) => void = () => undefined;
  const promise = new Promise<Json[]>((resolve, reject) => {
    onChanged = (error, items) => (error === null ? resolve(items ?? []) : reject(error));
  });
  return { promise, onChanged };
}
