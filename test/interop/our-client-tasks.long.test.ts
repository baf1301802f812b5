// Our client with tasks in the form of the newest session revision, on servers that are not ours: SDK 1.x with its own
// task store and message queue, and `@modelcontextprotocol/server-everything`.

import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { eventually } from "../support/waiting.ts";
import { compiled } from "../support/programs.ts";
import { connect, type CallToolResult, type Client, type DetailedTask, type Target } from "../../src/client/index.ts";
import type { Message } from "../../src/jsonrpc/message.ts";
import { TASKS_EXTENSION } from "../../src/protocol/tasks.ts";
import { recordTransport } from "../../src/testing.ts";
import { childTransport } from "../../src/transport/child-process.ts";
import { SESSIONS } from "./common-tests.ts";
import { buildTaskServer } from "./fixtures/sdk-1-task-server.ts";
import { commandLinesWith } from "./test-client.ts";

const require = createRequire(import.meta.url);
const SDK = compiled("fixtures/sdk-1-tasks-program.ts", import.meta.url);
const EVERYTHING = require.resolve("@modelcontextprotocol/server-everything/dist/index.js");

const NEWEST_SESSION = SESSIONS.at(-1) ?? "";

const textOf = ({ content }: CallToolResult): string => (content[0] as { text: string }).text;

interface TaskServer {
  readonly target: Target;
  /** The messages of the server so far. */
  readonly received: readonly Message[];
  close(): Promise<void>;
}

function overStdio(): TaskServer {
  const mark = `mark-${randomUUID()}`;
  const transport = recordTransport(childTransport({ command: process.execPath, args: [SDK, mark] }));
  return {
    target: transport,
    received: transport.received,
    close: async () => expect(commandLinesWith(mark)).toEqual([]),
  };
}

async function overHttp(): Promise<TaskServer> {
  const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: () => randomUUID() });
  const received: Message[] = [];
  const send = transport.send.bind(transport);
  transport.send = async (message, options) => {
    received.push(message as Message);
    return send(message, options);
  };
  const mcp = buildTaskServer();
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
] as const)("tasks of SDK 1.x over %s", (transport, open) => {
  const elicited: string[] = [];
  let server: TaskServer;
  let client: Client;

  beforeAll(async () => {
    server = await open();
    client = await connect(server.target, {
      revision: NEWEST_SESSION,
      startTimeoutMs: 20_000,
      elicit: ({ message }) => {
        elicited.push(message);
        return { action: "accept", content: { name: message === "Your name?" ? "Ada" : "Lovelace" } };
      },
    });
  });
  afterAll(async () => {
    await client.close();
    await server.close();
  });

  it("tasks of SDK 1.x are declared as the extension", () => {
    expect(client.capabilities.extensions).toEqual({ [TASKS_EXTENSION]: {} });
    expect(client.capabilities).not.toHaveProperty("tasks");
  });

  it("tasks of SDK 1.x are started and followed, and return their result", async () => {
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

  it("tasks of SDK 1.x are awaited by a plain call, with their progress", async () => {
    expect(textOf(await client.callTool("steps"))).toBe("stepped");
    const steps: number[] = [];
    const onProgress = ({ progress }: { progress: number }): void => void steps.push(progress);
    expect(textOf(await client.callTool("steps", {}, { onProgress }))).toBe("stepped");
    expect(steps).toEqual(transport === "stdio" ? [1, 2, 3] : []);
    expect(textOf(await client.callTool("quick"))).toBe("quick");
  });

  it("tasks of SDK 1.x send two requests, each once", async () => {
    for (const call of [() => client.callTool("ask"), async () => (await client.callToolAsTask("ask")).result()]) {
      elicited.length = 0;
      expect(textOf(await call())).toBe("accept Ada Lovelace");
      expect(elicited).toEqual(["Your name?", "Your other name?"]);
    }
  });

  it("tasks of SDK 1.x fail as a tool and as the protocol", async () => {
    expect(await client.callTool("fail")).toMatchObject({ isError: true, content: [{ text: "No paper" }] });
    const broken = await client.callToolAsTask("broken");
    await expect(broken.result()).rejects.toMatchObject({ code: -32603 });
    await expect(broken.result()).rejects.toThrow("Out of order");
    expect(broken.status).toBe("failed");
  });

  it("tasks of SDK 1.x are cancelled, by the handle and with the call", async () => {
    const handle = await client.callToolAsTask("hold");
    await handle.cancel();
    expect(handle.state).toMatchObject({ status: "cancelled", statusMessage: "Client cancelled task execution." });
    await expect(handle.result()).rejects.toMatchObject({ kind: "cancelled" });
    const controller = new AbortController();
    const call = client.callTool("hold", {}, { signal: controller.signal });
    const other = await client.callToolAsTask("hold");
    const before = server.received.length;
    controller.abort(new Error("enough"));
    await expect(call).rejects.toMatchObject({ kind: "cancelled" });
    await eventually(() => {
      const results = server.received.slice(before).map((message) => ("result" in message ? message.result : {}));
      expect(results).toContainEqual(expect.objectContaining({ status: "cancelled" }));
    });
    expect((await other.refresh()).status).toBe("working");
    await other.cancel();
  });

  it("tasks of SDK 1.x: expire, and are unknown from then on", async () => {
    const brief = await client.callToolAsTask("brief");
    expect(brief.state.ttlMs).toBe(200);
    // Either side may notice it first.
    await expect(brief.result()).rejects.toThrow(/no longer knows the task|within the 200 ms/);
    await expect(client.task("none")).rejects.toThrow("The server has no task none");
  });

  it("tasks of SDK 1.x are found by their ids", async () => {
    const { id } = await client.callToolAsTask("hold");
    const found = await client.task(id);
    expect([found.id, found.status]).toEqual([id, "working"]);
    await found.cancel();
  });
});

describe("the research task of server-everything", () => {
  const mark = `mark-${randomUUID()}`;
  const elicited: unknown[] = [];
  let client: Client;

  beforeAll(async () => {
    client = await connect(
      { command: process.execPath, args: [EVERYTHING, "stdio", mark] },
      {
        elicit: ({ requestedSchema }) => {
          elicited.push(Object.keys(requestedSchema.properties));
          return { action: "accept", content: { interpretation: "snake" } };
        },
      },
    );
  });
  afterAll(async () => {
    await client.close();
    expect(commandLinesWith(mark)).toEqual([]);
  });

  it("the research task of server-everything reports its status, elicits, and completes with a report", async () => {
    // The server adds the tool after the handshake.
    await eventually(async () => {
      expect((await client.listTools()).tools.map(({ name }) => name)).toContain("simulate-research-query");
    });
    const handle = await client.callToolAsTask("simulate-research-query", { topic: "python", ambiguous: true });
    const statuses: (string | undefined)[] = [];
    handle.onStatus(({ statusMessage }) => statuses.push(statusMessage));
    const report = textOf(await handle.result());
    expect(report).toContain("# Research Report: python (snake)");
    expect(elicited).toEqual([["interpretation"]]);
    // The client asks for the status now and then, so it need not see each one.
    expect(new Set(statuses).size, String(statuses)).toBeGreaterThan(2);
  });
});
