// Saving content to files: safe names in the given folder, and no file is replaced without --force.

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
import { afterEach, beforeEach, expect, it } from "vitest";
import { UsageError } from "../command.ts";
import { checkDestination, fileExtension, fileStem, Saver } from "./saver.ts";

let folder = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "catenary-saving-"));
});
afterEach(() => {
  rmSync(folder, { recursive: true, force: true });
});

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const read = (name: string): string => readFileSync(join(folder, name), "utf8");

it("fails if the folder cannot be created", async () => {
  const saver = new Saver(await checkDestination({ save: "/proc/catenary/pictures" }));
  await expect(saver.save(bytes("x"), "image")).rejects.toThrow("/proc/catenary");
  expect(saver.count).toBe(0);
});

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
])("a name from %j is %s", (hint, stem) => {
  expect(fileStem(hint)).toBe(stem);
});

it("a name is safe for any hint", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary" }), (hint) => {
      expect(fileStem(hint)).toMatch(/^[A-Za-z0-9_][A-Za-z0-9_-]{0,59}$/);
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
])("a name of type %s has the extension %s", (type, extension) => {
  expect(fileExtension(type)).toBe(extension);
});

it("saving to a folder gives each file a free name", async () => {
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

it("saving creates the folder", async () => {
  const inner = join(folder, "a/b");
  const saver = new Saver(await checkDestination({ save: inner }));
  expect(saver.isEnabled).toBe(true);
  expect(await saver.save(bytes("x"), "a://y.z", undefined)).toBe(join(inner, "y.bin"));
  expect(saver.count).toBe(1);
});

it("saving does not follow a symbolic link", async () => {
  symlinkSync(join(folder, "elsewhere"), join(folder, "image.png"));
  expect(await new Saver({ folder, force: false }).save(bytes("1"), "image", "image/png")).toBe(
    join(folder, "image-2.png"),
  );
  expect(existsSync(join(folder, "elsewhere"))).toBe(false);
});

it("saving replaces a symbolic link with --force, and leaves the file that it points to", async () => {
  const outside = join(folder, "outside");
  writeFileSync(outside, "before");
  const inside = join(folder, "pictures");
  mkdirSync(inside);
  symlinkSync(outside, join(inside, "image.png"));
  const path = await new Saver({ folder: inside, force: true }).save(bytes("1"), "image", "image/png");
  expect(readFileSync(path, "utf8")).toBe("1");
  expect(read("outside")).toBe("before");
  expect(readdirSync(inside)).toEqual(["image.png"]);
});

it("saving to a file writes the first there and the next beside it", async () => {
  const file = join(folder, "shot.png");
  const saver = new Saver(await checkDestination({ output: file }));
  expect(await saver.save(bytes("1"), "image", "image/gif")).toBe(file);
  expect(await saver.save(bytes("2"), "image", "image/gif")).toBe(join(folder, "shot-2.png"));
});

it("saving is refused before anything is sent", async () => {
  const file = join(folder, "there");
  writeFileSync(file, "old");
  mkdirSync(join(folder, "inner"));
  const refused = async (values: Parameters<typeof checkDestination>[0], message: string): Promise<void> => {
    const checking = checkDestination(values);
    await expect(checking).rejects.toThrow(UsageError);
    await expect(checking).rejects.toThrow(message);
  };
  await refused({ output: file }, "already exists; use --force to replace it");
  await refused({ output: join(folder, "inner") }, "is a folder; use --save to write into a folder");
  await refused({ save: file }, "is not a folder");
  await refused({ save: folder, output: file }, "Give --save or --output, not both");
  await refused({ output: file, force: true, json: true }, "Give --json or --output, not both");
  await refused({ save: folder, json: true }, "Give --json or --save, not both");
  await refused({ force: true }, "--force needs --save or --output");
  expect(await checkDestination({ output: file, force: true })).toEqual({ folder: undefined, file, force: true });
  expect(read("there")).toBe("old");
});

it("saving reports the error of the system", async () => {
  await expect(new Saver({ file: join(folder, "x\0y"), force: true }).save(bytes("1"), "", undefined)).rejects.toThrow(
    UsageError,
  );
});
