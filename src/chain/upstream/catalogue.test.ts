// Catalogues on disk: read back as written, for their caller only, and limited in number.

import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, expect, it, onTestFinished, vi } from "vitest";
import { CatalogueFile } from "./catalogue.ts";

let folder = "";
beforeEach(() => {
  const cache = mkdtempSync(join(tmpdir(), "catenary-files-"));
  onTestFinished(() => rmSync(cache, { recursive: true, force: true }));
  vi.stubEnv("CATENARY_CACHE", cache);
  onTestFinished(() => void vi.unstubAllEnvs());
  folder = join(cache, "catalogues");
});

const CATALOGUE = { discovered: { resultType: "complete" }, lists: {} };

it("are found by the identity of the upstream and the caller", async () => {
  await new CatalogueFile(["a", "ada"]).write(CATALOGUE);
  expect(await new CatalogueFile(["a", "ada"]).read()).toEqual(CATALOGUE);
  expect(await new CatalogueFile(["a", "bob"]).read()).toBeUndefined();
  expect(await new CatalogueFile(["a", undefined]).read()).toBeUndefined();
  const [name = ""] = readdirSync(folder);
  expect([statSync(folder).mode & 0o777, statSync(join(folder, name)).mode & 0o777]).toEqual([0o700, 0o600]);
});

it("are at most a thousand: the oldest are deleted", async () => {
  mkdirSync(folder);
  for (let n = 0; n < 1_000; n += 1) {
    writeFileSync(join(folder, `${n}.json`), "{}");
    utimesSync(join(folder, `${n}.json`), n, n);
  }
  await new CatalogueFile("new").write(CATALOGUE);
  const names = readdirSync(folder);
  expect(names).toHaveLength(900);
  expect(names).toContain("999.json");
  expect(names).not.toContain("0.json");
  expect(await new CatalogueFile("new").read()).toEqual(CATALOGUE);
});

it("are not kept if the folder cannot be created", async () => {
  vi.stubEnv("CATENARY_CACHE", "/proc/catenary");
  const file = new CatalogueFile("mine");
  await file.write(CATALOGUE);
  expect(await file.read()).toBeUndefined();
});

it("are ignored if they are not valid or too long", async () => {
  const file = new CatalogueFile("mine");
  await file.write(CATALOGUE);
  const [name = ""] = readdirSync(folder);
  const wrong: readonly unknown[] = [
    { discovered: { resultType: "input_required" }, lists: {} },
    { discovered: { resultType: "complete", capabilities: null }, lists: {} },
    { ...CATALOGUE, lists: { "tools/list": "x" } },
    { ...CATALOGUE, lists: { "tools/list": [null] } },
    { ...CATALOGUE, more: "x".repeat(5 * 1024 * 1024) },
  ];
  for (const one of wrong) {
    writeFileSync(join(folder, name), JSON.stringify(one));
    expect(await file.read()).toBeUndefined();
  }
  writeFileSync(join(folder, name), JSON.stringify({ ...CATALOGUE, lists: { "tools/list": [{ name: "t" }] } }));
  expect((await file.read())?.lists["tools/list"]).toEqual([{ name: "t" }]);
});
