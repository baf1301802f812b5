// Runs the TypeScript compiler on a text, for tests of what we write as TypeScript.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { endOf } from "./blocking-program.ts";

const compiler = join(dirname(createRequire(import.meta.url).resolve("typescript/package.json")), "bin/tsc");

/** The errors of the compiler for a module. */
export function compilerErrors(text: string): string[] {
  const folder = mkdtempSync(join(tmpdir(), "catenary-types-"));
  try {
    const file = join(folder, "tools.ts");
    writeFileSync(file, text);
    const options = ["--strict", "--noEmit", "--skipLibCheck", "--types", ""];
    const { stdout } = endOf(process.execPath, [compiler, ...options, file], { cwd: folder });
    return stdout.split("\n").filter((line) => line !== "");
  } finally {
    rmSync(folder, { recursive: true });
  }
}
