// Servers that are started by npx: the same program as under npx, in a process of its own. Real npx with a cache of its
// own; the packages are folders, so nothing is downloaded.

import { execFile } from "node:child_process";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { text } from "node:stream/consumers";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { IS_LONG } from "../../test/support/thoroughness.ts";
import { startChild } from "./child.ts";
import { withoutNpm } from "./npx.ts";

const run = promisify(execFile);

let folder = "";
let env: Record<string, string> = {};

/** Says who it is, with its arguments, the name of its parent and what it reads from stdin. */
const PROGRAM = `#!/usr/bin/env node
const { readFileSync } = require("node:fs");
const parent = readFileSync("/proc/" + process.ppid + "/cmdline", "utf8").split("\\0")[0].split(/[/ ]/).at(-1);
const { npm_lifecycle_event, npm_config_script_shell, mark, found } = process.env;
const ours = Object.keys(process.env).filter((name) => name.startsWith("catenary_npx"));
const bin = process.argv[1].split("/").at(-1);
const stdin = readFileSync(0, "utf8");
const args = process.argv.slice(2);
const shell = { npm_lifecycle_event, npm_config_script_shell };
console.log(JSON.stringify({ bin, args, stdin, parent, ...shell, mark, found, ours }));
`;

function writePackage(name: string, fields: object): string {
  const path = join(folder, name);
  mkdirSync(path);
  writeFileSync(join(path, "package.json"), JSON.stringify({ name, version: "1.0.0", ...fields }));
  writeFileSync(join(path, "main.js"), PROGRAM);
  chmodSync(join(path, "main.js"), 0o755);
  return path;
}

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "catenary-npx-"));
  env = { npm_config_cache: join(folder, "cache"), npm_config_update_notifier: "false" };
  writePackage("one-bin", { bin: { "one-bin-server": "main.js" } });
  writePackage("two-bins", { bin: { "two-bins": "main.js", other: "./main.js" } });
  writePackage("no-bin", {});
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

interface Said {
  readonly bin: string;
  readonly args: readonly string[];
  readonly stdin: string;
  readonly parent: string;
  readonly npm_lifecycle_event?: string;
  readonly npm_config_script_shell?: string;
  readonly mark?: string;
  readonly found?: string;
  /** Variables of the script. */
  readonly ours: readonly string[];
}

async function start(args: readonly string[], more: Record<string, string> = {}): Promise<Said> {
  const program = { command: "npx", args, cwd: folder, env: { ...env, ...more } };
  const child = await startChild({ ...program, ...(await withoutNpm(program)) });
  child.stdin.end("hello");
  const out = await text(child.stdout);
  const { code } = await child.finished;
  if (code !== 0) throw new Error(`code ${code}: ${child.stderrTail()}`);
  return JSON.parse(out) as Said;
}

describe.runIf(process.platform === "linux")("a server by npx", () => {
  it("a server by npx is the program that npx runs, with its arguments and stdin, and without npm and a shell", async () => {
    const odd = ["--flag", "it's", 'a "b" $HOME `c`', "", "a\nb"];
    const said = await start(["-y", "./one-bin", ...odd]);
    expect(said).toMatchObject({ bin: "one-bin-server", args: odd, stdin: "hello", npm_lifecycle_event: "npx" });
    // The parent of the program is this process.
    expect(said.parent).not.toMatch(/^(npm|sh|npx)$/);
    expect(said.npm_config_script_shell).toBeUndefined();
  });

  it.runIf(IS_LONG)(
    "a server by npx gets arguments and variables that look like the script's own output, and nothing runs them",
    async () => {
      const out = join(folder, "injected");
      const text = `# found by npx\nfound-0\ntouch ${out}\n`;
      const more = { X: text, mark: "my mark", found: "mine" };
      const said = await start(["-y", "./one-bin", text, "# found by npx"], more);
      expect(said).toMatchObject({ args: [text, "# found by npx"], mark: "my mark", found: "mine" });
      expect(said.ours).toEqual([]);
      expect(existsSync(out)).toBe(false);
    },
  );

  it.runIf(IS_LONG)("a server by npx is installed with its install scripts", async () => {
    const postinstall = `node -e "fs.writeFileSync(process.env.OUT, 'installed')"; echo done`;
    writePackage("package", { name: "packed", bin: { packed: "main.js" }, scripts: { postinstall } });
    await run("tar", ["-czf", "packed.tgz", "package"], { cwd: folder });
    const out = join(folder, "out");
    expect((await start(["-y", "./packed.tgz"], { OUT: out })).bin).toBe("packed");
    expect(readFileSync(out, "utf8")).toBe("installed");
  });

  it.runIf(IS_LONG)("a server by npx is one of several programs of a package, chosen by npx", async () => {
    expect((await start(["-y", "./two-bins"])).bin).toBe("two-bins");
    expect((await start(["-y", "-p", "./two-bins", "other", "x"])).bin).toBe("other");
    expect((await start(["--yes", "--package=./two-bins", "--", "other", "x"])).args).toEqual(["x"]);
  });

  it.runIf(IS_LONG)("a server by npx may be installed in the folder", async () => {
    mkdirSync(join(folder, "node_modules/.bin"), { recursive: true });
    symlinkSync(join(folder, "one-bin/main.js"), join(folder, "node_modules/.bin/local-server"));
    expect(await start(["local-server", "x"])).toMatchObject({ args: ["x"], stdin: "hello" });
  });

  it.runIf(IS_LONG)("a server by npx fails as npx does", async () => {
    await expect(start(["-y", "./no-bin"])).rejects.toThrow("could not determine executable to run");
    await expect(start(["-y", "./not-there"])).rejects.toThrow("code ");
  });
});

const same = async (command: string, args: readonly string[], own: Record<string, string> = {}): Promise<void> =>
  expect(await withoutNpm({ command, args, env: own })).toEqual({ command, args });

it("other commands are started as they are", async () => {
  await same("node", ["npx"]);
  await same("uvx", ["server"]);
  await same("npx", ["-y", "-p", "x", "-c", "x --flag"]);
  await same("npx", ["-y", "--call=x && y"]);
  await same("npx", ["x"], { npm_config_script_shell: "/bin/bash" });
  await same("npx", ["x"], { PATH: "" });
});

it("other commands are started as they are if they are called npx but do not belong to npm", async () => {
  const bin = join(folder, "bin");
  mkdirSync(bin);
  writeFileSync(join(bin, "npx"), "#!/bin/sh\necho mine\n", { mode: 0o755 });
  await same("npx", ["x"], { PATH: `${bin}${delimiter}${process.env["PATH"] ?? ""}` });
  await same(join(bin, "npx"), ["x"]);
});

it.runIf(IS_LONG)("npx.sh is in the package, and executable", async () => {
  const { stdout } = await run("npm", ["pack", "--dry-run", "--json", "--ignore-scripts"]);
  const [{ files }] = JSON.parse(stdout) as [{ files: { path: string; mode: number }[] }];
  expect(files.find(({ path }) => path === "src/process/npx.sh")?.mode).toBe(0o755);
  expect(readFileSync("src/process/npx.sh", "utf8")).toMatch(/^#!\/bin\/sh\n/);
});
