// Everything public that has `close()` can be closed by `await using`, which calls Symbol.asyncDispose.

import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { PassThrough } from "node:stream";
import { expect, it } from "vitest";
import { chain, connect, createServer, fromSdk, serve, upstream } from "../../../src/index.ts";
import { fetchHandler, nodeHandler } from "../../../src/http.ts";
import { codeMode, javascript } from "../../../src/live/index.ts";
import { openapi } from "../../../src/openapi/index.ts";
import { programs } from "../../../src/programs/index.ts";
import { serveTransport, stdioTransport } from "../../../src/stdio.ts";
import { connectInMemory } from "../../../src/testing.ts";

const createNotes = () => createServer({ name: "notes", version: "1.0.0" }).tool("echo", {}, () => "hi");
const streams = () => ({ input: new PassThrough(), output: new PassThrough() });

/** What `close` and Symbol.asyncDispose must both be there for. */
const CLOSABLE: Readonly<Record<string, () => unknown>> = {
  "a server": createNotes,
  "an upstream": () => upstream(createNotes()),
  "an upstream that is a command": () => upstream({ command: "notes" }),
  "a server of the SDK": () => fromSdk(new McpServer({ name: "notes", version: "1.0.0" })),
  "a gateway": () => chain().to({ notes: createNotes() }),
  "what serve() returns, over HTTP": () => serve(createNotes(), { http: { port: 0 } }),
  "what serve() returns, on streams": () => serve(createNotes(), { stdio: streams() }),
  "a served connection": () => serveTransport(createNotes(), stdioTransport(streams())),
  "a handler for node:http": () => nodeHandler(createNotes()),
  "a handler for fetch": () => fetchHandler(createNotes()),
  "a client": () => connect(createNotes()),
  "a connection in memory": () => connectInMemory(createNotes()),
  "a subscription": async () => (await connect(createNotes())).listen({ toolsListChanged: true }),
  "live sessions": () => javascript(),
  "a gateway in code mode": () => codeMode(chain().to({ notes: createNotes() })),
  programs: () => programs(["true"]),
  "an HTTP API": () => openapi({ document: {} }),
};

it.each(Object.keys(CLOSABLE))("%s is disposed by closing it", async (name) => {
  const made = (await CLOSABLE[name]?.()) as { close(): Promise<void> } & AsyncDisposable;
  expect(typeof made.close).toBe("function");
  expect(await made[Symbol.asyncDispose]()).toBeUndefined();
  await made.close();
});

it("closes a gateway and its front at the end of a block", async () => {
  const server = createNotes();
  let url: string;
  let state: () => string | undefined;
  {
    await using gateway = chain().to({ notes: server });
    await using front = await serve(gateway, { http: { port: 0 } });
    await using connection = await connectInMemory<typeof server>(gateway);
    expect((await connection.client.callTool("echo")).content).toEqual([{ type: "text", text: "hi" }]);
    ({ url } = front);
    state = () => gateway.status()["notes"]?.state;
    expect(state()).toBe("running");
  }
  expect(state()).toBe("closed");
  await expect(connect(url)).rejects.toMatchObject({ name: "ConnectionError", kind: "refused" });
});
