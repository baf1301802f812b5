// The compat of the commands that serve: by `--compat`, and by the key `compat` of a config. The values themselves are
// tested beside src/protocol/compat-documents.ts, and with the transcripts of the documents.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { NEWEST_SESSION } from "../../../src/protocol/revisions/index.ts";
import { IS_LONG } from "../../support/thoroughness.ts";
import { HttpPeer } from "../../support/http/http-peer.ts";
import { SessionClient } from "../../support/http/mcp-clients.ts";
import { catenary, cliRunner, TEST_SERVER_COMMAND } from "./cli-process.ts";

const folder = mkdtempSync(join(tmpdir(), "catenary-compat-"));
afterAll(() => rmSync(folder, { recursive: true }));

const SERVER = TEST_SERVER_COMMAND.at(-1) ?? "";

const MESSAGES = [
  {
    id: 1,
    method: "initialize",
    params: { protocolVersion: NEWEST_SESSION.name, capabilities: {}, clientInfo: { name: "test", version: "1" } },
  },
  { method: "notifications/initialized" },
  { id: 2, method: "tools/call", params: { name: "no such tool", arguments: {} } },
  { id: 3, method: "resources/read", params: { uri: "no:such" } },
];
const INPUT = MESSAGES.map((message) => `${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`).join("");

/** The codes of the answers for an unknown tool and an unknown resource. */
async function codes(args: readonly string[]): Promise<unknown> {
  const { code, out, err } = await catenary(args, INPUT);
  expect([code, err]).toEqual([0, expect.any(String)]);
  const answers = out
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as { readonly id?: number; readonly error?: { readonly code: number } });
  return [2, 3].map((id) => answers.find((answer) => answer.id === id)?.error?.code);
}

function config(name: string, compat: string): string {
  const path = join(folder, name);
  writeFileSync(path, JSON.stringify({ mcpServers: { demo: { module: SERVER } }, compat }));
  return path;
}

const run = cliRunner();

it("a compat is chosen by --compat of serve", async () => {
  expect(await codes(["serve", SERVER, "--compat", "chain"])).toEqual([-32001, -32002]);
});

it("a compat of a config is that of its clients over HTTP", async () => {
  const gateway = run(["serve", config("http.json", "chain"), "--http", "127.0.0.1:0", "--json"]);
  await expect.poll(() => gateway.out.includes("\n") || gateway.process.exitCode !== null).toBe(true);
  const { url } = JSON.parse(gateway.out || gateway.err) as { url: string };
  const client = await SessionClient.open(new HttpPeer(url), NEWEST_SESSION.name);
  expect(client.initializeResponse["result"].capabilities).toEqual({ tools: {}, resources: {}, prompts: {} });
  expect(await client.request("tools/call", { name: "no such tool", arguments: {} })).toMatchObject({
    error: { code: -32001, message: "Tool not found", data: "Tool 'no such tool' does not exist" },
  });
  expect(await client.request("no/such")).toMatchObject({ error: { data: "Unknown method: no/such" } });
  expect((await client.end()).status).toBe(204);
});

it.runIf(IS_LONG)("a compat is chosen by a config, and --compat wins over it", async () => {
  expect(await codes(["serve", config("chain.json", "chain")])).toEqual([-32001, -32002]);
  expect(await codes(["serve", config("chain.json", "chain"), "--compat", "reference"])).toEqual([-32602, -32001]);
});

it.runIf(IS_LONG)("a compat is chosen by --compat of run", async () => {
  expect(await codes(["run", "--compat", "reference", "--", ...TEST_SERVER_COMMAND])).toEqual([-32602, -32001]);
});

it.runIf(IS_LONG).each([["serve", SERVER], ["up"], ["run", "node"]])(
  "a compat that does not exist is refused by %s",
  async (command, ...rest) => {
    const { code, err } = await catenary([command, "--compat", "work", ...rest]);
    expect(code).toBe(1);
    expect(err).toContain("--compat work is not valid; write one of mcp, cl-mcp, llm-pharo, chain, reference");
  },
);
