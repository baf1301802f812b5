// The exports of a module that can be served, and the errors for other modules.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { NotFoundError, UsageError } from "../command.ts";
import { describeError, loadHandler, moduleName, servesItself } from "./module.ts";

let folder = "";
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "catenary-module-"));
});
afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
});

let count = 0;
function written(text: string, extension = "mjs"): string {
  const file = join(folder, `module-${(count += 1)}.${extension}`);
  writeFileSync(file, text);
  return file;
}

/** The only key of the result tells which export was used. */
async function usedExport(file: string): Promise<string[]> {
  const handler = await loadHandler(file);
  return Object.keys(await handler({ method: "x", params: {} }, {} as never));
}

it.each([
  ["its default", "export default async () => ({ a: 1 });", "mjs"],
  ["a chain", "export const chain = async () => ({ a: 1 });", "mjs"],
  ["a server", "export const server = async () => ({ a: 1 });", "mjs"],
  [
    "its default before all others",
    "export const server = async () => ({}); export default async () => ({ a: 1 });",
    "mjs",
  ],
  [
    "a chain before the server in it",
    "export const server = async () => ({}); export const chain = async () => ({ a: 1 });",
    "mjs",
  ],
  [
    "a server beside another default",
    "export default { port: 3000 }; export const server = async () => ({ a: 1 });",
    "mjs",
  ],
  [
    "its only server under another name",
    "export const mine = Object.assign(async () => ({ a: 1 }), { close() {} });" +
      "export const port = 1; export const audit = Object.assign((a, b, next) => next(a, b), { close() {} });",
    "mjs",
  ],
  [
    "an object with getMetadata and handleRequest",
    "class Mine { getMetadata() {} handleRequest() { return { a: 1 }; } } export const mine = new Mine();",
    "mjs",
  ],
  ["what CommonJS exports", "module.exports = async () => ({ a: 1 });", "cjs"],
  ["what CommonJS exports by name", "const all = { server: async () => ({ a: 1 }) }; module.exports = all;", "cjs"],
])("a module is served by %s", async (_name, text, extension) => {
  expect(await usedExport(written(text, extension))).toEqual(["a"]);
});

it("a module without a server is refused", async () => {
  const file = written("export const port = 3000;");
  await expect(loadHandler(file)).rejects.toThrow(UsageError);
  await expect(loadHandler(file)).rejects.toThrow(
    `${file} exports no server; write one of these, and do not call serve():\n  export default createServer(...)`,
  );
});

it("a module with a server of the official SDK is refused with the way to serve it", async () => {
  const file = written("export default { connect() {}, close() {}, registerTool() {} };");
  await expect(loadHandler(file)).rejects.toThrow("official SDK; write: export default fromSdk(server)");
});

it("a module whose chain has no upstreams is refused", async () => {
  const file = written("export default { use() {}, to() {} };");
  await expect(loadHandler(file)).rejects.toThrow(
    `${file} exports no server, only the chain \`default\`, but the chain has no upstream: write chain(...).to(...)`,
  );
});

it("a module that throws is refused with the position of the error", async () => {
  await expect(loadHandler(written("throw new Error('no key');"))).rejects.toThrow(/no key[^]*module-\d+\.mjs:1/);
});

it("a module of another kind is refused with the kinds that there are", async () => {
  const unknown = Object.assign(new TypeError('Unknown file extension ".py"'), {
    code: "ERR_UNKNOWN_FILE_EXTENSION",
  });
  expect(describeError(unknown)).toBe("a module is a .js, .mjs, .cjs, .ts or .mts file");
  unknown.message = 'Unknown file extension ".ts"';
  expect(describeError(unknown)).toContain("compile it first");
});

it("a module that does not exist, or is a folder, is refused", async () => {
  await expect(loadHandler(join(folder, "none.js"))).rejects.toThrow(NotFoundError);
  await expect(loadHandler(folder)).rejects.toThrow("is not a file");
});

it("a module has the name of its file, or of its folder if the file has a generic name", () => {
  expect(["./notes.js", "a/board/server.js", "a/board/index.ts", "/main.js"].map(moduleName)).toEqual([
    "notes",
    "board",
    "board",
    "main",
  ]);
});

it("that calls serve() itself is started by a program that can load it", () => {
  expect(servesItself("a.js")).toContain("start it with `node a.js`");
  const canLoad = "typescript" in process.features && process.features.typescript !== false;
  expect(servesItself("a.ts")).toContain(`start it with \`${canLoad ? "node" : "npx tsx"} a.ts\``);
});
