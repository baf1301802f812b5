// Our client over stdio with the SDK servers, in every revision that they speak: the common tests, and what only our
// client has: how it finds the revision, rejections, timeouts, and a shell between us and the server.

import { afterEach, describe, expect, it } from "vitest";
import { chain } from "../../src/chain/chain.ts";
import { upstream } from "../../src/chain/upstream/upstream.ts";
import { connect, userRejected, type Client, type ConnectOptions, type Target } from "../../src/client/index.ts";
import { childTransport } from "../../src/transport/child-process.ts";
import type { Transport } from "../../src/transport/transport.ts";
import { openCatenary } from "./catenary-client.ts";
import { SESSIONS, STATELESS, testPair } from "./common-tests.ts";
import { NOTE, READY } from "./fixtures/server-data.ts";
import { FixtureServer, isAlive, type Json } from "./test-client.ts";

const NEWEST_SESSION = SESSIONS.at(-1) ?? "";

for (const revision of SESSIONS) {
  for (const server of ["sdk-1", "sdk-2"] as const) {
    testPair({
      title: `the server of ${server}, in ${revision}`,
      revision,
      client: "catenary",
      server,
      open: (fixture) => openCatenary(fixture, { revision }),
    });
  }
}
testPair({
  title: "the server of sdk-1, by negotiation",
  revision: NEWEST_SESSION,
  client: "catenary",
  server: "sdk-1",
  open: (fixture) => openCatenary(fixture),
});
testPair({
  title: `the server of sdk-2, in ${STATELESS}`,
  revision: STATELESS,
  client: "catenary",
  server: "sdk-2",
  open: (fixture) => openCatenary(fixture, { revision: STATELESS }),
});
testPair({
  title: "the server of sdk-2, by negotiation",
  revision: STATELESS,
  client: "catenary",
  server: "sdk-2",
  serverArgs: ["announced"],
  open: (fixture) => openCatenary(onceReady(fixture)),
});

describe("our client and an SDK server", () => {
  const fixtures: FixtureServer[] = [];
  const clients: Client[] = [];

  afterEach(async () => {
    await Promise.all(clients.splice(0).map((client) => client.close()));
    for (const fixture of fixtures.splice(0)) {
      expect(fixture.runningProcesses()).toEqual([]);
      fixture.remove();
    }
  });

  function startServer(...args: ConstructorParameters<typeof FixtureServer>): FixtureServer {
    const fixture = new FixtureServer(...args);
    fixtures.push(fixture);
    return fixture;
  }

  async function open(target: Target, options?: ConnectOptions): Promise<Client> {
    const client = await connect(target, options);
    clients.push(client);
    return client;
  }

  const textOf = (result: Json): string => result["content"][0].text;

  it("our client and an SDK server finds a stateless server that is slow to start", async () => {
    const client = await open(startServer("sdk-2", "late"));
    expect(client.revision).toBe(STATELESS);
    expect(textOf(await client.callTool("add", { a: 1, b: 2 }))).toBe('{"sum":3}');
  });

  it("our client and an SDK server uses a slow server that speaks both styles, behind a gateway, in the session that it has opened", async () => {
    const fast = startServer("sdk-2");
    const slow = startServer("sdk-2", "slow");
    const targets = Object.entries({ fast, slow }).map(([name, { command, args }]) => {
      return [name, upstream({ command, args }, { remember: false })] as const;
    });
    const gateway = chain().to(Object.fromEntries(targets));
    const client = await open(gateway);
    const names = (await client.listTools()).tools.map(({ name }) => name);
    expect(names).toEqual(expect.arrayContaining(["fast_add", "slow_add"]));
    expect(textOf(await client.callTool("slow_add", { a: 1, b: 2 }))).toBe('{"sum":3}');
    await gateway.close();
  });

  it("our client and an SDK server accepts no revision but the given one", async () => {
    const message = expect.stringContaining(`does not speak ${STATELESS}: Method not found (-32601)`);
    await expect(connect(startServer("sdk-1"), { revision: STATELESS })).rejects.toMatchObject({
      kind: "protocol",
      message,
    });
    // In this mode the server of SDK 2.x rejects the handshake.
    const rejected = connect(startServer("sdk-2", "late"), { revision: NEWEST_SESSION });
    await expect(rejected).rejects.toMatchObject({
      kind: "protocol",
      message: expect.stringContaining("refused initialize"),
    });
  });

  it.each([
    ["sdk-1", NEWEST_SESSION],
    ["sdk-2", NEWEST_SESSION],
    ["sdk-2", STATELESS],
  ] as const)(
    "our client and an SDK server receives all progress of %s in %s, also what arrives in one chunk with the result",
    async (server, revision) => {
      const client = await open(startServer(server), { revision });
      const steps: number[] = [];
      const onProgress = ({ progress }: { progress: number }): void => void steps.push(progress);
      await client.callTool("count", { to: 100, hold: false }, { onProgress });
      expect(steps).toEqual(Array.from({ length: 100 }, (_, n) => n + 1));
    },
  );

  it.each([
    ["sdk-1", NEWEST_SESSION],
    ["sdk-2", NEWEST_SESSION],
    ["sdk-2", STATELESS],
  ] as const)(
    "our client and an SDK server times out a silent call of %s in %s, and the server sees it",
    async (server, revision) => {
      const client = await open(startServer(server), { revision });
      await expect(client.callTool("wait", {}, { timeoutMs: 100 })).rejects.toMatchObject({ kind: "timeout" });
      expect(textOf(await client.callTool("aborted"))).toBe("the call was aborted");
    },
  );

  it.each([
    ["sdk-1", NEWEST_SESSION],
    ["sdk-2", NEWEST_SESSION],
    ["sdk-2", STATELESS],
  ] as const)(
    "our client and an SDK server declines and rejects requests of %s in %s, and lacks a capability",
    async (server, revision) => {
      const sample = (): never => {
        throw userRejected("not today");
      };
      const client = await open(startServer(server), { revision, elicit: () => ({ action: "decline" }), sample });
      expect(JSON.parse(textOf(await client.callTool("elicit")))).toEqual({ action: "decline" });
      const sampled = await client.callTool("sample");
      expect(sampled.isError).toBe(true);
      expect(textOf(sampled)).toContain("not today");
      // Roots were not declared, so the server may not request them. SDK 1.x and 2.x with sessions report that as a
      // result, 2.x without sessions as an error with the code of the newest revision.
      const roots = client.callTool("roots");
      if (revision === STATELESS) await expect(roots).rejects.toMatchObject({ code: -32021 });
      else expect(await roots).toMatchObject({ isError: true, content: [{ text: expect.stringMatching(/roots/) }] });
    },
  );

  it("our client and an SDK server iterates over the changes of a server in each style", async () => {
    for (const revision of [NEWEST_SESSION, STATELESS]) {
      const client = await open(startServer("sdk-2"), { revision });
      const changes = await client.listen({ toolsListChanged: true, resourceSubscriptions: [NOTE] });
      expect(changes.granted).toEqual({ toolsListChanged: true, resourceSubscriptions: [NOTE] });
      await client.callTool("touch");
      await client.callTool("grow");
      const received: string[] = [];
      for await (const { method } of changes) {
        received.push(method);
        if (received.length === 2) await changes.close();
      }
      expect(received).toEqual(["notifications/resources/updated", "notifications/tools/list_changed"]);
    }
  });

  it("our client and an SDK server ends a server behind a shell", async () => {
    const { command, args } = startServer("sdk-1");
    const client = await open({ command: "sh", args: ["-c", '"$0" "$@"; true', command, ...args] });
    const pid = Number(textOf(await client.callTool("pid")));
    await client.close();
    expect(isAlive(pid)).toBe(false);
  });

  it("our client and an SDK server reports why the server died, to its calls too", async () => {
    const client = await open(startServer("sdk-1"), { revision: NEWEST_SESSION });
    const pid = Number(textOf(await client.callTool("pid")));
    const call = client.callTool("wait", {}, { onProgress: () => process.kill(pid, "SIGKILL") });
    await expect(call).rejects.toMatchObject({ kind: "closed", message: expect.stringContaining("SIGKILL") });
    expect(await client.closed).toMatchObject({ kind: "closed" });
  });
});

/** A child process that counts as started when it reports so, because a slow start would look like a silent server. */
function onceReady({ command, args }: FixtureServer): Transport {
  let onReady: () => void = () => undefined;
  const ready = new Promise<void>((resolve) => {
    onReady = resolve;
  });
  const onStderr = (chunk: Buffer): void => {
    if (chunk.includes(READY)) onReady();
  };
  const child = childTransport({ command, args, onStderr });
  return {
    start: async (receive) => {
      await child.start(receive);
      await ready;
    },
    send: (message) => child.send(message),
    close: () => child.close(),
  };
}
