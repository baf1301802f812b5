// The sources and tests as plain JavaScript, for the processes that tests start. They are compiled once, before all
// tests, so that a process starts in a tenth of the time that it would take through a loader.

import { execFile } from "node:child_process";
import { readFile, symlink, writeFile } from "node:fs/promises";
import { join, relative } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { promisify } from "node:util";

const execute = promisify(execFile);

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const CONFIG = fileURLToPath(new URL("tsconfig.programs.json", import.meta.url));
/** The outDir of that configuration. */
const COMPILED = join(ROOT, "node_modules/.cache/catenary-programs");

/** The path of the compiled form of a TypeScript file, which is given relative to the file that asks. */
export function compiled(file: string, from: string): string {
  const source = relative(ROOT, fileURLToPath(new URL(file, from)));
  return join(COMPILED, source.replace(/\.ts$/, ".js"));
}

/** The same as a URL in quotes, for an import in the code of `node --eval`. */
export function compiledImport(file: string, from: string): string {
  return JSON.stringify(pathToFileURL(compiled(file, from)).href);
}

export async function compilePrograms(): Promise<void> {
  await execute(process.execPath, [join(ROOT, "node_modules/typescript/bin/tsc"), "-p", CONFIG]);
  // Imports of "catenary" resolve to the build, as they do in the package itself.
  const { name, type, exports } = JSON.parse(await readFile(join(ROOT, "package.json"), "utf8")) as Record<
    string,
    unknown
  >;
  await writeFile(join(COMPILED, "package.json"), JSON.stringify({ name, type, exports }));
  // Relative, so that it survives a move of the checkout. It may exist already, from an earlier or a simultaneous run.
  await symlink(relative(COMPILED, join(ROOT, "dist")), join(COMPILED, "dist")).catch(
    (error: NodeJS.ErrnoException) => {
      if (error.code !== "EEXIST") throw error;
    },
  );
}
