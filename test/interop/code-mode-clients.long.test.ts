// Code mode turned on by one flag for a plain `mcpServers` file, used by the clients of both official SDKs, over HTTP and
// stdio.

import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { StdioClientTransport as Stdio1 } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport as Http1 } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { afterAll, beforeAll, expect, it } from "vitest";
import { sandboxProblem } from "../../src/live/sandbox.ts";
import { CLI, CliProcess } from "../contract/cli/cli-process.ts";
import { openOver as openSdk1 } from "./sdk-1-client.ts";
import { openOver as openSdk2 } from "./sdk-2-client.ts";
import type { TestClient } from "./test-client.ts";

const script = (name: string): string =>
  createRequire(import.meta.url).resolve(`@modelcontextprotocol/server-${name}/dist/index.js`);

let folder = "";
let file = "";
let gateway: CliProcess;
let url = new URL("http://127.0.0.1");
let headers: Record<string, string> = {};

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "catenary-code-clients-"));
  file = join(folder, "servers.json");
  writeFileSync(join(folder, "words.txt"), "one two three\n");
  const mcpServers = {
    files: { command: process.execPath, args: [script("filesystem"), folder] },
    everything: { command: process.execPath, args: [script("everything")] },
  };
  // Where there can be no sandbox, the file must say so.
  const isPlain = (await sandboxProblem()) === undefined;
  writeFileSync(file, JSON.stringify(isPlain ? { mcpServers } : { mcpServers, code: { sandbox: false } }));
  gateway = new CliProcess(["up", file, "--code", "--http", "127.0.0.1:0", "--json"], { cwd: folder });
  await Promise.race([once(gateway.process.stdout, "data"), gateway.exited]);
  if (gateway.out === "") throw new Error(gateway.err);
  const ready = JSON.parse(gateway.out) as { url: string; token: string };
  url = new URL(ready.url);
  headers = { authorization: `Bearer ${ready.token}` };
});
afterAll(async () => {
  gateway.process.kill("SIGTERM");
  await gateway.exited;
  rmSync(folder, { recursive: true, force: true });
});

const stdio = () => ({ command: process.execPath, args: [CLI, "serve", file, "--code"], stderr: "ignore" as const });
const NEWEST = { versionNegotiation: { mode: "auto" as const } };

const CLIENTS: readonly (readonly [string, () => Promise<TestClient>])[] = [
  ["SDK 1 over HTTP", () => openSdk1(new Http1(url, { requestInit: { headers } }))],
  ["SDK 1 over stdio", () => openSdk1(new Stdio1(stdio()))],
  ["SDK 2 over HTTP", () => openSdk2(new StreamableHTTPClientTransport(url, { requestInit: { headers } }), NEWEST)],
  ["SDK 2 over stdio", () => openSdk2(new StdioClientTransport(stdio()), NEWEST)],
];

it.each(CLIENTS)("%s finds, describes and calls tools", async (_name, open) => {
  const client = await open();
  try {
    const text = async (tool: string, args: Record<string, unknown>): Promise<string> =>
      String((await client.call(tool, args))["content"][0].text);
    expect((await client.tools()).map(({ name }) => String(name))).toEqual([
      "search-tools",
      "describe-tools",
      "run-code",
    ]);
    expect(client.instructions).toContain("The tools of this server are called from code.");
    expect(await text("search-tools", { query: "read a text file" })).toContain("files.read_text_file({ path: string");
    expect(await text("describe-tools", { names: ["everything.get_sum"] })).toContain("get_sum(args: {");
    const path = JSON.stringify(join(folder, "words.txt"));
    const code = `const { content } = await tools.files.read_text_file({ path: ${path} });
      await tools.everything.get_sum({ a: content.trim().split(" ").length, b: 4 });`;
    const result = await client.call("run-code", { code });
    expect(String(result["content"][0].text)).toContain("The sum of 3 and 4 is 7.");
    expect(result["structuredContent"].calls).toMatchObject([
      { tool: "files.read_text_file" },
      { tool: "everything.get_sum" },
    ]);
  } finally {
    await client.close();
  }
});
