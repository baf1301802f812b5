// Loading modules of users in a child process, as `catenary serve FILE.ts` does: with the built package, which compiles
// TypeScript itself, and with the sources under tsx.

import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, it } from "vitest";
import { IS_LONG } from "../../support/thoroughness.ts";

const ROOT = fileURLToPath(new URL("../../../", import.meta.url));
const run = promisify(execFile);

const FILES = {
  "server.ts": `import type { Handler } from "catenary";
import { greet, Kind } from "./tools.ts";
import { plain } from "./plain.mjs";
interface Shape {
  kind: Kind;
}
const shape: Shape = { kind: Kind.Two };
export default (name: string) => \`\${greet(name)} \${shape.kind} \${plain}\`;
export function fail(text: string): never {
  throw new Error(text satisfies string);
}
export const late = async (): Promise<unknown> => (await import("./late.mts")).late;
`,
  "tools.ts": `export enum Kind { One = 1, Two }\nexport const greet = (name: string): string => "hi " + name;\n`,
  "late.mts": `export const late: boolean = true;\n`,
  "plain.mjs": `export const plain = "plain";\n`,
  "slip.ts": `export const a: number = 1;\nexport const b: = 2;\n`,
  "twice.ts": `import "./again.ts";\n`,
  "again.ts": `const a: number = 1;\nconst b: string = ""; const a = 2;\n`,
  "thrown.ts": `type A = 1;\nthrow new Error("no key");\n`,
  "slip.mjs": `export const a = 1;\nexport const b = ;\n`,
};

const SCRIPT = `
const [from, folder] = process.argv.slice(2);
const { loadModule } = await import(from);
const at = (name) => folder + "/" + name;
const fault = (name) => loadModule(at(name)).then(() => "loaded", (error) => [error.name, error.message, error.stack.split("\\n")[1]]);
const server = await loadModule(at("server.ts"));
const again = await loadModule(at("server.ts"));
let place = "";
try { server.fail("x"); } catch (error) { place = error.stack.split("\\n")[1]; }
console.log(JSON.stringify({
  greeting: server.default("you"), late: await server.late(), isSame: server === again, place,
  slip: await fault("slip.ts"), twice: await fault("twice.ts"), thrown: await fault("thrown.ts"), plain: await fault("slip.mjs"),
}));
`;

let folder = "";
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "catenary-load-"));
  for (const [name, text] of Object.entries(FILES)) writeFileSync(join(folder, name), text);
  writeFileSync(join(folder, "script.mjs"), SCRIPT);
});
afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
});

async function loaded(file: string, options: readonly string[]): Promise<Record<string, unknown>> {
  const from = pathToFileURL(join(ROOT, file)).href;
  const { stdout } = await run(process.execPath, [...options, join(folder, "script.mjs"), from, folder], { cwd: ROOT });
  return JSON.parse(stdout) as Record<string, unknown>;
}

it("a user's modules are loaded by the built package", async () => {
  const { place, slip, twice, thrown, plain, ...rest } = await loaded("dist/modules/load-module.js", []);
  expect(rest).toEqual({ greeting: "hi you 2 plain", late: true, isSame: true });
  expect(place).toContain("server.ts:10:");
  expect(slip).toEqual(["SyntaxError", `${join(folder, "slip.ts")}:2:17: Unexpected token`, null]);
  expect(twice).toEqual([
    "SyntaxError",
    `${join(folder, "again.ts")}:2:29: Identifier 'a' has already been declared`,
    null,
  ]);
  expect(thrown).toEqual(["Error", "no key", expect.stringContaining("thrown.ts:2:")]);
  expect(plain).toEqual(["SyntaxError", `${join(folder, "slip.mjs")}:2:18: Unexpected token ';'`, null]);
});

it.runIf(IS_LONG)("a user's modules are loaded by the sources", async () => {
  const { place, thrown, plain, ...rest } = await loaded("src/modules/load-module.ts", ["--import", "tsx"]);
  expect(rest).toMatchObject({ greeting: "hi you 2 plain", late: true, isSame: true });
  expect(place).toContain("server.ts:10:");
  expect(thrown).toEqual(["Error", "no key", expect.stringContaining("thrown.ts:2:")]);
  expect(plain).toEqual(["SyntaxError", expect.stringContaining("slip.mjs:2:18"), null]);
});
