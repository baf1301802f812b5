// `stateless: true`: the requests of a client reach two processes in turn, here two handlers, and none of them keeps
// anything. Clients of all revisions can call; what would need the memory of one process is refused, with the reason.

import { Client as SdkClient } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { connect, type Client } from "../../../src/client/index.ts";
import { fetchHandler, type MountOptions } from "../../../src/http.ts";
import { REVISIONS } from "../../../src/protocol/revisions/index.ts";
import { createServer, inputRequired, type Server } from "../../../src/server/index.ts";
import { sampleOf } from "../../support/thoroughness.ts";

const URL_OF_BOTH = "http://localhost/mcp";
const FORM = { type: "object", properties: { name: { type: "string" } } } as const;

function notes(): Server {
  const server = createServer({ name: "notes", version: "1.0.0", sealKey: "the same for all", logging: true })
    .tool("echo", { input: z.object({ text: z.string() }) }, ({ text }) => text)
    .tool("count", {}, async (_args, { progress, log }) => {
      for (let n = 1; n <= 3; n += 1) progress(n, 3);
      log("warning", "counted");
      return "3";
    })
    .tool("ask", {}, async (_args, { ask }) =>
      JSON.stringify(await ask.elicit({ message: "Who?", requestedSchema: FORM })),
    )
    .tool("return", {}, (_args, { answers }) =>
      answers["who"] === undefined
        ? inputRequired({ who: { method: "elicitation/create", params: { message: "Who?", requestedSchema: FORM } } })
        : JSON.stringify(answers["who"]),
    )
    .tool("slow", { task: "optional" }, () => "done")
    .tool("slower", { task: "required" }, () => "done too")
    .tool("who", {}, (_args, { caller }) => `${caller.principal} ${JSON.stringify(caller.env)}`)
    .resource("note://one", { name: "one" }, () => "The first note");
  return server;
}

interface Balanced {
  readonly fetch: typeof fetch;
  /** The statuses of all responses, by HTTP method. */
  readonly statuses: string[];
}

function balanced(options: MountOptions = {}): Balanced {
  const processes = [0, 1].map(() => fetchHandler(notes(), { stateless: true, ...options }));
  const statuses: string[] = [];
  let next = 0;
  const send = async (input: string | URL | Request, init?: RequestInit): Promise<Response> => {
    const request = new Request(input, init);
    const response = await processes[(next += 1) % 2]?.(request);
    if (response === undefined) throw new Error("no process");
    statuses.push(`${request.method} ${response.status}`);
    expect(response.headers.get("mcp-session-id")).toBeNull();
    return response;
  };
  return { fetch: send, statuses };
}

const texts = (result: { content?: unknown }): unknown => (result.content as { text?: string }[])[0]?.text;

async function opened(revision: string, fetch: typeof globalThis.fetch): Promise<Client> {
  return connect(URL_OF_BOTH, { fetch, revision, elicit: () => ({ action: "accept", content: { name: "Ann" } }) });
}

const SESSION_NAMES = REVISIONS.filter(({ style }) => style === "session").map(({ name }) => name);
const STATELESS_NAMES = REVISIONS.filter(({ style }) => style === "stateless").map(({ name }) => name);

describe.each(sampleOf(1, SESSION_NAMES))("a client of %s behind a balancer", (revision) => {
  it("a client behind a balancer lists, calls and reads, with progress and logs of the call", async () => {
    await using client = await opened(revision, balanced().fetch);
    expect((await client.listTools()).tools.map(({ name }) => name)).toContain("echo");
    for (const text of ["a", "b", "c"]) expect(texts(await client.callTool("echo", { text }))).toBe(text);
    const steps: number[] = [];
    const logs: unknown[] = [];
    const onProgress = ({ progress }: { progress: number }): void => void steps.push(progress);
    await client.callTool("count", {}, { onProgress, onLog: ({ data }) => void logs.push(data) });
    expect(steps).toEqual([1, 2, 3]);
    expect(logs).toEqual(["counted"]);
    expect(await client.readResource("note://one")).toMatchObject({ contents: [{ text: "The first note" }] });
    expect(texts(await client.callTool("slow", {}))).toBe("done");
    expect(texts(await client.callTool("slower", {}))).toBe("done too");
  });

  it("a client behind a balancer cannot be asked, subscribe or have tasks, and is told so", async () => {
    await using client = await opened(revision, balanced().fetch);
    const { capabilities } = client;
    expect(JSON.stringify(capabilities)).not.toMatch(/listChanged|subscribe|tasks/);
    const why = `(\`stateless: true\`), so it cannot ask a client of revision ${revision}`;
    await expect(client.callTool("ask", {})).rejects.toThrow(why);
    await expect(client.callTool("return", {})).rejects.toThrow(why);
  });
});

describe.each(STATELESS_NAMES)("a client of %s behind a balancer", (revision) => {
  it("a client behind a balancer answers inputRequired in whichever process its retry reaches", async () => {
    await using client = await opened(revision, balanced().fetch);
    expect(texts(await client.callTool("return", {}))).toBe('{"action":"accept","content":{"name":"Ann"}}');
    expect(texts(await client.callTool("slow", {}))).toBe("done");
    await expect(client.callTool("slower", {})).rejects.toThrow("(`stateless: true`), so it has no tasks");
  });

  it("a client behind a balancer is told why context.ask does not work", async () => {
    await using client = await opened(revision, balanced().fetch);
    await expect(client.callTool("ask", {})).rejects.toThrow(
      "This server keeps nothing between requests (`stateless: true`), so a call cannot wait for the answer to " +
        "elicitation/create: return inputRequired(...) from the handler",
    );
  });
});

it("a server without state serves the official client, which asks for a stream and gets none", async () => {
  const { fetch, statuses } = balanced();
  const client = new SdkClient({ name: "sdk", version: "1" });
  await client.connect(new StreamableHTTPClientTransport(new URL(URL_OF_BOTH), { fetch }));
  for (const text of ["a", "b"]) {
    expect(await client.callTool({ name: "echo", arguments: { text } })).toMatchObject({ content: [{ text }] });
  }
  await client.close();
  expect(statuses).toContain("GET 405");
  expect(statuses.filter((line) => line.startsWith("POST"))).toEqual(["POST 200", "POST 202", "POST 200", "POST 200"]);
});

it("a server without state assumes a revision if a request names none, and refuses an unknown one", async () => {
  const { fetch } = balanced();
  const post = async (headers: Record<string, string>, body: unknown): Promise<Response> =>
    fetch(URL_OF_BOTH, {
      method: "POST",
      headers: { "content-type": "application/json", accept: "application/json, text/event-stream", ...headers },
      body: JSON.stringify(body),
    });
  const call = { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "echo", arguments: { text: "x" } } };
  expect(await (await post({}, call)).json()).toMatchObject({ id: 1, result: { content: [{ text: "x" }] } });
  expect(await (await post({}, [call])).json()).toMatchObject([{ id: 1, result: { content: [{ text: "x" }] } }]);
  const unknown = await post({ "mcp-protocol-version": "1999-01-01" }, call);
  expect(unknown.status).toBe(400);
  expect(await unknown.json()).toMatchObject({ error: { message: /Unsupported MCP-Protocol-Version/ as never } });
});

it("a server without state cannot be combined with legacy HTTP+SSE", () => {
  expect(() => fetchHandler(notes(), { stateless: true, legacySse: true })).toThrow("legacySse needs sessions");
});

const mcp = fetchHandler(notes(), {
  auth: { authenticate: () => Promise.reject(new Error("not asked")) },
  onError() {},
});

it.each([SESSION_NAMES.at(-1), STATELESS_NAMES.at(-1)])(
  "the framework around a handler passes the caller and an environment in %s",
  async (revision) => {
    const send: typeof fetch = async (input, init) =>
      mcp(new Request(input, init), { principal: "ann", env: { tenant: 7 } });
    await using client = await opened(revision as string, send);
    expect(texts(await client.callTool("who", {}))).toBe('ann {"tenant":7}');
  },
);

it("the framework around a handler is not mistaken for the runtime, which passes arguments of its own", async () => {
  for (const host of [undefined, { DB: {} }, () => undefined, "x"]) {
    const response = await mcp(new Request(URL_OF_BOTH, { method: "POST" }), host as never);
    expect(response.status).toBe(503);
  }
});

it.each([
  [{ principal: "" }, "`principal` must be a string that is not empty"],
  [{ principal: 7 }, "`principal` must be a string that is not empty"],
  [{ scopes: ["a"] }, "pass its `principal` too"],
  [{ principal: "a", scopes: "read" }, "scopes of an identity must be an array"],
  [{ principal: "a", ctx: 1 }, "fetchHandler() has no option `ctx`"],
])("the framework around a handler is told of a mistake: %j", (host, text) => {
  expect(() => mcp(new Request(URL_OF_BOTH), host as never)).toThrow(text);
});
