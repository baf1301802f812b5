// Files of other clients, each as its documentation shows it, are read as they are: servers, filters, timeouts and
// variables mean what they mean in the client.

import { cpSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { connect } from "../client/connect.ts";
import { createGateway } from "./gateway.ts";
import { checkConfig, loadConfig, type Config } from "./load.ts";
import type { UpstreamEntry } from "./upstreams.ts";

const SAMPLES = new URL("../../test/support/config/clients/", import.meta.url);
const env = {
  ...{ API_KEY: "key-of-the-api", TOKEN: "the.token", SRC_ENDPOINT: "https://src.example.com" },
  LOCAL_TOKEN: "1",
};

let folder = "";
beforeAll(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "catenary-clients-")));
  writeFileSync(join(folder, ".env"), "FROM_FILE=1\n");
  mkdirSync(join(folder, ".codeium/windsurf"), { recursive: true });
  writeFileSync(join(folder, "key.txt"), "from-a-file\n");
});
afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
});

/** Copies a sample to its place below a temporary home folder and loads it. */
async function load(sample: string, path: string): Promise<Config> {
  const file = join(folder, path);
  mkdirSync(dirname(file), { recursive: true });
  cpSync(new URL(sample, SAMPLES), file);
  return loadConfig(file, { env, inputs: async ({ id }) => `answer to ${id}` });
}

/** What an upstream is created from. */
async function targetOf(config: Config, name: string): Promise<unknown> {
  return config.upstreams.get(name)?.resolve();
}

function entry(config: Config, name: string): UpstreamEntry {
  const found = config.upstreams.get(name);
  if (found === undefined) throw new Error(`No upstream ${name}`);
  return found;
}

const messages = ({ warnings }: Config): string[] =>
  warnings.map(({ line, message, hint }) => `${line}: ${message}${hint === undefined ? "" : `; ${hint}`}`);
const names = ({ upstreams }: Config): string[] => [...upstreams.keys()];
const filterOf = (config: Config, name: string): unknown =>
  entry(config, name).use.map((one) => (one.kind === "named" ? { [one.name]: one.options } : one));

it("VS Code: mcp.json is read, and a sandbox that it asks for is warned of", async () => {
  const config = await load("vscode-mcp.json", ".vscode/mcp.json");
  expect(names(config)).toEqual(["perplexity", "github", "boxed"]);
  expect(await targetOf(config, "perplexity")).toMatchObject({
    target: { command: "npx", env: { PERPLEXITY_API_KEY: "answer to perplexity-key" }, cwd: folder },
  });
  const hint = "the gateway starts the server without the sandbox of VS Code";
  expect(messages(config)).toEqual([
    `17: servers.boxed.sandboxEnabled: ignored; ${hint}`,
    `18: servers.boxed.sandbox: ignored; ${hint}`,
  ]);
});

it("VS Code: settings.json is read, wherever it is", async () => {
  for (const path of [".config/Code/User/settings.json", "copy-of-settings.json"]) {
    const config = await load("vscode-settings.json", path);
    expect(names(config)).toEqual(["fetch"]);
    expect(await targetOf(config, "fetch")).toMatchObject({ target: { env: { TOKEN: "answer to token" } } });
    expect(messages(config)).toEqual([]);
  }
});

it("Claude Code's .mcp.json is read", async () => {
  const config = await load("claude-code-mcp.json", ".mcp.json");
  expect(names(config)).toEqual(["api", "db", "helped"]);
  expect(entry(config, "api").policy).toEqual({ timeoutMs: 600_000 });
  expect(messages(config)).toEqual([
    '11: mcpServers.helped.headersHelper: ignored; its command is not run: write the headers in "headers"',
  ]);
});

it("Claude Code's file of the user has servers for all folders, and for the current one", async () => {
  const config = await load("claude-code-user.json", ".claude.json");
  expect(names(config)).toEqual(["memory", "sentry"]);
  const file = join(folder, ".claude.json");
  const text = readFileSync(file, "utf8");
  writeFileSync(file, text.replace('"PROJECT"', JSON.stringify(process.cwd())));
  const here = await loadConfig(file, { env });
  expect(names(here)).toEqual(["sentry", "local", "memory"]);
  expect(here.disabled).toEqual(["off"]);
  expect(await targetOf(here, "sentry")).toMatchObject({ target: "https://sentry.internal.example.com/mcp" });
  expect(await targetOf(here, "local")).toMatchObject({ target: { cwd: process.cwd() } });
  expect(messages(here)).toEqual([]);
});

it("Claude Code's file without servers for this folder says which folders have some", async () => {
  const text =
    '{"numStartups": 1, "projects": {"/a/b": {"mcpServers": {"x": {"command": "x"}}}, "/c": {"mcpServers": {}}}}';
  expect(await checkConfig(text, join(folder, ".claude.json"))).toMatchObject([
    { message: "The config has no servers", hint: "it has servers for other folders; start in one of them: /a/b" },
  ]);
});

it("Claude Desktop's file is read", async () => {
  const config = await load("claude-desktop.json", ".config/Claude/claude_desktop_config.json");
  expect(names(config)).toEqual(["filesystem"]);
  expect(messages(config)).toEqual([]);
});

it("Cursor's file is read", async () => {
  const config = await load("cursor.json", ".cursor/mcp.json");
  expect(await targetOf(config, "local")).toMatchObject({
    target: { args: ["-y", "mcp-server", folder], env: { API_KEY: "key-of-the-api", FROM_FILE: "1" } },
  });
  expect(messages(config)).toEqual([]);
});

it("Codex: config.toml is read, with its filters and seconds", async () => {
  const config = await load("codex.toml", ".codex/config.toml");
  expect(names(config)).toEqual(["context7", "figma", "chrome"]);
  expect(config.disabled).toEqual(["old"]);
  expect(await targetOf(config, "context7")).toMatchObject({
    target: { command: "npx", args: ["-y", "@upstash/context7-mcp"], env: { MY_ENV_VAR: "MY_ENV_VALUE" } },
  });
  expect(entry(config, "context7").policy).toEqual({
    ...{ startTimeoutMs: 20_000, timeoutMs: 45_500, inheritEnv: ["LOCAL_TOKEN", "OTHER_TOKEN"] },
  });
  expect(await targetOf(config, "figma")).toEqual({
    target: "https://mcp.figma.com/mcp",
    options: {
      headers: { "X-Figma-Region": "us-east-1", Authorization: "Bearer the.token", "X-Key": "key-of-the-api" },
    },
  });
  expect(filterOf(config, "chrome")).toEqual([
    { filter: { tools: { include: ["open", "screenshot"], exclude: ["screenshot"] } } },
  ]);
  expect(messages(config)).toEqual([]);
});

it("Codex: mistakes are reported by line", async () => {
  const check = (text: string): ReturnType<typeof checkConfig> => checkConfig(text, join(folder, ".codex/config.toml"));
  expect(await check('[mcp_servers.a]\ncommand = "x"\nargs = 1\n')).toMatchObject([
    {
      line: 3,
      severity: "error",
      message: expect.stringMatching(/^mcp_servers\.a\.args: expected an array/) as string,
    },
  ]);
  // A line of spaces takes no longer than another.
  expect(await check(`[mcp_servers.a]\ncommand = "x"\n${" ".repeat(100_000)}\nargs = 1\n`)).toMatchObject([
    { line: 4 },
  ]);
  const invalid = await check('[mcp_servers.a]\ntoken = "s3cret\n');
  expect(invalid).toMatchObject([{ line: 2, severity: "error" }]);
  expect(invalid[0]?.message).toMatch(/^Not valid TOML: /);
  expect(JSON.stringify(invalid)).not.toContain("s3cret");
});

it("Gemini's settings.json is read, with its filters, variables and list of servers", async () => {
  const config = await load("gemini.json", ".gemini/settings.json");
  expect(names(config)).toEqual(["python", "web", "events", "filtered", "google"]);
  expect(config.disabled).toEqual(["experimental"]);
  expect(await targetOf(config, "python")).toMatchObject({
    target: { env: { DATABASE_KEY: "key-of-the-api", OTHER: "the.token" } },
  });
  expect(await targetOf(config, "web")).toMatchObject({ target: "http://localhost:3000/mcp" });
  expect(entry(config, "web").policy).toEqual({ timeoutMs: 5_000 });
  expect(filterOf(config, "filtered")).toEqual([
    { filter: { tools: { include: ["safe_tool", "file_reader", "both"], exclude: ["both"] } } },
  ]);
  expect(messages(config)).toEqual([
    '28: mcpServers.google.authProviderType: ignored; the gateway does not use Google credentials: write a token in "headers"',
  ]);
});

it.each([true, false])(
  "a server that a list switches off is off, also if its entry has disabled: %s",
  async (disabled) => {
    const file = join(folder, ".gemini/settings.json");
    mkdirSync(dirname(file), { recursive: true });
    const mcpServers = { on: { command: "node" }, off: { command: "node", disabled } };
    writeFileSync(file, JSON.stringify({ mcp: { excluded: ["off"] }, mcpServers }));
    const config = await loadConfig(file, { env });
    expect([names(config), config.disabled]).toEqual([["on"], ["off"]]);
  },
);

it("Windsurf's file is read", async () => {
  const config = await load("windsurf.json", ".codeium/windsurf/mcp_config.json");
  expect(names(config)).toEqual(["remote"]);
  expect(await targetOf(config, "remote")).toEqual({
    target: "https://api.example.com/mcp",
    options: { headers: { Authorization: "Bearer the.token", "X-File": "from-a-file" } },
  });
  expect(filterOf(config, "remote")).toEqual([{ filter: { tools: { exclude: ["delete_all"] } } }]);
});

it("Zed's settings.json is read, without the servers of extensions", async () => {
  const config = await load("zed.json", ".config/zed/settings.json");
  expect(names(config)).toEqual(["local", "older", "remote"]);
  expect(await targetOf(config, "older")).toMatchObject({
    target: { command: "/opt/old-server", args: ["run"], env: { B: "2" } },
  });
  expect(messages(config)).toEqual([
    "9: context_servers.postgres-context-server: ignored; an extension of Zed starts it; write its command here to use it",
  ]);
});

it("opencode: opencode.json is read, with the tools that it switches off", async () => {
  const config = await load("opencode.json", "opencode.json");
  expect(names(config)).toEqual(["everything", "jira"]);
  expect(await targetOf(config, "everything")).toMatchObject({
    target: {
      ...{ command: "npx", args: ["-y", "@modelcontextprotocol/server-everything"] },
      env: { KEY: "key-of-the-api", NONE: "" },
    },
  });
  expect(entry(config, "everything").policy).toEqual({ timeoutMs: 10_000 });
  expect(filterOf(config, "everything")).toEqual([{ filter: { tools: { exclude: ["echo", "*_delete"] } } }]);
  expect(filterOf(config, "jira")).toEqual([{ filter: { tools: { exclude: ["*_delete"] } } }]);
  expect(messages(config)).toEqual([]);
});

it("opencode: the format of version 2 is read, also in a copy", async () => {
  const config = await load("opencode-2.json", "copy.json");
  expect(names(config)).toEqual(["everything"]);
  expect(await targetOf(config, "everything")).toMatchObject({ target: { command: "npx" } });
});

it("Amp's settings.json is read", async () => {
  const config = await load("amp.json", ".config/amp/settings.json");
  expect(names(config)).toEqual(["playwright", "sourcegraph"]);
  expect(filterOf(config, "playwright")).toEqual([{ filter: { tools: { include: ["navigate_*", "click"] } } }]);
  expect(await targetOf(config, "sourcegraph")).toMatchObject({ target: "https://src.example.com/.api/mcp/v1" });
});

it("Cline's and Roo Code's timeouts are in seconds", async () => {
  const storage = ".config/Code/User/globalStorage";
  const cline = await load("cline.json", `${storage}/saoudrizwan.claude-dev/settings/cline_mcp_settings.json`);
  expect(names(cline)).toEqual(["a", "c"]);
  expect(entry(cline, "a").policy).toEqual({ timeoutMs: 60_000 });
  expect(entry(cline, "c").policy).toEqual({ timeoutMs: 1_800_000 });
  expect(messages(cline)).toEqual([]);
  const roo = await load("roo.json", ".roo/mcp.json");
  expect(entry(roo, "files").policy).toEqual({ timeoutMs: 300_000 });
  expect(filterOf(roo, "files")).toEqual([{ filter: { tools: { exclude: ["write", "delete"] } } }]);
  expect(messages(roo)).toEqual([]);
});

it("Copilot's list of tools is obeyed", async () => {
  const config = await load("copilot.json", ".copilot/mcp-config.json");
  expect(filterOf(config, "playwright")).toEqual([{ filter: { tools: { include: ["*"] } } }]);
  expect(filterOf(config, "context7")).toEqual([{ filter: { tools: { include: ["get-docs"] } } }]);
  expect(messages(config)).toEqual([]);
});

it.each([
  [{ disabledTools: ["rm"] }, ["ls"]],
  [{ excludeTools: ["rm"] }, ["ls"]],
  [{ disabled_tools: ["rm"] }, ["ls"]],
  [{ includeTools: ["ls"] }, ["ls"]],
  [{ allowedTools: ["ls"] }, ["ls"]],
  [{ enabled_tools: ["ls"] }, ["ls"]],
  [{ includeTools: ["ls", "rm"], excludeTools: ["rm"] }, ["ls"]],
  [{ include: ["ls"], exclude: [] }, ["ls"]],
  [{ includeTools: ["ls"], use: [{ rename: { tools: { ls: "rm" } } }] }, ["rm"]],
  [{ alwaysAllow: ["ls"], autoApprove: ["ls"] }, ["ls", "rm"]],
])("a filter of another client: %j shows %j and refuses the rest", async (filter, shown) => {
  const module = join(folder, "files.mjs");
  const server = new URL("../server/index.ts", import.meta.url).href;
  writeFileSync(
    module,
    `import { createServer } from ${JSON.stringify(server)};
       export default createServer({ name: "files", version: "1" }).tool("ls", {}, () => "ls").tool("rm", {}, () => "rm");`,
  );
  const file = join(folder, "filters.json");
  writeFileSync(file, JSON.stringify({ mcpServers: { files: { module, ...filter } } }));
  const gateway = await createGateway(await loadConfig(file, { env }));
  const client = await connect(gateway);
  const tools: string[] = [];
  for await (const { name } of client.tools()) tools.push(name);
  expect(tools).toEqual(shown);
  if (!shown.includes("rm")) await expect(client.callTool("rm", {})).rejects.toThrow(/rm/);
  await client.close();
  await gateway.close();
});
