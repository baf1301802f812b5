// A config that changes while `catenary up` and `serve` run: no call is lost, no client is disconnected, and only what has
// changed is restarted. A config with errors, and one that would let callers run code without a token, are refused.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect, type Client } from "catenary";
import { afterAll, beforeAll, expect, it } from "vitest";
import { NEWEST_SESSION } from "../../../src/protocol/revisions/index.ts";
import { IS_LONG } from "../../support/thoroughness.ts";
import { HAS_TERMINAL, Terminal } from "../../support/terminal/terminal.ts";
import { CLI, cliRunner, type CliProcess, expectNoProcesses, markProcesses } from "./cli-process.ts";

/** A server in a module without imports, with one tool that answers after some milliseconds. */
const server = (tool: string, ms: number): string => `
export default async ({ method }) => {
  if (method === "server/discover") return { capabilities: { tools: {} } };
  if (method === "tools/list") return { tools: [{ name: "${tool}", inputSchema: { type: "object" } }] };
  if (method !== "tools/call") return { resultType: "complete" };
  await new Promise((resolve) => setTimeout(resolve, ${ms}));
  return { content: [{ type: "text", text: "${tool} " + (process.env.NUMBER ?? "") }] };
};`;

const CHANGES = IS_LONG ? 200 : 4;

let folder = "";
let file = "";
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "catenary-reload-"));
  file = join(folder, "catenary.json");
  writeFileSync(join(folder, "steady.mjs"), server("steady", 5));
  writeFileSync(join(folder, "changing.mjs"), server("changing", 20));
});
afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
});

const run = cliRunner();

const program = (name: string, env: Record<string, string> = {}): object => ({
  command: process.execPath,
  args: [CLI, "serve", join(folder, `${name}.mjs`)],
  env,
});

function write(number: number, more: object = {}): void {
  const mcpServers = { steady: program("steady"), changing: program("changing", { NUMBER: String(number) }) };
  writeFileSync(file, JSON.stringify({ mcpServers, ...more }));
}

async function urlOf(one: CliProcess): Promise<string> {
  await expect.poll(() => one.out.includes("\n") || one.process.exitCode !== null).toBe(true);
  return (JSON.parse(one.out || one.err) as { url: string }).url;
}

const count = (text: string, part: string): number => text.split(part).length - 1;

async function textOf(client: Client, tool: string): Promise<string> {
  const { content } = await client.callTool(tool);
  return (content[0] as { text: string }).text;
}

it(
  `a changed config: changed ${CHANGES} times under load loses no call and no client`,
  { timeout: 30 * 60_000 },
  async () => {
    write(0);
    const one = run(["up", file, "--http", ":0", "--json"]);
    const url = await urlOf(one);
    // A session whose id must stay valid, with a stream that must stay open.
    const accept = { accept: "application/json, text/event-stream", "content-type": "application/json" };
    let id = 0;
    const send = (message: object, headers: Record<string, string> = {}): Promise<Response> =>
      fetch(url, {
        method: "POST",
        headers: { ...accept, ...headers },
        body: JSON.stringify({ jsonrpc: "2.0", ...message }),
      });
    const clientInfo = { name: "raw", version: "1" };
    const params = { protocolVersion: NEWEST_SESSION.name, capabilities: {}, clientInfo };
    const opened = await send({ id: (id += 1), method: "initialize", params });
    const session = { "mcp-session-id": opened.headers.get("mcp-session-id") ?? "" };
    await opened.text();
    await send({ method: "notifications/initialized" }, session);
    const stream = await fetch(url, { headers: { ...accept, ...session } });
    let notified = 0;
    let isStreamOver = false;
    const reading = (async () => {
      for await (const bytes of stream.body ?? [])
        notified += count(Buffer.from(bytes).toString(), "tools/list_changed");
    })().finally(() => (isStreamOver = true));
    reading.catch(() => undefined);

    const clients = await Promise.all([connect(url), connect(url, { revision: NEWEST_SESSION.name })]);
    const pids = (): Set<string> => new Set(one.err.match(/(?<=steady started \(pid )\d+/g));
    let isOver = false;
    let calls = 0;
    const load = async (call: () => Promise<string>, expected: string): Promise<void> => {
      while (!isOver) {
        expect(await call()).toContain(expected);
        calls += 1;
      }
    };
    const raw = async (): Promise<string> => {
      const response = await send({ id: (id += 1), method: "tools/call", params: { name: "steady" } }, session);
      expect(response.status).toBe(200);
      return response.text();
    };
    const loads = Promise.all([
      load(raw, "steady"),
      ...clients.flatMap((client) => ["steady", "changing"].map((tool) => load(() => textOf(client, tool), tool))),
    ]);
    for (let number = 1; number <= CHANGES; number += 1) {
      write(number, number % 3 === 0 ? { chain: [{ timeout: 60_000 }] } : {});
      one.process.kill("SIGHUP");
      const isRead = (): boolean => count(one.err, "was read again: restarted changing") === number;
      await Promise.race([loads, expect.poll(isRead, { interval: 10 }).toBe(true)]);
      // Some changes come while the upstream is still starting.
      if (number % 2 === 0) expect(await textOf(clients[0], "changing")).toBe(`changing ${number}`);
    }
    isOver = true;
    await loads;
    expect(calls).toBeGreaterThan(CHANGES);
    expect(pids().size).toBe(1);
    expect(isStreamOver).toBe(false);
    await expect.poll(() => notified).toBeGreaterThan(0);
    for (const client of clients) await client.close();
    expect(one.err).not.toMatch(/crashed|failed/);
    one.process.kill("SIGTERM");
    expect(await one.exited).toBe(0);
  },
);

it.runIf(IS_LONG)("a changed config is read with --reload, and on stdio too", async () => {
  write(1);
  const through = [CLI, "serve", file, "--reload"];
  const stderr: string[] = [];
  const client = await connect({ command: process.execPath, args: through }, { onStderr: (text) => stderr.push(text) });
  expect(await textOf(client, "changing")).toBe("changing 1");
  const changed = new Promise<void>((resolve) => {
    void client.listen({ toolsListChanged: true }, () => resolve());
  });
  writeFileSync(file, JSON.stringify({ mcpServers: { steady: program("steady") } }));
  await changed;
  await expect.poll(async () => (await client.listTools()).tools.map(({ name }) => name)).toEqual(["steady"]);
  expect(stderr.join("")).toContain("was read again: removed changing");
  await client.close();
});

it("a changed config is refused if it has errors, or adds a live server without a token; the old one goes on", async () => {
  write(1);
  const one = run(["up", file, "--http", ":0", "--json"]);
  const client = await connect(await urlOf(one));
  expect(await textOf(client, "changing")).toBe("changing 1");
  const refused = async (text: string, message: string): Promise<void> => {
    writeFileSync(file, text);
    one.process.kill("SIGHUP");
    await one.waitForStderr(message);
    expect(await textOf(client, "changing")).toBe("changing 1");
  };
  await refused('{"mcpServers": {', "catenary.json has 1 error; the gateway goes on as before");
  writeFileSync(join(folder, "broken.mjs"), "throw new Error('broken on purpose')");
  const broken = { mcpServers: { broken: { module: "./broken.mjs" } } };
  await refused(JSON.stringify(broken), "broken on purpose");
  const live = { mcpServers: { js: { live: "js" } } };
  await refused(JSON.stringify(live), "A live server was added, and callers need a token for it");
  write(1, { listen: { port: 1 } });
  one.process.kill("SIGHUP");
  await one.waitForStderr('"listen" has changed; that takes effect when you restart the gateway');
  await client.close();
});

it.runIf(HAS_TERMINAL && IS_LONG)("a changed config is not what SIGHUP means if the terminal was closed", async () => {
  write(1);
  const { mark, env } = markProcesses();
  const terminal = new Terminal([process.execPath, CLI, "up", file, "--http", ":0"], { env });
  await terminal.shows("For a client's config:");
  await terminal.close();
  await expectNoProcesses(mark);
});
