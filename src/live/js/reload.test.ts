// The tool reload in a real guest: which modules are loaded anew, which names get new values, and what stays after an
// error. Each test has a folder and a guest of its own.

import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { JavaScriptGuest } from "../../../test/support/live/javascript-guest.ts";

let folder = "";
let guest: JavaScriptGuest;
beforeEach(async () => {
  folder = mkdtempSync(join(realpathSync(tmpdir()), "catenary-reload-"));
  guest = await JavaScriptGuest.start({ cwd: folder });
});
afterEach(async () => {
  await guest.close();
  rmSync(folder, { recursive: true, force: true });
});

function write(files: Readonly<Record<string, string>>): void {
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), text);
  }
}

it("loads changed modules and their importers, assigns the imported names, and keeps the rest", async () => {
  write({
    "lib/price.mjs": "export const PRICE = 2; export const price = (n) => n * PRICE;",
    "lib/tax.mjs": "export const tax = {};",
    "shop.mjs":
      "import { price } from './lib/price.mjs'; import { tax } from './lib/tax.mjs';\n" +
      "export default class Shop {}; export const sell = (n) => price(n) + 1; export { tax };",
    "other.mjs": "export const other = {};",
  });
  await guest.value("import Shop, * as all from './shop.mjs'; import { other } from './other.mjs'; const kept = [1]");
  await guest.value(
    "const { sell, tax, gone = 5 } = await import('./shop.mjs'); const { PRICE: p } = await import('./lib/price.mjs')",
  );
  await guest.value("const before = { Shop, all, tax, other }; const early = () => sell(1)");
  expect((await guest.tool("reload")).text).toBe("No module has changed, of 4 loaded from files outside of packages.");

  write({ "lib/price.mjs": "export const PRICE = 10; export const price = (n) => n * PRICE;" });
  expect(await guest.tool("reload")).toEqual({
    text: [
      "Reloaded:",
      "  lib/price.mjs",
      "  shop.mjs (imports a reloaded module)",
      "Names that have the new values: Shop, all, sell, tax, p",
      "Names that have no value in the new modules, so that they keep the old one: gone",
    ].join("\n"),
    data: {
      reloaded: ["lib/price.mjs", "shop.mjs"],
      failed: [],
      names: ["Shop", "all", "sell", "tax", "p"],
      missing: ["gone"],
    },
    isError: false,
  });
  expect(await guest.value("[early(), p, kept, gone]")).toBe("[ 11, 10, [ 1 ], 5 ]");
  expect(
    await guest.value("[Shop === before.Shop, all === before.all, tax === before.tax, other === before.other]"),
  ).toBe("[ false, false, true, true ]");
  expect(await guest.value("(await import('./shop.mjs')).default === Shop")).toBe("true");
  expect((await guest.tool("reload")).text).toContain("No module has changed");
  write({ "lib/price.mjs": "export const PRICE = 20; export const price = (n) => n * PRICE;" });
  await guest.tool("reload");
  expect(await guest.value("[early(), p]")).toBe("[ 21, 20 ]");
});

it("loads changed CommonJS modules and JSON, also those that ES modules import", async () => {
  write({
    "area.cjs":
      "const { unit } = require('./unit'); module.exports = { area: (n) => n * unit, name: require('./name.json') };",
    "unit.js": "exports.unit = 1;",
    "name.json": '"old"',
    "config.json": '{ "size": 1 }',
    "user.mjs": "import area from './area.cjs'; export const twice = (n) => 2 * area.area(n);",
  });
  await guest.value(
    "const { area } = require('./area.cjs'), whole = require('./area.cjs'), named = require('./area.cjs').name",
  );
  await guest.value("import { twice } from './user.mjs'; import config from './config.json' with { type: 'json' }");
  write({ "unit.js": "exports.unit = 100;", "name.json": '"new"', "config.json": '{ "size": 2 }' });
  const { text } = await guest.tool("reload");
  expect(text).toContain("Names that have the new values: area, whole, named, twice, config");
  expect(await guest.value("[area(2), whole.area(3), named, twice(4), config.size]")).toBe(
    "[ 200, 300, 'new', 800, 2 ]",
  );
  expect((await guest.tool("reload")).text).toContain("No module has changed");
});

it("loads changed TypeScript", async () => {
  write({
    "kind.ts": "export type Kind = 'a' | 'b'; export const kind: Kind = 'a';",
    "user.ts": "import { kind, type Kind } from './kind.ts';\nexport const show = (n: number): string => kind + n;",
  });
  await guest.value("import { show } from './user.ts'");
  expect((await guest.tool("reload")).text).toContain("No module has changed");
  write({ "kind.ts": "export type Kind = 'a' | 'b'; export const kind: Kind = 'b';" });
  expect((await guest.tool("reload")).text).toContain("  kind.ts\n  user.ts (imports");
  expect(await guest.value("show(1)")).toBe("'b1'");
  expect((await guest.tool("reload")).text).toContain("No module has changed");
});

it("loads changed TypeScript that was required, also if only its end was removed", async () => {
  write({ "kind.ts": "exports.kind = 'a';\nexports.other = 'b';\n", "more.cts": "exports.more = 1;" });
  await guest.value("const { kind, other } = require('./kind.ts'); const { more } = require('./more.cts')");
  write({ "kind.ts": "exports.kind = 'a';\n" });
  expect((await guest.tool("reload")).data).toMatchObject({
    names: expect.arrayContaining(["kind"]),
    missing: ["other"],
  });
  expect((await guest.tool("reload")).text).toContain("No module has changed");
});

it("keeps a module that fails, says why, and reloads the others", async () => {
  write({
    "a.mjs": "export const a = 1;",
    "b.mjs": "export const b = 1;",
    "c.cjs": "exports.c = 1; exports.f = () => 1;",
    "d.mjs": "export const d = 1;",
    "all.mjs": "import { a } from './a.mjs'; import { b } from './b.mjs'; export const sum = () => 10 * a + b;",
    "only.mjs": "export { b } from './b.mjs';",
    "needs.mjs": "import { d } from './d.mjs'; export const needs = d;",
  });
  await guest.value(
    "import { sum } from './all.mjs'; import { b } from './only.mjs'; const { c } = require('./c.cjs')",
  );
  await guest.value("import { needs } from './needs.mjs'; import { d } from './d.mjs'");
  write({
    "a.mjs": "export const a = 2;",
    "b.mjs": "export const b = 2;\nlet wrong = ;",
    "c.cjs": "throw new TypeError('no')",
  });
  write({ "d.mjs": "export const e = 2;" });
  const { text, isError } = await guest.tool("reload");
  expect(isError).toBe(true);
  expect(text).toBe(
    [
      "Reloaded:",
      "  a.mjs",
      "  d.mjs",
      "  all.mjs (imports a reloaded module)",
      "Names that have the new values: sum",
      "Names that have no value in the new modules, so that they keep the old one: d",
      "Failed, so that the old module stays:",
      `  b.mjs: SyntaxError: Unexpected token ';' (file://${folder}/b.mjs:2:13)`,
      "      let wrong = ;",
      "                  ^",
      "  c.cjs: TypeError: no",
      "  needs.mjs: SyntaxError: The requested module './d.mjs' does not provide an export named 'd' " +
        `(file://${folder}/needs.mjs:1:10)`,
      "      import { d } from './d.mjs'; export const needs = d;",
      "               ^",
    ].join("\n"),
  );
  expect(await guest.value("[sum(), b, c, require('./c.cjs').c, needs, d]")).toBe("[ 21, 1, 1, 1, 1, 1 ]");
  write({ "b.mjs": "export const b = 3;", "c.cjs": "exports.c = 3;" });
  expect((await guest.tool("reload")).isError).toBe(false);
  expect(await guest.value("[sum(), b, c]")).toBe("[ 23, 3, 3 ]");
});

it("uses the new module if the getter of an export fails", async () => {
  write({ "a.cjs": "exports.a = 1; exports.b = 1; exports.c = 1;" });
  await guest.value("const { a, b, c } = require('./a.cjs')");
  write({ "a.cjs": "exports.a = 2; exports.c = 2; exports.__defineGetter__('b', () => { throw new Error('no') });" });
  expect((await guest.tool("reload")).data).toMatchObject({ names: ["a", "c"], missing: ["b"] });
  expect(await guest.value("[a, b, c, require('./a.cjs').a]")).toBe("[ 2, 1, 2, 2 ]");
});

it("keeps names that have other values by now", async () => {
  write({ "a.mjs": "export const a = 1, b = 1, c = 1;" });
  await guest.value("import { a, b, c } from './a.mjs'");
  await guest.value("a = 5; const b = 1");
  write({ "a.mjs": "export const a = 2, b = 2, c = 2;" });
  expect((await guest.tool("reload")).data).toMatchObject({ names: ["c"] });
  expect(await guest.value("[a, b, c]")).toBe("[ 5, 1, 2 ]");
});

it("can be interrupted, and then the old modules are still used", async () => {
  write({ "a.mjs": "export const a = 1;", "b.cjs": "exports.b = 1;" });
  await guest.value("import { a } from './a.mjs'; const { b } = require('./b.cjs')");
  for (const wait of ["for (;;);", "await new Promise(() => {});"]) {
    write({ "a.mjs": `console.log('begun'); ${wait} export const a = 2;`, "b.cjs": "exports.b = 2;" });
    const begun = new Promise<void>((resolve) => {
      guest.guest.onRawOutput = () => resolve();
    });
    const { id, reply } = guest.guest.request("reload", {});
    await begun;
    await guest.guest.control("interrupt", { target: id });
    expect(await reply).toEqual({ status: "interrupted" });
    expect(await guest.value("[a, b, (await import('./a.mjs')).a, require('./b.cjs').b]")).toBe("[ 1, 1, 1, 1 ]");
  }
  write({ "a.mjs": "export const a = 3;" });
  expect((await guest.tool("reload")).data).toMatchObject({ names: ["a", "b"] });
  expect(await guest.value("[a, b]")).toBe("[ 3, 2 ]");
});

it("works where the session's code has declared the names of built-in objects", async () => {
  write({ "a.mjs": "export const a = 1;" });
  await guest.value("import { a } from './a.mjs'");
  await guest.value(
    "let Map = 1, Set = 2, Promise = 3, JSON = 4, Object = 5, URL = 6, Buffer = 7, Array = 8, String = 9",
  );
  write({ "a.mjs": "export const a = 2;" });
  expect((await guest.tool("reload")).data).toMatchObject({ names: ["a"] });
  expect(await guest.value("a")).toBe("2");
});
