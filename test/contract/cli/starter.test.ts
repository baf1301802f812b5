// `catenary up` in a folder without a config: the first minute of a newcomer, with a home folder that has clients' files.

import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer as createNetServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect } from "catenary";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { lastingPort } from "../../support/http/raw-server.ts";
import { IS_LONG } from "../../support/thoroughness.ts";
import { catenary, CliProcess, type RunOptions } from "./cli-process.ts";

const SECRETS = ["sk-argument-0123456789", "ghp_environment0123456789", "path-secret-0123"];
let root: string;
let options: RunOptions;
const running: CliProcess[] = [];

beforeAll(() => {
  // A space, since many folders have one.
  root = mkdtempSync(join(tmpdir(), "catenary starter-"));
  const home = join(root, "home");
  mkdirSync(join(home, ".cursor"), { recursive: true });
  mkdirSync(join(root, "empty"));
  const github = {
    command: "npx",
    args: ["-y", "github-mcp", "--api-key", SECRETS[0]],
    env: { GITHUB_TOKEN: SECRETS[1] },
  };
  const told = { command: "npx", args: ["--api-key", SECRETS[0], "told-mcp"] };
  const board = { url: `https://board.example/${SECRETS[2]}/mcp` };
  writeFileSync(join(home, ".claude.json"), JSON.stringify({ mcpServers: { github, board, told }, other: 1 }));
  writeFileSync(join(home, ".cursor/mcp.json"), JSON.stringify({ mcpServers: { github } }));
  options = { cwd: join(root, "empty"), env: { HOME: home, XDG_CONFIG_HOME: undefined, XDG_STATE_HOME: undefined } };
});

afterEach(async () => {
  for (const { process, exited } of running.splice(0)) {
    process.kill("SIGTERM");
    await exited;
  }
});

afterAll(() => rmSync(root, { recursive: true, force: true }));

function up(...args: readonly string[]): CliProcess {
  const started = new CliProcess(["up", ...args], options);
  running.push(started);
  return started;
}

/** The entry for a client's config that the banner shows. */
function entryIn(banner: string): { url: string; headers: Record<string, string> } {
  const { mcpServers } = JSON.parse(/\{"mcpServers".*$/m.exec(banner)?.[0] ?? "{}") as {
    mcpServers: { catenary: { url: string; headers: Record<string, string> } };
  };
  return mcpServers.catenary;
}

it("serves a JavaScript session and a guide, and says in a few lines how to go on", async () => {
  const port = await lastingPort();
  const first = up("--http", `:${port}`);
  await first.waitForStderr("Ctrl-C stops the gateway.");
  const lines = first.err.trimEnd().split("\n");
  expect(lines.length).toBeLessThanOrEqual(13);
  expect(first.err).toContain(`Catenary is ready at http://127.0.0.1:${port}/mcp`);
  expect(first.err).toMatch(/js {8}JavaScript sessions that keep their state, (in a sandbox|not in a sandbox)/);
  expect(first.err).toContain("3 servers found in Claude Code, Cursor");

  const { url, headers } = entryIn(first.err);
  expect((await fetch(url, { method: "POST" })).status).toBe(401);
  const client = await connect(url, { headers });
  const names: string[] = [];
  for await (const { name } of client.tools()) names.push(name);
  expect(names).toEqual(expect.arrayContaining(["evaluate-js", "find-servers", "how-to-add-a-server"]));
  expect(await client.callTool("evaluate-js", { code: "const x = 6; x * 7" })).toMatchObject({
    content: [{ text: "=> 42" }],
  });
  const found = JSON.stringify(await client.callTool("find-servers", {}));
  for (const shown of ["github: npx github-mcp ...", "https://board.example", "~/.claude.json"]) {
    expect(found).toContain(shown);
  }
  for (const secret of SECRETS) expect(found).not.toContain(secret);
  const adding = JSON.stringify(
    await client.callTool("how-to-add-a-server", { name: "memory", command: "npx -y memory-mcp" }),
  );
  expect(adding).toContain("add memory -- npx -y memory-mcp");
  const shell = { name: "memory", command: "npx -y memory-mcp; rm -rf ~" };
  expect(await client.callTool("how-to-add-a-server", shell)).toMatchObject({ isError: true });
  await client.close();

  const second = await catenary(["up", "--http", `:${port}`], "", options);
  expect(second).toMatchObject({ code: 4, out: "" });
  expect(second.err).toContain(
    `A gateway runs at ${url} already: a JavaScript session and the guide (pid ${first.process.pid})`,
  );
  expect(second.err).toContain(`install claude-code --url ${url}`);

  // Other commands of this user need no token, and a client gets it into its file.
  expect(await catenary(["call", url, "evaluate-js", "code=2 + 3"], "", options)).toMatchObject({ out: "=> 5\n" });
  const installed = await catenary(["install", "cursor", "--url", url, "--yes"], "", options);
  expect(installed).toMatchObject({ code: 0 });
  expect(installed.err).not.toContain("asks for a token");
  const cursor = readFileSync(join(root, "home/.cursor/mcp.json"), "utf8");
  expect(JSON.parse(cursor)).toMatchObject({ mcpServers: { catenary: { url, headers } } });

  // A client that can only start commands starts `run`, which asks the gateway for its token.
  const desktop = await catenary(["install", "claude-desktop", "--url", url, "--yes"], "", options);
  expect(desktop).toMatchObject({ code: 0 });
  expect(desktop.err).not.toContain("asks for a token");
  const text = readFileSync(join(root, "home/.config/Claude/claude_desktop_config.json"), "utf8");
  expect(text).not.toContain(headers["Authorization"]?.slice("Bearer ".length));
  const { mcpServers } = JSON.parse(text) as { mcpServers: { catenary: { command: string; args: string[] } } };
  const env = { ...process.env, HOME: join(root, "home"), XDG_STATE_HOME: "" };
  const bridged = await connect({ ...mcpServers.catenary, env, cwd: join(root, "empty") });
  expect(await bridged.callTool("evaluate-js", { code: "3 * 3" })).toMatchObject({ content: [{ text: "=> 9" }] });
  await bridged.close();

  first.process.kill("SIGTERM");
  expect(await first.exited).toBe(0);
  const again = up("--http", `:${port}`);
  await again.waitForStderr("Ctrl-C stops the gateway.");
  expect(entryIn(again.err)).toEqual({ type: "http", url, headers });
  expect(again.err).toContain("3 servers found");
});

it.runIf(IS_LONG)("is reached by other commands also if the home folder cannot be written", async () => {
  // A file where the folder should be, which also root cannot change.
  writeFileSync(join(root, "taken"), "");
  const env = { HOME: join(root, "taken"), XDG_RUNTIME_DIR: undefined, XDG_STATE_HOME: undefined, TMPDIR: root };
  const readOnly = { ...options, env: { ...options.env, ...env } };
  const gateway = new CliProcess(["up", "--http", ":0"], readOnly);
  running.push(gateway);
  await gateway.waitForStderr("Ctrl-C stops the gateway.");
  expect(gateway.err).toContain("the token is only for this run");
  expect(gateway.err).not.toContain("The token stays the same");
  expect(gateway.err).not.toContain("cannot reach this gateway");
  const { url } = entryIn(gateway.err);
  expect(gateway.err).toContain(`call ${url} evaluate-js 'code=6 * 7'`);
  expect(await catenary(["call", url, "evaluate-js", "code=6 * 7"], "", readOnly)).toMatchObject({ out: "=> 42\n" });
  expect((await catenary(["status", "--json"], "", readOnly)).out).toContain(url);
});

it("says which program has the port", async () => {
  const other = createNetServer().listen(0, "127.0.0.1");
  await new Promise((done) => other.once("listening", done));
  const { port } = other.address() as { port: number };
  const refused = await catenary(["up", "--http", `:${port}`], "", options);
  other.close();
  expect(refused).toMatchObject({ code: 4, out: "" });
  const who = process.platform === "linux" ? `by .* \\(pid ${process.pid}\\)` : "";
  expect(refused.err).toMatch(new RegExp(`Port ${port} on 127.0.0.1 is in use ${who}.*choose another port`));
});

it("imports the servers that a config can have, and says why others are left out", async () => {
  const home = join(root, "another home");
  mkdirSync(join(home, ".cursor"), { recursive: true });
  const mcpServers = { good: { command: "true" }, bad: { url: "https://user:hidden@board.example/mcp" } };
  writeFileSync(join(home, ".cursor/mcp.json"), JSON.stringify({ mcpServers }));
  const imported = await catenary(["import", "--dry-run"], "", { ...options, env: { ...options.env, HOME: home } });
  expect(imported).toMatchObject({ code: 0 });
  expect(imported.out).toContain('"good"');
  expect(imported.err).toMatch(/^Left out: bad of Cursor; .*not a valid HTTP URL$/m);
  expect(imported.out + imported.err).not.toContain("hidden");
});

it("serves the config if there is one", async () => {
  const folder = join(root, "with a config");
  mkdirSync(folder);
  writeFileSync(join(folder, "catenary.json"), JSON.stringify({ mcpServers: { files: { command: "true" } } }));
  const started = new CliProcess(["up", "--http", ":0"], { ...options, cwd: folder });
  running.push(started);
  await started.waitForStderr("For a client's config");
  expect(started.err).toContain("Serving catenary.json at");
  expect(started.err).not.toContain("evaluate-js");
});
