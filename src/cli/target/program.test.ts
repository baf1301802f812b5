// Which commands can be started, told before they are, and what they are called.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startProblem } from "../../process/start-problem.ts";
import { programName } from "./program.ts";

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
  it("that is there has no problem", async () => {
    const env = { PATH: `/nowhere:${folder}` };
    expect(await startProblem({ command: process.execPath })).toBeUndefined();
    expect(await startProblem({ command: "good", env })).toBeUndefined();
    expect(await startProblem({ command: "./good", cwd: folder })).toBeUndefined();
  });

  it.each([
    ["that is nowhere", { command: "catenary-no-such" }, "ENOENT", "there is no command of that name on the PATH"],
    ["that is no file", { command: "./nothing" }, "ENOENT", "there is no file"],
    ["in no folder", { command: process.execPath, cwd: "/no/such" }, "ENOENT", "its folder /no/such does not exist"],
    ["with its arguments in it", { command: "node x.js" }, "ENOENT", 'its arguments into "args"'],
  ])("%s is explained", async (_name, command, code, words) => {
    const problem = await startProblem(command);
    expect(problem?.message).toContain(words);
    expect(problem?.cause).toEqual({ code });
  });

  it("that is no program is explained", async () => {
    const problem = await startProblem({ command: "./plain", cwd: folder });
    expect(problem?.message).toContain("is not executable; run chmod +x on it");
    expect(problem?.cause).toEqual({ code: "EACCES" });
  });

  it.each([
    ["notes-mcp", "npx", ["-y", "@me/notes-mcp@1.2"]],
    ["server", "node", ["server.js"]],
    ["server", "/usr/bin/node", ["--enable-source-maps", "./a/server.mjs", "-x"]],
    ["my-server", "my-server", ["--stdio"]],
    ["node", "node", []],
    ["sh", "sh", ["-c", "exec node $1"]],
    ["node", "node", ["--api-key", "secret", "server.js"]],
  ])("is called %s", (name, command, args) => {
    expect(programName({ command, args })).toBe(name);
  });
});
