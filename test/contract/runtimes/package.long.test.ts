// The package as users get it: built and packed from a copy of the checkout, and installed into an empty folder. How much
// that brings, and that what needs packages of its own works without another install.

import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { readdir } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { unreachableRegistry } from "../../support/install-packages.ts";
import { npm, outputOf } from "../../support/blocking-program.ts";
import { LIMITS, pack, ROOT } from "./package.ts";

const checkout = realpathSync(mkdtempSync(join(tmpdir(), "catenary-checkout-")));
const folder = realpathSync(mkdtempSync(join(tmpdir(), "catenary-installed-")));
const modules = join(folder, "node_modules");
afterAll(() => {
  for (const path of [checkout, folder]) rmSync(path, { recursive: true, force: true });
});

/** Packs a copy, since packing builds `dist`, which other tests use now. */
function packCopy(): ReturnType<typeof pack> {
  const texts = ["CHANGELOG.md", "LICENSE", "README.md", "SECURITY.md"];
  for (const name of ["src", "web", "build.js", "package.json", "tsconfig.json", "tsconfig.build.json", ...texts]) {
    cpSync(join(ROOT, name), join(checkout, name), { recursive: true });
  }
  symlinkSync(join(ROOT, "node_modules"), join(checkout, "node_modules"));
  return pack(checkout);
}

/** Why the package cannot be installed. */
function install(tarball: string): string | undefined {
  writeFileSync(join(folder, "package.json"), '{ "type": "module" }');
  const options = ["--no-audit", "--no-fund", "--prefer-offline", "--fetch-retries=1"];
  try {
    npm(["install", ...options, tarball], { cwd: folder });
    return undefined;
  } catch (error) {
    return unreachableRegistry(error);
  }
}

const packed = packCopy();
const reason = install(join(checkout, packed.filename));
if (reason !== undefined && process.env["CI"] === "true") throw new Error(reason);
if (reason !== undefined) console.warn(`Skipped: the installed package, because ${reason}`);

const COMMAND = join(modules, "catenary/dist/cli/main.js");

it(`the package that npm makes has at most ${LIMITS.unpackedBytes / 1e6} MB`, () => {
  expect(packed.unpackedSize).toBeLessThanOrEqual(LIMITS.unpackedBytes);
});

it("the package that npm makes has no source maps, and no references to them", async () => {
  const names = await readdir(join(checkout, "dist"), { recursive: true });
  expect(names.filter((name) => name.endsWith(".map"))).toEqual([]);
  const scripts = names.filter((name) => /\.c?js$/.test(name));
  expect(scripts.length).toBeGreaterThan(50);
  const text = scripts.map((name) => readFileSync(join(checkout, "dist", name), "utf8"));
  expect(text.filter((one) => /^\/\/# sourceMappingURL=/m.test(one))).toEqual([]);
});

it.skipIf(reason !== undefined)(
  `the installed package is at most ${LIMITS.packages} packages and ${LIMITS.installedBytes / 1e6} MB, with all that it brings`,
  async () => {
    const lock = JSON.parse(readFileSync(join(modules, ".package-lock.json"), "utf8")) as { packages: object };
    expect(Object.keys(lock.packages).length).toBeLessThanOrEqual(LIMITS.packages);
    const entries = await readdir(modules, { recursive: true, withFileTypes: true });
    const sizes = entries
      .filter((entry) => entry.isFile())
      .map((entry) => statSync(join(entry.parentPath, entry.name)).size);
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThanOrEqual(LIMITS.installedBytes);
  },
);

it.skipIf(reason !== undefined).each([
  ["js", "[1, 2].map((n) => n * 2)", "[ 2, 4 ]"],
  ["js", "enum Kind { A = 41 }; const add = (n: number): number => n + 1; add(Kind.A)", "42"],
  ["smalltalk", "(1 to: 4) inject: 0 into: [:a :b | a + b]", "10"],
])("the installed package evaluates %s: %s", (language, code, expected) => {
  expect(outputOf(process.execPath, [COMMAND, "eval", language, code], { cwd: folder })).toBe(`${expected}\n`);
});

it.skipIf(reason !== undefined)(
  "the installed package serves a TypeScript module, an OpenAPI document in YAML, and finds tools by words",
  () => {
    mkdirSync(join(folder, "gateway"));
    const write = (name: string, text: string): void => writeFileSync(join(folder, "gateway", name), text);
    write(
      "notes.ts",
      'import { createServer } from "catenary";\nnamespace Names { export const tool: string = "write_note"; }\n' +
        'export default createServer({ name: "notes", version: "1.0.0" }).tool(Names.tool, { description: "Writes a note" }, () => "done");\n',
    );
    write(
      "shop.yaml",
      "openapi: 3.1.0\ninfo: { title: Shop, version: '1' }\nservers: [{ url: 'http://127.0.0.1:9' }]\n" +
        "paths:\n  /orders:\n    get:\n      operationId: listOrders\n      summary: Lists the orders of a customer\n",
    );
    const mcpServers = { notes: { module: "./notes.ts" }, shop: { openapi: "./shop.yaml" } };
    write("catenary.json", JSON.stringify({ mcpServers, chain: ["search"] }));
    const call = (tool: string, ...args: string[]): string =>
      outputOf(process.execPath, [COMMAND, "call", "gateway/catenary.json", tool, ...args], { cwd: folder });
    expect(call("search-tools", "query=orders of customers")).toContain("listOrders");
    expect(call("call-tool", "name=write_note", "arguments:={}")).toBe("done\n");
  },
);

it.skipIf(reason !== undefined)("the installed package shows names and lines of the source in stack traces", () => {
  const program =
    'import { createServer } from "catenary"; try { createServer({ nme: 1 }); } catch (e) { console.log(e.stack); }';
  const stack = outputOf(process.execPath, ["--input-type=module", "--eval", program], { cwd: folder });
  expect(stack).toMatch(/at createServer \(.*\/catenary\/dist\/.*\.js:\d{2,}:\d+\)/);
});
