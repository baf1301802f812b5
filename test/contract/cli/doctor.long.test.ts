// `catenary doctor`: each thing that can go wrong is found by its check, with the next step and the exit code.

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it, onTestFinished } from "vitest";
import { catenary, CLI, CliProcess, type CliResult, startTestServer, TEST_SERVER_COMMAND } from "./cli-process.ts";

const [command, ...args] = TEST_SERVER_COMMAND;
const script = (code: string): object => ({ command: process.execPath, args: ["-e", code] });

let folder = "";
let env: NodeJS.ProcessEnv = {};
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "catenary-doctor-"));
  env = { HOME: folder, XDG_CONFIG_HOME: undefined, SECRET: "hunter2" };
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

interface Check {
  readonly subject: string;
  readonly check: string;
  readonly status: string;
  readonly message: string;
  readonly hint?: string;
}

const run = (...line: string[]): Promise<CliResult> => catenary(["doctor", ...line], "", { cwd: folder, env });

async function checks(...line: string[]): Promise<{ code: number | null; checks: Check[] }> {
  const { code, out } = await run("--json", ...line);
  return { code, checks: (JSON.parse(out) as { checks: Check[] }).checks };
}

const writeConfig = (name: string, mcpServers: object): void =>
  writeFileSync(join(folder, name), JSON.stringify({ mcpServers }));

/** The last check, which is the one that failed. */
async function failure(...line: string[]): Promise<Check & { code: number | null }> {
  const { code, checks: all } = await checks(...line);
  const failed = all.filter(({ status }) => status === "failed");
  expect(failed).toEqual([all.at(-1)]);
  const [only] = failed;
  if (only === undefined) throw new Error("nothing failed");
  expect(only.hint).toMatch(/\w/);
  return { ...only, code };
}

it("a command passes all checks", async () => {
  const { code, checks: all } = await checks("--", ...TEST_SERVER_COMMAND);
  expect(code).toBe(0);
  expect(all.map(({ check, status }) => `${check} ${status}`)).toEqual([
    "command ok",
    "start ok",
    "stdout ok",
    "initialize ok",
    "lists ok",
  ]);
  expect(all.at(-1)?.message).toMatch(/^\d+ tools, \d+ prompts?, \d+ resources$/);
});

it("a command that exits is shown with what it wrote to stdout", async () => {
  const { checks: all } = await checks("--", process.execPath, "-e", "console.log('hello')");
  expect(all.map(({ check, status }) => `${check} ${status}`)).toEqual([
    "command ok",
    "stdout warning",
    "start failed",
  ]);
  expect(all[1]?.message).toContain("such as: hello");
});

it.each([
  ["is missing", ["no-such-program"], "command", /no command of that name/, /install it/, 2],
  ["exits", [process.execPath, "-e", "process.exit(3)"], "start", /exited with code 3/, /by itself in a terminal/, 4],
  [
    "lacks a key",
    [process.execPath, "-e", "console.error('set NOTES_API_KEY'); process.exit(1)"],
    "start",
    /set NOTES_API_KEY/,
    /it needs a key/,
    4,
  ],
  [
    "is TypeScript that Node does not load",
    [process.execPath, "-e", `throw new Error('ERR_UNKNOWN_FILE_EXTENSION: Unknown file extension ".ts"')`],
    "start",
    /Unknown file extension/,
    /start it with npx tsx/,
    4,
  ],
  ["lacks a file", [process.execPath, "no-such.js"], "start", /Cannot find module/, /check the path in args/, 4],
  [
    "writes something else",
    [process.execPath, "-e", "console.log('hello'); process.stdin.resume()"],
    "initialize",
    /did not answer/,
    /serves MCP on stdio/,
    4,
  ],
  ["is silent", [process.execPath, "-e", "process.stdin.resume()"], "initialize", /did not answer/, /installing/, 4],
] as const)("a command that %s is explained", async (_what, line, check, message, hint, code) => {
  const found = await failure("--timeout", "2", "--", ...line);
  expect(found).toMatchObject({ check, code });
  expect(found.message).toMatch(message);
  expect(found.hint).toMatch(hint);
});

it("a URL passes all checks", async () => {
  const server = await startTestServer();
  onTestFinished(() => server.close());
  const { code, checks: all } = await checks(server.url);
  expect(code).toBe(0);
  expect(all.map(({ check }) => check)).toEqual(["tcp", "http", "auth", "initialize", "lists"]);
});

it.each([
  ["refuses us", 401, "auth", 3],
  ["is not an endpoint", 404, "http", 4],
] as const)("a URL that %s is explained", async (_what, status, check, code) => {
  const server = createServer((_request, response) => void response.writeHead(status).end("no"));
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`;
  expect(await failure(url)).toMatchObject({ check, code });
});

it("a URL whose host the server does not accept is explained, and not as a wrong token", async () => {
  const module = TEST_SERVER_COMMAND.at(-1) ?? "";
  const server = new CliProcess(["serve", module, "--http", "0.0.0.0:0", "--allow-host", "a.example", "--json"]);
  onTestFinished(async () => {
    server.process.kill("SIGKILL");
    await server.exited;
  });
  await expect.poll(() => server.out).toContain("\n");
  const url = (JSON.parse(server.out) as { url: string }).url.replace("127.0.0.1", "127.0.0.2");
  const { out } = await catenary(["doctor", "--json", url], "", {
    cwd: folder,
    env: { ...env, CATENARY_TOKEN: "some-token" },
  });
  const { checks: all } = JSON.parse(out) as { checks: Check[] };
  expect(all.at(-1)).toMatchObject({
    check: "http",
    status: "failed",
    hint: expect.stringContaining("host allowed"),
  });
  expect(all.at(-1)?.message).toContain("allow it with --allow-host 127.0.0.2");
});

it("a URL behind a proxy is checked through it", async () => {
  const proxied = async (proxy: string): Promise<Check & { code: number | null }> => {
    const { code, out } = await catenary(["doctor", "--json", "http://name.invalid/mcp"], "", {
      cwd: folder,
      env: { ...env, http_proxy: proxy, HTTP_PROXY: undefined, no_proxy: undefined, NO_PROXY: undefined },
    });
    const { checks: all } = JSON.parse(out) as { checks: Check[] };
    return { ...(all.at(-1) as Check), code };
  };
  expect(await proxied("http://127.0.0.1:1")).toMatchObject({ check: "http", status: "failed", code: 4 });
  expect(await proxied("socks://127.0.0.1:1")).toMatchObject({ check: "proxy", status: "failed", code: 1 });
});

it("a URL where nothing listens, whose name is not found, or that has no TLS is explained", async () => {
  expect(await failure("http://127.0.0.1:1/mcp")).toMatchObject({ check: "tcp", code: 4 });
  expect(await failure("http://name.invalid/mcp")).toMatchObject({ check: "dns", code: 4 });
  const server = createServer();
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`;
  expect(await failure(url)).toMatchObject({ check: "tls", code: 4 });
});

it("a config is checked with all its servers, and secrets are not shown", async () => {
  const leaky = script("console.error(process.env.KEY); process.exit(1)");
  writeConfig("some.json", { good: { command, args }, leaky: { ...leaky, env: { KEY: "${SECRET}" } } });
  const { code, out, err } = await run("some.json");
  expect(code).toBe(4);
  expect(out).toMatch(/^some\.json\n {2}ok {7}file .*\n {2}ok {7}entries {5}2 servers \(good, leaky\)\ngood\n/);
  expect(out).toMatch(/^leaky\n {2}ok {7}command .*\n {2}failed {3}start /m);
  expect(out).not.toContain("hunter2");
  expect(err).toContain("1 check failed (leaky)\n");
});

it("a config has sessions that are tried with one evaluation, also those of code mode", async () => {
  const mcpServers = {
    good: { live: "js" },
    missing: { live: "lisp", program: "sbclx" },
    gone: { live: "smalltalk", attach: "http://127.0.0.1:8" },
  };
  const code = { language: "lisp", program: "sbclx", sandbox: false };
  writeFileSync(join(folder, "live.json"), JSON.stringify({ mcpServers, code }));
  const { code: exit, checks: all } = await checks("live.json");
  expect(exit).toBe(4);
  const found = all.filter(({ check }) => check === "evaluate");
  expect(found.map(({ subject, status, message }) => `${subject} ${status} ${message}`)).toEqual([
    "good ok a session starts, and evaluates code",
    "missing failed Common Lisp sessions need SBCL, but sbclx is not on the PATH",
    expect.stringMatching(/^gone failed .*127\.0\.0\.1:8 does not answer/),
    "code failed Common Lisp sessions need SBCL, but sbclx is not on the PATH",
  ]);
  expect(found[1]?.hint).toMatch(/^install it/);
});

it("a config has addresses whose paths may be secret, and are not shown even if the server repeats them", async () => {
  const server = createServer((request, response) => void response.writeHead(404).end(`nothing at ${request.url}`));
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hooks/letmein`;
  expect((await failure(url)).message).toContain("nothing at /hooks/letmein");
  writeConfig("address.json", { notes: { url } });
  const { out } = await run("address.json");
  expect(out).toContain("nothing at ...");
  expect(out).not.toContain("letmein");
});

it("a config has patterns that match no tool, which is said", async () => {
  const notes = {
    ...{ command, args, include: ["echo", "count", "form"], exclude: ["cou*", "delet_*"] },
    use: [{ filter: { tools: { exclude: ["said", "sad"] } } }, { rename: { tools: { echo: "said", ecco: "other" } } }],
  };
  const document = {
    mcpServers: { notes },
    profiles: {
      work: { tools: { include: ["said", "notes_form", "notes_from"] } },
      other: { servers: ["notes"], tools: { exclude: ["*"] } },
    },
    chain: [
      { search: { include: ["fial"] } },
      { filter: { tools: { exclude: ["fail", "fial"] } } },
      { confirm: { include: ["fail", "notes_fial"] } },
      { "read-only": { include: ["fail", "fial"] } },
      { authorize: { rules: [{ tools: ["fial"], allow: false }, { tools: ["*"] }] } },
      { describe: { tools: { "f[ai]*": { title: "x" }, fail: { title: "y" } } } },
      { inject: { tools: { "fial*": { arguments: { a: 1 } } } } },
      { cache: { tools: { fial: { ttlMs: 1_000 } } } },
    ],
  };
  writeFileSync(join(folder, "patterns.json"), JSON.stringify(document));
  const { code, checks: all } = await checks("patterns.json");
  expect(code).toBe(0);
  expect(all.filter(({ check }) => check === "patterns").map(({ subject, message }) => [subject, message])).toEqual([
    ["notes", 'exclude: "delet_*" matches no tool of notes'],
    ["notes", 'use: rename: tools: "ecco" matches no tool of notes'],
    ["notes", 'use: filter: tools.exclude: "sad" matches no tool of notes'],
    ["patterns.json", 'profiles.work.tools.include: "notes_from" matches no tool'],
    ["patterns.json", 'chain: cache: tools: "fial" matches no tool'],
    ["patterns.json", 'chain: inject: tools: "fial*" matches no tool'],
    ["patterns.json", 'chain: describe: tools: "f[ai]*" matches no tool'],
    ["patterns.json", 'chain: authorize: rules.0.tools: "fial" matches no tool'],
    ["patterns.json", 'chain: read-only: include: "fial" matches no tool'],
    ["patterns.json", 'chain: confirm: include: "notes_fial" matches no tool'],
    ["patterns.json", 'chain: filter: tools.exclude: "fial" matches no tool'],
    ["patterns.json", 'chain: search: include: "fial" matches no tool'],
  ]);
  expect(all.find(({ check }) => check === "hidden")?.message).toBe("18 tools, by the config");
});

it("a config has tools beside code mode that no server has, which is said", async () => {
  const document = { mcpServers: { notes: { command, args } }, code: { include: ["echo", "notes_ec*", "gti*"] } };
  writeFileSync(join(folder, "code.json"), JSON.stringify(document));
  const { checks: all } = await checks("code.json");
  expect(all.filter(({ check }) => check === "patterns").map(({ message }) => message)).toEqual([
    'code.include: "gti*" matches no tool',
  ]);
});

it("a config has programs that are not installed, which is said", async () => {
  writeConfig("programs.json", { dev: { programs: [process.execPath, "no-such-program"] } });
  const { code, checks: all } = await checks("programs.json");
  expect(code).toBe(0);
  expect(all.filter(({ subject }) => subject === "dev")).toMatchObject([
    {
      check: "programs",
      status: "warning",
      message: 'Cannot start "no-such-program": there is no command of that name on the PATH',
      hint: "install it, or write its full path; its tool is left out until then",
    },
    { check: "initialize", status: "ok" },
    { check: "lists", message: "1 tool" },
  ]);
});

it("a config with mistakes is not used", async () => {
  writeFileSync(join(folder, "wrong.json"), '{ "mcpServers": { "a": { "command": 3 } } }');
  const found = await failure("wrong.json");
  expect(found).toMatchObject({ subject: "wrong.json", check: "entries", code: 1 });
  expect(found.message).toMatch(/^line 1, column \d+: /);
  expect(await run("none.json")).toMatchObject({
    code: 2,
    err: "catenary: There is no config none.json; check the path\n",
  });
});

it("without a target checks the config of this folder and the configs of clients", async () => {
  const none = await run();
  expect(none).toMatchObject({ code: 0, out: expect.stringContaining("there is none in this folder") });
  writeConfig("catenary.json", { good: { command, args } });
  mkdirSync(join(folder, ".cursor"));
  const entry = { command: process.execPath, args: [CLI, "serve", join(folder, "catenary.json")] };
  writeFileSync(join(folder, ".cursor/mcp.json"), JSON.stringify({ mcpServers: { catenary: entry } }));
  const good = await run();
  expect(good).toMatchObject({ code: 0, err: "Nothing failed\n" });
  // The folder is the home folder and the project, and the file is that of both.
  expect(good.out.match(/starts the gateway \(catenary\)/g)).toHaveLength(1);
  // Every file of the user is listed, whether the client keeps other settings in it or not.
  mkdirSync(join(folder, ".gemini"));
  mkdirSync(join(folder, ".kiro/settings"), { recursive: true });
  writeFileSync(join(folder, ".gemini/settings.json"), '{"theme": "x"}');
  writeFileSync(join(folder, ".kiro/settings/mcp.json"), "{}");
  const { out } = await run();
  expect(out).toContain(".gemini/settings.json has no servers; to use the gateway there: catenary install gemini\n");
  expect(out).toContain(".kiro/settings/mcp.json has no servers; to use the gateway there: catenary install kiro\n");
  const gone = { ...entry, args: [CLI, "serve", join(folder, "gone.json")] };
  writeFileSync(join(folder, ".cursor/mcp.json"), JSON.stringify({ mcpServers: { catenary: gone } }));
  const bad = await run("--quiet");
  expect(bad.code).toBe(1);
  expect(bad.out).toContain("-> write it anew: catenary install cursor CONFIG");
  expect(bad.out).not.toContain("  ok ");
});

it("recognizes a client that uses a running gateway by its URL", async () => {
  const home = mkdtempSync(join(folder, "url-"));
  mkdirSync(join(home, ".cursor"));
  mkdirSync(join(home, "run"), { mode: 0o700 });
  const options = { cwd: home, env: { ...env, HOME: home, XDG_RUNTIME_DIR: join(home, "run") } };
  writeFileSync(join(home, "catenary.json"), JSON.stringify({ mcpServers: { good: { command, args } } }));
  const gateway = new CliProcess(["up", "catenary.json", "--http", "127.0.0.1:0", "--json"], options);
  onTestFinished(async () => {
    gateway.process.kill("SIGKILL");
    await gateway.exited;
  });
  await expect.poll(() => gateway.out).toContain("\n");
  const { url } = JSON.parse(gateway.out) as { url: string };
  const install = (...more: string[]): Promise<CliResult> =>
    catenary(["install", "cursor", "--url", url.replace("127.0.0.1", "localhost"), "--yes", ...more], "", options);
  expect((await install("--name", "team")).code).toBe(0);
  const found = await catenary(["doctor", "--quiet", "--json"], "", options);
  const address = url.replace("127.0.0.1", "localhost");
  expect(found.out).toContain(`uses the gateway at ${address} (team)`);
  expect(found.out).not.toContain("but not Catenary");
  const bridge = await catenary(["install", "claude-desktop", "--url", url, "--yes"], "", options);
  expect(bridge.code).toBe(0);
  const bridged = await catenary(["doctor", "--json"], "", options);
  expect(bridged.out).not.toContain("starts the gateway");
  expect(bridged.out).toContain(`claude_desktop_config.json uses the gateway at ${url} (catenary)`);
  await install();
  gateway.process.kill("SIGKILL");
  await gateway.exited;
  const stopped = await catenary(["doctor"], "", options);
  expect(stopped.out).toContain(`uses the gateway at ${address} (catenary), which does not run`);
  expect(stopped.out).toContain("-> start it: catenary up");
});
