// connect(): targets, options, and the negotiation of the revision with servers that answer, refuse, stay silent or
// exit.

import { afterEach, expect, it, vi } from "vitest";
import { RawPeer } from "../../test/support/dialogue/raw-peer.ts";
import { sampleServer } from "../../test/support/handlers/sample-server.ts";
import type { ConnectionError } from "../core/errors.ts";
import { serveTransport } from "../dialogue/connection.ts";
import { NEWEST, NEWEST_SESSION, REVISIONS } from "../protocol/revisions/index.ts";
import { memoryPair } from "../transport/memory.ts";
import type { Transport } from "../transport/transport.ts";
import type { Caller } from "../core/handler.ts";
import { connect, type ConnectOptions } from "./connect.ts";

const closers: (() => Promise<void>)[] = [];
afterEach(async () => {
  await Promise.all(closers.splice(0).map((close) => close()));
  vi.useRealTimers();
});

/** A server that the test plays by hand. */
async function byHand(): Promise<{ ours: Transport; peer: RawPeer }> {
  const [ours, theirs] = memoryPair();
  const peer = await new RawPeer(theirs).start();
  closers.push(() => peer.close());
  return { ours, peer };
}

const asks = (method: string) => (message: { readonly [key: string]: unknown }) => message["method"] === method;

const HELLO = { capabilities: { tools: {} }, serverInfo: { name: "old", version: "1" } };

it("targets reports an invalid URL", async () => {
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

it.each([
  ["ftp://user:secret@end.test/mcp?token=secret", "ftp://...@end.test/...: neither http nor https"],
  ["http//user:secret@end.test", "http//...@end.test: not a valid URL"],
  ["http://some user:secret@[bad/", "http://...@[bad/: not a valid URL"],
  ["http://end.test:99999/mcp?token=secret", "http://end.test:99999/...: not a valid URL"],
  ["http://user:secret@end.test/mcp", "end.test: the URL must not contain a user name or password"],
])("targets refuses %s without showing a secret", async (url, words) => {
  const error = await connect(url).catch((failure: unknown) => failure as Error);
  expect(error).toMatchObject({ name: "ConnectionError", kind: "refused", mayHaveRun: false });
  expect((error as Error).message).toContain(`Cannot connect to ${words}`);
  expect((error as Error).message).not.toContain("secret");
});

it("targets refuses other values, and unknown revisions", async () => {
  await expect(connect({} as never)).rejects.toThrow(TypeError);
  const incomplete = { start: async () => undefined };
  const lacks = new TypeError(
    "connect(): the target must be a transport, with the methods start, send and close; missing: `send`, `close`",
  );
  await expect(connect(incomplete as never)).rejects.toThrow(lacks);
  await expect(connect(sampleServer().handler, { revision: NEWEST_SESSION.name })).rejects.toThrow("catenary/testing");
  const { ours } = await byHand();
  await expect(connect(ours, { revision: "1999-01-01" })).rejects.toThrow("Unknown revision");
});

it("targets declares the extensions of the authorizer in addition to its own", async () => {
  const { handler } = sampleServer();
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

it("targets passes info and capabilities to a handler too", async () => {
  const { handler } = sampleServer();
  const callers: Caller[] = [];
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
  const capabilities = { roots: {}, elicitation: { form: {}, url: {} } };
  const caller = { style: "stateless", key: expect.any(String), info, capabilities, canBeAsked: true };
  expect(callers).toEqual([caller, caller]);
  expect(new Set(callers.map(({ key }) => key)).size).toBe(1);
});

it("targets reports that a transport cannot send, also if it throws instead of rejecting", async () => {
  const unhandled = vi.fn();
  process.on("unhandledRejection", unhandled);
  const transport: Transport = {
    start: async () => undefined,
    send: () => {
      throw new Error("no wire");
    },
    close: async () => undefined,
  };
  await expect(connect(transport)).rejects.toThrow("no wire");
  await expect(connect(transport, { revision: NEWEST_SESSION.name })).rejects.toThrow("no wire");
  await new Promise((resolve) => setImmediate(resolve));
  process.off("unhandledRejection", unhandled);
  expect(unhandled).not.toHaveBeenCalled();
});

const untyped = connect as (target: unknown, options?: unknown) => Promise<unknown>;

it.each([
  [{ timeout: 5 }, "connect() has no option `timeout`; did you mean `timeoutMs`?"],
  [{ maxTimeOutMs: 5 }, "connect() has no option `maxTimeOutMs`; did you mean `maxTimeoutMs`?"],
  [{ startTimeout: 5 }, "connect() has no option `startTimeout`; did you mean `startTimeoutMs`?"],
  [{ elicitation: 5 }, /^connect\(\) has no option `elicitation`; the options are info, revision, timeoutMs, /],
])("options that are unknown are refused: %j", async (options, message) => {
  await expect(untyped(sampleServer().handler, options)).rejects.toThrow(
    typeof message === "string" ? new TypeError(message) : message,
  );
});

it("options must be an object", async () => {
  for (const odd of [null, 7, "x", []]) {
    await expect(untyped(sampleServer().handler, odd)).rejects.toThrow(
      /^connect\(\): the options must be an object, not /,
    );
  }
});

it("options of a command are checked too", async () => {
  await expect(untyped({ command: "x", arguments: [] })).rejects.toThrow(
    new TypeError(
      "connect(): a command has no option `arguments`; the options are command, args, env, inheritEnv, cwd",
    ),
  );
});

it("options of a call that are unknown are refused, whatever the method", async () => {
  const client = await connect(sampleServer().handler);
  closers.push(() => client.close());
  const options = { timeout: 5 } as never;
  const refused = (method: string): TypeError =>
    new TypeError(`${method} has no option \`timeout\`; did you mean \`timeoutMs\`?`);
  await expect(client.callTool("echo", {}, options)).rejects.toThrow(refused("tools/call"));
  await expect(client.callToolAsTask("echo", {}, options)).rejects.toThrow(refused("tools/call"));
  await expect(client.readResource("test://a", options)).rejects.toThrow(refused("resources/read"));
  await expect(client.getPrompt("p", {}, options)).rejects.toThrow(refused("prompts/get"));
  await expect(client.listTools(options)).rejects.toThrow(refused("tools/list"));
  await expect(client.tools(options).next()).rejects.toThrow(refused("tools/list"));
  await expect(client.request("tools/list", {}, options)).rejects.toThrow(refused("tools/list"));
  await expect(client.ping(options)).rejects.toThrow(refused("server/discover"));
  await expect(client.listen({}, undefined, options)).rejects.toThrow(refused("subscriptions/listen"));
  const handle = await client.callToolAsTask("echo");
  await expect(handle.result(options)).rejects.toThrow(refused("result() of task "));
  await expect(client.readResource("test://a", null as never)).rejects.toThrow(
    "the options must be an object, not null",
  );
});

it.each(REVISIONS.map(({ name }) => name))(
  "the negotiation agrees on %s with a server that only has this",
  async (revision) => {
    const [ours, theirs] = memoryPair();
    const served = await serveTransport(sampleServer().handler, theirs, { revisions: [revision] });
    closers.push(() => served.close());
    const client = await connect(ours, { info: { name: "me", version: "2" } });
    expect(client.revision).toBe(revision);
    expect(await client.callTool("echo", { text: "hi" })).toMatchObject({ content: [{ text: "hi" }] });
    await client.close();
  },
);

it("the negotiation treats silence as session style", async () => {
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

it("the negotiation stays in the session if the probe is answered late", async () => {
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

it("the negotiation refuses a server with an unknown revision", async () => {
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

it("the negotiation reports the revisions of a newer server", async () => {
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

it("the negotiation cannot restart a transport that ends at the probe, and gives advice", async () => {
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

it("the negotiation is skipped if the revision is given", async () => {
  const { ours, peer } = await byHand();
  const connecting = connect(ours, { revision: NEWEST_SESSION.name });
  const { id, params } = await peer.until(asks("initialize"));
  expect(params).toMatchObject({ protocolVersion: NEWEST_SESSION.name });
  expect(peer.received).toHaveLength(1);
  peer.send({ id, result: { protocolVersion: NEWEST_SESSION.name, ...HELLO } });
  await (await connecting).close();
});

it("ending is possible before connecting, and while the server is silent", async () => {
  await expect(connect(sampleServer().handler, { signal: AbortSignal.abort(new Error("no")) })).rejects.toMatchObject({
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

it("ending never sends a cancellation of initialize", async () => {
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

it("ending closes a connected client", async () => {
  const stop = new AbortController();
  const client = await connect(sampleServer().handler, { signal: stop.signal });
  stop.abort();
  expect(await client.closed).toBeUndefined();
  await expect(client.ping()).rejects.toMatchObject({ kind: "closed" });
});

it("ending rejects calls and resolves `closed` when the server disconnects", async () => {
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

/** A session-style server that exits on any unknown request before `initialize`. */
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

it("a command is restarted without a probe if it exits on the probe", async () => {
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

it("a command that cannot be started is named in the error", async () => {
  await expect(connect({ command: "no-such-program-anywhere" })).rejects.toMatchObject({
    name: "ConnectionError",
    kind: "spawn",
    message: expect.stringContaining("no-such-program-anywhere"),
  });
});
