// `catenary serve CONFIG`, `up` and `check` as processes: the servers of a config as one, on stdio and over HTTP; problems
// of a config; reports on failing upstreams; tokens; and shutdown.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect } from "catenary";
import { afterAll, beforeAll, expect, it } from "vitest";
import { NEWEST_SESSION } from "../../../src/protocol/revisions/index.ts";
import { ENTER, HAS_TERMINAL, Terminal } from "../../support/terminal/terminal.ts";
import { IS_LONG } from "../../support/thoroughness.ts";
import {
  catenary,
  CLI,
  TEST_SERVER_COMMAND,
  markProcesses,
  expectNoProcesses,
  type CliProcess,
  cliRunner,
} from "./cli-process.ts";

const TOKEN = "correct-horse-battery";
const [NODE, ...SERVER_ARGS] = TEST_SERVER_COMMAND;
const DEMO = { command: NODE, args: SERVER_ARGS };
/** A server in a module without imports; it needs no process. */
const MINE = `
export default async ({ method, params }) => {
  if (method === "server/discover") return { capabilities: { tools: {} } };
  if (method === "tools/list") return { tools: [{ name: "mine", inputSchema: { type: "object" } }] };
  return { content: [{ type: "text", text: "mine says " + params.name }], isError: false };
};`;

let folder = "";
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "catenary-gateway-"));
  writeFileSync(join(folder, "mine.mjs"), MINE);
});
afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
});

/** Writes a config with a comment. */
function config(name: string, value: object): string {
  const file = join(folder, name);
  writeFileSync(file, `// for a test\n${JSON.stringify(value, undefined, 2)}\n`);
  return file;
}

const run = cliRunner();

async function ready(
  one: CliProcess,
): Promise<{ url: string; upstreams: Record<string, { state: string; target: string }> }> {
  const isOver = (): boolean => one.out.includes("\n") || one.process.exitCode !== null;
  await expect.poll(isOver).toBe(true);
  return JSON.parse(one.out || one.err) as Awaited<ReturnType<typeof ready>>;
}

const wrong = '{\n  "mcpServers": {\n    "notes": { "comand": "npx", "env": { "API_KEY": "sk-secret" } }\n  }\n}\n';

it("check explains each mistake with its position, and shows no key", async () => {
  const file = join(folder, "wrong.json");
  writeFileSync(file, wrong);
  const { code, out, err } = await catenary(["check", "wrong.json"], "", { cwd: folder });
  expect(code).toBe(1);
  expect(out).toMatch(
    /^wrong\.json:3:16: error: .*\n {2}3 \| {5}"notes": \{ "comand": .*\n {4}\| {16}\^\n {2}did you mean command /,
  );
  expect(out + err).not.toContain("sk-secret");
  expect(out).not.toContain("\u001b");
  expect(err).toMatch(/^wrong\.json has \d errors?\n$/);
  const json = await catenary(["check", file, "--json"]);
  expect(json).toMatchObject({ code: 1, err: "" });
  expect(JSON.parse(json.out)).toMatchObject({
    ok: false,
    problems: expect.arrayContaining([
      expect.objectContaining({ line: 3, column: 16, severity: "error", message: expect.any(String) }),
    ]),
  });
  // `serve` prints the same and starts nothing.
  const serving = await catenary(["serve", "wrong.json"], "", { cwd: folder });
  expect(serving).toMatchObject({ code: 1, out: "" });
  expect(serving.err).toContain(out);
  expect(serving.err).toMatch(/^catenary: wrong\.json has \d errors?; nothing was started\n$/m);
});

it("check summarizes a valid config, and reports a missing one", async () => {
  const file = config("right.json", { mcpServers: { a: DEMO, b: DEMO } });
  const right = await catenary(["check", file]);
  expect(right).toMatchObject({ code: 0, out: `ok: ${file} has 2 servers (a, b)\n`, err: "" });
  expect(JSON.parse((await catenary(["check", file, "--json"])).out)).toEqual({
    ...{ ok: true, servers: ["a", "b"], middleware: [], problems: [] },
  });
  const none = await catenary(["check"], "", { cwd: folder });
  expect(none).toMatchObject({ code: 2, out: "" });
  expect(none.err).toContain("catenary: There is no catenary.json here: name a config, `catenary check FILE`");
});

it.runIf(IS_LONG)("serve goes on after an exception that belongs to no request, and prints it", async () => {
  const stray = `export default async (request, context, next) => {
      if (request.method === "tools/call") {
        setTimeout(() => { throw new Error("thrown in a timer"); });
        void Promise.reject(new Error("rejected and not awaited"));
      }
      return next(request, context);
    };`;
  writeFileSync(join(folder, "stray.mjs"), stray);
  const file = config("stray.json", {
    mcpServers: { mine: { module: "./mine.mjs" } },
    chain: [{ use: "./stray.mjs" }],
  });
  const one = run(["up", file, "--http", "127.0.0.1:0", "--json"]);
  const { url } = await ready(one);
  const client = await connect(url);
  for (let count = 0; count < 2; count += 1) {
    expect(await client.callTool("mine")).toMatchObject({ content: [{ text: "mine says mine" }] });
    await expect.poll(() => one.err.match(/thrown in a timer/g)?.length ?? 0).toBeGreaterThan(count);
    await expect.poll(() => one.err.match(/rejected and not awaited/g)?.length ?? 0).toBeGreaterThan(count);
  }
  const where = "an exception in the middleware stray, outside any request; the gateway goes on:";
  expect(one.err).toMatch(new RegExp(`^\\d{4}-\\d\\d-\\S+Z catenary: ${where}$`, "m"));
  await client.close();
});

it("serve serves all servers of a config as one, on stdio", async () => {
  config("catenary.json", { mcpServers: { demo: DEMO } });
  const through = [process.execPath, CLI, "serve"];
  const result = await catenary(["call", "echo", "text=hi", "--", ...through], "", { cwd: folder });
  expect(result).toMatchObject({ code: 0, out: "hi\n" });
  rmSync(join(folder, "catenary.json"));
  const none = await catenary(["serve", "other.json"], "", { cwd: folder });
  expect(none).toMatchObject({ code: 2, out: "", err: "catenary: There is no config other.json; check the path\n" });
});

it.runIf(IS_LONG)("serve reports a module that never finishes loading", async () => {
  writeFileSync(join(folder, "never.mjs"), "await new Promise(() => undefined);");
  const result = await catenary(["serve", join(folder, "never.mjs")]);
  expect(result).toMatchObject({ code: 1, out: "" });
  expect(result.err).toContain("waits for a promise that never settles");
});

it("serve requires the token of the config over HTTP, and does not print it", async () => {
  const file = config("closed.json", {
    mcpServers: { demo: DEMO },
    listen: { token: "${MY_TOKEN}", path: "/gate" },
  });
  const one = run(["serve", file, "--http", "127.0.0.1:0", "--json"], { env: { MY_TOKEN: TOKEN } });
  const { url } = await ready(one);
  expect(url).toMatch(/\/gate$/);
  const refused = async (headers: Record<string, string>): Promise<number> =>
    (await fetch(url, { method: "POST", headers, body: "{}" })).status;
  expect(await refused({})).toBe(401);
  expect(await refused({ authorization: `Bearer ${TOKEN}x` })).toBe(401);
  const client = await connect(url, { headers: { authorization: `Bearer ${TOKEN}` } });
  expect(await client.callTool("echo", { text: "in" })).toMatchObject({ content: [{ text: "in" }] });
  await client.close();
  expect(one.err + one.out).not.toContain(TOKEN);
});

it.runIf(IS_LONG)("up goes on with the sessions of its clients after a restart", async () => {
  const file = config("again.json", { mcpServers: { mine: { module: "./mine.mjs" } } });
  const env = { XDG_STATE_HOME: join(folder, "state") };
  const one = run(["up", file, "--http", ":0", "--json"], { env });
  const { url } = await ready(one);
  const headers = { accept: "application/json, text/event-stream", "content-type": "application/json" };
  const post = (message: object, more = {}): Promise<Response> =>
    fetch(url, {
      method: "POST",
      headers: { ...headers, ...more },
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, ...message }),
    });
  const params = {
    protocolVersion: NEWEST_SESSION.name,
    capabilities: {},
    clientInfo: { name: "test", version: "1" },
  };
  const session = (await post({ method: "initialize", params })).headers.get("mcp-session-id") ?? "";
  one.process.kill("SIGKILL");
  await one.exited;
  await ready(run(["up", file, "--http", `:${new URL(url).port}`, "--json"], { env }));
  const call = await post({ method: "tools/call", params: { name: "mine" } }, { "mcp-session-id": session });
  expect(await call.text()).toContain("mine says mine");
  expect((await post({ method: "ping" }, { "mcp-session-id": "unknown" })).status).toBe(404);
});

it.runIf(IS_LONG)("up reports on its upstreams, and shuts down at a signal", async () => {
  const far = { url: "http://127.0.0.1:1/${FAR}/mcp" };
  const file = config("two.json", { mcpServers: { demo: DEMO, far, gone: { command: "catenary-no-such-command" } } });
  const one = run(["up", file, "--http", ":0"], { env: { FAR: "a-key-in-a-path" } });
  await one.waitForStderr("For a client's config:");
  const [, url = ""] = /^Serving .*two\.json at (http:\S+)$/m.exec(one.err) ?? [];
  expect(one.err).toMatch(/^ {2}demo +\S*node(?: \S+)? +idle \(starts/m);
  expect(one.err).toContain(`{"mcpServers":{"two":{"type":"http","url":"${url}"}}}`);
  expect(one.out).toBe("");
  const client = await connect(url);
  expect((await client.callTool("echo", { text: "hi" })).content).toEqual([{ type: "text", text: "hi" }]);
  await one.waitForStderr("demo started (pid ");
  await one.waitForStderr("gone failed to start; tried again on next use after ");
  await one.waitForStderr("far failed: Nothing listens at 127.0.0.1:1");
  const listed = await catenary(["tools", url, "--json"]);
  expect(listed.err).toContain("Not listed: far (The upstream far failed: Nothing listens at 127.0.0.1:1");
  const missing = (JSON.parse(listed.out) as { _meta: Record<string, { upstream: string }[]> })._meta[
    "catenary/unavailable"
  ];
  expect(missing?.map(({ upstream }) => upstream)).toEqual(["far", "gone"]);
  const [, pid] = /demo started \(pid (\d+)/.exec(one.err) ?? [];
  process.kill(Number(pid), "SIGKILL");
  await one.waitForStderr("demo crashed");
  expect((await client.callTool("echo", { text: "again" })).content).toEqual([{ type: "text", text: "again" }]);
  await one.waitForStderr("demo restarted (pid ");
  await client.close();
  one.process.kill("SIGINT");
  expect(await one.exited).toBe(130);
  expect(one.err.match(/far failed/g)).toHaveLength(1);
  expect(one.err + listed.err + listed.out).not.toContain("a-key-in-a-path");
});

it.runIf(IS_LONG)(
  "up keeps the host of the config if --http has only a port, and shows servers that it starts as starting",
  async () => {
    const file = config("host.json", { mcpServers: { demo: DEMO }, listen: { host: "127.0.0.2" } });
    const one = run(["up", file, "--http", ":0", "--json", "--start"]);
    const { url, upstreams } = await ready(one);
    expect(url).toMatch(/^http:\/\/127\.0\.0\.2:\d+\/mcp$/);
    expect(upstreams["demo"]?.state).toMatch(/^(?:starting|running)$/);
  },
);

it.runIf(IS_LONG)("up serves a module, and prints JSON for programs", async () => {
  const file = config("mine.json", { mcpServers: { mine: { module: "./mine.mjs" } }, listen: { port: 0 } });
  const one = run(["up", file, "--json"]);
  const { url, upstreams } = await ready(one);
  expect(upstreams).toMatchObject({ mine: { state: "running", target: "in this process" } });
  const client = await connect(url);
  expect(await client.callTool("mine")).toMatchObject({ content: [{ text: "mine says mine" }] });
  await client.close();
  one.process.kill("SIGTERM");
  expect(await one.exited).toBe(0);
  const module = await catenary(["up", join(folder, "mine.mjs")]);
  expect(module).toMatchObject({ code: 1, out: "" });
  expect(module.err).toContain("is not a config; to serve a module, run catenary serve");
});

const asking = (): string =>
  config("asking.json", {
    inputs: [{ id: "demo-key", type: "promptString", description: "The key", password: true }],
    servers: { demo: { ...DEMO, env: { KEY: "${input:demo-key}" } } },
  });

it.runIf(IS_LONG)(
  "inputs are taken from the environment, which upstreams do not inherit; a server without its value does not run, and says so",
  async () => {
    const through = [process.execPath, CLI, "serve", asking()];
    const env = { CATENARY_INPUT_DEMO_KEY: "from outside" };
    const value = async (name: string): Promise<string> =>
      (await catenary(["call", "environment", `name=${name}`, "--", ...through], "", { env })).out;
    expect(await value("KEY")).toBe("from outside\n");
    expect(await value("CATENARY_INPUT_DEMO_KEY")).toBe("undefined\n");
    const missed = await catenary(["serve", asking()]);
    // Only the server fails that needs the value; the gateway itself runs until its input ends.
    expect(missed).toMatchObject({ code: 0, out: "" });
    expect(missed.err).toContain('warning: No value for the input "demo-key", so the server demo does not run');
    const reason = 'No value for the input "demo-key": set CATENARY_INPUT_DEMO_KEY in the environment';
    expect(missed.err).toContain(`demo not started: ${reason}`);
  },
);

it.runIf(IS_LONG && HAS_TERMINAL)("inputs are asked for at the terminal, without echoing a password", async () => {
  const { mark, env } = markProcesses();
  const terminal = new Terminal([process.execPath, CLI, "up", asking(), "--http", ":0"], { env });
  await terminal.shows("The key:");
  terminal.type(`${TOKEN}${ENTER}`);
  await terminal.shows("For a client's config:");
  expect(terminal.bytes).not.toContain(TOKEN);
  const [, url = ""] = /at (http:\S+)/.exec(terminal.screen) ?? [];
  expect(terminal.bytes).toContain("\u001b[36m");
  const client = await connect(url);
  expect(await client.callTool("environment", { name: "KEY" })).toMatchObject({ content: [{ text: TOKEN }] });
  await client.close();
  terminal.type("\u0003");
  expect(await terminal.exited).toBe(130);
  await expectNoProcesses(mark);
});
