// Paths for single servers and profiles, and callers with keys of their own, over HTTP with real clients: each caller
// sees its part on every path, and reaches nothing else by any method or form of a name.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { connect, type Client as OurClient } from "catenary";
import { afterAll, beforeAll, expect, it, onTestFinished } from "vitest";
import { META } from "../../../src/protocol/model/base.ts";
import { NEWEST } from "../../../src/protocol/revisions/index.ts";
import { cliRunner, type CliProcess } from "./cli-process.ts";
import { IS_LONG } from "../../support/thoroughness.ts";

const TOKENS = { ada: "ada-key", bob: "bob-key", eve: "eve-key", all: "shared-key" } as const;

/** A server with a tool, a prompt, a resource and a template that say whose they are. It tells its process id. */
const server = (name: string): string => `
import { createServer } from ${JSON.stringify(new URL("../../../dist/index.js", import.meta.url).href)};
import { serve } from ${JSON.stringify(new URL("../../../dist/index.js", import.meta.url).href)};
const server = createServer({ name: "${name}", version: "1.0.0", instructions: "I am ${name}." })
  .tool("search", {}, () => "${name} found")
  .tool("delete", {}, () => "${name} deleted")
  .tool("${name}_only", {}, () => "${name} " + process.pid)
  .resource("${name}://secret", { name: "${name}" }, () => "secret of ${name}")
  .template("${name}://{id}", { name: "t", complete: { id: () => ["${name}-id"] } }, ({ id }) => "${name} " + id)
  .prompt("hello", { arguments: { x: { complete: () => ["${name}-x"] } } }, () => "${name} says hello");
await serve(server);
`;

const CONFIG = {
  mcpServers: {
    notes: { command: process.execPath, args: ["./notes.mjs"], share: "shared" },
    mail: { command: process.execPath, args: ["./mail.mjs"], share: "shared" },
    bank: { command: process.execPath, args: ["./bank.mjs"], share: "shared" },
  },
  listen: { token: "${ALL}" },
  profiles: {
    work: { servers: ["notes", "mail"], tools: { exclude: ["mail_delete", "notes_only"] } },
    home: {
      servers: ["notes"],
      tools: { include: ["search"] },
      prompts: { include: [] },
      resources: { exclude: ["notes://*"] },
    },
  },
  callers: {
    ada: { token: "${ADA}", profile: "work" },
    bob: { token: "${BOB}", profile: "home" },
    eve: { token: "${EVE}" },
  },
};

let folder = "";
let gateway: CliProcess;
let origin = "";
const run = cliRunner();

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "catenary-profiles-"));
  for (const name of ["notes", "mail", "bank"]) writeFileSync(join(folder, `${name}.mjs`), server(name));
  writeFileSync(join(folder, "catenary.json"), JSON.stringify(CONFIG));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

async function start(): Promise<void> {
  const { ada, bob, eve, all } = TOKENS;
  const env = { ADA: ada, BOB: bob, EVE: eve, ALL: all, XDG_STATE_HOME: join(folder, "state") };
  gateway = run(["up", join(folder, "catenary.json"), "--http", "127.0.0.1:0", "--json"], { env });
  await expect.poll(() => gateway.out.includes("\n") || gateway.process.exitCode).toBe(true);
  origin = new URL((JSON.parse(gateway.out) as { url: string }).url).origin;
}

const as = (who: keyof typeof TOKENS): { headers: Record<string, string> } => ({
  headers: { Authorization: `Bearer ${TOKENS[who]}` },
});

async function withClient<T>(
  who: keyof typeof TOKENS,
  path: string,
  use: (client: OurClient) => Promise<T>,
): Promise<T> {
  const client = await connect(`${origin}${path}`, { ...as(who), cache: false });
  try {
    return await use(client);
  } finally {
    await client.close();
  }
}

const toolsOf = (client: OurClient): Promise<string[]> =>
  client.listTools().then(({ tools }) => tools.map(({ name }) => name).toSorted());

async function statusOf(path: string, token: string | undefined): Promise<number> {
  const headers = {
    "content-type": "application/json",
    accept: "application/json, text/event-stream",
    ...(token !== undefined && { authorization: `Bearer ${token}` }),
  };
  const body = JSON.stringify({
    jsonrpc: "2.0",
    id: 1,
    method: "initialize",
    params: { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "t", version: "1" } },
  });
  const response = await fetch(`${origin}${path}`, { method: "POST", headers, body });
  await response.text();
  return response.status;
}

const ALL = [
  ...["bank_delete", "bank_only", "bank_search", "mail_delete", "mail_only", "mail_search"],
  ...["notes_delete", "notes_only", "notes_search"],
];

it("paths and callers show each caller its part, on every path, with one process for each server", async () => {
  await start();
  expect(await withClient("all", "/mcp", toolsOf)).toEqual(ALL);
  expect(await withClient("eve", "/mcp", toolsOf)).toEqual(ALL);
  const work = ["mail_only", "mail_search", "notes_delete", "notes_search"];
  for (const path of ["/mcp", "/mcp/", "/mcp/work"]) expect(await withClient("ada", path, toolsOf)).toEqual(work);
  expect(await withClient("eve", "/mcp/work", toolsOf)).toEqual(work);
  expect(await withClient("ada", "/servers/mail/mcp", toolsOf)).toEqual(["mail_only", "mail_search"]);
  expect(await withClient("eve", "/servers/mail/mcp", toolsOf)).toEqual(ALL.slice(3, 6));
  for (const path of ["/mcp", "/mcp/home", "/servers/notes/mcp"]) {
    expect(await withClient("bob", path, toolsOf)).toEqual(["notes_search"]);
  }
  const pid = (client: OurClient): Promise<unknown> => client.callTool("mail_only").then(({ content }) => content);
  const pids = [
    await withClient("ada", "/mcp", pid),
    await withClient("ada", "/servers/mail/mcp", pid),
    await withClient("eve", "/mcp/work", pid),
    await withClient("all", "/mcp", pid),
  ];
  expect(new Set(pids.map((one) => JSON.stringify(one))).size).toBe(1);
  expect(await withClient("ada", "/mcp", async ({ instructions }) => instructions)).toBe(
    "# notes\n\nI am notes.\n\n# mail\n\nI am mail.",
  );
});

it.runIf(IS_LONG)("paths and callers have nothing at other paths, and need a token", async () => {
  await start();
  for (const path of ["/mcp", "/mcp/work", "/servers/notes/mcp", "/servers/nope/mcp", "/nope"]) {
    expect([path, await statusOf(path, undefined), await statusOf(path, "wrong")]).toEqual([path, 401, 401]);
  }
  const statuses = async (who: keyof typeof TOKENS, paths: readonly string[]): Promise<number[]> =>
    Promise.all(paths.map((path) => statusOf(path, TOKENS[who])));
  const paths = ["/mcp/work", "/mcp/home", "/servers/bank/mcp", "/servers/mail/mcp", "/servers/notes/mcp/"];
  expect(await statuses("ada", paths)).toEqual([200, 404, 404, 200, 200]);
  expect(await statuses("bob", paths)).toEqual([404, 200, 404, 404, 200]);
  expect(await statuses("eve", paths)).toEqual([200, 200, 200, 200, 200]);
  const odd = ["/mcp/nope", "/servers/nope/mcp", "/servers//mcp", "/servers/%E0%A4%A/mcp", "/servers/notes", "/x"];
  expect(await statuses("eve", odd)).toEqual([404, 404, 404, 404, 404, 404]);
  expect(await statuses("eve", ["/servers/n%6Ftes/mcp", "/servers/notes%2Fmcp"])).toEqual([200, 404]);
});

it("paths and callers give a session of one path no access at another", async () => {
  await start();
  const client = new Client({ name: "sdk", version: "1" });
  const transport = new StreamableHTTPClientTransport(new URL(`${origin}/mcp/work`), { requestInit: as("ada") });
  await client.connect(transport);
  expect((await client.listTools()).tools.map(({ name }) => name)).toContain("mail_search");
  const headers = {
    ...as("bob").headers,
    "mcp-session-id": transport.sessionId ?? "",
    "content-type": "application/json",
    accept: "application/json, text/event-stream",
  };
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list", params: {} });
  for (const path of ["/mcp", "/mcp/work", "/mcp/home"]) {
    expect((await fetch(`${origin}${path}`, { method: "POST", headers, body })).status).toBe(404);
  }
  await client.close();
});

it.runIf(IS_LONG)(
  "paths and callers end the open subscription of a caller that is removed while the gateway runs",
  async () => {
    await start();
    const method = "subscriptions/listen";
    const _meta = { [META.revision]: NEWEST.name, [META.clientCapabilities]: {} };
    const params = { notifications: { toolsListChanged: true }, _meta };
    const response = await fetch(`${origin}/mcp`, {
      method: "POST",
      headers: {
        ...as("ada").headers,
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
        "mcp-protocol-version": NEWEST.name,
        "mcp-method": method,
      },
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }),
    });
    const { ada: _ada, ...callers } = CONFIG.callers;
    const file = join(folder, "catenary.json");
    onTestFinished(() => writeFileSync(file, JSON.stringify(CONFIG)));
    writeFileSync(file, JSON.stringify({ ...CONFIG, callers }));
    gateway.process.kill("SIGHUP");
    expect(await response.text()).toContain("You are not among the callers of this gateway");
    expect(await statusOf("/mcp", TOKENS.ada)).toBe(401);
  },
);

it.runIf(IS_LONG)(
  "paths and callers refuse what a profile leaves out, by every method and form of a name",
  async () => {
    await start();
    // The whole gateway has been listed, so that all names are known.
    await withClient("all", "/mcp", async (client) => {
      await toolsOf(client);
      await client.listPrompts();
      await client.listResources();
    });
    const refused = ["mail_delete", "delete", "mail.delete", "notes_only", "bank_search", "bank_delete", "bank_only"];
    for (const [who, path] of [
      ["ada", "/mcp"],
      ["ada", "/mcp/work"],
      ["ada", "/servers/notes/mcp"],
      ["eve", "/mcp/work"],
    ] as const) {
      await withClient(who, path, async (client) => {
        for (const name of refused) await expect(client.callTool(name)).rejects.toThrow(/not found|Several upstreams/);
        expect((await client.callTool("notes_delete")).content).toMatchObject([{ text: "notes deleted" }]);
        for (const uri of ["bank://secret", "bank://7", "bank.bank://secret"]) {
          await expect(client.readResource(uri)).rejects.toThrow();
        }
        expect(JSON.stringify(await client.listResources())).not.toContain("bank");
        expect(JSON.stringify(await client.listResourceTemplates())).not.toContain("bank");
        expect(JSON.stringify(await client.listPrompts())).not.toContain("bank");
        await expect(client.getPrompt("bank_hello")).rejects.toThrow("not found");
        const argument = { name: "x", value: "" };
        await expect(client.complete({ type: "ref/prompt", name: "bank_hello" }, argument)).rejects.toThrow();
        const id = { name: "id", value: "" };
        for (const uri of ["bank://{id}", "bank.bank://{id}"]) {
          await expect(client.complete({ type: "ref/resource", uri }, id)).rejects.toThrow();
        }
        const heard = await client
          .listen({ resourceSubscriptions: ["bank://secret"] }, () => undefined)
          .then(({ granted }) => granted.resourceSubscriptions ?? [])
          .catch(() => []);
        expect(heard).toEqual([]);
      });
    }
    await withClient("bob", "/mcp", async (client) => {
      expect((await client.callTool("notes_search")).content).toMatchObject([{ text: "notes found" }]);
      for (const name of [...refused, "notes_delete", "mail_search"]) {
        await expect(client.callTool(name)).rejects.toThrow(/not found|Several upstreams/);
      }
      expect((await client.listPrompts()).prompts).toEqual([]);
      await expect(client.getPrompt("notes_hello")).rejects.toThrow("not found");
      expect((await client.listResources()).resources).toEqual([]);
      await expect(client.readResource("notes://secret")).rejects.toThrow("not found");
    });
  },
);
