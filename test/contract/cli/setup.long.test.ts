// More of the commands that write configs: what they refuse to write, and what they advise. The main ways are in
// setup.test.ts.

import { mkdirSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { beforeEach, expect, it, onTestFinished } from "vitest";
import { catenary, cliRunner, type CliResult } from "./cli-process.ts";

let home = "";
let env: NodeJS.ProcessEnv = {};
const start = cliRunner();
beforeEach(() => {
  home = realpathSync(mkdtempSync(join(tmpdir(), "catenary-setup-")));
  onTestFinished(() => rmSync(home, { recursive: true, force: true }));
  env = {
    ...{ HOME: home, XDG_CONFIG_HOME: undefined, APPDATA: undefined, XDG_RUNTIME_DIR: undefined },
    XDG_STATE_HOME: join(home, "state"),
  };
});

const run = (...args: string[]): Promise<CliResult> => catenary(args, "", { cwd: home, env });

function write(path: string, content: object): void {
  mkdirSync(dirname(join(home, path)), { recursive: true });
  writeFileSync(join(home, path), JSON.stringify(content));
}

const read = (path: string): string => readFileSync(join(home, path), "utf8");

interface Servers {
  readonly mcpServers: object;
}

const NOTES = { notes: { command: "node", args: ["-e", ""] } };

const URL_FLAGS = ["--url", "http://127.0.0.1:9/mcp", "--yes"];

it("the token of a gateway by URL is written as a reference where the client reads variables", async () => {
  const entryOf = async (client: string, file: string): Promise<string> => {
    expect(await run("install", client, ...URL_FLAGS, "--token-env", "GATEWAY_TOKEN")).toMatchObject({ code: 0 });
    return read(file);
  };
  expect(await entryOf("cursor", ".cursor/mcp.json")).toContain('"Authorization": "Bearer ${env:GATEWAY_TOKEN}"');
  expect(await entryOf("claude-code", ".claude.json")).toContain('"Authorization": "Bearer ${GATEWAY_TOKEN}"');
  expect(await entryOf("codex", ".codex/config.toml")).toContain('bearer_token_env_var = "GATEWAY_TOKEN"');
  expect(await entryOf("opencode", ".config/opencode/opencode.json")).toContain("Bearer {env:GATEWAY_TOKEN}");
});

it("the token of a gateway by URL is written as it is by --header, which the command says", async () => {
  expect(await run("install", "zed", ...URL_FLAGS, "--token-env", "T")).toMatchObject({
    code: 1,
    err: expect.stringContaining("Zed does not read variables in its config: give --header 'Authorization: Bearer"),
  });
  const { code, err, out } = await run("install", "zed", ...URL_FLAGS, "--header", "Authorization: Bearer hush-hush");
  expect({ code, out: out.includes("hush-hush") }).toEqual({ code: 0, out: false });
  expect(err).toContain("as you gave them: keep the file private");
  expect(read(".config/zed/settings.json")).toContain('"Authorization": "Bearer hush-hush"');
  expect((await run("install", "cursor", "--token-env", "T")).err).toContain("--token-env needs --url URL");
});

it("the token of a gateway by URL is missing, and all commands say how to give it", async () => {
  write("catenary.json", { mcpServers: NOTES, callers: { ada: { token: "ada-key" } } });
  const up = start(["up", "--http", "127.0.0.1:0"], { cwd: home, env });
  await up.waitForStderr("For a client's config");
  const url = /http:\S+/.exec(up.err)?.[0] ?? "";
  expect((await run("install", "cursor", "--url", url, "--yes")).err).toContain(
    `${url} asks for a token; write the entry again with --token-env VARIABLE or --header 'Authorization: Bearer TOKEN'`,
  );
  for (const command of ["tools", "login"]) {
    const { code, err } = await run(command, url);
    expect(code).toBe(3);
    expect(err).toContain("needs a token: set it in CATENARY_TOKEN, or give --header 'Authorization: Bearer TOKEN'");
  }
  const checked = await run("doctor", url);
  expect(checked.out).toContain("needs a token, and offers no sign-in");
  expect(checked.out).toContain("-> send the token of its owner: in CATENARY_TOKEN, or with --header");
  expect(checked.out).not.toContain("catenary login");
  write("client.json", { mcpServers: { gateway: { url } } });
  expect((await run("doctor", "client.json")).out).toContain(
    '-> write the token in the entry: "headers": {"Authorization": "Bearer ${TOKEN}"}',
  );
  expect((await run("tools", "client.json")).err).toContain('needs a token: write it in "headers" of gateway');
});

it("advice names the commands as they must be typed", async () => {
  write("catenary.json", { mcpServers: NOTES });
  const { err } = await run("install", "cursor", "--name", "my gateway", "--yes");
  expect(err).toContain("To undo this: catenary uninstall cursor --name 'my gateway'");
  expect((await run("uninstall", "cursor", "--name", "my gateway", "--yes")).code).toBe(0);
  expect((await run("add", "bad name", "--yes", "node", "x.js")).err).toContain("catenary tools 'bad name'.");
});

it("advice says which command makes a config", async () => {
  expect((await run("install", "cursor")).err).toContain(
    "name a config, `catenary install cursor FILE`, or make one: `catenary add NAME COMMAND ...`",
  );
});

it("import says that it copies secrets", async () => {
  write(".cursor/mcp.json", { mcpServers: { mail: { command: "node", env: { API_KEY: "hunter2" } }, ...NOTES } });
  const { err, out } = await run("import", "cursor", "--yes");
  expect(err).toContain("Secrets of mail are copied as they are; to keep them out of catenary.json, write a variable");
  expect(out + err).not.toContain("hunter2");
});

it("import says which variables the servers need; without them, up runs the others", async () => {
  write(".cursor/mcp.json", { mcpServers: { board: { url: "http://127.0.0.1:9/mcp", headers: { Key: "${BOARD}" } } } });
  const imported = await run("import", "cursor", "--yes");
  expect(imported).toMatchObject({ code: 0 });
  expect(imported.err).toContain("board cannot run yet: The variable BOARD is not set; set it in the environment");
  await run("add", "notes", "--yes", "--", "node", "-e", "process.stdin.resume()");
  const gateway = start(["up", "catenary.json", "--http", "127.0.0.1:0", "--json"], { cwd: home, env });
  await expect.poll(() => gateway.out).toContain("\n");
  const status = await run("status", "--json");
  const problem = expect.stringContaining("The variable BOARD is not set") as string;
  expect(JSON.parse(status.out)).toMatchObject({
    gateways: [{ upstreams: { board: { state: "incomplete", problem }, notes: { state: "idle" } } }],
  });
  expect((await run("logs", "board")).out).toContain("board not started: The variable BOARD is not set");
  expect(await run("check")).toMatchObject({ code: 1 });
});

it("import keeps what the paths of servers in another folder mean", async () => {
  const project = {
    script: { command: "node", args: ["build/index.js"] },
    program: { command: "bin/server", cwd: "data" },
    named: { command: "npx", cwd: "~/data" },
    module: { module: "server.js" },
    web: { url: "https://example.com/mcp" },
  };
  write("project/.vscode/mcp.json", { servers: project });
  write("project/server.js", {});
  write(".cursor/mcp.json", { mcpServers: { user: { command: "npx" } } });
  const config = join(home, "gateway/catenary.json");
  mkdirSync(dirname(config));
  const { code, err } = await run("import", "project/.vscode/mcp.json", "--config", config, "--yes");
  expect({ code, err }).toMatchObject({ code: 0 });
  await run("import", "cursor", "--config", config, "--yes");
  const folder = join(home, "project");
  expect(JSON.parse(read("gateway/catenary.json"))).toEqual({
    mcpServers: {
      script: { command: "node", args: ["build/index.js"], cwd: folder },
      program: { command: join(folder, "bin/server"), cwd: join(folder, "data") },
      named: { command: "npx", cwd: "~/data" },
      module: { module: join(folder, "server.js") },
      web: { url: "https://example.com/mcp" },
      user: { command: "npx" },
    },
  });
});

it("import takes the first input of an id", async () => {
  const entry = { command: "node", env: { KEY: "${input:key}" } };
  const input = (description: string): object => ({ id: "key", type: "promptString", description });
  write(".vscode/mcp.json", { servers: { a: entry }, inputs: [input("first"), input("second")] });
  expect(await run("import", ".vscode/mcp.json", "--yes")).toMatchObject({ code: 0 });
  expect(JSON.parse(read("catenary.json"))).toMatchObject({ inputs: [input("first")] });
});

it("import says why there is nothing to import", async () => {
  write("catenary.json", { mcpServers: NOTES });
  expect(await run("import", "catenary.json")).toMatchObject({
    code: 1,
    err: expect.stringContaining("catenary: catenary.json is the config to write to; name another FILE"),
  });
  write(".cursor/mcp.json", { mcpServers: { catenary: { command: "catenary", args: ["serve", "x.json"] } } });
  expect(await run("import", "cursor")).toMatchObject({
    code: 2,
    err: expect.stringContaining("There is nothing to import from ~/.cursor/mcp.json but Catenary itself"),
  });
  write(".cursor/mcp.json", { mcpServers: {} });
  expect((await run("import", "cursor")).err).toContain("There are no servers in ~/.cursor/mcp.json");
});

it("three backups of a file are kept", async () => {
  for (const name of ["a", "b", "c", "d", "e", "f"]) await run("add", name, "--yes", "node", `${name}.js`);
  const backups = readdirSync(home).filter((name) => name.endsWith(".bak"));
  expect(backups).toHaveLength(3);
  const servers = backups.toSorted().map((name) => Object.keys((JSON.parse(read(name)) as Servers).mcpServers).length);
  expect(servers).toEqual([3, 4, 5]);
});

it("add warns of a program that is not there", async () => {
  const { code, err } = await run("add", "x", "--yes", "no-such-program");
  expect(code).toBe(0);
  expect(err).toMatch(/^Warning: .*no-such-program/m);
  expect((await run("add", "y", "--yes", "node", "y.js")).err).not.toContain("Warning");
});

it("a gateway that would call itself is not imported by its URL", async () => {
  write(".cursor/mcp.json", { mcpServers: { gateway: { url: "http://localhost:3000/mcp" }, ...NOTES } });
  const some = await run("import", "cursor", "--yes");
  expect(some.code).toBe(0);
  expect(some.err).toContain("Left out: gateway of Cursor; it is the address of this gateway, which would call itself");
  expect(JSON.parse(read("catenary.json"))).toEqual({ mcpServers: NOTES });
  write(".cursor/mcp.json", { mcpServers: { gateway: { url: "http://127.0.0.1:3000/mcp/work" } } });
  const none = await run("import", "cursor", "--yes");
  expect(none.code).toBe(2);
  expect(none.err).toContain("There is nothing to import but the gateway of catenary.json itself");
});

it("a gateway that would call itself is not imported by the URL where it runs", async () => {
  write("catenary.json", { mcpServers: NOTES });
  const up = start(["up", "--http", "127.0.0.1:0"], { cwd: home, env });
  await up.waitForStderr("For a client's config");
  const { port } = new URL(/http:\S+/.exec(up.err)?.[0] ?? "");
  write(".cursor/mcp.json", { mcpServers: { gateway: { url: `http://localhost:${port}/mcp` } } });
  expect(await run("import", "cursor", "--yes")).toMatchObject({
    code: 2,
    err: expect.stringContaining("Left out: gateway of Cursor"),
  });
});

it("a gateway that would call itself is not installed into its own config", async () => {
  write(".cursor/mcp.json", { mcpServers: NOTES });
  const before = read(".cursor/mcp.json");
  const { code, err } = await run("install", "cursor", ".cursor/mcp.json", "--yes");
  expect(code).toBe(1);
  expect(err).toContain(".cursor/mcp.json is the config of Cursor itself, so the gateway would start itself");
  expect(err).toContain("`catenary import cursor`");
  expect(read(".cursor/mcp.json")).toBe(before);
});

it("a gateway that would call itself is found by check at the default address", async () => {
  write("catenary.json", { mcpServers: { ...NOTES, me: { url: "http://[::1]:3000/mcp" } } });
  const { code, out } = await run("check");
  expect(code).toBe(0);
  expect(out).toContain("warning: The URL of me is where `catenary up` listens by default; if it is this gateway");
  write("catenary.json", { mcpServers: { ...NOTES, me: { command: "catenary", args: ["up", "catenary.json"] } } });
  expect(await run("check")).toMatchObject({
    code: 1,
    out: expect.stringContaining("starts the gateway of this same file, which would start itself without end"),
  });
});

it("a gateway that would call itself is not served", async () => {
  write("catenary.json", { mcpServers: { ...NOTES, me: { url: "http://localhost:47113/mcp" } } });
  const { code, err } = await run("up", "--http", "127.0.0.1:47113");
  expect(code).toBe(1);
  expect(err).toContain("The URL of the server me is the address of this gateway, which would call itself");
});
