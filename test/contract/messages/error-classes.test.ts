// One fact is one error: the class, kind, code and data of an error do not depend on how the client reaches the server.

import { afterAll, beforeAll, expect, it } from "vitest";
import { bearerToken } from "../../../src/auth/oauth/index.ts";
import { chain } from "../../../src/chain/chain.ts";
import { upstream } from "../../../src/chain/upstream/upstream.ts";
import type { Client } from "../../../src/client/client.ts";
import { connect } from "../../../src/client/connect.ts";
import { ConnectionError } from "../../../src/core/errors.ts";
import { McpError } from "../../../src/protocol/errors.ts";
import { serve } from "../../../src/serve.ts";
import { bearer } from "../../../src/server/index.ts";
import { connectInMemory } from "../../../src/testing.ts";
import { compiled } from "../../support/programs.ts";
import { createFailingServer } from "./failing-server.ts";

const STATELESS = "2026-07-28";
const SESSION = "2025-11-25";
const FIRST = "2024-11-05";
const LEGACY_SSE = "legacy HTTP+SSE";
const TOKEN = "a-token-without-scopes";
const caller = { principal: "ada", scopes: [] };
const auth = bearer({ verify: (token) => (token === TOKEN ? caller : undefined) });

const closing: (() => Promise<unknown>)[] = [];
const clients = new Map<string, Client>();

async function open(): Promise<void> {
  const server = createFailingServer();
  const front = await serve(server, { http: { port: 0, auth } });
  const { url } = front;
  closing.push(() => front.close());
  const withToken = (): { auth: ReturnType<typeof bearerToken> } => ({ auth: bearerToken(TOKEN) });
  const program = { command: process.execPath, args: [compiled("./failing-program.ts", import.meta.url)] };
  for (const [style, revision] of [
    ["stateless", STATELESS],
    ["session", SESSION],
  ] as const) {
    clients.set(`memory, ${style}`, (await connectInMemory(server, { revision, caller })).client);
    clients.set(`HTTP, ${style}`, await connect(url, { revision, ...withToken() }));
    clients.set(`stdio, ${style}`, await connect(program, { revision }));
    const one = chain().to({ a: upstream(url, { revision, ...withToken() }) });
    clients.set(`a gateway of one, ${style}`, await connect(one));
    const two = chain().to({ a: upstream(url, { revision, ...withToken() }), b: async () => ({ tools: [] }) });
    clients.set(`a gateway of two, ${style}`, await connect(two));
    const served = await serve(two, { http: { port: 0, auth } });
    clients.set(`a gateway over HTTP, ${style}`, await connect(served.url, { revision, ...withToken() }));
    closing.push(
      () => served.close(),
      () => one.close(),
      () => two.close(),
    );
  }
  clients.set(LEGACY_SSE, await connect(url.replace("/mcp", "/sse"), { revision: FIRST, ...withToken() }));
  closing.unshift(...[...clients.values()].map((client) => () => client.close()));
}

beforeAll(open);
afterAll(async () => {
  for (const close of closing) await close();
});

async function outcomeOf(work: Promise<unknown>): Promise<unknown> {
  try {
    return await work;
  } catch (error) {
    const { message } = error as Error;
    if (error instanceof McpError)
      return { class: "McpError", kind: error.kind, code: error.code, message, data: error.data };
    return { class: error instanceof ConnectionError ? "ConnectionError" : "other", message };
  }
}

type Fact = readonly [fact: string, ask: (client: Client) => Promise<unknown>, expected: object];

const FACTS: readonly Fact[] = [
  [
    "a missing scope of a tool",
    (client) => client.callTool("guarded"),
    {
      class: "McpError",
      kind: "access_denied",
      code: -32603,
      message: "The tool guarded needs the scope notes:write",
      data: { kind: "access_denied", requiredScopes: ["notes:write"] },
    },
  ],
  [
    "missing scopes of a resource",
    (client) => client.readResource("notes://guarded"),
    { class: "McpError", kind: "access_denied", code: -32603, data: { requiredScopes: ["notes:read", "notes:write"] } },
  ],
  [
    "an unknown tool",
    (client) => client.callTool("nothing"),
    { class: "McpError", kind: "tool_not_found", data: { toolName: "nothing" } },
  ],
  [
    "an unknown resource",
    (client) => client.readResource("notes://nothing"),
    { class: "McpError", kind: "resource_not_found", data: { uri: "notes://nothing" } },
  ],
  [
    "an unknown prompt",
    (client) => client.getPrompt("nothing"),
    { class: "McpError", kind: "prompt_not_found", data: { promptName: "nothing" } },
  ],
  [
    "a missing argument of a prompt",
    (client) => client.getPrompt("review"),
    { class: "McpError", kind: "invalid_params", code: -32602 },
  ],
  [
    "an error with a code of its own",
    (client) => client.callTool("own-code"),
    { class: "McpError", code: -31000, message: "Out of paper", data: { tray: 2 } },
  ],
  [
    "a rate limit",
    (client) => client.callTool("rate-limited"),
    { class: "McpError", kind: "rate_limited", code: -31429, data: { retryAfterMs: 1000 } },
  ],
  [
    "a denial by a rule",
    (client) => client.callTool("denied"),
    { class: "McpError", kind: "access_denied", code: -32603, message: "Not for you", data: { why: "a rule" } },
  ],
  [
    "an error of the kind unauthorized",
    (client) => client.callTool("unauthorized"),
    { class: "McpError", kind: "unauthorized", code: -32600, message: "Sign in to the database first" },
  ],
  [
    "a tool that fails",
    (client) => client.callTool("broken"),
    { isError: true, content: [{ text: expect.stringContaining("The disk is full") }] },
  ],
  [
    "arguments that do not fit",
    (client) => client.callTool("numbers", { n: "one" }),
    { isError: true, content: [{ text: expect.stringContaining("Invalid arguments for the tool numbers") }] },
  ],
  [
    "a resource that fails",
    (client) => client.readResource("notes://broken"),
    { class: "McpError", code: -32603, message: expect.stringContaining("The disk is full") },
  ],
];

it.each<Fact>(FACTS)("%s is the same error everywhere", async (fact, ask, expected) => {
  const outcomes = new Map<string, unknown>();
  for (const [way, client] of clients) {
    // On stdio there are no scopes: the caller started the program, and may do everything.
    if (fact.includes("missing scope") && way.startsWith("stdio")) continue;
    // In the first revision wrong arguments are an error of the protocol.
    if (fact === "arguments that do not fit" && way === LEGACY_SSE) continue;
    outcomes.set(way, await outcomeOf(ask(client)));
  }
  const wanted = Object.fromEntries([...outcomes.keys()].map((way) => [way, expected]));
  expect(Object.fromEntries(outcomes)).toMatchObject(wanted);
});

it("a gateway's callers are not asked for scopes that its upstream needs", async () => {
  const client = clients.get("a gateway over HTTP, stateless");
  await expect(client?.callTool("guarded")).rejects.toMatchObject({ data: { upstreamName: "a" } });
  const direct = clients.get("HTTP, stateless");
  await expect(direct?.callTool("guarded")).rejects.not.toHaveProperty("data.upstreamName");
});
