// The testing helpers on a typical server, in every revision.

import { describe, expect, it } from "vitest";
import { chain } from "./chain/chain.ts";
import { connect } from "./client/connect.ts";
import type { Middleware } from "./core/handler.ts";
import { isRequest, type Message } from "./jsonrpc/message.ts";
import { REVISIONS } from "./protocol/revisions/index.ts";
import { createServer, type Server } from "./server/server.ts";
import { connectInMemory, memoryPair, recordTransport, REVISION_NAMES } from "./testing.ts";

function notes(): Server {
  return createServer({ name: "notes", version: "1.0.0" })
    .tool("echo", { description: "Echo", inputSchema: { type: "object" } }, (args) =>
      String((args as { text?: unknown }).text),
    )
    .tool("steps", { description: "Steps", inputSchema: { type: "object" } }, (_, { progress, log }) => {
      progress(1, 2);
      log("error", "halfway");
      return "done";
    })
    .tool("where", { description: "Roots", inputSchema: { type: "object" } }, async (_, { ask }) => {
      const { roots } = await ask.roots();
      return roots.map(({ uri }) => uri).join();
    })
    .resource("notes://one", { name: "One", mimeType: "text/plain" }, () => "first")
    .template("notes://by/{name}", { name: "By" }, ({ name }) => `by ${name}`)
    .prompt(
      "review",
      { description: "Review", arguments: { what: { required: true, complete: () => ["this"] } } },
      ({ what }) => `Review ${what}`,
    );
}

const methods = (messages: readonly Message[]): string[] => messages.filter(isRequest).map(({ method }) => method);

it("revisions are named, oldest first", () => {
  expect(REVISION_NAMES).toEqual(REVISIONS.map(({ name }) => name));
});

describe.each(REVISION_NAMES)("a server at %s", (revision) => {
  const isSession = REVISIONS.find(({ name }) => name === revision)?.style === "session";

  it("a server supports every feature", async () => {
    const server = notes();
    const { client, close } = await connectInMemory(server, { revision, roots: [{ uri: "file:///here" }] });
    expect(client.revision).toBe(revision);
    expect(client.server).toMatchObject({ name: "notes", version: "1.0.0" });
    expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(["echo", "steps", "where"]);
    expect(await client.callTool("echo", { text: "hi" })).toMatchObject({ content: [{ type: "text", text: "hi" }] });
    expect(await client.callTool("where")).toMatchObject({ content: [{ text: "file:///here" }] });
    expect(await client.readResource("notes://by/ada")).toMatchObject({ contents: [{ text: "by ada" }] });
    expect(await client.getPrompt("review", { what: "it" })).toMatchObject({
      messages: [{ content: { text: "Review it" } }],
    });
    const { completion } = await client.complete({ type: "ref/prompt", name: "review" }, { name: "what", value: "" });
    expect(completion.values).toEqual(["this"]);
    const seen: unknown[] = [];
    await client.callTool("steps", {}, { onProgress: (p) => seen.push(p), onLog: ({ data }) => seen.push(data) });
    expect(seen).toEqual([{ progress: 1, total: 2 }, "halfway"]);
    await close();
  });

  it("a server notifies of changes", async () => {
    const server = notes();
    const { client, close } = await connectInMemory(server, { revision });
    await client.ping();
    const subscription = await client.listen({ toolsListChanged: true, resourceSubscriptions: ["notes://one"] });
    expect(subscription.granted).toEqual({ toolsListChanged: true, resourceSubscriptions: ["notes://one"] });
    server.removeTool("echo");
    server.resourceUpdated("notes://one");
    const events: string[] = [];
    for await (const { method } of subscription) {
      events.push(method);
      if (events.length === 2) break;
    }
    expect(events.toSorted()).toEqual(["notifications/resources/updated", "notifications/tools/list_changed"]);
    await close();
  });

  it("a server records every message", async () => {
    const { client, sent, received, messages, close } = await connectInMemory(notes(), {
      revision,
      roots: [{ uri: "file:///here" }],
    });
    await client.callTool("where");
    await close();
    expect(methods(sent)).toEqual(
      isSession ? ["initialize", "tools/call"] : ["server/discover", "tools/call", "tools/call"],
    );
    expect(methods(received)).toEqual(isSession ? ["roots/list"] : []);
    const roots = sent.find((message) => "result" in message);
    expect(roots).toEqual(
      isSession ? expect.objectContaining({ result: { roots: [{ uri: "file:///here" }] } }) : undefined,
    );
    expect(messages).toHaveLength(sent.length + received.length);
    expect(messages.filter(({ from }) => from === "server").map(({ message }) => message)).toEqual(received);
    expect(messages[0]).toMatchObject({ from: "client", message: sent[0] });
  });
});

it("a server without a connection supports requests to the client", async () => {
  const client = await connect(notes(), { roots: [{ uri: "file:///here" }] });
  expect(client.server).toMatchObject({ name: "notes" });
  expect(await client.callTool("where")).toMatchObject({ content: [{ text: "file:///here" }] });
  await client.close();
});

it("connectInMemory fails if the server does not support the revision, and leaves nothing open", async () => {
  const [oldest, newest] = [REVISION_NAMES[0]!, REVISION_NAMES.at(-1)!];
  await expect(connectInMemory(notes(), { revision: oldest, serving: { revisions: [newest] } })).rejects.toMatchObject({
    name: "ConnectionError",
    kind: "protocol",
  });
});

it.each(REVISION_NAMES)(
  "connectInMemory gives the client an identity, whose scopes are asked for: %s",
  async (revision) => {
    const server = createServer({ name: "notes", version: "1.0.0" })
      .tool("whoami", {}, (_, { caller }) => `${caller.principal} ${String(caller.claims?.["team"])}`)
      .tool("write", { scopes: ["notes:write"] }, () => "written");
    const caller = { principal: "ada", scopes: ["notes:read"], claims: { team: "engines" } };
    await using reader = await connectInMemory(server, { revision, caller });
    const { content } = await reader.client.callTool("whoami");
    expect(content).toEqual([{ type: "text", text: "ada engines" }]);
    await expect(reader.client.callTool("write")).rejects.toThrow("The tool write needs the scope notes:write");
    await using writer = await connectInMemory(server, { revision, caller: { ...caller, scopes: ["notes:write"] } });
    expect((await writer.client.callTool("write")).isError).toBe(false);
    const wrong = connectInMemory(server, { caller: { scope: ["a"] } as never });
    await expect(wrong).rejects.toThrow("connectInMemory() has no option `caller.scope`; did you mean `scopes`?");
  },
);

it("connectInMemory records batches message by message", async () => {
  const [ours, theirs] = memoryPair();
  const near = recordTransport(ours);
  const far = recordTransport(theirs);
  await near.start(() => undefined);
  const received = new Promise<void>(
    (resolve) => void far.start(({ kind }) => (kind === "batch" ? resolve() : undefined)),
  );
  const batch: Message[] = [
    { jsonrpc: "2.0", method: "a" },
    { jsonrpc: "2.0", method: "b" },
  ];
  await near.send(batch);
  await received;
  expect(near.sent).toEqual(batch);
  expect(far.received).toEqual(batch);
  await near.close();
});

const changesRequest: Middleware = (request, context, next) => {
  if (request.method === "tools/call") (request.params as { name: string }).name = "echo";
  return next(request, context);
};
const changesResult: Middleware = async (request, context, next) => {
  const result = await next(request, context);
  if (request.method === "tools/call") (result["content"] as object[]).push({ type: "text", text: "more" });
  return result;
};

it.each([
  ["a request", changesRequest, /The middleware changesRequest failed: Cannot assign to read only property 'name'/],
  ["a result", changesResult, /The middleware changesResult failed: Cannot add property 1/],
])("middleware that changes a message in place fails in a test: %s", async (_, middleware, message) => {
  const gateway = chain(middleware).to(notes());
  const { client, close } = await connectInMemory(gateway);
  await expect(client.callTool("echo", { text: "a" })).rejects.toThrow(message);
  // What comes from other clients is not frozen.
  const plain = await connect(gateway);
  const { content } = await plain.callTool("echo", { text: "a" });
  expect(content?.[0]).toMatchObject({ text: "a" });
  await plain.close();
  await close();
  await gateway.close();
});
