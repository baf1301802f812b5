// Where the cache is, directories that are made or refused without ever hanging, and caches of other users.

import { chmodSync, mkdirSync, mkdtempSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { homedir, tmpdir, userInfo } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { cacheFolder, checkCacheFolder, homeFolder, isOwnCacheFile, makeDirectory, ownerProblem } from "./files.ts";

it("cacheFolder follows the environment, else is in the home directory", () => {
  expect(cacheFolder({ CATENARY_CACHE: "here", XDG_CACHE_HOME: "/xdg" })).toBe("here");
  expect(cacheFolder({ CATENARY_CACHE: "", XDG_CACHE_HOME: "/xdg" })).toBe(join("/xdg", "catenary"));
  expect(cacheFolder({ XDG_CACHE_HOME: "not/absolute" })).toBe(join(homedir(), ".cache", "catenary"));
});

describe.skipIf(process.platform === "win32")("homeFolder", () => {
  afterEach(() => vi.unstubAllEnvs());

  it("homeFolder is $HOME if that is a path, else what the system has", () => {
    vi.stubEnv("HOME", "/home/ada");
    expect(homeFolder()).toBe("/home/ada");
    for (const home of ["", "not/absolute"]) {
      vi.stubEnv("HOME", home);
      expect(homeFolder()).toBe(userInfo().homedir);
    }
  });
});

it("makeDirectory makes a directory and its parents, any number of times", async () => {
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

it("makeDirectory rejects where no directory can be made", async () => {
  await expect(makeDirectory("/proc/catenary")).rejects.toThrow("/proc/catenary");
  await expect(makeDirectory("/proc/catenary/a/b")).rejects.toThrow("/proc/catenary");
});

const uid = process.getuid?.() ?? 0;
const check = { bits: 0o022, remedy: "chmod go-w" };

it.skipIf(process.getuid === undefined)(
  "a cache of another user is recognized by its owner and its permissions",
  () => {
    expect(ownerProblem("/c", { uid, mode: 0o40755 }, check)).toBeUndefined();
    expect(ownerProblem("/c", { uid: uid + 1, mode: 0o40700 }, check)).toBe(
      `/c belongs to another user (uid ${uid + 1}); remove it, or use another path`,
    );
    const open = '/c is accessible to other users (mode 777): run "chmod go-w /c"';
    expect(ownerProblem("/c", { uid, mode: 0o40777 }, check)).toBe(open);
    expect(ownerProblem("/c", { uid: 0, mode: 0o40755 }, { ...check, mayBeRoot: true })).toBeUndefined();
  },
);

it.skipIf(process.getuid === undefined)("a cache of another user is refused, and so are its files", async () => {
  const base = mkdtempSync(join(tmpdir(), "catenary-cache-"));
  onTestFinished(() => rmSync(base, { recursive: true, force: true }));
  const [outer, cache] = [join(base, "outer"), join(base, "outer", "catenary")];
  const [folder, file] = [join(cache, "lisp"), join(cache, "lisp", "core")];
  mkdirSync(folder, { recursive: true });
  writeFileSync(file, "");
  symlinkSync(file, join(folder, "link"));
  for (const path of [outer, cache, folder]) chmodSync(path, 0o755);
  chmodSync(file, 0o644);
  expect([await isOwnCacheFile(file), await isOwnCacheFile(join(folder, "none"))]).toEqual([true, false]);
  // A link could point to a file that another user changes.
  expect(await isOwnCacheFile(join(folder, "link"))).toBe(false);
  for (const [path, mode] of [
    [folder, 0o775],
    [folder, 0o1777],
    [cache, 0o757],
    [outer, 0o777],
  ] as const) {
    chmodSync(path, mode);
    await expect(checkCacheFolder(folder)).rejects.toThrow(`${path} is accessible to other users`);
    expect(await isOwnCacheFile(file)).toBe(false);
    chmodSync(path, 0o755);
  }
  chmodSync(outer, 0o1777);
  chmodSync(cache, 0o1777);
  await checkCacheFolder(folder);
  chmodSync(file, 0o666);
  expect(await isOwnCacheFile(file)).toBe(false);
});
