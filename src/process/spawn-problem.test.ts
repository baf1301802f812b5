// Which commands can be started, checked without starting them.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
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

it("a command that exists has no problem", async () => {
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
])("a command: %s is explained", async (_name, command, code, message) => {
  const problem = await findSpawnProblem(command);
  expect(problem?.message).toContain(message);
  expect(problem?.cause).toEqual({ code });
});

it("a command that is not executable is explained", async () => {
  const problem = await findSpawnProblem({ command: "./plain", cwd: folder });
  expect(problem?.message).toContain("is not executable; run chmod +x on it");
  expect(problem?.cause).toEqual({ code: "EACCES" });
});

it("a command that is missing is explained, even if the system reports that a folder of the PATH cannot be read", async () => {
  const missing = await spawnError({ command: "catenary-no-such" }, { code: "EACCES" });
  expect(missing.message).toContain("there is no command of that name on the PATH");
  const found = await spawnError({ command: "plain", env: { PATH: folder } }, { code: "EACCES" });
  expect(found.message).toContain("the command of that name on the PATH is not executable");
});
