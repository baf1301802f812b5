// A running gateway seen from outside: `catenary status`, `logs` and `restart` over its socket, /healthz and /readyz, its
// log as JSON, and servers that are started with it.

import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect } from "catenary";
import { afterAll, beforeAll, expect, it, onTestFinished } from "vitest";
import { catenary, CLI, cliRunner, type CliProcess, type CliResult } from "./cli-process.ts";

/** Writes to stderr, answers `hang` never, and exits at once if there is a file named `broken`. */
const SERVER = `
import { existsSync } from "node:fs";
if (existsSync(new URL("broken", import.meta.url))) {
  console.error("the file broken is in the way");
  process.exit(3);
}
console.error("notes is ready");
const tools = ["hello", "hang", "reveal"].map((name) => ({ name, inputSchema: { type: "object" } }));
export default async ({ method, params }) => {
  if (method === "server/discover") return { capabilities: { tools: {} } };
  if (method === "tools/list") return { tools };
  if (params?.name === "reveal") return { content: [{ type: "text", text: process.env.KEY + " " + process.env.OTHER_KEY }] };
  if (params?.name === "nothing") throw new Error("There is no tool nothing");
  if (params?.name === "hang") {
    console.error("hanging");
    await new Promise(() => undefined);
  }
  return { content: [{ type: "text", text: "hello from " + process.pid }] };
};`;

let folder = "";
let file = "";
let env: NodeJS.ProcessEnv = {};
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "catenary-control-"));
  file = join(folder, "catenary.json");
  env = { XDG_RUNTIME_DIR: join(folder, "run"), MY_TOKEN: "correct-horse-battery" };
  writeFileSync(join(folder, "notes.mjs"), SERVER);
  writeFileSync(file, JSON.stringify(config));
});
afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
});

const NOTES = {
  command: process.execPath,
  args: [CLI, "serve", "notes.mjs"],
  restart: { firstMs: 10, maxFailures: 2 },
};
const config = { mcpServers: { notes: NOTES, other: { url: "http://127.0.0.1:1/mcp" } } };

const run = cliRunner();
const command = (...args: string[]): Promise<CliResult> => catenary(args, "", { env, cwd: folder });

async function start(...args: string[]): Promise<{ one: CliProcess; url: string }> {
  const one = run(["up", ...args, "--http", ":0", "--json"], { env, cwd: folder });
  await expect.poll(() => one.out.includes("\n") || one.process.exitCode !== null).toBe(true);
  return { one, url: (JSON.parse(one.out || one.err) as { url: string }).url };
}

it("status, logs and restart say so if no gateway runs", async () => {
  for (const args of [["status"], ["logs"], ["restart", "notes"]]) {
    const none = await command(...args);
    expect(none).toMatchObject({ code: 4, out: "", err: "catenary: No gateway runs; start one with catenary up\n" });
  }
});

it("status, logs and restart trust only sockets in a folder of the user, and print no escape sequences", async () => {
  const sockets = join(folder, "odd", "catenary");
  mkdirSync(sockets, { recursive: true });
  const info = { pid: 1, config: "/c\u001b[2J", url: "http://x\u001b[2J", startedAt: "\u001b[2J", upstreams: {} };
  const server = createServer((_request, response) => void response.end(JSON.stringify(info)));
  await new Promise<void>((resolve) => void server.listen(join(sockets, "1.sock"), resolve));
  onTestFinished(() => void server.close());
  const status = (): Promise<CliResult> =>
    catenary(["status"], "", { env: { XDG_RUNTIME_DIR: join(folder, "odd") }, cwd: folder });
  chmodSync(sockets, 0o777);
  expect(await status()).toMatchObject({ code: 4, out: "", err: expect.stringContaining("chmod 700") });
  chmodSync(sockets, 0o700);
  expect(await status()).toMatchObject({ out: "/c\\x1b[2J at http://x\\x1b[2J (pid 1, since \\x1b[2J)\n" });
});

it("status, logs and restart show a gateway and its servers, and start one anew without disconnecting its clients", async () => {
  const { one, url } = await start("--start");
  await one.waitForStderr("notes started (pid ");
  await one.waitForStderr("other failed: ");
  const shown = await command("status");
  expect(shown.code).toBe(0);
  expect(shown.out).toMatch(new RegExp(`^${file} at ${url} \\(pid ${one.process.pid}, since `));
  expect(shown.out).toMatch(/^ {2}notes .* running$/m);
  expect(shown.out).toMatch(/^ {2}other .* failed \(tried again on next use\): Nothing listens/m);
  const { gateways } = JSON.parse((await command("status", "--json", "--gateway", file)).out) as {
    gateways: { pid: number; upstreams: Record<string, { pids: number[] }> }[];
  };
  expect(gateways).toMatchObject([
    { pid: one.process.pid, url, config: file, upstreams: { notes: { state: "running" } } },
  ]);
  const [before] = gateways[0]?.upstreams["notes"]?.pids ?? [];

  const client = await connect(url);
  expect(await client.callTool("hello")).toMatchObject({ content: [{ text: `hello from ${before}` }] });
  const hanging = client.callTool("hang");
  hanging.catch(() => undefined);
  const again = JSON.parse((await command("restart", "notes", "--json")).out) as { state: string; pids: number[] };
  expect(again.state).toBe("running");
  expect(again.pids[0]).not.toBe(before);
  expect(await client.callTool("hello")).toMatchObject({ content: [{ text: `hello from ${again.pids[0]}` }] });

  const all = await command("logs");
  expect(all.out).toMatch(/^\d{4}-\S+Z notes: notes is ready$/m);
  expect(all.out).toContain("other failed: ");
  const own = (await command("logs", "notes", "--json")).out.trim().split("\n");
  const entries = own.map((line) => JSON.parse(line) as { upstream: string; message: string; stream?: string });
  expect(new Set(entries.map(({ upstream }) => upstream))).toEqual(new Set(["notes"]));
  expect(entries).toContainEqual(expect.objectContaining({ stream: "stderr", message: "notes is ready" }));
  const following = run(["logs", "-f"], { env, cwd: folder });
  await expect.poll(() => following.out).toContain("notes is ready");
  await command("restart", "notes");
  await expect.poll(() => following.out.split("notes is ready").length).toBeGreaterThan(3);

  expect(await command("logs", "nots")).toMatchObject({
    ...{ code: 2, err: "catenary: There is no server nots; there are notes, other\n" },
  });
  expect((await command("restart", "constructor")).err).toContain("There is no server constructor; there are notes,");
  expect(await command("status", "--gateway", "other.json")).toMatchObject({ code: 4 });
  const unreachable = await command("restart", "other");
  expect(unreachable).toMatchObject({ code: 4, out: "" });
  expect(unreachable.err).toContain("Nothing listens at 127.0.0.1:1");
  await client.close();
  one.process.kill("SIGKILL");
  await one.exited;
  expect(await following.exited).toBe(0);
  // The socket that is left is removed.
  expect(readdirSync(join(folder, "run", "catenary"))).toHaveLength(1);
  expect(await command("status")).toMatchObject({ code: 4 });
  expect(readdirSync(join(folder, "run", "catenary"))).toHaveLength(0);
});

it("status, logs and restart start a server that has crashed too often", async () => {
  const broken = join(folder, "broken");
  writeFileSync(broken, "");
  const { one, url } = await start();
  const client = await connect(url);
  await expect(client.callTool("hello")).rejects.toThrow();
  await expect.poll(() => client.callTool("hello").catch(String)).toContain("will not be restarted");
  await one.waitForStderr("notes failed to start too often");
  expect(await command("restart", "notes")).toMatchObject({ code: 4 });
  rmSync(broken);
  expect(await command("restart", "notes")).toMatchObject({ code: 0, err: "" });
  expect(await client.callTool("hello")).toMatchObject({ content: [{ text: expect.stringContaining("hello") }] });
  await client.close();
});

it("status, logs and restart use a socket that only its user can open, and let a user choose between several gateways", async () => {
  const other = join(folder, "other.json");
  writeFileSync(other, JSON.stringify({ mcpServers: { mine: { module: "./notes.mjs" } } }));
  const [first, second] = [await start(), await start(other)];
  const sockets = join(folder, "run", "catenary");
  expect(statSync(sockets).mode & 0o777).toBe(0o700);
  for (const name of readdirSync(sockets)) expect(statSync(join(sockets, name)).mode & 0o777).toBe(0o600);
  const both = JSON.parse((await command("status", "--json")).out) as { gateways: { url: string }[] };
  expect(both.gateways.map(({ url }) => url)).toEqual([first.url, second.url]);
  // The gateway of ./catenary.json is the default.
  expect((await command("logs", "mine")).err).toContain("There is no server mine; there are notes, other");
  expect(await command("restart", "mine", "--gateway", second.url)).toMatchObject({
    ...{ code: 4, err: "catenary: mine is a module, which is loaded once; restart the gateway to load it again\n" },
  });
  const elsewhere = await catenary(["logs"], "", { env, cwd: tmpdir() });
  expect(elsewhere).toMatchObject({ code: 1 });
  expect(elsewhere.err).toContain("Several gateways run: choose one with --gateway URL; there are ");
  second.one.process.kill("SIGTERM");
  expect(await second.one.exited).toBe(0);
  expect(readdirSync(sockets)).toHaveLength(1);
});

const get = async (url: string, path: string, headers: Record<string, string> = {}): Promise<[number, unknown]> => {
  const response = await fetch(new URL(path, url), { headers });
  return [response.status, await response.json()];
};

it("health tells whether the gateway serves, and with the token, which servers fail", async () => {
  const closed = join(folder, "closed.json");
  writeFileSync(closed, JSON.stringify({ ...config, listen: { token: "${MY_TOKEN}" } }));
  const { one, url } = await start(closed);
  const headers = { authorization: "Bearer correct-horse-battery" };
  expect(await get(url, "/healthz")).toEqual([200, { status: "ok" }]);
  expect(await get(url, "/readyz", headers)).toEqual([200, { status: "ready", failing: [] }]);
  const client = await connect(url, { headers });
  await client.listTools();
  await expect.poll(() => get(url, "/readyz", headers)).toEqual([200, { status: "ready", failing: ["other"] }]);
  expect(await get(url, "/readyz")).toEqual([200, { status: "ready" }]);
  expect(await get(url, "/readyz", { authorization: "Bearer wrong" })).toEqual([200, { status: "ready" }]);
  expect((await fetch(new URL("/healthz", url), { method: "POST" })).status).toBe(405);
  client.callTool("hang").catch(() => undefined);
  await one.waitForStderr("hanging");
  // While calls in flight finish, the process lives, but takes no more requests.
  one.process.kill("SIGTERM");
  await one.waitForStderr("shutting down");
  expect(await get(url, "/healthz")).toEqual([200, { status: "ok" }]);
  expect(await get(url, "/readyz")).toEqual([503, { status: "shutting down" }]);
  one.process.kill("SIGTERM");
  expect(await one.exited).toBe(0);
});

it("health names only the servers that the caller may use", async () => {
  const divided = join(folder, "divided.json");
  const other = { url: "http://127.0.0.1:1/mcp", start: true };
  const profiles = { mine: { servers: ["notes"] } };
  const callers = { ada: { token: "ada-key", profile: "mine" }, bob: { token: "bob-key" } };
  writeFileSync(
    divided,
    JSON.stringify({ mcpServers: { notes: NOTES, other }, profiles, callers, chain: ["metrics"] }),
  );
  const { url } = await start(divided);
  const as = (token: string): Promise<[number, unknown]> => get(url, "/readyz", { authorization: `Bearer ${token}` });
  await expect.poll(() => as("bob-key")).toEqual([200, { status: "ready", failing: ["other"] }]);
  expect(await as("ada-key")).toEqual([200, { status: "ready", failing: [] }]);
  expect(await get(url, "/readyz")).toEqual([200, { status: "ready" }]);
  const metrics = async (token: string): Promise<[number, boolean]> => {
    const response = await fetch(new URL("/metrics", url), { headers: { authorization: `Bearer ${token}` } });
    return [response.status, (await response.text()).includes('restarts_total{server="other"}')];
  };
  expect(await metrics("bob-key")).toEqual([200, true]);
  expect(await metrics("ada-key")).toEqual([404, false]);
  expect(await metrics("none")).toEqual([401, false]);
});

it("health is not ready if all servers fail", async () => {
  const alone = join(folder, "alone.json");
  writeFileSync(alone, JSON.stringify({ mcpServers: { other: { url: "http://127.0.0.1:1/mcp", start: true } } }));
  const { url } = await start(alone);
  await expect.poll(() => get(url, "/readyz")).toEqual([503, { status: "not ready", failing: ["other"] }]);
});

it("writes its log as JSON, with times", async () => {
  const logged = join(folder, "logged.json");
  writeFileSync(logged, JSON.stringify({ mcpServers: { notes: { ...NOTES, start: true } }, chain: ["log"] }));
  const { one, url } = await start(logged, "--log-format", "json");
  const client = await connect(url);
  await client.callTool("hello");
  await client.close();
  one.process.kill("SIGTERM");
  await one.exited;
  const entries = one.err
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Record<string, unknown>);
  for (const { time } of entries) expect(time).toMatch(/^\d{4}-\d{2}-\d{2}T[\d:.]+Z$/);
  expect(entries).toContainEqual(
    expect.objectContaining({ upstream: "notes", message: expect.stringMatching(/^started/) }),
  );
  expect(entries).toContainEqual(expect.objectContaining({ level: "info", method: "tools/call", name: "hello" }));
  expect(entries).toContainEqual(expect.objectContaining({ message: expect.stringContaining("shutting down") }));
  expect((await command("up", logged, "--log-format", "xml")).err).toContain("--log-format xml is not valid");
});

it("traces every message of callers and servers, without secrets", async () => {
  const traced = join(folder, "traced.json");
  const trace = join(folder, "trace.jsonl");
  const keys = { KEY: "${MY_TOKEN}", OTHER_KEY: "a literal key" };
  const callers = { ada: { token: "ada-secret" } };
  writeFileSync(traced, JSON.stringify({ mcpServers: { notes: { ...NOTES, env: keys } }, callers }));
  const { one, url } = await start(traced, "--trace", trace);
  const client = await connect(url, { headers: { authorization: "Bearer ada-secret" } });
  const given = { password: "hunter2", text: "I am ada-secret", tokens: ["hunter3", ["hunter4"]] };
  expect(await client.callTool("reveal", given)).toMatchObject({
    content: [{ text: "correct-horse-battery a literal key" }],
  });
  await expect(client.callTool("nothing")).rejects.toThrow();
  await client.close();
  one.process.kill("SIGTERM");
  expect(await one.exited).toBe(0);
  expect(statSync(trace).mode & 0o777).toBe(0o600);
  const text = readFileSync(trace, "utf8");
  for (const secret of ["correct-horse-battery", "a literal key", "hunter", "ada-secret"]) {
    expect(text).not.toContain(secret);
  }
  const entries = text
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Record<string, unknown>);
  const calls = entries.filter(({ method }) => method === "tools/call");
  expect(calls).toMatchObject([
    {
      side: "caller",
      what: "request",
      caller: { style: "stateless" },
      params: { arguments: { password: "[redacted]", tokens: ["[redacted]", ["[redacted]"]] } },
    },
    { side: "upstream", what: "request", upstream: "notes" },
    { side: "caller", what: "request", params: { name: "nothing" } },
    { side: "upstream", what: "request", params: { name: "nothing" } },
  ]);
  const answered = entries.filter(({ what, id }) => what === "result" && calls.some((call) => call["id"] === id));
  expect(answered.map(({ side }) => side)).toEqual(["upstream", "caller"]);
  expect(JSON.stringify(answered)).toContain("${MY_TOKEN} [redacted]");
  expect(entries).toContainEqual(expect.objectContaining({ what: "error", id: calls[2]?.["id"] }));
  const refused = await command("up", traced, "--trace", join(folder, "no", "such", "folder"));
  expect(refused).toMatchObject({ code: 1, err: expect.stringContaining("cannot be written: ENOENT") });
});
