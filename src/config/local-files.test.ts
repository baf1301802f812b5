// The digest of the files that a config runs: which changes it sees.

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
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

async function digest(): Promise<string> {
  const mcpServers = {
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
