// Our client with the servers that others wrote, in every revision that they speak, and beside the common
// conversation what only our side can show: how it finds the revision, refusals, time limits, and a shell
// that stands between us and the server.

import { afterEach, describe, expect, it } from "vitest";
import { connect, userRejected, type Client, type ConnectOptions, type Target } from "../../src/client/index.ts";
import { childTransport } from "../../src/transport/child-process.ts";
import type { Transport } from "../../src/transport/transport.ts";
import { openCatenary } from "./catenary-peer.ts";
import { converse, EXCHANGE, SESSIONS } from "./conversation.ts";
import { NOTE, READY } from "./fixtures/stage.ts";
import { Fixture, isAlive, type Json } from "./peer.ts";

const NEWEST_SESSION = SESSIONS.at(-1) ?? "";

for (const revision of SESSIONS) {
  for (const server of ["sdk-1", "sdk-2"] as const) {
    converse({
      title: `the server of ${server}, in ${revision}`,
      revision,
      client: "catenary",
      server,
      open: (fixture) => openCatenary(fixture, { revision }),
    });
  }
}
converse({
  title: "the server of sdk-1, asked what it speaks",
  revision: NEWEST_SESSION,
  client: "catenary",
  server: "sdk-1",
  open: (fixture) => openCatenary(fixture),
});
converse({
  title: `the server of sdk-2, in ${EXCHANGE}`,
  revision: EXCHANGE,
  client: "catenary",
  server: "sdk-2",
  open: (fixture) => openCatenary(fixture, { revision: EXCHANGE }),
});
converse({
  title: "the server of sdk-2, asked what it speaks",
  revision: EXCHANGE,
  client: "catenary",
  server: "sdk-2",
  serverArgs: ["announced"],
  open: (fixture) => openCatenary(onceReady(fixture)),
});

describe("our client and a server of others", { timeout: 20_000 }, () => {
  const fixtures: Fixture[] = [];
  const clients: Client[] = [];

  afterEach(async () => {
    await Promise.all(clients.splice(0).map((client) => client.close()));
    for (const fixture of fixtures.splice(0)) {
      expect(fixture.survivors()).toEqual([]);
      fixture.remove();
    }
  });

  function stage(...of: ConstructorParameters<typeof Fixture>): Fixture {
    const fixture = new Fixture(...of);
    fixtures.push(fixture);
    return fixture;
  }

  async function open(target: Target, options?: ConnectOptions): Promise<Client> {
    const client = await connect(target, options);
    clients.push(client);
    return client;
  }

  const textOf = (result: Json): string => result["content"][0].text;

  it("finds an exchange-style end that is slow to start", async () => {
    // The probe meets silence, initialize is refused, and by then the probe has been answered.
    const client = await open(stage("sdk-2", "late"));
    expect(client.revision).toBe(EXCHANGE);
    expect(textOf(await client.callTool("add", { a: 1, b: 2 }))).toBe('{"sum":3}');
  });

  it("does not take another revision than the one it was told to speak", async () => {
    const message = expect.stringContaining(`does not speak ${EXCHANGE}: Method not found (-32601)`);
    await expect(connect(stage("sdk-1"), { revision: EXCHANGE })).rejects.toMatchObject({ kind: "protocol", message });
    // Told to take nothing but exchanges, SDK 2.x refuses the handshake.
    const refused = connect(stage("sdk-2", "late"), { revision: NEWEST_SESSION });
    await expect(refused).rejects.toMatchObject({
      kind: "protocol",
      message: expect.stringContaining("refused initialize"),
    });
  });

  it.each([
    ["sdk-1", NEWEST_SESSION],
    ["sdk-2", NEWEST_SESSION],
    ["sdk-2", EXCHANGE],
  ] as const)(
    "hears all progress of %s in %s, also what comes in one chunk with the result",
    async (server, revision) => {
      const client = await open(stage(server), { revision });
      const steps: number[] = [];
      const onProgress = ({ progress }: { progress: number }): void => void steps.push(progress);
      await client.callTool("count", { to: 100, hold: false }, { onProgress });
      expect(steps).toEqual(Array.from({ length: 100 }, (_, n) => n + 1));
    },
  );

  it.each([
    ["sdk-1", NEWEST_SESSION],
    ["sdk-2", NEWEST_SESSION],
    ["sdk-2", EXCHANGE],
  ] as const)("gives up a silent call of %s in %s, and the server sees it", async (server, revision) => {
    const client = await open(stage(server), { revision });
    await expect(client.callTool("wait", {}, { timeoutMs: 100 })).rejects.toMatchObject({ kind: "timeout" });
    expect(textOf(await client.callTool("aborted"))).toBe("the call was aborted");
  });

  it.each([
    ["sdk-1", NEWEST_SESSION],
    ["sdk-2", NEWEST_SESSION],
    ["sdk-2", EXCHANGE],
  ] as const)("declines, rejects and has nothing to say to %s in %s", async (server, revision) => {
    const sample = (): never => {
      throw userRejected("not today");
    };
    const client = await open(stage(server), { revision, elicit: () => ({ action: "decline" }), sample });
    expect(JSON.parse(textOf(await client.callTool("elicit")))).toEqual({ action: "decline" });
    const sampled = await client.callTool("sample");
    expect(sampled.isError).toBe(true);
    expect(textOf(sampled)).toContain("not today");
    // Roots were not declared, so the server may not ask for them: SDK 1.x and the session side of 2.x make
    // that a result, the exchange side of 2.x an error with the code of the newest revision.
    const roots = client.callTool("roots");
    if (revision === EXCHANGE) await expect(roots).rejects.toMatchObject({ code: -32021 });
    else expect(await roots).toMatchObject({ isError: true, content: [{ text: expect.stringMatching(/roots/) }] });
  });

  it("iterates over changes of a server in each style", async () => {
    for (const revision of [NEWEST_SESSION, EXCHANGE]) {
      const client = await open(stage("sdk-2"), { revision });
      const changes = await client.listen({ toolsListChanged: true, resourceSubscriptions: [NOTE] });
      expect(changes.honoured).toEqual({ toolsListChanged: true, resourceSubscriptions: [NOTE] });
      await client.callTool("touch");
      await client.callTool("grow");
      const heard: string[] = [];
      for await (const { method } of changes) {
        heard.push(method);
        if (heard.length === 2) await changes.close();
      }
      expect(heard).toEqual(["notifications/resources/updated", "notifications/tools/list_changed"]);
    }
  });

  it("ends a server behind a shell", async () => {
    const { command, args } = stage("sdk-1");
    const client = await open({ command: "sh", args: ["-c", '"$0" "$@"; true', command, ...args] });
    const pid = Number(textOf(await client.callTool("pid")));
    await client.close();
    expect(isAlive(pid)).toBe(false);
  });

  it("is told why when the server dies, and so are its calls", async () => {
    const client = await open(stage("sdk-1"), { revision: NEWEST_SESSION });
    const pid = Number(textOf(await client.callTool("pid")));
    const call = client.callTool("wait", {}, { onProgress: () => process.kill(pid, "SIGKILL") });
    await expect(call).rejects.toMatchObject({ kind: "closed", message: expect.stringContaining("SIGKILL") });
    expect(await client.closed).toMatchObject({ kind: "closed" });
  });
});

/** A child that counts as started only when it says so. */
function onceReady({ command, args }: Fixture): Transport {
  let announce: () => void = () => undefined;
  const ready = new Promise<void>((resolve) => {
    announce = resolve;
  });
  const onStderr = (chunk: Buffer): void => {
    if (chunk.includes(READY)) announce();
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
