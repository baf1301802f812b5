// Where the cache is, and directories that are made or refused without ever hanging.

import { mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { cacheFolder, makeDirectory } from "./files.ts";

describe("cacheFolder", () => {
  it("follows the environment, else is in the home directory", () => {
    expect(cacheFolder({ CATENARY_CACHE: "here", XDG_CACHE_HOME: "/xdg" })).toBe("here");
    expect(cacheFolder({ CATENARY_CACHE: "", XDG_CACHE_HOME: "/xdg" })).toBe(join("/xdg", "catenary"));
    expect(cacheFolder({ XDG_CACHE_HOME: "not/absolute" })).toBe(join(homedir(), ".cache", "catenary"));
  });
});

describe("makeDirectory", () => {
  it("makes a directory and its parents, any number of times", async () => {
    const base = mkdtempSync(join(tmpdir(), "catenary-folder-"));
    onTestFinished(() => rmSync(base, { recursive: true, force: true }));
    const path = join(base, "a", "b", "c");
    await Promise.all([makeDirectory(path), makeDirectory(join(path, ".."))]);
    await makeDirectory(path);
    expect(statSync(path).mode & 0o777).toBe(0o700);
    await makeDirectory("/");
    await makeDirectory(".");
    const file = join(base, "file");
    writeFileSync(file, "");
    await expect(makeDirectory(file)).rejects.toThrow("EEXIST");
    await expect(makeDirectory(join(file, "x"))).rejects.toThrow("ENOTDIR");
  });

  it("rejects where no directory can be made", async () => {
    await expect(makeDirectory("/proc/catenary")).rejects.toThrow("/proc/catenary");
    await expect(makeDirectory("/proc/catenary/a/b")).rejects.toThrow("/proc/catenary");
  });
});
