// Valid configs: what is read from them, and that they cause no problems.

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { ENVIRONMENT, GOOD } from "../../test/support/config/valid-configs.ts";
import { checkConfig, examineConfig, loadConfig } from "./load.ts";
import { ConfigError } from "./document.ts";
import type { Input } from "./variables.ts";

let folder = "";
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "catenary-config-"));
  written("mine.mjs", "export default (request, context, next) => next(request, context);");
  written("server.mjs", "export default async () => ({});");
  written(".env", "FROM_FILE=1\nAPI_KEY=overruled\n");
});
afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
});

function written(name: string, text: string): string {
  const file = join(folder, name);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
  return file;
}

const answers: Readonly<Record<string, string>> = { "api-key": "s3cret-input", where: "us" };
const inputs = async ({ id }: Input): Promise<string | undefined> => answers[id];

it.each(GOOD)("the file of: $name is accepted", async ({ path = "catenary.json", text, upstreams, warnings = [] }) => {
  const file = written(path, text);
  const problems = await checkConfig(text, file, { env: ENVIRONMENT });
  expect(problems.map(({ message }) => message)).toEqual(warnings);
  const config = await loadConfig(file, { env: ENVIRONMENT, inputs });
  expect([...config.upstreams.keys()]).toEqual(upstreams);
  expect(config).toMatchObject({ path: file, text: text.replace("\uFEFF", ""), warnings: problems });
});

async function load(text: string, path = "catenary.json"): Promise<Awaited<ReturnType<typeof loadConfig>>> {
  return loadConfig(written(path, text), { env: ENVIRONMENT, inputs });
}

function sample(name: string): string {
  const found = GOOD.find((one) => one.name === name);
  if (found === undefined) throw new Error(`No sample ${name}`);
  return found.text;
}

it("a config is read completely", async () => {
  const config = await load(sample("everything"));
  expect(config).toMatchObject({
    name: "office",
    instructions: "Notes and more; a literal ${VAR}.",
    naming: { names: "always" },
    listen: { port: 4000, token: "s3cret.token", path: "/mcp", allowedHosts: ["notes.example.com"] },
    limits: { messageBytes: 1_000_000, sessions: 10 },
    disabled: [],
  });
  expect(config.chain).toMatchObject([
    { kind: "named", name: "log", options: undefined, position: { line: 17, column: 13 } },
    { kind: "named", name: "log", options: {} },
    { kind: "named", name: "timeout", options: 3000 },
    { kind: "named", name: "rate-limit", options: { calls: 100, per: "minute" } },
  ]);
  expect(config.upstreams.get("notes")).toMatchObject({
    kind: "command",
    settings: { command: join(folder, "bin/notes"), args: [], env: {}, cwd: folder },
    policy: {
      share: "per-caller",
      timeoutMs: 1000,
      maxTimeoutMs: 2000,
      startTimeoutMs: 5000,
      idleMs: 0,
      maxSessions: 4,
      inheritEnv: ["AWS_*"],
      remember: false,
      restart: { maxFailures: 3, windowMs: 60_000, firstMs: 100, maxMs: 1000 },
    },
    use: [{ kind: "module", file: join(folder, "mine.mjs"), options: { key: "s3cret-of-the-api" }, name: "own" }],
  });
  expect(config.upstreams.get("mine")).toMatchObject({
    kind: "module",
    settings: { module: join(folder, "server.mjs") },
  });
  expect(config.upstreams.get("web")).toMatchObject({ kind: "url", policy: { timeoutMs: 3000 } });
});

it("a config gives the defaults to commands and URLs that do not set the options", async () => {
  const { upstreams } = await load(`{
      "defaults": { "share": "shared", "idleMs": 5000, "inheritEnv": true },
      "mcpServers": {
        "a": { "command": "x" },
        "b": { "url": "https://example.com/mcp", "share": "per-session", "inheritEnv": false },
        "c": { "live": "js" }
      }
    }`);
  expect(upstreams.get("a")?.policy).toEqual({ share: "shared", idleMs: 5000, inheritEnv: true });
  expect(upstreams.get("b")?.policy).toEqual({ share: "per-session", idleMs: 5000, inheritEnv: false });
  expect(upstreams.get("c")?.policy).toEqual({});
});

it("a config is expanded with variables, inputs and the envFile", async () => {
  const { upstreams } = await load(sample("VS Code"), ".vscode/mcp.json");
  expect(await upstreams.get("files")?.resolve()).toEqual({
    target: {
      command: "npx",
      args: ["-y", "files", "us"],
      env: { FROM_FILE: "1", API_KEY: "s3cret-input", RETRIES: "3" },
      cwd: folder,
    },
  });
  expect(await upstreams.get("web")?.resolve()).toMatchObject({ target: "https://us.example.com/mcp" });
});

it("a config in a folder of an editor is relative to the folder above", async () => {
  const text =
    '{"mcpServers": {"a": {"command": "./a", "args": ["${workspaceFolder}|${workspaceFolderBasename}|${userHome}|${/}"]}}}';
  const [, base = ""] = /([^/]+)$/.exec(folder) ?? [];
  const args = [`${folder}|${base}|${homedir()}|/`];
  for (const path of [".vscode/mcp.json", ".cursor/mcp.json", "mcp.json"]) {
    const { upstreams } = await load(text, path);
    expect(upstreams.get("a")?.settings).toMatchObject({ command: join(folder, "a"), args, cwd: folder });
  }
});

it("a config expands ~ at the beginning of a path", async () => {
  const { upstreams } = await load('{"mcpServers": {"a": {"command": "~/bin/a", "cwd": "~"}}}');
  expect(upstreams.get("a")?.settings).toMatchObject({ command: join(homedir(), "bin/a"), cwd: homedir() });
});

it("a config does not resolve a command without a slash", async () => {
  const { upstreams } = await load('{"mcpServers": {"a": {"command": "a.sh"}, "b": {"command": "/usr/bin/b"}}}');
  expect([...upstreams.values()].map(({ settings }) => settings["command"])).toEqual(["a.sh", "/usr/bin/b"]);
});

it("a config may have servers of any name", async () => {
  const { upstreams, warnings } = await load(
    '{"mcpServers": {"__proto__": {"url": "http://a"}, "Ä b": {"url": "http://b"}}}',
  );
  expect([...upstreams.keys()]).toEqual(["__proto__", "Ä b"]);
  expect(warnings).toEqual([
    expect.objectContaining({
      message: 'mcpServers["Ä b"]: where a prefix is needed, its tools are called __b_TOOL',
      line: 1,
      column: 51,
    }),
  ]);
});

it("a config is summarized by examineConfig", async () => {
  const file = written("catenary.json", sample("everything"));
  const report = await examineConfig(file, { env: ENVIRONMENT });
  // On a machine without a sandbox there is one more.
  const problems = report.problems.filter(({ message }) => !message.includes("sandbox"));
  expect(problems).toMatchObject([
    { severity: "warning", message: expect.stringMatching(/^Cannot start ".*notes": /) as string },
  ]);
  expect(report).toMatchObject({
    text: sample("everything").slice(1),
    servers: ["notes", "mine", "web"],
    middleware: ["log", "log", "timeout", "rate-limit", "own"],
  });
});

it("a config is checked for programs that cannot be started, without showing variables", async () => {
  const servers = {
    there: { command: process.execPath },
    hidden: { command: "${API_KEY}" },
    asked: { command: "${input:program}" },
    off: { command: "catenary-no-such", enabled: false },
  };
  const inputs = [{ id: "program", type: "promptString" }];
  const file = written("programs.json", JSON.stringify({ inputs, mcpServers: servers }));
  const { problems } = await examineConfig(file, { env: ENVIRONMENT });
  expect(problems.map(({ severity, message, hint }) => `${severity}: ${message}; ${hint}`)).toEqual([
    'warning: Cannot start "${API_KEY}": there is no command of that name on the PATH; install it, or give its full path as "command"',
  ]);
});

it("an invalid file throws an error with all problems", async () => {
  const text = '{\n  "mcpServers": {"a": {"command": ""}},\n  "names": "never"\n}';
  const file = written("wrong.json", text);
  const error: unknown = await loadConfig(file).catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(ConfigError);
  expect(error).toMatchObject({
    path: file,
    text,
    problems: [
      { line: 2, column: 35 },
      { line: 3, column: 12 },
    ],
    message: [
      `${file}:2:35: error: mcpServers.a.command: not a valid command; write the program to start, such as npx`,
      `${file}:3:12: error: names: expected one of "when-needed", "always"`,
    ].join("\n"),
  });
});

it("an invalid file that does not exist throws the error of the system", async () => {
  await expect(loadConfig(join(folder, "none.json"))).rejects.toMatchObject({ code: "ENOENT" });
  await expect(examineConfig(join(folder, "none.json"))).rejects.toMatchObject({ code: "ENOENT" });
});
