// Which engine the options name, and what is said if it cannot run. No session is started.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { DEFAULT_LIMITS } from "../runtime.ts";
import { engineOf } from "./engine.ts";
import { smalltalk } from "./entry.ts";
import { amberFolder, smalltalkLanguage } from "./index.ts";

it.each([
  [undefined, undefined, "amber"],
  ["gst", undefined, "gst"],
  ["/usr/local/bin/gst-3.2", undefined, "gst"],
  ["gst", "saved.image", "gst"],
  ["/opt/pharo/pharo", "Pharo.image", "image"],
])("the engine of the program %s and the image %s is %s", (program, image, engine) => {
  expect(engineOf(program, image)).toBe(engine);
});

it("the engine is not guessed", () => {
  expect(() => smalltalkLanguage({ command: "/opt/pharo/pharo" })).toThrow('also needs "image"');
  expect(() => smalltalkLanguage({ image: "Pharo.image" })).toThrow("needs the virtual machine");
  expect(smalltalk.problem?.({ program: "pharo" })).toMatchObject({ setting: "program" });
  expect(smalltalk.problem?.({ image: "Pharo.image" })).toMatchObject({ setting: "image" });
  expect(smalltalk.problem?.({ program: "gst" })).toBeUndefined();
  expect(smalltalk.problem?.({ attach: "here" })).toMatchObject({ setting: "attach" });
  expect(smalltalk.problem?.({ attach: "http://127.0.0.1:8086" })).toBeUndefined();
});

it("the engine refuses a file that is not an image before it starts anything", async () => {
  const folder = mkdtempSync(join(tmpdir(), "catenary-image-"));
  const image = join(folder, "notes.image");
  const start = (): Promise<unknown> =>
    smalltalkLanguage({ command: process.execPath, image }).runtime.start(DEFAULT_LIMITS);
  await expect(start()).rejects.toThrow(`The image ${image} cannot be read`);
  for (const content of ["", "just a note\n"]) {
    writeFileSync(image, content);
    await expect(start()).rejects.toThrow(`The image ${image} is not an image of Pharo, Squeak or Cuis: give the`);
  }
  for (const content of [[0x66, 0x19, 0, 0], [0, 1, 0x09, 0xb5], [...Buffer.from("#! /usr/bin/squeak")]]) {
    writeFileSync(image, Buffer.from(content));
    await expect(start()).resolves.toMatchObject({ args: expect.arrayContaining([image]) as unknown });
  }
  rmSync(folder, { recursive: true });
});

it("the engine is named in the title and the instructions", () => {
  const { title, instructions } = smalltalkLanguage();
  expect(title).toBe("Smalltalk (Amber)");
  expect(instructions).toContain("run on Amber");
});

it("the engine says how to install Amber if it is missing", () => {
  expect(() => amberFolder()).not.toThrow();
  expect(() => amberFolder("@ambers/missing")).toThrow("Amber, which is not installed: npm install @ambers/missing");
});
