// Which commands can be started, checked without starting them.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { inheritedEnvironment, type InheritEnv } from "./program.ts";
import { findSpawnProblem, spawnError } from "./spawn-problem.ts";

let folder = "";
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "catenary-program-"));
  writeFileSync(join(folder, "good"), "#!/bin/sh\n", { mode: 0o755 });
  writeFileSync(join(folder, "plain"), "text\n", { mode: 0o644 });
});
afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
});

describe("a command", () => {
  it("that exists has no problem", async () => {
    const env = { PATH: `/nowhere:${folder}` };
    expect(await findSpawnProblem({ command: process.execPath })).toBeUndefined();
    expect(await findSpawnProblem({ command: "good", env })).toBeUndefined();
    expect(await findSpawnProblem({ command: "./good", cwd: folder })).toBeUndefined();
  });

  it.each([
    [
      "that is not on the PATH",
      { command: "catenary-no-such" },
      "ENOENT",
      "there is no command of that name on the PATH",
    ],
    ["that is a missing file", { command: "./nothing" }, "ENOENT", "there is no file"],
    [
      "in a missing folder",
      { command: process.execPath, cwd: "/no/such" },
      "ENOENT",
      "its folder /no/such does not exist",
    ],
    ["with its arguments in it", { command: "node x.js" }, "ENOENT", 'its arguments into "args"'],
    ["that is a path with its arguments", { command: "/no/such -y x" }, "ENOENT", 'its arguments into "args"'],
  ])("%s is explained", async (_name, command, code, message) => {
    const problem = await findSpawnProblem(command);
    expect(problem?.message).toContain(message);
    expect(problem?.cause).toEqual({ code });
  });

  it("that is not executable is explained", async () => {
    const problem = await findSpawnProblem({ command: "./plain", cwd: folder });
    expect(problem?.message).toContain("is not executable; run chmod +x on it");
    expect(problem?.cause).toEqual({ code: "EACCES" });
  });

  it("that is missing is explained, even if the system reports that a folder of the PATH cannot be read", async () => {
    const missing = await spawnError({ command: "catenary-no-such" }, { code: "EACCES" });
    expect(missing.message).toContain("there is no command of that name on the PATH");
    const found = await spawnError({ command: "plain", env: { PATH: folder } }, { code: "EACCES" });
    expect(found.message).toContain("the command of that name on the PATH is not executable");
  });
});

// Which variables of our environment a program gets.

const ENV = {
  ...{ HOME: "/home/me", PATH: "/bin", LC_ALL: "C", HTTPS_PROXY: "http://proxy", NODE_EXTRA_CA_CERTS: "/ca.pem" },
  ...{
    GITHUB_TOKEN: "1",
    AWS_SECRET_ACCESS_KEY: "2",
    AWS_REGION: "3",
    NODE_OPTIONS: "--inspect",
    npm_config__auth: "4",
  },
  ...{ CATENARY_TOKEN: "5", CATENARY_INPUT_KEY: "6", CATENARY_CACHE: "7", TERM: "() { :; }" },
};
const SAFE = ["HOME", "PATH", "LC_ALL", "HTTPS_PROXY", "NODE_EXTRA_CA_CERTS", "NODE_OPTIONS", "CATENARY_CACHE"];

const names = (inherit: InheritEnv): string[] => Object.keys(inheritedEnvironment(inherit, ENV)).toSorted();

describe("a program", () => {
  it("gets what programs need, and no keys", () => {
    expect(names(false)).toEqual(SAFE.toSorted());
  });

  it("gets the variables that are named, too", () => {
    expect(names(["AWS_*", "(.*)+$"])).toEqual([...SAFE, "AWS_SECRET_ACCESS_KEY", "AWS_REGION"].toSorted());
    expect(names(["GITHUB_TOKEN"])).toEqual([...SAFE, "GITHUB_TOKEN"].toSorted());
    expect(names(["GITHUB", "GITHUB_TOKEN_*", "X*"])).toEqual(SAFE.toSorted());
    expect(names(["*_*_ACCESS*Y", "A*R*GION"])).toEqual([...SAFE, "AWS_SECRET_ACCESS_KEY", "AWS_REGION"].toSorted());
  });

  it("gets everything if wanted, but never the secrets of the gateway", () => {
    const all = Object.keys(ENV).filter((name) => name !== "CATENARY_TOKEN" && name !== "CATENARY_INPUT_KEY");
    expect(names(true)).toEqual(all.toSorted());
    expect(names(["*"])).toEqual(all.filter((name) => name !== "TERM").toSorted());
    expect(names(["CATENARY_*"])).toEqual(SAFE.toSorted());
  });
});
