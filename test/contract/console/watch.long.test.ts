// `catenary watch` and `status`: what a terminal shows of the calls of a running gateway, also of those that code makes
// in code mode.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, expect, it, onTestFinished } from "vitest";
import { connect } from "../../../src/index.ts";
import { catenary, cliRunner, type CliProcess, type CliResult } from "../cli/cli-process.ts";
import type { CallRow } from "../../../src/console/types.ts";

const SERVER = `
export default async ({ method, params }) => {
  const tools = ["hello", "fail"].map((name) => ({ name, inputSchema: { type: "object" } }));
  if (method === "server/discover") return { capabilities: { tools: {} } };
  if (method === "tools/list") return { tools };
  const text = params.name === "fail" ? "no such\\u001b[31m thing" : "hi";
  return { content: [{ type: "text", text }], isError: params.name === "fail" };
};`;

const run = cliRunner();
let folder = "";
let env: NodeJS.ProcessEnv = {};
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "catenary-watch-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  env = { XDG_RUNTIME_DIR: join(folder, "run") };
  writeFileSync(join(folder, "notes.mjs"), SERVER);
});
const command = (...args: string[]): Promise<CliResult> => catenary(args, "", { env, cwd: folder });

async function serve(config: object): Promise<{ url: string; token: string }> {
  const all = { mcpServers: { notes: { module: "./notes.mjs" } }, ...config };
  writeFileSync(
    join(folder, "catenary.json"),
    JSON.stringify({ ...all, listen: { port: 0, token: "a-token-of-mine" } }),
  );
  const gateway = run(["up", "catenary.json", "--no-open"], { env, cwd: folder });
  await gateway.waitForStderr("Console: ");
  const [url = ""] = /http:\/\/[\d.:]+\/mcp/.exec(gateway.err) ?? [];
  return { url, token: "a-token-of-mine" };
}

async function watch(...args: string[]): Promise<CliProcess> {
  const watching = run(["watch", ...args], { env, cwd: folder });
  await watching.waitForStderr("Calls through");
  return watching;
}

async function interrupted(watching: CliProcess): Promise<number | null> {
  watching.process.kill("SIGINT");
  return watching.exited;
}

it("watch prints calls as they end, and status has figures and the last calls", async () => {
  const { url, token } = await serve({});
  const all = await watch("-method:server/discover", "-method:tools/list");
  const failed = await watch("status:error", "--json");
  const client = await connect(url, {
    headers: { authorization: `Bearer ${token}` },
    info: { name: "Ada", version: "2" },
  });
  await client.callTool("hello");
  await client.callTool("fail").catch(() => undefined);
  await client.close();
  await expect.poll(() => all.out.split("\n").length).toBe(3);
  const [first, second] = all.out.split("\n");
  expect(first).toMatch(/^\d\d:\d\d:\d\d\.\d {2}Ada 2 +hello +notes +\S+ ms {2}ok$/);
  expect(second).toMatch(/Ada 2 +fail +notes +\S+ ms {2}tool_error: no such\S* thing$/);
  expect(second).not.toContain("\u001b");
  await expect.poll(() => failed.out).not.toBe("");
  const row = JSON.parse(failed.out.trim().split("\n").at(-1) ?? "") as CallRow;
  expect(row).toMatchObject({ name: "fail", status: "error", error: "tool_error", client: "Ada 2" });
  expect(await interrupted(all)).toBe(130);
  expect(await interrupted(failed)).toBe(130);

  const status = await command("status");
  expect(status.out).toMatch(/^ +calls +errors +p95 +tools +tokens$/m);
  expect(status.out).toMatch(/^ {2}notes +2 +1 +\S+ ms /m);
  const json = JSON.parse((await command("status", "--json")).out) as { gateways: { servers: object[] }[] };
  expect(json.gateways[0]?.servers[0]).toMatchObject({ name: "notes", calls: 2, errors: 1 });
  const calls = await command("status", "--calls", "tool:hello,fail", "-status:error");
  expect(calls.out.trim().split("\n")).toHaveLength(1);
  expect(calls.out).toContain("hello");
  const found = JSON.parse((await command("status", "--calls", "--json", "text:no such")).out) as { calls: CallRow[] };
  expect(found.calls.map(({ name }) => name)).toEqual(["fail"]);
  expect(await command("status", "--calls", "server:other")).toMatchObject({
    ...{ code: 0, out: "" },
    err: expect.stringContaining("No call matches the filter"),
  });
  expect(await command("watch", "statu:x")).toMatchObject({
    code: 1,
    err: expect.stringContaining("did you mean status:?"),
  });
  expect(await command("status", "hello")).toMatchObject({
    code: 1,
    err: expect.stringContaining("only with --calls"),
  });
});

it("watch shows the calls of code under the call that runs it", async () => {
  const { url, token } = await serve({
    mcpServers: { notes: { module: "./notes.mjs" }, other: { module: "./notes.mjs" } },
    code: { sandbox: false },
  });
  const watching = await watch("tool:run-code");
  const client = await connect(url, { headers: { authorization: `Bearer ${token}` } });
  await client.callTool("run-code", { code: "await tools.notes.hello({}); await tools.other.hello({})" });
  await client.close();
  await expect.poll(() => watching.out.split("\n").length).toBe(4);
  const shown = watching.out.split("\n").map((line) => line.slice(12).trim().split(/ {2,}/));
  expect(shown).toMatchObject([
    [expect.any(String), "run-code", expect.any(String), "ok"],
    ["└ notes_hello", "notes", expect.any(String), "ok"],
    ["└ other_hello", "other", expect.any(String), "ok"],
    [""],
  ]);
  expect(await interrupted(watching)).toBe(130);
});

it("the flag that reads a changed config says its new name", async () => {
  const { code, err } = await command("serve", "--watch");
  expect({ code, err }).toEqual({ code: 1, err: "catenary: There is no option --watch; did you mean --reload?\n" });
});
