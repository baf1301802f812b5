// What a server writes where something else should be ends in a sentence, never in the words of a program that broke;
// and what could be understood is shown all the same.

import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { catenary, type Ran } from "./stage.ts";

const STRANGER = fileURLToPath(new URL("stranger.js", import.meta.url));
const run = (...args: readonly string[]): Promise<Ran> => catenary([...args, "--", process.execPath, STRANGER]);

let folder = "";
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "catenary-stranger-"));
});
afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
});

describe("a result of a stranger", () => {
  it.each([
    ["texts", "the end\n", ""],
    [
      "pictures",
      "",
      "image: its data is not base64, and is left out\n" +
        "image, 14 bytes: not shown; --save DIR or --output FILE writes it to a file\n" +
        "audio: its data is not base64, and is left out\n",
    ],
    [
      "resources",
      "a://c\n",
      "Content of the type resource is not shown; --json has it\n" +
        "a resource without an address: its data is not base64, and is left out\n" +
        "a://b, 14 bytes: not shown; --save DIR or --output FILE writes it to a file\n" +
        "Content of the type resource_link is not shown; --json has it\n",
    ],
    ["nothing", "", ""],
    ["text", "", ""],
  ])("%s is shown as far as it goes", async (name, out, err) => {
    expect(await run("call", name)).toMatchObject({ code: 0, out, err });
  });

  it("is written to files as far as it goes", async () => {
    const saved = join(folder, "saved");
    expect((await run("call", "resources", "--save", saved)).code).toBe(0);
    expect(readdirSync(saved)).toEqual(["b.bin"]);
  });

  it("may be longer than what a server takes", async () => {
    const { code, bytes } = await run("call", "long");
    expect({ code, length: bytes.length }).toEqual({ code: 0, length: 5_500_000 });
  });

  it("that wants pages to be visited names those of the web, each on a line of its own", async () => {
    const { code, err } = await run("call", "visit");
    expect(code).toBe(5);
    expect(err).toMatch(/^catenary: Visit \(-?\d+\)\nVisit first: https:\/\/a\.example\/b\n$/);
  });
});

describe("a resource of a stranger", () => {
  it.each([
    ["a://number", 4, "What came of a://number is neither a text nor base64"],
    ["a://bytes", 4, "What came of a://bytes is neither a text nor base64"],
    ["a://neither", 4, "What came of a://neither is neither a text nor base64"],
    ["a://none", 2, "a://none is there, but there is nothing in it"],
    ["a://no-list", 2, "a://no-list is there, but there is nothing in it"],
  ])("%s is no empty file", async (uri, code, words) => {
    expect(await run("read", uri)).toMatchObject({ code, out: "", err: `catenary: ${words}\n` });
    const file = join(folder, "none");
    expect(await run("read", uri, "--output", file)).toMatchObject({ code, out: "" });
    expect(existsSync(file)).toBe(false);
  });

  it("is shown as far as it goes", async () => {
    const said = await run("read", "a://half");
    expect(said).toMatchObject({ code: 0, out: "half\n" });
    expect(said.err).toContain("a://half: its data is not base64, and is left out\n");
    const file = join(folder, "half");
    expect((await run("read", "a://half", "--output", file)).code).toBe(0);
    expect(readFileSync(file, "utf8")).toBe("half");
  });
});

describe("a prompt of a stranger", () => {
  it("spoils no list, and has the arguments that have a name", async () => {
    expect(await run("prompts")).toMatchObject({ code: 0, out: "odd\nworse  [ok=string]\n", err: "" });
    expect(await run("prompt", "odd")).toMatchObject({ code: 0, out: "", err: "" });
  });
});
