// Configs as people have them: what is made of them, and that nothing is held against them.

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ENVIRONMENT, GOOD } from "../../test/support/config-samples.ts";
import type { Input } from "./inputs.ts";
import { checkConfig, examineConfig, loadConfig } from "./load.ts";
import { ConfigError } from "./problems.ts";

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

describe("a file of", () => {
  it.each(GOOD)("$name is used as it is", async ({ path = "catenary.json", text, ends }) => {
    const file = written(path, text);
    expect(await checkConfig(text, file, { env: ENVIRONMENT })).toEqual([]);
    const config = await loadConfig(file, { env: ENVIRONMENT, inputs });
    expect([...config.ends.keys()]).toEqual(ends);
    expect(config).toMatchObject({ path: file, text: text.replace("\uFEFF", ""), warnings: [] });
  });
});

async function load(text: string, path = "catenary.json"): Promise<Awaited<ReturnType<typeof loadConfig>>> {
  return loadConfig(written(path, text), { env: ENVIRONMENT, inputs });
}

function sample(name: string): string {
  const found = GOOD.find((one) => one.name === name);
  if (found === undefined) throw new Error(`There is no sample ${name}`);
  return found.text;
}

describe("what is in a config", () => {
  it("is all there", async () => {
    const config = await load(sample("everything"));
    expect(config).toMatchObject({
      name: "office",
      instructions: "Notes and more; a literal ${VAR}.",
      names: "always",
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
    expect(config.ends.get("notes")).toMatchObject({
      kind: "command",
      about: { command: join(folder, "bin/notes"), args: [], env: {}, cwd: folder },
      policy: {
        share: "per-caller",
        timeout: { idleMs: 1000, totalMs: 2000 },
        startTimeout: 5000,
        idle: 0,
        restart: { most: 3, windowMs: 60_000, firstMs: 100, maxMs: 1000 },
      },
      use: [{ kind: "module", file: join(folder, "mine.mjs"), options: { key: "s3cret-of-the-api" }, name: "own" }],
    });
    expect(config.ends.get("mine")).toMatchObject({ kind: "module", about: { module: join(folder, "server.mjs") } });
    expect(config.ends.get("web")).toMatchObject({ kind: "url", policy: { timeout: 3000 } });
  });

  it("has variables, inputs and the environment of a file put in", async () => {
    const { ends } = await load(sample("VS Code"), ".vscode/mcp.json");
    expect(await ends.get("files")?.reach()).toEqual({
      target: {
        command: "npx",
        args: ["-y", "files", "us"],
        env: { FROM_FILE: "1", API_KEY: "s3cret-input", RETRIES: "3" },
        cwd: folder,
      },
    });
    expect(await ends.get("web")?.reach()).toMatchObject({ target: "https://us.example.com/mcp" });
  });

  it("is meant from the folder above where an editor keeps it in one of its own", async () => {
    const text =
      '{"mcpServers": {"a": {"command": "./a", "args": ["${workspaceFolder}|${workspaceFolderBasename}|${userHome}|${/}"]}}}';
    const [, base = ""] = /([^/]+)$/.exec(folder) ?? [];
    const args = [`${folder}|${base}|${homedir()}|/`];
    for (const path of [".vscode/mcp.json", ".cursor/mcp.json", "mcp.json"]) {
      const { ends } = await load(text, path);
      expect(ends.get("a")?.about).toMatchObject({ command: join(folder, "a"), args, cwd: folder });
    }
  });

  it("leaves a command without a slash to the PATH", async () => {
    const { ends } = await load('{"mcpServers": {"a": {"command": "a.sh"}, "b": {"command": "/usr/bin/b"}}}');
    expect([...ends.values()].map(({ about }) => about["command"])).toEqual(["a.sh", "/usr/bin/b"]);
  });

  it("may have any names", async () => {
    const { ends, warnings } = await load(
      '{"mcpServers": {"__proto__": {"url": "http://a"}, "Ä b": {"url": "http://b"}}}',
    );
    expect([...ends.keys()]).toEqual(["__proto__", "Ä b"]);
    expect(warnings).toEqual([
      expect.objectContaining({
        message: 'Tools that need the name of mcpServers["Ä b"] are called __b.name',
        line: 1,
        column: 51,
      }),
    ]);
  });

  it("is counted for those who look at it", async () => {
    const file = written("catenary.json", sample("everything"));
    expect(await examineConfig(file, { env: ENVIRONMENT })).toMatchObject({
      text: sample("everything").slice(1),
      problems: [{ severity: "warning", message: expect.stringMatching(/^Cannot start ".*notes": /) as string }],
      servers: ["notes", "mine", "web"],
      links: ["log", "log", "timeout", "rate-limit", "own"],
    });
  });

  it("is looked at for programs that cannot be started, and no variable is told", async () => {
    const servers = {
      there: { command: process.execPath },
      both: { command: "node server.js" },
      hidden: { command: "${API_KEY}" },
      asked: { command: "${input:program}" },
      off: { command: "catenary-no-such", enabled: false },
    };
    const inputs = [{ id: "program", type: "promptString" }];
    const file = written("programs.json", JSON.stringify({ inputs, mcpServers: servers }));
    const { problems } = await examineConfig(file, { env: ENVIRONMENT });
    expect(problems.map(({ severity, message, hint }) => `${severity}: ${message}; ${hint}`)).toEqual([
      'warning: Cannot start "node server.js": there is no command of that name; put the program alone into "command" and its arguments into "args"',
      'warning: Cannot start "${API_KEY}": there is no command of that name on the PATH; install it, or give its full path as "command"',
    ]);
  });
});

describe("a file that is wrong", () => {
  it("is an error with everything that is wrong", async () => {
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
        `${file}:2:35: error: mcpServers.a.command is no command; write the program to start, such as npx`,
        `${file}:3:12: error: names must be one of "when-needed", "always"`,
      ].join("\n"),
    });
  });

  it("that is not there is told by the system", async () => {
    await expect(loadConfig(join(folder, "none.json"))).rejects.toMatchObject({ code: "ENOENT" });
    await expect(examineConfig(join(folder, "none.json"))).rejects.toMatchObject({ code: "ENOENT" });
  });
});
