// What a module may export to be served, and what is said of one that exports nothing of the kind.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { NotFoundError, UsageError } from "../exit-codes.ts";
import { loadHandler, moduleName } from "./module.ts";

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

/** The result's only key says which export was taken. */
async function taken(file: string): Promise<string[]> {
  const handler = await loadHandler(file);
  return Object.keys(await handler({ method: "x", params: {} }, {} as never));
}

describe("a module", () => {
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
      "a server beside a default that is none",
      "export default { port: 3000 }; export const server = async () => ({ a: 1 });",
      "mjs",
    ],
    ["what CommonJS exports", "module.exports = async () => ({ a: 1 });", "cjs"],
    ["what CommonJS exports by name", "const all = { server: async () => ({ a: 1 }) }; module.exports = all;", "cjs"],
  ])("is served by %s", async (_name, text, extension) => {
    expect(await taken(written(text, extension))).toEqual(["a"]);
  });

  it("that exports nothing to serve is refused with what to do", async () => {
    const file = written("export const port = 3000;");
    await expect(loadHandler(file)).rejects.toThrow(UsageError);
    await expect(loadHandler(file)).rejects.toThrow("exports no server: export one made by createServer");
  });

  it("whose chain has no ends is refused with what is missing", async () => {
    const file = written("export default { use() {}, to() {} };");
    await expect(loadHandler(file)).rejects.toThrow("its chain leads nowhere: export chain(...).to(...)");
  });

  it("that fails is refused with the place of its fault", async () => {
    await expect(loadHandler(written("throw new Error('no key');"))).rejects.toThrow(/no key[^]*module-\d+\.mjs:1/);
  });

  it("that is not there, or no file, is refused", async () => {
    await expect(loadHandler(join(folder, "none.js"))).rejects.toThrow(NotFoundError);
    await expect(loadHandler(folder)).rejects.toThrow("is no file");
  });

  it("has the name of its file, or of its folder where that says more", () => {
    expect(["./notes.js", "a/board/server.js", "a/board/index.ts", "/main.js"].map(moduleName)).toEqual([
      "notes",
      "board",
      "board",
      "main",
    ]);
  });
});
