// `catenary up` with the echo server behind it over stdio. Its argument says whether it has a console: "off", or "on".

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const folder = mkdtempSync(join(tmpdir(), "catenary-bench-"));
process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
const args = [fileURLToPath(new URL("catenary-stdio.js", import.meta.url))];
const echo = { command: process.execPath, args, remember: false };
const config = join(folder, "catenary.json");
writeFileSync(config, JSON.stringify({ mcpServers: { echo }, console: process.argv[2] === "on" }));
for (const name of ["XDG_STATE_HOME", "XDG_RUNTIME_DIR", "CATENARY_CACHE"]) process.env[name] = folder;

// With --json, the command prints one line.
const write = process.stdout.write.bind(process.stdout);
process.stdout.write = (text, ...others) => {
  process.send?.(JSON.parse(text));
  process.stdout.write = write;
  return write("", ...others);
};
const main = fileURLToPath(new URL("../../dist/cli/main.js", import.meta.url));
process.argv.splice(1, process.argv.length, main, "up", config, "--http", "127.0.0.1:0", "--json", "--no-open");
await import(main);
