// Where the bytes of strangers end up: in the folder that was named, under names that are ours, on top of nothing.

import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { UsageError } from "../exit-codes.ts";
import { destination, extensionOf, Saver, stemOf } from "./saving.ts";

let folder = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "catenary-saving-"));
});
afterEach(() => {
  rmSync(folder, { recursive: true, force: true });
});

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const read = (name: string): string => readFileSync(join(folder, name), "utf8");

it("is refused where there can be no folder", async () => {
  const saver = new Saver(await destination({ save: "/proc/catenary/pictures" }));
  await expect(saver.save(bytes("x"), "image")).rejects.toThrow("/proc/catenary");
  expect(saver.count).toBe(0);
});

describe("a name", () => {
  it.each([
    ["image", "image"],
    ["file:///a/b/report.pdf", "report"],
    ["file:///a/b/", "b"],
    ["a://x/picture.tar.gz?v=1#top", "picture-tar"],
    ["../../etc/passwd", "passwd"],
    ["..", "content"],
    [".bashrc", "content"],
    ["a\\..\\b\u0000c", "a-b-c"],
    ["NUL", "content"],
    ["com1.txt", "content"],
    ["-rf", "rf"],
    ["", "content"],
    ["世界", "content"],
    ["x".repeat(500), "x".repeat(60)],
  ])("from %j is %s", (hint, stem) => {
    expect(stemOf(hint)).toBe(stem);
  });

  it("is harmless whatever an end suggests", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (hint) => {
        expect(stemOf(hint)).toMatch(/^[A-Za-z0-9_][A-Za-z0-9_-]{0,59}$/);
      }),
    );
  });

  it.each([
    ["image/png", "png"],
    ["IMAGE/JPEG; q=1", "jpg"],
    ["text/x-shellscript", "bin"],
    ["constructor", "bin"],
    ["../x", "bin"],
    [undefined, "bin"],
  ])("of the type %s ends in %s", (type, extension) => {
    expect(extensionOf(type)).toBe(extension);
  });
});

describe("saving", () => {
  it("into a folder gives each a name, and replaces nothing", async () => {
    const save = async (force: boolean): Promise<string[]> => {
      const saver = new Saver({ folder, force });
      return [await saver.save(bytes("1"), "image", "image/png"), await saver.save(bytes("2"), "image", "image/png")];
    };
    expect(await save(false)).toEqual([join(folder, "image.png"), join(folder, "image-2.png")]);
    expect(await save(false)).toEqual([join(folder, "image-3.png"), join(folder, "image-4.png")]);
    writeFileSync(join(folder, "image.png"), "old");
    expect(await save(true)).toEqual([join(folder, "image.png"), join(folder, "image-2.png")]);
    expect(["image.png", "image-2.png"].map(read)).toEqual(["1", "2"]);
    expect(readdirSync(folder)).toHaveLength(4);
  });

  it("makes the folder", async () => {
    const inner = join(folder, "a/b");
    const saver = new Saver(await destination({ save: inner }));
    expect(saver.isWanted).toBe(true);
    expect(await saver.save(bytes("x"), "a://y.z", undefined)).toBe(join(inner, "y.bin"));
    expect(saver.count).toBe(1);
  });

  it("follows no link that stands where a file would go", async () => {
    symlinkSync(join(folder, "elsewhere"), join(folder, "image.png"));
    expect(await new Saver({ folder, force: false }).save(bytes("1"), "image", "image/png")).toBe(
      join(folder, "image-2.png"),
    );
    expect(existsSync(join(folder, "elsewhere"))).toBe(false);
  });

  it("into a file writes the first there and the next beside it", async () => {
    const file = join(folder, "shot.png");
    const saver = new Saver(await destination({ output: file }));
    expect(await saver.save(bytes("1"), "image", "image/gif")).toBe(file);
    expect(await saver.save(bytes("2"), "image", "image/gif")).toBe(join(folder, "shot-2.png"));
  });

  it("is refused before anything is asked of an end", async () => {
    const file = join(folder, "there");
    writeFileSync(file, "old");
    mkdirSync(join(folder, "inner"));
    const refused = async (values: Parameters<typeof destination>[0], words: string): Promise<void> => {
      const wanted = destination(values);
      await expect(wanted).rejects.toThrow(UsageError);
      await expect(wanted).rejects.toThrow(words);
    };
    await refused({ output: file }, "is there already; --force replaces it");
    await refused({ output: join(folder, "inner") }, "is a folder; --save writes into one");
    await refused({ save: file }, "is no folder");
    await refused({ save: folder, output: file }, "one of them, not both");
    await refused({ output: file, force: true, json: true }, "--json or --output");
    await refused({ save: folder, json: true }, "--json or --save");
    await refused({ force: true }, "--force goes with --save or --output");
    expect(await destination({ output: file, force: true })).toEqual({ folder: undefined, file, force: true });
    expect(read("there")).toBe("old");
  });

  it("says what the system says where it cannot be done", async () => {
    await expect(
      new Saver({ file: join(folder, "x\0y"), force: true }).save(bytes("1"), "", undefined),
    ).rejects.toThrow(UsageError);
  });
});
