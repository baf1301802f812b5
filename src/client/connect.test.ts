// What can be connected to, and how an end's revision is found: by the probe, by its refusal, by its silence,
// and by its death.

import { afterEach, describe, expect, it, vi } from "vitest";
import { RawPeer } from "../../test/support/raw-peer.ts";
import { stage } from "../../test/support/stage.ts";
import type { ConnectionError } from "../core/errors.ts";
import { serveTransport } from "../dialogue/connection.ts";
import { NEWEST, NEWEST_SESSION, REVISIONS } from "../protocol/revisions/index.ts";
import { memoryPair } from "../transport/memory.ts";
import type { Transport } from "../transport/transport.ts";
import { connect, type ConnectOptions } from "./connect.ts";

const closers: (() => Promise<void>)[] = [];
afterEach(async () => {
  await Promise.all(closers.splice(0).map((close) => close()));
  vi.useRealTimers();
});

/** An end that a test plays by hand. */
async function byHand(): Promise<{ ours: Transport; peer: RawPeer }> {
  const [ours, theirs] = memoryPair();
  const peer = await new RawPeer(theirs).start();
  closers.push(() => peer.close());
  return { ours, peer };
}

const asks = (method: string) => (message: { readonly [key: string]: unknown }) => message["method"] === method;

const HELLO = { capabilities: { tools: {} }, serverInfo: { name: "old", version: "1" } };

describe("targets", () => {
  it("says what is wrong with an address", async () => {
    const wrong = ["nowhere", "ftp://files.example/", "http://me:secret@end.example/mcp"];
    for (const target of wrong) {
      const error = await connect(target).catch((failure: unknown) => failure as ConnectionError);
      expect(error).toMatchObject({
        name: "ConnectionError",
        kind: "refused",
        message: expect.stringContaining("Cannot connect"),
      });
      expect((error as ConnectionError).message).not.toContain("secret");
    }
  });

  it("refuses what is no target, and revisions that it cannot speak", async () => {
    await expect(connect({} as never)).rejects.toThrow(TypeError);
    await expect(connect(stage().handler, { revision: NEWEST_SESSION.name })).rejects.toThrow("catenary/testing");
    const { ours } = await byHand();
    await expect(connect(ours, { revision: "1999-01-01" })).rejects.toThrow("Unknown revision");
  });

  it("declares the extensions that its authorizer is made of, beside those of the program", async () => {
    const { handler } = stage();
    let declared: unknown;
    const seeing: typeof handler = (request, context) => {
      declared = context.caller.capabilities["extensions"];
      return handler(request, context);
    };
    const auth = { extensions: ["org.example/proof"], authorize: async () => ({}), refused: async () => false };
    const client = await connect(seeing, { auth, capabilities: { extensions: { "org.example/own": { a: 1 } } } });
    await client.ping();
    expect(declared).toMatchObject({ "org.example/proof": {}, "org.example/own": { a: 1 } });
    await client.close();
  });

  it("says what it is, and what it can be asked, to a handler too", async () => {
    const { handler } = stage();
    const callers: unknown[] = [];
    const seeing: typeof handler = (request, context) => {
      callers.push(context.caller);
      return handler(request, context);
    };
    const options: ConnectOptions = {
      roots: [],
      elicit: { url: () => ({ action: "cancel" }) },
      capabilities: { elicitation: { form: {} } },
    };
    const client = await connect(seeing, options);
    await client.ping();
    await client.close();
    const info = { name: "catenary", version: expect.stringMatching(/^\d+\.\d+\.\d+/) };
    expect(callers).toEqual([
      { info, capabilities: { roots: {}, elicitation: { form: {}, url: {} } } },
      { info, capabilities: { roots: {}, elicitation: { form: {}, url: {} } } },
    ]);
  });
});

describe("finding the revision", () => {
  it.each(REVISIONS.map(({ name }) => name))("speaks %s with an end that speaks nothing else", async (revision) => {
    const [ours, theirs] = memoryPair();
    const served = await serveTransport(stage().handler, theirs, { revisions: [revision] });
    closers.push(() => served.close());
    const client = await connect(ours, { info: { name: "me", version: "2" } });
    expect(client.revision).toBe(revision);
    expect(await client.callTool("echo", { text: "hi" })).toMatchObject({ content: [{ text: "hi" }] });
    await client.close();
  });

  it("takes silence for session style, and says so only once", async () => {
    vi.useFakeTimers();
    const { ours, peer } = await byHand();
    const connecting = connect(ours);
    await peer.until(asks("server/discover"));
    await vi.advanceTimersByTimeAsync(1_000);
    const { id } = await peer.until(asks("initialize"));
    peer.send({ id, result: { protocolVersion: NEWEST_SESSION.name, ...HELLO } });
    const client = await connecting;
    expect(client).toMatchObject({ revision: NEWEST_SESSION.name, server: { name: "old" } });
    await peer.until(asks("notifications/initialized"));
    expect(peer.received.filter(asks("initialize"))).toHaveLength(1);
    await client.close();
  });

  it("stays in a session when the probe is answered late", async () => {
    vi.useFakeTimers();
    const { ours, peer } = await byHand();
    const connecting = connect(ours, { roots: [{ uri: "file:///here" }] });
    const probe = await peer.until(asks("server/discover"));
    await vi.advanceTimersByTimeAsync(1_000);
    const { id } = await peer.until(asks("initialize"));
    peer.send({ id, result: { protocolVersion: NEWEST_SESSION.name, ...HELLO } });
    const client = await connecting;
    const error = { code: -32022, message: "Unsupported", data: { supported: [NEWEST.name], requested: NEWEST.name } };
    peer.send({ id: probe["id"], error });
    peer.send({ id: "q1", method: "roots/list" });
    expect(await peer.answerTo("q1")).toMatchObject({ result: { roots: [{ uri: "file:///here" }] } });
    await client.close();
  });

  it("does not take an end that asks for a revision which nobody knows", async () => {
    const { ours, peer } = await byHand();
    const connecting = connect(ours);
    const failed = expect(connecting).rejects.toMatchObject({
      kind: "protocol",
      message: expect.stringContaining("1999-01-01"),
    });
    const probe = await peer.until(asks("server/discover"));
    peer.send({ id: probe["id"], error: { code: -32601, message: "Method not found" } });
    const { id } = await peer.until(asks("initialize"));
    peer.send({ id, result: { protocolVersion: "1999-01-01", ...HELLO } });
    await failed;
    await peer.until(() => peer.ended);
  });

  it("says which revisions an end of a later time speaks", async () => {
    const { ours, peer } = await byHand();
    const failed = expect(connect(ours)).rejects.toMatchObject({
      kind: "protocol",
      message: expect.stringContaining("2999-01-01"),
    });
    const { id } = await peer.until(asks("server/discover"));
    peer.send({
      id,
      error: { code: -32022, message: "Unsupported", data: { supported: ["2999-01-01"], requested: NEWEST.name } },
    });
    await failed;
    expect(peer.received.filter(asks("initialize"))).toEqual([]);
  });

  it("cannot start a transport again that ends at the probe, and says what would help", async () => {
    const { ours, peer } = await byHand();
    const connecting = connect(ours);
    const failed = expect(connecting).rejects.toMatchObject({
      kind: "refused",
      message: expect.stringContaining("revision"),
      cause: { kind: "closed" },
    });
    await peer.until(asks("server/discover"));
    await peer.close();
    await failed;
  });

  it("does not probe where the revision is given", async () => {
    const { ours, peer } = await byHand();
    const connecting = connect(ours, { revision: NEWEST_SESSION.name });
    const { id, params } = await peer.until(asks("initialize"));
    expect(params).toMatchObject({ protocolVersion: NEWEST_SESSION.name });
    expect(peer.received).toHaveLength(1);
    peer.send({ id, result: { protocolVersion: NEWEST_SESSION.name, ...HELLO } });
    await (await connecting).close();
  });
});

describe("giving up", () => {
  it("before it began, and while the end is silent", async () => {
    await expect(connect(stage().handler, { signal: AbortSignal.abort(new Error("no")) })).rejects.toMatchObject({
      kind: "cancelled",
    });
    const { ours, peer } = await byHand();
    const stop = new AbortController();
    const failed = expect(connect(ours, { signal: stop.signal })).rejects.toMatchObject({ kind: "cancelled" });
    await peer.until(asks("server/discover"));
    stop.abort(new Error("enough"));
    await failed;
    await peer.until(() => peer.ended);
    expect(peer.received.filter(asks("initialize"))).toEqual([]);
  });

  it("never cancels initialize on the wire", async () => {
    const { ours, peer } = await byHand();
    const stop = new AbortController();
    const connecting = connect(ours, { revision: NEWEST_SESSION.name, signal: stop.signal });
    const failed = expect(connecting).rejects.toMatchObject({ kind: "cancelled" });
    await peer.until(asks("initialize"));
    stop.abort();
    await failed;
    await peer.until(() => peer.ended);
    expect(peer.received).toHaveLength(1);
  });

  it("closes a client that is connected already", async () => {
    const stop = new AbortController();
    const client = await connect(stage().handler, { signal: stop.signal });
    stop.abort();
    expect(await client.closed).toBeUndefined();
    await expect(client.ping()).rejects.toMatchObject({ kind: "closed" });
  });

  it("tells calls and the client's owner when the end goes away", async () => {
    const { ours, peer } = await byHand();
    const connecting = connect(ours, { revision: NEWEST.name });
    const { id } = await peer.until(asks("server/discover"));
    peer.send({
      id,
      result: {
        resultType: "complete",
        supportedVersions: [NEWEST.name],
        capabilities: { tools: {} },
        ttlMs: 0,
        cacheScope: "private",
      },
    });
    const client = await connecting;
    const failed = expect(client.listTools()).rejects.toMatchObject({ kind: "closed" });
    await peer.until(asks("tools/list"));
    await peer.close();
    await failed;
    expect(await client.closed).toMatchObject({ name: "ConnectionError", kind: "closed" });
  });
});

/** A session-style program in a few lines: it dies of what it does not know before `initialize`. */
const PROGRAM = `
console.log("noise");
console.error("started in " + process.env.MODE);
let known = false;
require("node:readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  const say = (result) => console.log(JSON.stringify({ jsonrpc: "2.0", id, result }));
  if (method === "initialize") say({ protocolVersion: params.protocolVersion, capabilities: {}, serverInfo: { name: "p", version: "1" } });
  else if (method === "ping") say({});
  else if (method === "notifications/initialized") known = true;
  else if (!known) process.exit(3);
});`;

describe("a command", () => {
  it("is started once more without a probe when it does not survive one", async () => {
    const noise: string[] = [];
    let stderr = "";
    const target = { command: process.execPath, args: ["-e", PROGRAM], env: { MODE: "test" } };
    const client = await connect(target, {
      onNoise: (line) => noise.push(line),
      onStderr: (chunk) => (stderr += chunk),
    });
    expect(client).toMatchObject({ revision: NEWEST_SESSION.name, server: { name: "p" } });
    await client.ping();
    await client.close();
    expect(await client.closed).toBeUndefined();
    expect(noise).toEqual(["noise", "noise"]);
    expect(stderr).toBe("started in test\n".repeat(2));
  });

  it("that cannot be started is told by its name", async () => {
    await expect(connect({ command: "no-such-program-anywhere" })).rejects.toMatchObject({
      name: "ConnectionError",
      kind: "spawn",
      message: expect.stringContaining("no-such-program-anywhere"),
    });
  });
});
