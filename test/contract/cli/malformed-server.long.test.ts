// Malformed data from a server causes a clear message, never a crash, and the valid parts are still shown.

import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, it } from "vitest";
import { catenary, type CliResult } from "./cli-process.ts";

const SERVER = fileURLToPath(new URL("malformed-server.js", import.meta.url));
const run = (...args: readonly string[]): Promise<CliResult> => catenary([...args, "--", process.execPath, SERVER]);

let folder = "";
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "catenary-malformed-"));
});
afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
});

it.each([
  ["texts", "valid\n", ""],
  [
    "pictures",
    "",
    "image: skipped, its data is not base64\n" +
      "image, 14 bytes: not shown; use --save DIR or --output FILE to write it to a file\n" +
      "audio: skipped, its data is not base64\n",
  ],
  [
    "resources",
    "a://c\n",
    "Content of type resource is not shown; use --json to see it\n" +
      "a resource without a URI: skipped, its data is not base64\n" +
      "a://b, 14 bytes: not shown; use --save DIR or --output FILE to write it to a file\n" +
      "Content of type resource_link is not shown; use --json to see it\n",
  ],
  ["nothing", "", ""],
  ["text", "", ""],
])("a malformed result: %s is shown as far as possible", async (name, out, err) => {
  expect(await run("call", name)).toMatchObject({ code: 0, out, err });
});

it("a malformed result is written to files as far as possible", async () => {
  const saved = join(folder, "saved");
  expect((await run("call", "resources", "--save", saved)).code).toBe(0);
  expect(readdirSync(saved)).toEqual(["b.bin"]);
});

it("a malformed result may be longer than the default limit", async () => {
  const { code, bytes } = await run("call", "long");
  expect({ code, length: bytes.length }).toEqual({ code: 0, length: 5_500_000 });
});

it("a malformed result that requires pages to be visited lists those with http URLs", async () => {
  const { code, err } = await run("call", "visit");
  expect(code).toBe(5);
  expect(err).toMatch(/^catenary: Visit \(-?\d+\)\nVisit this page first: https:\/\/a\.example\/b\n$/);
});

it.each([
  ["a://number", 4, "The content of a://number is neither text nor base64"],
  ["a://bytes", 4, "The content of a://bytes is neither text nor base64"],
  ["a://neither", 4, "The content of a://neither is neither text nor base64"],
  ["a://none", 2, "a://none exists, but is empty"],
  ["a://no-list", 2, "a://no-list exists, but is empty"],
])("a malformed resource: %s does not become an empty file", async (uri, code, message) => {
  expect(await run("read", uri)).toMatchObject({ code, out: "", err: `catenary: ${message}\n` });
  const file = join(folder, "none");
  expect(await run("read", uri, "--output", file)).toMatchObject({ code, out: "" });
  expect(existsSync(file)).toBe(false);
});

it("a malformed resource is shown as far as possible", async () => {
  const result = await run("read", "a://half");
  expect(result).toMatchObject({ code: 0, out: "half\n" });
  expect(result.err).toContain("a://half: skipped, its data is not base64\n");
  const file = join(folder, "half");
  expect((await run("read", "a://half", "--output", file)).code).toBe(0);
  expect(readFileSync(file, "utf8")).toBe("half");
});

it("a malformed prompt does not break the list, and has the arguments with a name", async () => {
  expect(await run("prompts")).toMatchObject({ code: 0, out: "odd\nworse  [ok=string]\n", err: "" });
  expect(await run("prompt", "odd")).toMatchObject({ code: 0, out: "", err: "" });
});
