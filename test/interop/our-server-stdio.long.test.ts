// Our server over stdio with the SDK clients, in every revision that they speak: the common tests, and what only these
// clients have: their timeouts, lists that they keep fresh, a connection without a probe, and retries driven by hand.

import { Client as Client1 } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport as Stdio1 } from "@modelcontextprotocol/sdk/client/stdio.js";
import { Client as Client2, type ClientOptions } from "@modelcontextprotocol/client";
import { StdioClientTransport as Stdio2 } from "@modelcontextprotocol/client/stdio";
import { afterEach, describe, expect, it } from "vitest";
import { SESSIONS, STATELESS, testPair } from "./common-tests.ts";
import { ANSWERS, FixtureServer, type Json } from "./test-client.ts";
import { openSdk1 } from "./sdk-1-client.ts";
import { openSdk2 } from "./sdk-2-client.ts";

const newest = SESSIONS.at(-1);

for (const revision of SESSIONS) {
  testPair({
    title: `the client of SDK 1.x, in ${revision}`,
    revision,
    client: "sdk-1",
    server: "catenary",
    // The client offers the newest revision; a server that speaks only an older one answers with that.
    serverArgs: revision === newest ? [] : [revision],
    open: openSdk1,
  });
  testPair({
    title: `the client of SDK 2.x, in ${revision}`,
    revision,
    client: "sdk-2",
    server: "catenary",
    // By default it offers the newest.
    open: (fixture) => openSdk2(fixture, revision === newest ? {} : { supportedProtocolVersions: [revision] }),
  });
}
testPair({
  title: "the client of SDK 2.x, by negotiation",
  revision: STATELESS,
  client: "sdk-2",
  server: "catenary",
  open: (fixture) => openSdk2(fixture, { versionNegotiation: { mode: "auto" } }),
});
testPair({
  title: `the client of SDK 2.x, pinned to ${STATELESS}`,
  revision: STATELESS,
  client: "sdk-2",
  server: "catenary",
  open: (fixture) => openSdk2(fixture, { versionNegotiation: { mode: { pin: STATELESS } } }),
});

describe("our server and an SDK client", () => {
  const fixtures: FixtureServer[] = [];
  const clients: { close(): Promise<void> }[] = [];
  const info = { name: "interop", version: "1" };
  const stateless: ClientOptions = { versionNegotiation: { mode: { pin: STATELESS } } };

  afterEach(async () => {
    await Promise.all(clients.splice(0).map((client) => client.close()));
    for (const fixture of fixtures.splice(0)) {
      expect(fixture.runningProcesses()).toEqual([]);
      fixture.remove();
    }
  });

  function fixtureCommand(): { command: string; args: string[] } {
    const fixture = new FixtureServer("catenary");
    fixtures.push(fixture);
    return { command: fixture.command, args: fixture.args };
  }

  async function open2(options: ClientOptions): Promise<Client2> {
    const client = new Client2(info, options);
    clients.push(client);
    await client.connect(new Stdio2(fixtureCommand()));
    return client;
  }

  const textOf = (result: Json): string => result["content"][0].text;

  it("our server and an SDK client sees the timeout of a call of SDK 1.x", async () => {
    const client = new Client1(info);
    clients.push(client);
    await client.connect(new Stdio1(fixtureCommand()));
    const call = client.callTool({ name: "wait", arguments: {} }, undefined, { timeout: 100 });
    await expect(call).rejects.toMatchObject({ code: -32001 });
    expect(textOf(await client.callTool({ name: "aborted", arguments: {} }))).toBe("the call was aborted");
  });

  it.each([
    ["the session style", {}],
    ["the stateless style", stateless],
  ])("our server and an SDK client sees the timeout of a call of SDK 2.x in %s", async (_style, options) => {
    const client = await open2(options);
    const call = client.callTool({ name: "wait", arguments: {} }, { timeout: 100 });
    await expect(call).rejects.toMatchObject({ code: "REQUEST_TIMEOUT" });
    expect(textOf(await client.callTool({ name: "aborted", arguments: {} }))).toBe("the call was aborted");
  });

  it("our server and an SDK client keeps the lists of SDK 1.x fresh", async () => {
    const { promise, onChanged } = firstChange();
    const client = new Client1(info, { listChanged: { tools: { onChanged } } });
    clients.push(client);
    await client.connect(new Stdio1(fixtureCommand()));
    await client.callTool({ name: "grow", arguments: {} });
    // It fetches one page only.
    expect((await promise).length).toBeGreaterThan(0);
  });

  it.each([
    ["the session style", {}],
    ["the stateless style", stateless],
  ])("our server and an SDK client keeps the lists of SDK 2.x in %s fresh", async (style, options) => {
    const { promise, onChanged } = firstChange();
    const client = await open2({ ...options, listChanged: { tools: { onChanged } } });
    if (style === "the stateless style") {
      expect(client.autoOpenedSubscription?.honoredFilter).toEqual({ toolsListChanged: true });
    }
    await client.callTool({ name: "grow", arguments: {} });
    expect((await promise).map(({ name }) => name)).toContain("grown");
  });

  it("our server and an SDK client accepts a client that skips the probe because of an earlier connection", async () => {
    const first = await open2(stateless);
    const discover = await first.discover();
    const second = new Client2(info);
    clients.push(second);
    await second.connect(new Stdio2(fixtureCommand()), { prior: { kind: "modern", discover } });
    expect(second.getProtocolEra()).toBe("modern");
    const sum = await second.callTool({ name: "add", arguments: { a: 20, b: 22 } });
    expect(sum.structuredContent).toEqual({ sum: 42 });
  });

  it("our server and an SDK client accepts retries with input that the client drives by hand, and never runs a finished step again", async () => {
    const client = await open2({
      ...stateless,
      capabilities: { elicitation: {}, sampling: {}, roots: {} },
      inputRequired: { autoFulfill: false },
    });
    const call = { name: "interview", arguments: {} };
    const retry = async (more: Json = {}): Promise<Json> =>
      client.request({ method: "tools/call", params: { ...call, ...more } }, { allowInputRequired: true });
    const first = await retry();
    expect(first["resultType"]).toBe("input_required");
    const [[key, request]] = Object.entries(first["inputRequests"]) as [[string, Json]];
    expect(request["method"]).toBe("elicitation/create");
    const answered = { inputResponses: { [key]: ANSWERS.elicit }, requestState: first["requestState"] };
    const second = await retry(answered);
    const requests = Object.entries(second["inputRequests"]) as [string, Json][];
    expect(requests.map(([, { method }]) => method)).toEqual(["sampling/createMessage", "roots/list"]);
    expect(await retry(answered)).toMatchObject({ requestState: second["requestState"] });
    const inputResponses = Object.fromEntries(
      requests.map(([key, { method }]) => [key, method === "roots/list" ? { roots: ANSWERS.roots } : ANSWERS.sample]),
    );
    const last = await retry({ inputResponses, requestState: second["requestState"] });
    expect(JSON.parse(textOf(last))).toEqual({ name: "Ada", model: "parrot-1", roots: 1 });
    await expect(retry({ inputResponses, requestState: `${second["requestState"]}x` })).rejects.toMatchObject({
      code: -32602,
    });
  });

  it("our server and an SDK client sends no request to a client that did not declare the capability", async () => {
    const client = await open2(stateless);
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
