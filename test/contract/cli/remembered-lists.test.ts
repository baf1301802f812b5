// What one run has listed, the next one knows from its start: `up` after `doctor`, and with a token after one without.
// Each server writes a line to a file when it starts, so that the starts can be counted.

import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { IS_LONG } from "../../support/thoroughness.ts";
import { catenary, cliRunner } from "./cli-process.ts";

const start = cliRunner();

/** Does not answer once the second file exists, so that what it lists can only be known from before. */
const SERVER = `
const { appendFileSync, existsSync } = require("node:fs");
const [, starts, silent, ...names] = process.argv;
appendFileSync(starts, names[0] + "\\n");
if (existsSync(silent)) setInterval(() => undefined, 1_000);
else require("node:readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method } = JSON.parse(line);
  const tools = names.map((name) => ({ name, description: name, inputSchema: { type: "object" } }));
  const results = {
    initialize: {
      protocolVersion: "2025-06-18", capabilities: { tools: {} }, serverInfo: { name: names[0], version: "1" },
    },
    "tools/list": { tools },
  };
  if (id === undefined) return;
  const answer = results[method] ? { result: results[method] } : { error: { code: -32601, message: "unknown" } };
  console.log(JSON.stringify({ jsonrpc: "2.0", id, ...answer }));
});
`;

const TOKEN = "a-token-of-this-test";

let folder = "";
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "catenary-remembered-"));
  const entry = (...names: string[]): object => ({
    command: process.execPath,
    args: ["-e", SERVER, join(folder, "starts"), join(folder, "silent"), ...names],
  });
  const mcpServers = { notes: entry("add_note", "find_note"), clock: entry("tell_time") };
  writeFileSync(join(folder, "open.json"), JSON.stringify({ mcpServers }));
  writeFileSync(join(folder, "token.json"), JSON.stringify({ mcpServers, listen: { token: TOKEN } }));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const env = (): NodeJS.ProcessEnv => ({ HOME: folder, CATENARY_CACHE: join(folder, "cache") });

function startsSoFar(): readonly string[] {
  const file = join(folder, "starts");
  return existsSync(file) ? readFileSync(file, "utf8").trim().split("\n") : [];
}

async function toolsOf(config: string, token: readonly string[]): Promise<readonly string[]> {
  const options = { cwd: folder, env: env() };
  const gateway = start(["up", join(folder, config), "--http", "127.0.0.1:0", "--json"], options);
  await Promise.race([once(gateway.process.stdout, "data"), gateway.exited]);
  const { url } = JSON.parse(gateway.out) as { url: string };
  const { out, err } = await catenary(["tools", url, "--json", ...token], "", options);
  expect(err).toBe("");
  return (JSON.parse(out) as { tools: { name: string }[] }).tools.map(({ name }) => name);
}

it("up knows what doctor has listed, with a token too, and starts nothing to list it", async () => {
  const { code } = await catenary(["doctor", join(folder, "open.json")], "", { cwd: folder, env: env() });
  expect(code).toBe(0);
  expect(startsSoFar().toSorted()).toEqual(["add_note", "tell_time"]);
  writeFileSync(join(folder, "silent"), "");
  const all = ["add_note", "find_note", "tell_time"];
  expect(await toolsOf("token.json", ["--token", TOKEN])).toEqual(all);
  if (IS_LONG) expect(await toolsOf("open.json", [])).toEqual(all);
  expect(startsSoFar()).toHaveLength(2);
});
