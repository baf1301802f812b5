// Which paths of `read` and `write` are refused, in a sandbox and in a config, since code could leave its sandbox by them.

import { mkdirSync, mkdtempSync, realpathSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { stateDirectory } from "../core/private-files.ts";
import { checkConfig } from "../config/load.ts";
import { cacheFolder, packageFile } from "../core/files.ts";
import { Grants } from "./grants.ts";

let folder = "";
/** A path below the folder of the test. */
const at = (...names: string[]): string => join(folder, ...names);

beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "grants-")));
  for (const name of ["w/sub/out", "r/sub", "private"]) mkdirSync(at(name), { recursive: true });
});
afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(folder, { recursive: true });
});

async function mounted(
  options: ConstructorParameters<typeof Grants>[0],
  files: readonly string[] = [],
): Promise<string[]> {
  const mounts = await new Grants(options).mounts(files);
  return mounts.map(({ setting, real }) => `${setting} ${real.slice(folder.length)}`);
}

const onLinux = process.platform === "linux";

it.runIf(onLinux)("the grants of a sandbox are refused in a folder that may be changed", async () => {
  const message = `lies in ${at("w")}, a folder of "sandbox.write", where code can replace it by a link`;
  await expect(mounted({ write: [at("w")], read: [at("w/sub/out")] })).rejects.toThrow(message);
  await expect(mounted({ write: [at("w"), at("w/sub/out")] })).rejects.toThrow(message);
  await expect(mounted({ write: [at("w")], read: [at("w/not-yet")] })).rejects.toThrow(message);
});

it.runIf(onLinux)(
  "the grants of a sandbox are refused if they lead there by a link, or through a link there",
  async () => {
    symlinkSync(at("w/sub"), at("r/inward"));
    symlinkSync(at("private"), at("w/outward"));
    symlinkSync(at("w/outward"), at("r/through"));
    const write = [at("w")];
    for (const name of ["r/inward", "r/inward/out", "w/outward", "r/through"])
      await expect(mounted({ write, read: [at(name)] })).rejects.toThrow(`in ${at("w")}, a folder of "sandbox.write"`);
    // The folder itself is named by another name.
    symlinkSync(at("w"), at("r/same"));
    await expect(mounted({ write: [at("r/same")], read: [at("w/sub")] })).rejects.toThrow(`in ${at("w")}, a folder`);
  },
);

it.runIf(onLinux)(
  "the grants of a sandbox are refused if another sandbox may change the folder, whichever was created first",
  async () => {
    const reading = new Grants({ read: [at("w/sub/out")] });
    await expect(reading.mounts([])).resolves.toHaveLength(1);
    const missing = new Grants({ read: [at("w/later")] });
    const writing = new Grants({ write: [at("w")] });
    await expect(writing.mounts([])).resolves.toHaveLength(1);
    await expect(reading.mounts([])).rejects.toThrow(`lies in ${at("w")}, a folder of "sandbox.write"`);
    symlinkSync(at("private"), at("w/later"));
    await expect(missing.mounts([])).rejects.toThrow(`lies in ${at("w")}, a folder of "sandbox.write"`);
  },
);

it.runIf(onLinux)("the grants of a sandbox may lie in a folder that may only be read, and may be shared", async () => {
  expect(await mounted({ read: [at("r")], write: [at("r/sub")] })).toEqual(["read /r", "write /r/sub"]);
  expect(await mounted({ read: [at("r/sub")] })).toEqual(["read /r/sub"]);
  expect(await mounted({ read: [at("r/sub")], write: [at("r/sub")] })).toEqual(["write /r/sub"]);
});

it.runIf(onLinux)("the grants of a sandbox stay where they led when the server was created", async () => {
  symlinkSync(at("r"), at("link"));
  const grants = new Grants({ read: [at("link"), at("r/sub")] });
  rmSync(at("link"));
  symlinkSync(at("private"), at("link"));
  expect(await grants.mounts([])).toMatchObject([
    { real: at("r"), names: [at("link"), at("r")] },
    { real: at("r/sub"), names: [at("r/sub")] },
  ]);
  // Another folder of that name is fine, a link is not: neither at its end nor within.
  rmSync(at("r"), { recursive: true });
  mkdirSync(at("r/sub"), { recursive: true });
  await expect(grants.mounts([])).resolves.toHaveLength(2);
  renameSync(at("r/sub"), at("moved"));
  symlinkSync(at("private"), at("r/sub"));
  await expect(grants.mounts([])).rejects.toThrow(`led to ${at("r/sub")} when the server was created`);
  rmSync(at("r"), { recursive: true });
  mkdirSync(at("private/sub"));
  symlinkSync(at("private"), at("r"));
  await expect(new Grants({ read: [at("r/sub")] }).mounts([])).resolves.toMatchObject([{ real: at("private/sub") }]);
  await expect(grants.mounts([])).rejects.toThrow(/led to .* when the server was created, and there is a link now/);
});

it.runIf(onLinux)("the grants of a sandbox are found when they have been created later", async () => {
  const grants = new Grants({ read: [at("new")] });
  await expect(grants.mounts([])).rejects.toThrow(`The path ${at("new")} in "sandbox.read" does not exist`);
  mkdirSync(at("new"));
  await expect(grants.mounts([])).resolves.toHaveLength(1);
});

it.runIf(onLinux)(
  "the grants of a sandbox cannot be changed if the session's own program or image lies there",
  async () => {
    writeFileSync(at("w/sub/program"), "");
    symlinkSync(at("w/sub/program"), at("r/program"));
    for (const file of [at("w/sub/program"), at("r/program"), at("w/not-yet")])
      await expect(mounted({ write: [at("w")] }, [file])).rejects.toThrow(
        `The session needs the file ${file}, which lies in ${at("w")}, a folder of "sandbox.write"`,
      );
    expect(await mounted({ write: [at("w")] }, [at("r/other")])).toEqual(["write /w"]);
  },
);

it.runIf(onLinux)(
  "the grants of a sandbox cannot be changed if Catenary or what it relies on lies there, at any depth",
  async () => {
    vi.stubEnv("npm_config_cache", at("w/sub/out/npm"));
    vi.stubEnv("XDG_STATE_HOME", at("r/sub/state"));
    const refused = [
      ...[packageFile("."), dirname(packageFile(".")), packageFile("dist"), packageFile("node_modules/acorn")],
      ...[process.execPath, dirname(process.execPath), dirname(dirname(process.execPath))],
      ...[at("r"), at("w"), at("w/sub"), dirname(cacheFolder()), dirname(stateDirectory())],
      ...[homedir(), dirname(homedir()), "/usr", "/usr/lib", "/etc", "/bin"],
    ];
    mkdirSync(stateDirectory(), { recursive: true });
    mkdirSync(at("w/sub/out/npm"));
    for (const path of new Set(refused)) {
      const grants = new Grants({ write: [path] });
      await expect(grants.mounts([]), path).rejects.toThrow(
        /(?:in "sandbox\.write" (?:has|lies in) .*, which code in a sandbox must not change; name|cannot be shown in a sandbox|does not exist)/,
      );
    }
    expect(await mounted({ write: [at("private")] })).toEqual(["write /private"]);
  },
);

/** The errors of a config with these live servers, in a folder of its own. */
async function errorsOf(servers: object, rest: object = {}): Promise<string[]> {
  const text = JSON.stringify({ mcpServers: servers, ...rest });
  const problems = await checkConfig(text, at("r/catenary.json"));
  return problems.filter(({ severity }) => severity === "error").map(({ message }) => message.replaceAll(folder, ""));
}
const live = (sandbox: object): object => ({ live: "js", sandbox });

it.runIf(onLinux)(
  "a config must not grant what lies in a folder that may be changed, in any of its sandboxes",
  async () => {
    const lies = (path: string): string => `lies in ${path}, a folder of "sandbox.write", where code can replace it`;
    expect(await errorsOf({ a: live({ write: ["../w"], read: ["../w/sub/out"] }) })).toEqual([
      expect.stringContaining(`mcpServers.a.sandbox: the path /w/sub/out in "sandbox.read" ${lies("/w")}`),
    ]);
    expect(await errorsOf({ a: live({ write: ["../w"] }), b: live({ read: ["../w/sub"] }) })).toEqual([
      expect.stringContaining(`mcpServers.b.sandbox: the path /w/sub in "sandbox.read" ${lies("/w")}`),
    ]);
    expect(await errorsOf({ a: live({ write: ["../w"] }) }, { code: { sandbox: { read: ["../w/sub"] } } })).toEqual([
      expect.stringContaining(`code.sandbox: the path /w/sub in "sandbox.read" ${lies("/w")}`),
    ]);
    expect(await errorsOf({ a: live({ write: ["../w"] }), b: live({ read: ["../w", "../private"] }) })).toEqual([]);
  },
);

it.runIf(onLinux)("a config must not let code change the config, or what it runs", async () => {
  for (const name of ["server.js", "program", "middleware.js", "module.js"])
    writeFileSync(at("w/sub", name), "", { mode: 0o755 });
  const granted = { a: live({ write: ["../w"] }) };
  const has = (name: string, what = "which the gateway runs"): unknown =>
    expect.stringContaining(`mcpServers.a.sandbox: the path /w in "sandbox.write" has /w/sub/${name} in it, ${what}`);
  expect(await errorsOf({ a: live({ write: ["."] }) })).toEqual([
    expect.stringContaining('the path /r in "sandbox.write" has /r/catenary.json in it, this config'),
  ]);
  expect(await errorsOf({ ...granted, b: { command: "node", args: ["../w/sub/server.js"] } })).toEqual([
    has("server.js"),
  ]);
  expect(await errorsOf({ ...granted, b: { command: "../w/sub/program" } })).toEqual([has("program")]);
  expect(await errorsOf({ ...granted, b: { programs: [at("w/sub/program")] } })).toEqual([has("program")]);
  expect(await errorsOf({ ...granted, b: { module: "../w/sub/module.js" } })).toEqual([has("module.js")]);
  expect(await errorsOf(granted, { chain: [{ use: "../w/sub/middleware.js" }] })).toEqual([has("middleware.js")]);
  expect(await errorsOf({ ...granted, b: { command: "node", args: ["server.js", "../w/sub/out"] } })).toEqual([]);
});
