// Which export of a module is used, and how errors of an import are explained. The syntax errors here have no location,
// as Node gives them to an importer.

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, expect, it } from "vitest";
import { explainImportError, findServer } from "./load-module.ts";

let folder = "";
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "catenary-fault-"));
});
afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
});

function write(name: string, text: string): string {
  const file = join(folder, name);
  writeFileSync(file, text);
  return file;
}

const withoutLocation = (message = "Somewhere"): SyntaxError => new SyntaxError(message);

it("a syntax error is found in JavaScript", async () => {
  const file = write("a.mjs", "const a = 1;\n  const b = 2; const a = 3;\n");
  expect(await explainImportError(withoutLocation("Identifier 'a' has already been declared"), file)).toMatchObject({
    message: `${file}:2:22: Identifier 'a' has already been declared`,
  });
});

it("a syntax error is found in TypeScript, at its original place", async () => {
  const file = write("b.ts", "export const a: number = 1;\nconst b: string = 'b'; const a = b;\n");
  expect(await explainImportError(withoutLocation("Identifier 'a' has already been declared"), file)).toMatchObject({
    message: `${file}:2:30: Identifier 'a' has already been declared`,
  });
});

it("a syntax error is found in a type", async () => {
  const file = write("c.ts", "let a: = 1;\n");
  expect(await explainImportError(withoutLocation(), file)).toMatchObject({
    message: `${file}:1:8: Unexpected token`,
  });
});

it("a syntax error is found in an imported module, despite a cycle", async () => {
  const entry = write("d.mjs", "import './e.mjs';\nexport * from './f.mjs';\n");
  write("e.mjs", "import './d.mjs';\n");
  const file = write("f.mjs", "await = 1;\n");
  expect(await explainImportError(withoutLocation(), entry)).toMatchObject({
    message: expect.stringMatching(`^${file}:1:7: `) as string,
  });
});

it("a syntax error that is not found stays as it is", async () => {
  const error = withoutLocation();
  expect(await explainImportError(error, write("g.mjs", "export const a = 1;\n"))).toBe(error);
  expect(await explainImportError(error, join(folder, "none.mjs"))).toBe(error);
});

it("a syntax error that names its file stays as it is", async () => {
  const error = withoutLocation();
  error.stack = "file:///x/a.mjs:1\nimport { b } from './b.mjs';\n         ^\nSyntaxError: no export named 'b'";
  expect(await explainImportError(error, write("h.mjs", "a b"))).toBe(error);
});

it("another error stays as it is", async () => {
  const error = new Error("no key");
  expect(await explainImportError(error, "/x/a.mjs")).toBe(error);
  expect(await explainImportError("a string", "/x/a.mjs")).toBe("a string");
});

function missing(file: string): Error {
  const error = new Error(`Cannot find module '${file}' imported from /x/a.ts`);
  return Object.assign(error, { code: "ERR_MODULE_NOT_FOUND", url: pathToFileURL(file).href });
}

it("another error names the TypeScript file behind an import of .js", async () => {
  mkdirSync(join(folder, "lib"));
  const file = write("lib/tools.ts", "export {};\n");
  const error = missing(join(folder, "lib/tools.js"));
  expect(await explainImportError(error, "/x/a.ts")).toMatchObject({
    message: `${error.message}\nImport ${file} by its real name, with its own extension`,
    cause: error,
  });
  const other = missing(join(folder, "lib/others.js"));
  expect(await explainImportError(other, "/x/a.ts")).toBe(other);
});

const one = (): number => 1;
const two = (): number => 2;
const closeable = (): object => Object.assign(() => 3, { close: () => undefined });
class Imported extends Map {
  static close(): void {}
}
const find = (module: Record<string, unknown>): unknown =>
  findServer(module, {
    toHandler: (value) => (typeof value === "function" ? value : undefined),
    isServer: (value) => typeof value === "function" && "close" in value,
  });

it.each([
  ["the default before the others", { server: two, default: one }],
  ["a chain before the server in it", { server: two, chain: one }],
  ["a server beside a default that is not a function", { default: { port: 3000 }, server: one }],
  ["an export in the default of CommonJS", { default: { server: one } }],
  ["an instance and not a class", { default: Imported, chain: Imported, server: one }],
])("findServer returns %s", (_name, module) => {
  expect(find(module)).toBe(one);
});

it("findServer returns the only server under another name, even if it has two names, and never a class", () => {
  const gateway = closeable();
  expect(find({ Imported, gateway, helper: one })).toBe(gateway);
  expect(find({ gateway, same: gateway })).toBe(gateway);
  expect(find({ default: { Imported, gateway } })).toBe(gateway);
});

it("findServer names the servers if there are several", () => {
  expect(() => find({ a: closeable(), b: closeable(), c: one })).toThrow(
    "exports several servers: a, b; export one of them as the default",
  );
});

it("findServer says what to export if there is none", () => {
  const expected =
    /^exports no server; write one of these, and do not call serve\(\):\n {2}export default createServer/;
  for (const module of [{ default: null, run: one }, { Imported }, {}]) expect(() => find(module)).toThrow(expected);
  expect(() => find({ mine: { use: one, to: two } })).toThrow(
    "exports no server, only the chain `mine`, but the chain has no upstream: write chain(...).to(...)",
  );
});
