// Middleware that copies requests, contexts and results field by field, in every place where middleware can be: around
// the server, around one upstream of a router, and around the router. Every feature works as without it.

import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { eventually } from "../support/waiting.ts";
import { chain } from "../../src/chain/chain.ts";
import { upstream } from "../../src/chain/upstream/upstream.ts";
import { connect } from "../../src/client/index.ts";
import type { Handler } from "../../src/core/handler.ts";
import { hasTasks } from "../../src/protocol/tasks.ts";
import { NEWEST, NEWEST_SESSION, REVISIONS } from "../../src/protocol/revisions/index.ts";
import { serve } from "../../src/serve.ts";
import { createServer } from "../../src/server/index.ts";
import { serveTransport } from "../../src/dialogue/connection.ts";
import { memoryPair } from "../../src/transport/memory.ts";
import { servePeer } from "../support/dialogue/served-connection.ts";
import { copying } from "../support/handlers/copying.ts";
import { answering, type Feature, FEATURES, Received, type TestCaller } from "./chain-features.ts";
import { makeChainServer } from "./matrix-server.ts";

interface CopyingGateway {
  readonly gateway: Handler;
  close(): Promise<void>;
}

/** A router over a server of this revision and another one, with a copying middleware in every place. */
async function copyingGateway(server: Handler, revision: string): Promise<CopyingGateway> {
  const served = await serve(chain(copying).to(server), { http: { port: 0, revisions: [revision] } });
  const other = createServer({ name: "other", version: "1" }).tool("aside", {}, () => "aside");
  const behind = chain(copying).to(upstream(served.url, { name: "matrix" }));
  const gateway = chain(copying).to({ behind, other: chain(copying).to(other) });
  const close = async (): Promise<void> => {
    await gateway.close();
    await served.close();
  };
  return { gateway, close };
}

const PAIRS = [NEWEST_SESSION.name, NEWEST.name].flatMap((caller) =>
  [NEWEST_SESSION.name, NEWEST.name].map((server) => ({ caller, server })),
);

describe.each(PAIRS)("a caller of $caller and a server of $server", ({ caller, server }) => {
  const received = new Received();
  const closing: (() => Promise<void>)[] = [];
  let tester: TestCaller;
  beforeAll(async () => {
    const { gateway, close } = await copyingGateway(makeChainServer(), server);
    // The gateway declares what its upstreams have answered so far; on a slow machine that takes a while.
    await eventually(async () => {
      const early = await connect(gateway);
      await early.close();
      expect(hasTasks(early.capabilities)).toBe(true);
    });
    const front = await serve(gateway, { http: { port: 0 } });
    const client = await connect(front.url, { ...answering("ada", received), revision: caller });
    tester = { name: "ada", client, caller, server, received, isAlone: true };
    closing.push(() => client.close(), front.close, close);
  });
  afterAll(async () => {
    for (const close of closing) await close();
  });

  it.each(Object.keys(FEATURES) as Feature[])("a caller and a server: %s", async (feature) => {
    await FEATURES[feature](tester);
  });
});

const ELICITATION = { mode: "url", message: "Sign here", url: "https://a.example/sign", elicitationId: "e-1" };
const COMPLETE = "notifications/elicitation/complete";

it("between sessions: a URL elicitation keeps its id, in a call and in a task, and so does its completion", async () => {
  const tasks = { support: "required", pollIntervalMs: 100 } as const;
  const plain = createServer({ name: "signs", version: "1" }).tool("job", { task: tasks }, async (_args, { ask }) => {
    return (await ask.elicit(ELICITATION as never)).action;
  });
  const signing: Handler = async (request, context) => {
    if (request.method !== "tools/call" || request.params["name"] !== "sign") return plain(request, context);
    const { action } = await context.ask({ method: "elicitation/create", params: ELICITATION });
    context.notify({ method: COMPLETE, params: { elicitationId: "e-1" } });
    return { resultType: "complete", content: [{ type: "text", text: String(action) }] };
  };
  const listing: Handler = async (request, context) => {
    const result = await signing(request, context);
    if (request.method !== "tools/list") return result;
    const sign = { name: "sign", inputSchema: { type: "object" }, execution: {} };
    return { ...result, tools: [sign, ...(result["tools"] as object[])] };
  };
  const { gateway, close } = await copyingGateway(listing, NEWEST_SESSION.name);
  onTestFinished(close);
  const peer = await servePeer(gateway);
  await peer.handshake(NEWEST_SESSION.name, { elicitation: { url: {} } });
  const asked = async (): Promise<unknown> => {
    const isNew = ({ id, method }: { id?: unknown; method?: unknown }): boolean =>
      method === "elicitation/create" && !answered.has(id);
    const { id, params } = await peer.until(isNew);
    answered.add(id);
    peer.send({ id, result: { action: "accept" } });
    return params;
  };
  const answered = new Set<unknown>();

  const call = peer.request({ id: 1, method: "tools/call", params: { name: "sign" } });
  expect(await asked()).toEqual(ELICITATION);
  expect(await call).toMatchObject({ result: { content: [{ text: "accept" }] } });
  const completed = await peer.until(({ method }) => method === COMPLETE);
  expect(completed["params"]).toEqual({ elicitationId: "e-1" });

  const made = await peer.request({ id: 2, method: "tools/call", params: { name: "job", task: { ttl: 60_000 } } });
  const { taskId } = (made as { result: { task: { taskId: string } } }).result.task;
  const outcome = peer.request({ id: 3, method: "tasks/result", params: { taskId } });
  expect(await asked()).toMatchObject(ELICITATION);
  expect(await outcome).toMatchObject({ result: { content: [{ text: "accept" }] } });
  const listed = await peer.request({ id: 4, method: "tasks/list" });
  expect(listed).toMatchObject({ result: { tasks: [{ taskId, status: "completed" }] } });
});

it("between sessions: changed roots are notified to the server", async () => {
  let changes = 0;
  const server = createServer({ name: "roots", version: "1" }).tool("any", {}, () => "done");
  const watching: Handler = (request, context) => {
    if (request.method === "subscriptions/listen") context.session?.onRootsChanged?.(() => (changes += 1));
    return server(request, context);
  };
  const { gateway, close } = await copyingGateway(watching, NEWEST_SESSION.name);
  onTestFinished(close);
  const peer = await servePeer(gateway);
  await peer.handshake(NEWEST_SESSION.name, { roots: { listChanged: true } });
  await peer.request({ id: 1, method: "tools/call", params: { name: "any" } });
  await eventually(() => {
    peer.send({ method: "notifications/roots/list_changed" });
    expect(changes).toBeGreaterThan(0);
  });
});

it.each(REVISIONS)("invalid arguments of a caller of $name have the form of its revision", async (revision) => {
  const input = { type: "object", required: ["text"] } as const;
  const server = createServer({ name: "a", version: "1" }).tool("echo", { input }, () => "done");
  const [ours, theirs] = memoryPair();
  const served = await serveTransport(chain(copying).to(chain(copying).to(server)), theirs);
  onTestFinished(() => served.close());
  const client = await connect(ours, { revision: revision.name });
  const outcome = await client.callTool("echo", {}).catch((error: unknown) => error);
  expect(outcome).toMatchObject(revision.argumentErrors ? { code: -32602 } : { isError: true });
  await client.close();
});
