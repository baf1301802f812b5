// The commands that write configs, in a home folder of their own: what they show, what they write, what they keep, and
// when they refuse.

import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { CLIENTS, clientFilePath } from "../../../src/config/clients.ts";
import { ENTER, HAS_TERMINAL, Terminal } from "../../support/terminal/terminal.ts";
import { IS_LONG } from "../../support/thoroughness.ts";
import { catenary, CLI, type CliResult } from "./cli-process.ts";

let home = "";
let project = "";
let env: NodeJS.ProcessEnv = {};
beforeEach(() => {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "catenary-setup-")));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  home = join(folder, "home");
  project = join(home, "project");
  mkdirSync(project, { recursive: true });
  env = { HOME: home, XDG_CONFIG_HOME: undefined, APPDATA: undefined };
});

const run = (...args: string[]): Promise<CliResult> => catenary(args, "", { cwd: project, env });

function write(path: string, text: string, mode?: number): string {
  const file = join(home, path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text, { ...(mode !== undefined && { mode }) });
  return file;
}

const read = (path: string): string => readFileSync(join(home, path), "utf8");
const backups = (path: string): string[] => readdirSync(join(home, path)).filter((name) => name.endsWith(".bak"));

/** One with JSON and one with TOML; all of them in the long run. */
const TRIED = CLIENTS.map(({ name }) => name).filter((name) => IS_LONG || name === "codex");

const CONFIG = '{ "mcpServers": { "notes": { "command": "node", "args": ["notes.js"] } } }\n';

it("add and remove write a config, and keep what is in it", async () => {
  const first = await run("add", "notes", "--yes", "--env", "KEY=${KEY}", "npx", "-y", "notes", "--json");
  expect(first).toMatchObject({ code: 0 });
  expect(first.out).toMatch(/^catenary\.json \(new\)\n\+ \{\n/);
  expect(first.err).toContain("catenary tools notes");
  expect(JSON.parse(read("project/catenary.json"))).toEqual({
    mcpServers: { notes: { command: "npx", args: ["-y", "notes", "--json"], env: { KEY: "${KEY}" } } },
  });
  const mode = (): number => statSync(join(home, "project/catenary.json")).mode & 0o777;
  // It may contain secrets.
  expect(mode()).toBe(0o600);
  const text = read("project/catenary.json").replace("{\n", "{\n  // mine\n");
  write("project/catenary.json", text);
  chmodSync(join(home, "project/catenary.json"), 0o640);
  const second = await run("add", "web", "https://example.com/mcp", "--header", "X-Key: abc", "--yes", "--json");
  expect(JSON.parse(second.out)).toMatchObject({
    name: "web",
    changed: true,
    backup: expect.stringContaining(".bak"),
  });
  const both = read("project/catenary.json");
  expect(mode()).toBe(0o640);
  expect(both).toContain("  // mine\n");
  expect(both).toContain('"url": "https://example.com/mcp"');
  expect(both).toContain('"X-Key": "abc"');
  expect((await run("remove", "web", "--yes")).code).toBe(0);
  expect(read("project/catenary.json")).toBe(text);
  expect(backups("project")).toHaveLength(2);
});

it.runIf(IS_LONG)("add and remove refuse what they cannot do, and write nothing", async () => {
  write("project/catenary.json", CONFIG);
  const refused = async (code: number, message: string, ...args: string[]): Promise<void> => {
    expect(await run(...args)).toMatchObject({ code, err: expect.stringContaining(message) });
  };
  await refused(1, "Stdin is not a terminal, so nothing was written to catenary.json; --yes", "add", "x", "--", "y");
  await refused(1, "--yes is an argument of the command here; options of add stand", "add", "x", "y", "--yes");
  await refused(1, "catenary.json has a server notes already; --force replaces it", "add", "notes", "y", "--yes");
  await refused(1, "add needs a COMMAND or a URL after the name", "add", "x");
  await refused(1, "write a name before the URL: catenary add NAME https://x/", "add", "https://x/");
  await refused(1, "--env needs a command, not a URL", "add", "x", "https://x/", "--env", "A=b");
  await refused(2, "There is no server note in catenary.json; did you mean notes?", "remove", "note", "--yes");
  await refused(2, "There is no config other.json", "remove", "notes", "--config", "other.json", "--yes");
  expect(read("project/catenary.json")).toBe(CONFIG);
  expect(backups("project")).toEqual([]);
});

it("add and remove show the change, without secrets, with --dry-run", async () => {
  write("project/catenary.json", '{ "mcpServers": {\n  "a": { "env": { "API_KEY": "hunter2" } }\n} }\n');
  const { code, out, err } = await run("add", "b", "--dry-run", "node", "b.js");
  expect({ code, err }).toEqual({ code: 0, err: "Nothing was written (--dry-run)\n" });
  expect(out).toContain('-   "a": { "env": { "API_KEY": "*******" } }');
  expect(out).toContain('+   "b": {');
  expect(out).not.toContain("hunter2");
  expect(read("project/catenary.json")).not.toContain('"b"');
});

describe("install and uninstall", () => {
  beforeEach(() => {
    write("project/catenary.json", CONFIG);
  });

  it.each(TRIED)("install and uninstall: %s: writes an entry that starts the gateway, and removes it", async (name) => {
    const client = CLIENTS.find((one) => one.name === name);
    if (client === undefined) throw new Error(name);
    const [file] = client.files;
    const path = clientFilePath(file, { home, env: {} });
    const before = client.format === "toml" ? '# mine\nmodel = "x"\n' : '{\n  // mine\n  "theme": "dark"\n}\n';
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, before, { mode: 0o600 });
    const installed = await run("install", name, "--yes");
    expect(installed).toMatchObject({ code: 0, err: expect.stringContaining(`catenary uninstall ${name}`) });
    const text = readFileSync(path, "utf8");
    expect(text).toContain("mine");
    expect(text).toContain(JSON.stringify(join(project, "catenary.json")));
    expect(text).toContain(JSON.stringify(process.execPath));
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect((await run("install", name, "--yes")).err).toContain("has this entry already");
    expect((await run("uninstall", name, "--yes")).code).toBe(0);
    const rest = readFileSync(path, "utf8");
    expect(rest).not.toContain("catenary");
    expect(rest.startsWith(client.format === "toml" ? before : '{\n  // mine\n  "theme": "dark"')).toBe(true);
    expect(await run("uninstall", name, "--yes")).toMatchObject({
      code: 2,
      err: expect.stringContaining("has no entry"),
    });
    const kept = readdirSync(dirname(path))
      .filter((one) => one.endsWith(".bak"))
      .toSorted();
    expect(readFileSync(join(dirname(path), kept[0] ?? ""), "utf8")).toBe(before);
    expect(statSync(join(dirname(path), kept[0] ?? "")).mode & 0o777).toBe(0o600);
  });

  it.runIf(IS_LONG)(
    "install and uninstall write a new file, one of the project, and the URL of a running gateway",
    async () => {
      expect((await run("install", "vscode", "--project", "--yes")).code).toBe(0);
      expect(JSON.parse(read("project/.vscode/mcp.json"))).toEqual({
        servers: { catenary: { type: "stdio", command: "catenary", args: ["serve", "catenary.json"] } },
      });
      const url = "http://127.0.0.1:3000/mcp";
      const json = await run("install", "cursor", "--url", url, "--name", "all", "--yes", "--json");
      expect(JSON.parse(json.out)).toMatchObject({ client: "cursor", name: "all", changed: true });
      expect(JSON.parse(read(".cursor/mcp.json"))).toEqual({ mcpServers: { all: { url } } });
    },
  );

  it("install and uninstall let a client that can only start commands use a running gateway, with the token in its environment", async () => {
    const url = "http://127.0.0.1:9/mcp";
    const file = ".config/Claude/claude_desktop_config.json";
    const install = (...more: string[]): Promise<CliResult> =>
      run("install", "claude-desktop", "--url", url, "--yes", ...more);
    const args = [CLI, "run", url];
    expect((await install()).code).toBe(0);
    expect(JSON.parse(read(file))).toEqual({ mcpServers: { catenary: { command: process.execPath, args } } });
    const { code, out, err } = await install("--header", "Authorization: Bearer hush-hush");
    expect({ code, shown: out.includes("hush-hush") }).toEqual({ code: 0, shown: false });
    expect(err).toContain("keep the file private");
    const env = { CATENARY_TOKEN: "hush-hush" };
    expect(JSON.parse(read(file))).toEqual({ mcpServers: { catenary: { command: process.execPath, args, env } } });
    expect(statSync(join(home, file)).mode & 0o777).toBe(0o600);
    expect(await install("--token-env", "T")).toMatchObject({
      code: 1,
      err: expect.stringContaining("does not pass on"),
    });
    const header = await install("--header", "X-Key: hush");
    expect(header).toMatchObject({ code: 1, err: expect.stringContaining("other users could read headers") });
    expect((await run("uninstall", "claude-desktop", "--yes")).code).toBe(0);
    expect(read(file)).not.toContain("catenary");
  });

  it("install and uninstall do not write a URL with a password, and do not repeat it", async () => {
    const urls = ["http://ann:s3cret@127.0.0.1:9/mcp", "http://:s3cret@127.0.0.1:9/mcp", "ann:s3cret@127.0.0.1:9/mcp"];
    const results = await Promise.all(urls.map((url) => run("install", "cursor", "--url", url, "--yes")));
    expect(results.map(({ code }) => code)).toEqual([1, 1, 1]);
    const errors = results.map(({ err }) => /--url (?:has a user name or a password|is not a URL)/.exec(err)?.[0]);
    const refused = "--url has a user name or a password";
    expect(errors).toEqual([refused, refused, "--url is not a URL"]);
    expect(JSON.stringify(results)).not.toContain("s3cret");
    expect(existsSync(join(home, ".cursor/mcp.json"))).toBe(false);
  });

  it("install and uninstall write --code for a gateway that the client starts", async () => {
    expect((await run("install", "cursor", "--code", "--yes")).code).toBe(0);
    expect(JSON.parse(read(".cursor/mcp.json"))).toMatchObject({
      mcpServers: { catenary: { args: [CLI, "serve", join(project, "catenary.json"), "--code"] } },
    });
    expect(await run("install", "cursor", "--code", "--url", "http://127.0.0.1:9/mcp", "--yes")).toMatchObject({
      code: 1,
      err: expect.stringContaining("start the gateway with --code"),
    });
  });

  it("install and uninstall mention the servers that the client has beside the gateway", async () => {
    write(".cursor/mcp.json", '{ "mcpServers": { "files": { "command": "files-mcp" } } }');
    const { err } = await run("install", "cursor", "--yes");
    expect(err).toContain("cursor also has 1 server of its own (files); `catenary import cursor`");
  });

  it.runIf(IS_LONG)("install and uninstall refuse what they cannot do, and write nothing", async () => {
    const refused = async (code: number, message: string, ...args: string[]): Promise<void> => {
      expect(await run(...args)).toMatchObject({ code, err: expect.stringContaining(message) });
    };
    const broken = write(".cursor/mcp.json", '{ "mcpServers": { "a" 1 } }');
    await refused(1, "There is no client curser; did you mean cursor?", "install", "curser");
    await refused(1, "mcp.json: it is not a valid JSON object (line 1, column 23)", "install", "cursor", "--yes");
    await refused(1, "Windsurf has no config for a project", "install", "windsurf", "--project");
    await refused(2, "There is no config other.json", "install", "cursor", "other.json");
    write("project/wrong.json", '{ "mcpServers": 3 }');
    await refused(1, "`catenary check wrong.json` explains", "install", "cursor", "wrong.json");
    write(".codex/config.toml", 'mcp_servers = { catenary = { command = "x" } }\n');
    await refused(1, "config.toml: its form is unusual; change it by hand", "uninstall", "codex", "--yes");
    expect(readFileSync(broken, "utf8")).toBe('{ "mcpServers": { "a" 1 } }');
    expect([...backups(".cursor"), ...backups(".codex")]).toEqual([]);
  });

  it.runIf(IS_LONG)(
    "install and uninstall follow a symbolic link within the home folder, but not out of the folder of a project",
    async () => {
      const dotfile = write("dotfiles/mcp.json", "{}\n");
      mkdirSync(join(home, ".cursor"));
      symlinkSync(dotfile, join(home, ".cursor/mcp.json"));
      const followed = await run("install", "cursor", "--yes");
      expect(followed.out).toContain("~/.cursor/mcp.json (a link to ~/dotfiles/mcp.json)");
      expect(lstatSync(join(home, ".cursor/mcp.json")).isSymbolicLink()).toBe(true);
      expect(read("dotfiles/mcp.json")).toContain("catenary");
      mkdirSync(join(project, ".cursor"));
      symlinkSync(dotfile, join(project, ".cursor/mcp.json"));
      const before = read("dotfiles/mcp.json");
      expect(await run("uninstall", "cursor", "--project", "--yes")).toMatchObject({
        code: 1,
        err: expect.stringMatching(
          /is a symbolic link to .*dotfiles\/mcp\.json, outside of .*; change that file by hand/,
        ),
      });
      expect(read("dotfiles/mcp.json")).toBe(before);
    },
  );

  it.runIf(HAS_TERMINAL)("install and uninstall ask at a terminal", async () => {
    const ask = async (answer: string): Promise<number | null> => {
      const terminal = new Terminal([process.execPath, CLI, "install", "cursor"], { cwd: project, env });
      await terminal.shows("Write ~/.cursor/mcp.json? [y/N]:");
      terminal.type(`${answer}${ENTER}`);
      const code = await terminal.exited;
      await terminal.close();
      return code;
    };
    expect(await ask("")).toBe(1);
    expect(existsSync(join(home, ".cursor/mcp.json"))).toBe(false);
    expect(await ask("y")).toBe(0);
    expect(read(".cursor/mcp.json")).toContain("catenary.json");
  });
});

const servers = (): Record<string, unknown> =>
  (JSON.parse(read("project/catenary.json")) as { mcpServers: Record<string, unknown> }).mcpServers;

it.runIf(IS_LONG)("import brings the servers of all clients into one config, in our format", async () => {
  const cursor = {
    files: { command: "npx", args: ["-y", "files", "."], env: { KEY: "1" } },
    catenary: { command: process.execPath, args: [CLI, "serve", "x.json"] },
  };
  write(".cursor/mcp.json", JSON.stringify({ mcpServers: cursor }));
  write(".codex/config.toml", '[mcp_servers.docs]\nurl = "https://example.com/mcp"\nbearer_token_env_var = "DOCS"\n');
  write(".gemini/settings.json", '{ "theme": "x", "mcpServers": { "files": { "command": "other" } } }');
  const cline = ".config/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json";
  const notes = { command: "notes", timeout: 60, autoApprove: ["a"], disabledTools: ["b"], type: "stdio" };
  write(cline, JSON.stringify({ mcpServers: { notes } }));
  const inputs = [
    { id: "key", type: "promptString", password: true },
    { id: "unused", type: "promptString" },
  ];
  const vscode = {
    type: "stdio",
    command: "./server.js",
    args: ["${workspaceFolder}/a"],
    env: { K: "${input:key}" },
  };
  write("project/.vscode/mcp.json", JSON.stringify({ servers: { local: vscode }, inputs }));
  const before = read(".cursor/mcp.json");
  write("project/server.js", "");
  const { code, err, out } = await run("import", "--yes", "--json");
  expect({ code, err }).toMatchObject({
    code: 0,
    err: expect.stringContaining("files of Gemini CLI is imported as files-gemini; Cursor has another files"),
  });
  expect((JSON.parse(out) as { imported: { name: string }[] }).imported.map(({ name }) => name).toSorted()).toEqual([
    "docs",
    "files",
    "files-gemini",
    "local",
    "notes",
  ]);
  expect(servers()).toEqual({
    files: cursor.files,
    "files-gemini": { command: "other" },
    docs: { url: "https://example.com/mcp", headers: { Authorization: "Bearer ${DOCS}" } },
    notes: { command: "notes", timeoutMs: 60_000, exclude: ["b"] },
    local: { command: join(project, "server.js"), args: [join(project, "a")], env: { K: "${input:key}" } },
  });
  expect(JSON.parse(read("project/catenary.json"))).toMatchObject({ inputs: [inputs[0]] });
  expect(read(".cursor/mcp.json")).toBe(before);
  expect(await catenary(["check"], "", { cwd: project, env: { ...env, DOCS: "x" } })).toMatchObject({ code: 0 });
  expect((await run("import", "cursor", "--yes")).err).toContain("catenary.json has these servers already");
});

it("import gives servers of one name with other keys names of their own, also those that Claude Code has for folders", async () => {
  const github = (key: string): object => ({
    command: "npx",
    args: ["-y", "github-mcp"],
    env: { GITHUB_TOKEN: key },
  });
  const projects = {
    [project]: { mcpServers: { here: { command: "here" } } },
    "/srv/one": { mcpServers: { github: github("mine"), there: { command: "there" } } },
    "/srv/two": { mcpServers: { there: { command: "there" }, script: { command: "./run.sh" } } },
  };
  write(".claude.json", JSON.stringify({ mcpServers: { github: github("mine") }, projects }));
  write(".cursor/mcp.json", JSON.stringify({ mcpServers: { github: github("of-work") } }));
  const { code, err } = await run("import", "--yes");
  expect({ code, err }).toEqual({
    code: 0,
    err: expect.stringContaining("github of Cursor is imported as github-cursor; Claude Code has another github\n"),
  });
  const imported = {
    here: { command: "here", cwd: project },
    github: github("mine"),
    there: { command: "there" },
    script: { command: "/srv/two/run.sh" },
    "github-cursor": github("of-work"),
  };
  expect(servers()).toEqual(imported);
  // A secret that has become a variable, and a setting, do not make it another server.
  const edited = { ...imported, github: { ...github("${GITHUB_TOKEN}"), timeoutMs: 5_000 } };
  write("project/catenary.json", JSON.stringify({ mcpServers: edited }));
  expect((await run("import", "--yes")).err).toContain("catenary.json has these servers already");
  expect(servers()).toEqual(edited);
});

it.runIf(IS_LONG)("import takes a file, keeps what the config has, and refuses what is not there", async () => {
  write("project/catenary.json", CONFIG.replace("{", "{ // mine\n"));
  write("other/mcp.json", '{ "mcpServers": { "notes": { "command": "x" }, "more": { "command": "y" } } }');
  const { code, err } = await run("import", join(home, "other/mcp.json"), "--yes");
  expect({ code, err }).toMatchObject({ code: 0, err: expect.stringContaining("catenary.json has another notes") });
  expect(read("project/catenary.json")).toContain("// mine");
  expect(read("project/catenary.json")).toContain('"more"');
  expect(await run("import", "windsurf", "--yes")).toMatchObject({
    code: 2,
    err: "catenary: There is no config of windsurf; looked for ~/.codeium/windsurf/mcp_config.json\n",
  });
  expect(await run("import", "none.json")).toMatchObject({ code: 2, err: "catenary: There is no file none.json\n" });
  write(".cursor/mcp.json", "{ 1 }");
  expect(await run("import", "cursor")).toMatchObject({ code: 1, err: expect.stringContaining("cannot be read") });
});
