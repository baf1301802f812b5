// The digest of the files that a config runs: which changes it sees.

import { mkdirSync, mkdtempSync, rmSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { loadConfigText } from "./load.ts";
import { digestFiles } from "./local-files.ts";

let folder = "";
const write = (name: string, text: string): void => writeFileSync(join(folder, name), text);

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "catenary-files-"));
  mkdirSync(join(folder, "lib"));
  write("server.mjs", 'import { a } from "./lib/a.js"; export default a;');
  write("lib/a.ts", "export const a = 1; await import('./b');");
  write("lib/b.js", "require('../server.mjs');");
  write("use.mjs", "export default 1;");
  write("run.sh", "#!/bin/sh\n");
  write("script.py", "");
  write(".env", "A=1\n");
  write("api.json", "{}");
  write("other.js", "");
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

async function digest(entry?: object): Promise<string> {
  const mcpServers = entry
    ? { entry }
    : {
        module: { module: "./server.mjs", use: [{ use: "./use.mjs" }] },
        program: { command: "./run.sh", envFile: ".env" },
        script: { command: "python3", args: ["script.py"] },
        api: { openapi: "./api.json" },
        web: { url: "https://example.com/mcp" },
      };
  return digestFiles(await loadConfigText(JSON.stringify({ mcpServers }), join(folder, "catenary.json")));
}

it.each(["server.mjs", "lib/a.ts", "lib/b.js", "use.mjs", "run.sh", "script.py", ".env", "api.json"])(
  "sees a change of %s",
  async (name) => {
    const before = await digest();
    expect(await digest()).toBe(before);
    write(name, "// changed\n");
    expect(await digest()).not.toBe(before);
  },
);

it("does not look at other files", async () => {
  const before = await digest();
  write("other.js", "changed");
  expect(await digest()).toBe(before);
});

it("sees that a script is gone", async () => {
  const before = await digest();
  rmSync(join(folder, "script.py"));
  expect(await digest()).not.toBe(before);
});

describe("sees a change of what", () => {
  beforeEach(() => {
    mkdirSync(join(folder, "package"));
    write("package/package.json", '{ "main": "lib/start" }');
    mkdirSync(join(folder, "package/lib"));
    write("package/lib/start.js", "");
    mkdirSync(join(folder, "app"));
    write("app/index.js", "");
    write("app/__main__.py", "");
    write("start", "import './other.js'");
    write("hook.mjs", "import './lib/b.js'");
    write("with space.cjs", "");
  });

  it.each([
    ["--import= names", { command: "npx", args: ["tsx", "--import=./hook.mjs", "x"] }, "hook.mjs"],
    ["a module of --import imports", { command: "npx", args: ["tsx", "--import=./hook.mjs", "x"] }, "lib/b.js"],
    ["--require names without an extension", { command: "node", args: ["--require", "./other", "x.js"] }, "other.js"],
    ["-r names", { command: "node", args: ["-r", "./start", "x.js"] }, "start"],
    ["--loader names", { command: "node", args: ["--loader", "./hook.mjs", "x.js"] }, "hook.mjs"],
    ["--experimental-loader names", { command: "node", args: ["--experimental-loader=./start"] }, "start"],
    ["NODE_OPTIONS loads", { command: "x", env: { NODE_OPTIONS: "--no-warnings --import ./hook.mjs" } }, "hook.mjs"],
    ["NODE_OPTIONS quotes", { command: "x", env: { NODE_OPTIONS: '-r "./with space.cjs"' } }, "with space.cjs"],
    ["a shell runs", { command: "bash", args: ["./start"] }, "start"],
    ["a shell with options runs", { command: "/bin/bash", args: ["-eu", "start", "--port", "1"] }, "start"],
    ["a shell runs, with its extension", { command: "sh", args: ["run.sh"] }, "run.sh"],
    ["a script without an extension imports", { command: "node", args: ["./start"] }, "other.js"],
    ["comes after the value of an option", { command: "node", args: ["--env-file", ".env", "start"] }, "start"],
    ["the package.json of a folder names", { command: "node", args: ["package"] }, "package/lib/start.js"],
    ["package.json says", { command: "node", args: ["."], cwd: "package" }, "package/package.json"],
    ["the folder of a program has as index.js", { command: "node", args: ["./app"] }, "app/index.js"],
  ])("sees a change of what: %s", async (_, entry, name) => {
    const before = await digest(entry);
    expect(await digest(entry)).toBe(before);
    write(name, '{ "main": "changed" }');
    expect(await digest(entry)).not.toBe(before);
  });

  it.each([
    ["an absolute path", () => JSON.stringify(join(folder, "other.js"))],
    ["a file: URL", () => JSON.stringify(pathToFileURL(join(folder, "other.js")).href)],
    ["a template literal", () => "`./other.js`"],
    ["a query", () => "'./other.js?v=1'"],
    ["a path without an extension", () => '"./other"'],
    ["its folder", () => '"./package"'],
  ])("sees a change of what: a module imports by %s", async (what, specifier) => {
    write("server.mjs", `export default await import(${specifier()});`);
    const before = await digest({ module: "./server.mjs" });
    write(what === "its folder" ? "package/lib/start.js" : "other.js", "changed");
    expect(await digest({ module: "./server.mjs" })).not.toBe(before);
  });
});

describe("sees a change of a file", () => {
  beforeEach(() => mkdirSync(join(folder, "c#")));

  it.each([
    ["in a folder with # in its name", "c#/s.js", (): string => join(folder, "c#/s.js")],
    ["whose name has a ?", "a?b.js", (): string => "a?b.js"],
  ])("sees a change of a file: %s", async (_, name, argument) => {
    write(name, "");
    const entry = { command: "node", args: [argument()] };
    const before = await digest(entry);
    write(name, "changed");
    expect(await digest(entry)).not.toBe(before);
  });

  it.each([
    ["required by a name with #", 'require("./x#y.cjs")', "x#y.cjs"],
    ["imported by a name with an escape", 'import "./x%20y.mjs"', "x y.mjs"],
    ["that TypeScript imports by the name of a compiled file that also exists", 'import "./other.js"', "other.ts"],
    ["of machine code, imported without its extension", 'require("./addon")', "addon.node"],
    ["after imports that are not valid", 'import "file:///a%zz"; import "./other.js"', "other.js"],
  ])("sees a change of a file: %s", async (_, source, name) => {
    write("start.ts", source);
    write(name, "");
    const entry = { command: "tsx", args: ["start.ts"] };
    const before = await digest(entry);
    write(name, "changed");
    expect(await digest(entry)).not.toBe(before);
  });

  it("sees a change of a file that is imported beside the file that a link leads to", async () => {
    symlinkSync("../lib/a.ts", join(folder, "c#/link.ts"));
    const entry = { command: "tsx", args: ["c#/link.ts"] };
    const before = await digest(entry);
    write("lib/b.js", "changed");
    expect(await digest(entry)).not.toBe(before);
  });

  it("sees a change of a file that is too long to be read", async () => {
    const path = join(folder, "long");
    const entry = { command: "./long" };
    write("long", "");
    truncateSync(path, 70_000_000);
    const before = await digest(entry);
    expect(await digest(entry)).toBe(before);
    truncateSync(path, 70_000_001);
    expect(await digest(entry)).not.toBe(before);
  });
});

it.each([
  ["the data of a script", { command: "python3", args: ["script.py", "data"] }],
  ["the data of code in an argument", { command: "node", args: ["-e", "1", "./data"] }],
  ["the value of another option", { command: "npx", args: ["x", "--db", "./data"] }],
  ["a package", { command: "node", args: ["--import", "data", "server.mjs"] }],
])("does not look at %s", async (_, entry) => {
  write("data", "");
  const before = await digest(entry);
  write("data", "changed");
  expect(await digest(entry)).toBe(before);
});

it("does not fail at a path that is not valid", async () => {
  write("server.mjs", "import 'file://host/x.js'; import 'file:///%2fx.js'; import 'file:'; import(`./${x}.js`);");
  expect(await digest({ module: "./server.mjs" })).toHaveLength(64);
});
