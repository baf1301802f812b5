// Where the cache folder is, by the environment.

import { homedir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { cacheFolder } from "./files.ts";

it("is where the environment says, else in the home folder", () => {
  expect(cacheFolder({ CATENARY_CACHE: "here", XDG_CACHE_HOME: "/xdg" })).toBe("here");
  expect(cacheFolder({ CATENARY_CACHE: "", XDG_CACHE_HOME: "/xdg" })).toBe(join("/xdg", "catenary"));
  expect(cacheFolder({ XDG_CACHE_HOME: "not/absolute" })).toBe(join(homedir(), ".cache", "catenary"));
});
