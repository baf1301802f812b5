// The everything server and client as plain JavaScript, compiled once before the tests: the suite and the gateways
// under test start dozens of them, and compiling at every start would take too long.

import { execFile } from "node:child_process";
import { readFile, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const execute = promisify(execFile);

const HERE = fileURLToPath(new URL(".", import.meta.url));
const ROOT = fileURLToPath(new URL("../../", import.meta.url));
/** The outDir of tsconfig.json. */
const COMPILED = join(ROOT, "node_modules/.cache/catenary-everything");

export const EVERYTHING_SERVER: string = join(COMPILED, "test/conformance/everything-server.js");
export const EVERYTHING_CLIENT: string = join(COMPILED, "test/conformance/everything-client.js");

export async function compileEverything(): Promise<void> {
  await execute(process.execPath, [join(ROOT, "node_modules/typescript/bin/tsc"), "-p", HERE]);
  // Imports of "catenary" lead to the build, as they do in the package itself.
  const { name, type, exports } = JSON.parse(await readFile(join(ROOT, "package.json"), "utf8")) as Record<
    string,
    unknown
  >;
  await writeFile(join(COMPILED, "package.json"), JSON.stringify({ name, type, exports }));
  await rm(join(COMPILED, "dist"), { force: true });
  await symlink(join(ROOT, "dist"), join(COMPILED, "dist"));
}
