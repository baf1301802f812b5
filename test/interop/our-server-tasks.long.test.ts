// Tasks of our server with the client of SDK 1.x over HTTP: it starts a task, polls, answers requests while it waits for
// the result, lists and cancels. SDK 2.x has neither form of tasks.

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import { CallToolResultSchema, ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import { afterAll, beforeAll, expect, it } from "vitest";
import { createServer, McpError, serve } from "../../src/index.ts";

const RELATED = "io.modelcontextprotocol/related-task";
const POLL = { pollIntervalMs: 20 };

const server = createServer({ name: "jobs", version: "1" })
  .tool("quick", { task: { support: "optional", ...POLL } }, () => "done")
  .tool("ask", { task: { support: "required", ...POLL } }, async (_args, { ask }) => {
    const { action } = await ask.elicit({ message: "Really?", requestedSchema: { type: "object", properties: {} } });
    return action;
  })
  .tool("hold", { task: { support: "required", ...POLL } }, async (_args, { signal }) => {
    await new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason as Error)));
  })
  .tool("broken", { task: { support: "required", ...POLL } }, () => {
    throw McpError.of("internal_error", "Out of order");
  });

const elicited: unknown[] = [];
const client = new Client({ name: "interop", version: "1" }, { capabilities: { elicitation: {} } });
client.setRequestHandler(ElicitRequestSchema, ({ params }) => {
  elicited.push(params._meta?.[RELATED]);
  return { action: "accept" as const, content: {} };
});

let close: () => Promise<void> = async () => undefined;
beforeAll(async () => {
  const front = await serve(server, { http: { port: 0 } });
  const transport: Transport = new StreamableHTTPClientTransport(new URL(front.url));
  await client.connect(transport);
  await client.listTools();
  close = async () => {
    await client.close();
    await front.close();
  };
});
afterAll(() => close());

/** All messages that the client reports of a call, in order. */
async function messagesOf(name: string): Promise<object[]> {
  const all: object[] = [];
  const { tasks } = client.experimental;
  const stream = tasks.callToolStream({ name, arguments: {} }, CallToolResultSchema, { task: { ttl: 60_000 } });
  for await (const message of stream) all.push(message);
  return all;
}

it("a task is created, polled, and returns its result", async () => {
  const all = await messagesOf("quick");
  expect(all[0]).toMatchObject({ type: "taskCreated", task: { status: "working", ttl: 3_600_000, pollInterval: 20 } });
  expect(all.at(-1)).toMatchObject({ type: "result", result: { content: [{ text: "done" }] } });
});

it("a task that elicits is answered while its result is awaited", async () => {
  const all = await messagesOf("ask");
  const { taskId } = (all[0] as { task: { taskId: string } }).task;
  expect(elicited).toEqual([{ taskId }]);
  expect(all.at(-1)).toMatchObject({ type: "result", result: { content: [{ text: "accept" }] } });
});

it("a task that failed reports an error", async () => {
  expect((await messagesOf("broken")).at(-1)).toMatchObject({ type: "error" });
});

it("a task is cancelled once, and listed with the others", async () => {
  const { tasks } = client.experimental;
  const stream = tasks.callToolStream({ name: "hold", arguments: {} }, CallToolResultSchema, { task: {} });
  const { value } = await stream.next();
  const { taskId } = (value as { task: { taskId: string } }).task;
  await stream.return();
  expect(await tasks.cancelTask(taskId)).toMatchObject({ taskId, status: "cancelled" });
  await expect(tasks.cancelTask(taskId)).rejects.toMatchObject({ code: -32602 });
  const listed = (await tasks.listTasks()).tasks.map(({ status }) => status);
  expect(listed).toEqual(["completed", "completed", "failed", "cancelled"]);
});
