// Options that are undefined are absent. This project is compiled with `exactOptionalPropertyTypes`, so the calls below
// also show that the types allow it.

import { expect, it } from "vitest";
import { z } from "zod";
import { connect } from "../client/connect.ts";
import { fetchHandler } from "../http.ts";
import { serve } from "../serve.ts";
import { createServer, defineTool } from "./index.ts";

const none = undefined;

it("takes undefined for every optional option of a server, a client and what serves them", async () => {
  const common = { title: none, description: none, icons: none, scopes: none, visible: none, _meta: none };
  const echo = defineTool({
    ...common,
    name: "echo",
    input: z.object({ text: z.string() }),
    inputSchema: none,
    output: none,
    outputSchema: none,
    annotations: none,
    task: none,
    handler: ({ text }) => text,
  });
  const server = createServer({
    name: "a",
    version: "1",
    instructions: none,
    listChanged: none,
    subscribe: none,
    logging: none,
    capabilities: none,
    pageSize: none,
    sealKey: none,
    cache: none,
    tasks: { max: none, ttlMs: none },
    onError: none,
    maskErrors: none,
  })
    .tools([echo])
    .resource("a:b", { ...common, name: none, mimeType: none, size: none, cache: none }, () => "x")
    .template("t:{id}", { ...common, list: none, complete: { id: none } }, ({ id }) => id)
    .prompt("p", { ...common, arguments: { a: { title: none, required: none, complete: none } } }, () => "x")
    .method("acme/m", { input: none, scopes: none }, () => ({}));
  const front = await serve(server, {
    http: { port: 0, host: none, path: none, auth: none, allowedHosts: none, stateless: none, env: none },
    stdio: none,
    limits: none,
    ordering: none,
    revisions: none,
    parkedCalls: { ttlMs: none, sealKey: none },
    maxInFlight: none,
    graceMs: none,
  });
  const client = await connect(front.url, {
    info: none,
    revision: none,
    timeoutMs: none,
    startTimeoutMs: none,
    onLog: none,
    elicit: none,
    headers: none,
    auth: none,
    signal: none,
  });
  expect((await client.callTool("echo", { text: "hi" }, { timeoutMs: none, signal: none })).content).toEqual([
    { type: "text", text: "hi" },
  ]);
  expect(client.capabilities).toMatchObject({ logging: {}, tools: { listChanged: true } });
  await client.close();
  await front.close();
  await fetchHandler(server, { auth: none, env: none }).close();
});
