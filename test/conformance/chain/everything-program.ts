// The everything server as a program of plain JavaScript, for gateways to start: one start for each session, while the
// suite waits, is too much for a compiler on the way. Vitest compiles it once before the runs, by `setup`.

import { execFile } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const execute = promisify(execFile);

const ROOT = fileURLToPath(new URL("../../../", import.meta.url));
const HERE = fileURLToPath(new URL(".", import.meta.url));
/** As tsconfig.json says. */
const COMPILED = join(ROOT, "node_modules/.cache/catenary-everything");

/** The script. */
export const EVERYTHING: string = join(COMPILED, "test/conformance/everything-server.js");

export async function setup(): Promise<void> {
  await execute(join(ROOT, "node_modules/.bin/tsc"), ["-p", HERE]);
  // No folder in node_modules is of the package around it.
  await writeFile(join(COMPILED, "package.json"), JSON.stringify({ type: "module" }));
}
