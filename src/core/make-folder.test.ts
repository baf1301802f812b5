// How a folder is made, or refused, without ever hanging.

import { mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { makeFolder } from "./files.ts";

it("is made with those above it, as often as is asked for", async () => {
  const base = mkdtempSync(join(tmpdir(), "catenary-folder-"));
  onTestFinished(() => rmSync(base, { recursive: true, force: true }));
  const path = join(base, "a", "b", "c");
  await Promise.all([makeFolder(path), makeFolder(join(path, ".."))]);
  await makeFolder(path);
  expect(statSync(path).mode & 0o777).toBe(0o700);
  await makeFolder("/");
  await makeFolder(".");
  const file = join(base, "file");
  writeFileSync(file, "");
  await expect(makeFolder(file)).rejects.toThrow("EEXIST");
  await expect(makeFolder(join(file, "x"))).rejects.toThrow("ENOTDIR");
});

it("is refused where nothing can be made", async () => {
  await expect(makeFolder("/proc/catenary")).rejects.toThrow("/proc/catenary");
  await expect(makeFolder("/proc/catenary/a/b")).rejects.toThrow("/proc/catenary");
});
