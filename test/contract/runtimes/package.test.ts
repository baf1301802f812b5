// The files of the package, as `npm pack` lists them. package.long.test.ts makes and installs it.

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { pack, ROOT } from "./package.ts";

const { files } = pack(ROOT, "--dry-run", "--ignore-scripts");
const paths = new Set(files.map(({ path }) => path));

it("the package has the code of all entries and programs, and no source maps, tests or docs", () => {
  const isUnwanted = /\.map$|\.test\.|^(?:docs|test|bench|examples)\/|^src\/.*\.ts$/;
  expect([...paths].filter((path) => isUnwanted.test(path))).toEqual([]);
  const scripts = readdirSync(join(ROOT, "dist"), { recursive: true, encoding: "utf8" });
  expect(scripts.filter((file) => /\.c?js$/.test(file) && !paths.has(`dist/${file}`))).toEqual([]);
  const manifest = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as Record<string, object>;
  const targets = JSON.stringify([manifest["exports"], manifest["imports"]]).match(/(?<=:"\.\/)[^"]+/g) ?? [];
  expect(targets.length).toBeGreaterThan(20);
  expect(targets.filter((path) => !paths.has(path))).toEqual([]);
});

it("the package has the licence of each package whose code is in it", () => {
  const licences = readFileSync(join(ROOT, "dist/THIRD-PARTY-LICENSES.txt"), "utf8");
  expect(paths).toContain("dist/THIRD-PARTY-LICENSES.txt");
  for (const name of ["acorn", "minisearch", "sucrase", "@jridgewell/gen-mapping", "@jridgewell/sourcemap-codec"]) {
    expect(licences).toMatch(new RegExp(`^${name} \\d`, "m"));
  }
  expect(licences.match(/Permission is hereby granted/g)?.length).toBeGreaterThanOrEqual(5);
});
