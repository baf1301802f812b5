// Our client with tasks that others run, in the form of the last session-style revision: the server of the official
// SDK 1.x with its own store and queue, and `@modelcontextprotocol/server-everything`. Nothing here is our server.

import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import type { AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { connect, type CallToolResult, type Client, type DetailedTask, type Target } from "../../src/client/index.ts";
import type { Message } from "../../src/jsonrpc/message.ts";
import { TASKS_EXTENSION } from "../../src/protocol/tasks.ts";
import { recordTransport } from "../../src/testing.ts";
import { childTransport } from "../../src/transport/child-process.ts";
import { SESSIONS } from "./conversation.ts";
import { buildTasks } from "./fixtures/sdk-1-task-stage.ts";
import { runningWith } from "./peer.ts";

const require = createRequire(import.meta.url);
const SDK = fileURLToPath(new URL("fixtures/sdk-1-tasks.ts", import.meta.url));
const EVERYTHING = require.resolve("@modelcontextprotocol/server-everything/dist/index.js");

const NEWEST_SESSION = SESSIONS.at(-1) ?? "";

const textOf = ({ content }: CallToolResult): string => (content[0] as { text: string }).text;

interface Way {
  readonly target: Target;
  /** What the end has answered so far. */
  readonly received: readonly Message[];
  close(): Promise<void>;
}

function overStdio(): Way {
  const mark = `mark-${randomUUID()}`;
  const wire = recordTransport(childTransport({ command: process.execPath, args: ["--import", "tsx", SDK, mark] }));
  return { target: wire, received: wire.received, close: async () => expect(runningWith(mark)).toEqual([]) };
}

async function overHttp(): Promise<Way> {
  const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: () => randomUUID() });
  const received: Message[] = [];
  const send = transport.send.bind(transport);
  transport.send = async (message, options) => {
    received.push(message as Message);
    return send(message, options);
  };
  const mcp = buildTasks();
  await mcp.connect(transport);
  const server = createServer((request, response) => void transport.handleRequest(request, response));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const close = async (): Promise<void> => {
    await mcp.close();
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  };
  return { target: `http://127.0.0.1:${port}/mcp`, received, close };
}

describe.each([
  ["stdio", overStdio],
  ["HTTP", overHttp],
] as const)("tasks of SDK 1.x over %s", { timeout: 20_000 }, (wire, open) => {
  const asked: string[] = [];
  let way: Way;
  let client: Client;

  beforeAll(async () => {
    way = await open();
    client = await connect(way.target, {
      revision: NEWEST_SESSION,
      startTimeoutMs: 20_000,
      elicit: ({ message }) => {
        asked.push(message);
        return { action: "accept", content: { name: message === "Your name?" ? "Ada" : "Lovelace" } };
      },
    });
  }, 30_000);
  afterAll(async () => {
    await client.close();
    await way.close();
  });

  it("are what the extension says", () => {
    expect(client.capabilities.extensions).toEqual({ [TASKS_EXTENSION]: {} });
    expect(client.capabilities).not.toHaveProperty("tasks");
  });

  it("are started, looked on at, and give their result", async () => {
    const handle = await client.callToolAsTask("steps");
    expect(handle.state).toMatchObject({ status: "working", ttlMs: 3_600_000, pollIntervalMs: 50 });
    const seen: DetailedTask[] = [];
    for await (const state of handle) seen.push(state);
    expect(seen.at(-1)).toMatchObject({ status: "completed", statusMessage: "step 3" });
    expect(textOf(await handle.result())).toBe("stepped");
    expect(textOf(await (await client.callToolAsTask("quick")).result())).toBe("quick");
    const plain = await client.callToolAsTask("plain");
    expect([plain.id, textOf(await plain.result())]).toEqual(["", "plain"]);
  });

  it("are waited for by a plain call, with their progress", async () => {
    expect(textOf(await client.callTool("steps"))).toBe("stepped");
    const steps: number[] = [];
    const onProgress = ({ progress }: { progress: number }): void => void steps.push(progress);
    expect(textOf(await client.callTool("steps", {}, { onProgress }))).toBe("stepped");
    expect(steps).toEqual(wire === "stdio" ? [1, 2, 3] : []);
    expect(textOf(await client.callTool("quick"))).toBe("quick");
  });

  it("ask twice, and each question comes once", async () => {
    for (const call of [() => client.callTool("ask"), async () => (await client.callToolAsTask("ask")).result()]) {
      asked.length = 0;
      expect(textOf(await call())).toBe("accept Ada Lovelace");
      expect(asked).toEqual(["Your name?", "Your other name?"]);
    }
  });

  it("fail in their two ways", async () => {
    expect(await client.callTool("fail")).toMatchObject({ isError: true, content: [{ text: "No paper" }] });
    const broken = await client.callToolAsTask("broken");
    await expect(broken.result()).rejects.toMatchObject({ code: -32603 });
    await expect(broken.result()).rejects.toThrow("Out of order");
    expect(broken.status).toBe("failed");
  });

  it("are cancelled, by the handle and with the call", async () => {
    const handle = await client.callToolAsTask("hold");
    await handle.cancel();
    expect(handle.state).toMatchObject({ status: "cancelled", statusMessage: "Client cancelled task execution." });
    await expect(handle.result()).rejects.toMatchObject({ kind: "cancelled" });
    const stop = new AbortController();
    const call = client.callTool("hold", {}, { signal: stop.signal });
    const other = await client.callToolAsTask("hold");
    const before = way.received.length;
    stop.abort(new Error("enough"));
    await expect(call).rejects.toMatchObject({ kind: "cancelled" });
    await vi.waitFor(() => {
      const heard = way.received.slice(before).map((message) => ("result" in message ? message.result : {}));
      expect(heard).toContainEqual(expect.objectContaining({ status: "cancelled" }));
    });
    expect((await other.refresh()).status).toBe("working");
    await other.cancel();
  });

  it("expire, and are unknown from then on", async () => {
    const brief = await client.callToolAsTask("brief");
    expect(brief.state.ttlMs).toBe(200);
    // Whose clock is the faster is not certain.
    await expect(brief.result()).rejects.toThrow(/no longer knows the task|within the 200 ms/);
    await expect(client.task("none")).rejects.toThrow("The server has no task none");
  });

  it("are found again by their ids", async () => {
    const { id } = await client.callToolAsTask("hold");
    const found = await client.task(id);
    expect([found.id, found.status]).toEqual([id, "working"]);
    await found.cancel();
  });
});

describe("the research of server-everything", { timeout: 30_000 }, () => {
  const mark = `mark-${randomUUID()}`;
  const asked: unknown[] = [];
  let client: Client;

  beforeAll(async () => {
    client = await connect(
      { command: process.execPath, args: [EVERYTHING, "stdio", mark] },
      {
        elicit: ({ requestedSchema }) => {
          asked.push(Object.keys(requestedSchema.properties));
          return { action: "accept", content: { interpretation: "snake" } };
        },
      },
    );
  }, 20_000);
  afterAll(async () => {
    await client.close();
    expect(runningWith(mark)).toEqual([]);
  });

  it("is a task that tells how far it is, asks, and ends with a report", async () => {
    // Its tool comes after the handshake.
    await vi.waitFor(async () => {
      expect((await client.listTools()).tools.map(({ name }) => name)).toContain("simulate-research-query");
    });
    const handle = await client.callToolAsTask("simulate-research-query", { topic: "python", ambiguous: true });
    const said: (string | undefined)[] = [];
    handle.onStatus(({ statusMessage }) => said.push(statusMessage));
    const report = textOf(await handle.result());
    expect(report).toContain("# Research Report: python (snake)");
    expect(asked).toEqual([["interpretation"]]);
    expect(said).toContain("Analyzing content...");
    expect(said).toContain('Continuing with interpretation: "snake"...');
  });
});
