// `catenary serve MODULE --http` as a real process: its output, both styles, usage errors, a port in use, and how it ends.

import { spawn, type ChildProcessWithoutNullStreams } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { IS_LONG, sampleOf } from "../../support/thoroughness.ts";
import { META } from "../../../src/protocol/model/base.ts";
import { NEWEST, NEWEST_SESSION } from "../../../src/protocol/revisions/index.ts";

const CLI = fileURLToPath(new URL("../../../dist/cli/main.js", import.meta.url));
const BOARD = fileURLToPath(new URL("../../../examples/board/server.js", import.meta.url));
const HEADERS = { "content-type": "application/json", accept: "application/json, text/event-stream" };

/** A handler that answers a call after some milliseconds, unless it is aborted. */
const SLOW = `
import { setTimeout as wait } from "node:timers/promises";
export const chain = async ({ method, params }, { signal }) => {
  if (method === "server/discover") return { capabilities: { tools: {} } };
  if (method !== "tools/call") return {};
  process.stderr.write("call started\\n");
  await wait(params.arguments.ms, undefined, { signal });
  return { content: [{ type: "text", text: "done" }] };
};`;

class Command {
  readonly process: ChildProcessWithoutNullStreams;
  readonly exited: Promise<{ code: number | null; signal: string | null }>;
  out = "";
  err = "";

  constructor(args: readonly string[]) {
    this.process = spawn(process.execPath, [CLI, ...args], { env: { ...process.env, FORCE_COLOR: undefined } });
    this.process.stdout.setEncoding("utf8").on("data", (text: string) => (this.out += text));
    this.process.stderr.setEncoding("utf8").on("data", (text: string) => (this.err += text));
    this.exited = new Promise((resolve) => this.process.once("close", (code, signal) => resolve({ code, signal })));
  }

  async says(pattern: RegExp): Promise<string> {
    await expect.poll(() => pattern.test(this.err) || this.process.exitCode !== null).toBe(true);
    return pattern.exec(this.err)?.[1] ?? "";
  }

  /** With `--json`. */
  async url(): Promise<string> {
    await expect.poll(() => this.out.includes("\n") || this.err).toBe(true);
    return (JSON.parse(this.out) as { url: string }).url;
  }
}

const started: Command[] = [];
function serve(...args: readonly string[]): Command {
  const command = new Command(["serve", ...args]);
  started.push(command);
  return command;
}

afterEach(async () => {
  for (const command of started.splice(0)) {
    command.process.kill("SIGKILL");
    await command.exited;
  }
});

let folder = "";
let slow = "";
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "catenary-serve-"));
  slow = join(folder, "slow.mjs");
  writeFileSync(slow, SLOW);
});
afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
});

function callStateless(url: string, name: string, args: object): Promise<Response> {
  const _meta = { [META.revision]: NEWEST.name, [META.clientCapabilities]: {} };
  const headers = { ...HEADERS, "mcp-protocol-version": NEWEST.name, "mcp-method": "tools/call", "mcp-name": name };
  const params = { name, arguments: args, _meta };
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params });
  return fetch(url, { method: "POST", headers, body });
}

async function openSession(url: string): Promise<(message: object) => Promise<Response>> {
  const post = (message: object, more: Record<string, string> = {}): Promise<Response> =>
    fetch(url, {
      method: "POST",
      headers: { ...HEADERS, ...more },
      body: JSON.stringify({ jsonrpc: "2.0", ...message }),
    });
  const params = {
    protocolVersion: NEWEST_SESSION.name,
    capabilities: {},
    clientInfo: { name: "test", version: "1" },
  };
  const opened = await post({ id: 0, method: "initialize", params });
  const id = opened.headers.get("mcp-session-id") ?? "";
  await opened.text();
  return (message) => post(message, { "mcp-session-id": id });
}

it("catenary serve over HTTP prints its URL and a client config on stderr, and nothing on stdout", async () => {
  const command = serve(BOARD, "--http", "127.0.0.1:0");
  const url = await command.says(/at (http:\/\/127\.0\.0\.1:\d+\/mcp)$/m);
  const entry = await command.says(/(\{"mcpServers".*\})$/m);
  expect(JSON.parse(entry)).toEqual({ mcpServers: { board: { type: "http", url } } });
  expect(command.err).not.toContain("\u001b");
  expect(command.err).not.toContain("Warning");
  const answer = await callStateless(url, "pin", { text: "hello" });
  expect(await answer.json()).toMatchObject({ result: { content: [{ text: "Pinned; it is the only note." }] } });
  expect(command.out).toBe("");
});

it.runIf(IS_LONG)(
  "catenary serve over HTTP prints JSON on stdout with --json, and serves both styles at the given path",
  async () => {
    const command = serve(BOARD, "--http", ":0", "--path", "/tools", "--json");
    const url = await command.url();
    expect(command.out).toBe(`{"url":"${url}"}\n`);
    expect(command.err).toMatch(/^No token is required: .*\n$/);
    expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/tools$/);
    expect((await callStateless(url, "pin", { text: "a" })).status).toBe(200);
    const call = await openSession(url);
    const answer = await call({ id: 1, method: "tools/call", params: { name: "pin", arguments: { text: "b" } } });
    expect(await answer.json()).toMatchObject({ result: { content: [{ text: "Pinned; there are 2 notes." }] } });
  },
);

it.runIf(IS_LONG)("catenary serve over HTTP accepts only the allowed origins", async () => {
  const command = serve(
    ...[BOARD, "--http", "0", "--json", "--allow-origin", "https://app.example"],
    ...["--allow-origin", "https://two.example"],
  );
  const url = await command.url();
  const from = async (origin: string): Promise<number> =>
    (await fetch(url, { method: "OPTIONS", headers: { origin } })).status;
  expect(await Promise.all(["https://app.example", "https://two.example", "https://evil.example"].map(from))).toEqual([
    204, 204, 403,
  ]);
});

it("catenary serve over HTTP reports a port in use in one line with exit code 4", async () => {
  const { port } = new URL(await serve(slow, "--http", "0", "--json").url());
  const second = serve(slow, "--http", port);
  expect(await second.exited).toEqual({ code: 4, signal: null });
  expect(second.err).toMatch(new RegExp(`^catenary: Port ${port} on 127\\.0\\.0\\.1 is in use\\b.*: .*\\n$`));
  expect(second.out).toBe("");
});

it.runIf(IS_LONG)("catenary serve over HTTP reports usage errors with a correction", async () => {
  const mistakes: [string[], string][] = [
    [[slow, "--http"], "--http needs an address"],
    [[slow, "--http", "--json"], "--http needs an address"],
    [[slow, "--http", "::1"], "[::1]"],
    [[slow, "--http", "127.0.0.1:70000"], "from 0"],
    [[slow, "--http", "0", "--stdio"], "not both"],
    [[slow, "--http", "0", "--path", "mcp"], "slash"],
    [[slow, "--path", "/mcp"], "needs --http"],
    [[slow, "--allow-host", "example.com"], "needs --http"],
    [[slow, "--json"], "--json needs --http"],
    [[slow, "--http", "0", "--allow-host", "http://example.com"], 'allowedHosts (--allow-host): "http://example.com"'],
    [[slow, "--http", "0", "--allow-origin", "app.example"], 'allowedOrigins (--allow-origin): "app.example"'],
    [[slow, "--http", "0", "--pat", "/x"], "There is no option --pat; did you mean --path?\n"],
  ];
  for (const [args, words] of mistakes) {
    const command = serve(...args);
    expect(await command.exited, args.join(" ")).toEqual({ code: 1, signal: null });
    expect(command.err).toContain(words);
    expect(command.err.startsWith("catenary: ")).toBe(true);
    // With --json, the error is a JSON document.
    if (!args.includes("--json")) expect(command.out).toBe("");
    else expect(JSON.parse(command.out)).toMatchObject({ error: { kind: "usage" } });
  }
});

const writeModule = (name: string, last: string): string => {
  const file = join(folder, name);
  const entry = new URL("../../../dist/index.js", import.meta.url).href;
  const create = "const server = createServer({ name: 'own', version: '1' });";
  writeFileSync(file, `import { createServer, serve } from "${entry}"; ${create} ${last}`);
  return file;
};

it.each(
  sampleOf(1, [
    ["without exports", "await serve(server);"],
    ["with an exported server", "await serve(server); export default server;"],
    ["without await", "serve(server); export { server };"],
  ]),
)("a module that serves itself: %s is refused, and the command exits", async (name, last) => {
  const file = writeModule(`${name.replaceAll(" ", "-")}.mjs`, last);
  for (const args of [[file], [file, "--http", "0"]]) {
    // Its stdin stays open. The message in it is never answered.
    const command = serve(...args);
    command.process.stdin.on("error", () => undefined).write('{"jsonrpc":"2.0","id":1,"method":"ping"}\n');
    expect(await command.exited, args.join(" ")).toEqual({ code: 1, signal: null });
    expect(command.err).toBe(
      `catenary: ${file} calls serve() itself; start it with \`node ${file}\`, or remove the call and export the server\n`,
    );
    expect(command.out).toBe("");
  }
});

it.runIf(IS_LONG)("a module that serves itself is accepted if it serves over HTTP itself", async () => {
  const last = "await serve(server, { http: { port: 0 } }); export { server };";
  expect(await serve(writeModule("elsewhere.mjs", last), "--http", "0", "--json").url()).toContain("http://127.0.0.1:");
});

it.runIf(IS_LONG)("a module that serves itself is not reported if it fails for another reason", async () => {
  const last = "Promise.reject(new Error('no key')); export { server };";
  const command = serve(writeModule("failing.mjs", last), "--http", "0");
  expect(await command.exited).toEqual({ code: 1, signal: null });
  expect(command.err).toContain("Error: no key");
});

it.runIf(IS_LONG)(
  "a module that serves itself is not waited for if it exports nothing and keeps the process open",
  async () => {
    const command = serve(writeModule("open.mjs", "setInterval(() => server, 1_000);"), "--http", "0");
    expect(await command.exited).toEqual({ code: 1, signal: null });
    expect(command.err).toContain("exports no server");
  },
);

it.each(
  sampleOf(2, [
    ["SIGTERM", 0, "stateless"],
    ["SIGINT", 130, "session"],
    ["SIGTERM", 0, "session"],
    ["SIGINT", 130, "stateless"],
  ]),
)("exit over HTTP: %s: exits with %i after it has answered a running call (%s style)", async (...row) => {
  const [signal, code, style] = row;
  const command = serve(slow, "--http", "0", "--json");
  const url = await command.url();
  const params = { name: "x", arguments: { ms: 500 } };
  const call =
    style === "stateless"
      ? callStateless(url, params.name, params.arguments)
      : (await openSession(url))({ id: 1, method: "tools/call", params });
  await command.says(/(call started)/);
  command.process.kill(signal);
  expect(await (await call).text()).toContain('"text":"done"');
  expect(await command.exited).toEqual({ code, signal: null });
});

it.runIf(IS_LONG)("exit over HTTP: a second signal exits at once", async () => {
  const command = serve(slow, "--http", "0", "--json");
  const call = callStateless(await command.url(), "x", { ms: 600_000 }).catch(() => "cut");
  await command.says(/(call started)/);
  command.process.kill("SIGTERM");
  await command.says(/(shutting down)/);
  command.process.kill("SIGTERM");
  expect(await command.exited).toEqual({ code: 0, signal: null });
  expect(await call).toBe("cut");
});
