// Which engine the options name, and what is said if it cannot run. No session is started.

import { describe, expect, it } from "vitest";
import { engineOf } from "./engine.ts";
import { smalltalk } from "./entry.ts";
import { checkAmber, smalltalkLanguage } from "./index.ts";

describe("the engine", () => {
  it.each([
    [undefined, undefined, "amber"],
    ["gst", undefined, "gst"],
    ["/usr/local/bin/gst-3.2", undefined, "gst"],
    ["gst", "saved.image", "gst"],
    ["/opt/pharo/pharo", "Pharo.image", "image"],
  ])("of the program %s and the image %s is %s", (program, image, engine) => {
    expect(engineOf(program, image)).toBe(engine);
  });

  it("is not guessed", () => {
    expect(() => smalltalkLanguage({ command: "/opt/pharo/pharo" })).toThrow('also needs "image"');
    expect(() => smalltalkLanguage({ image: "Pharo.image" })).toThrow("needs the virtual machine");
    expect(smalltalk.problem?.({ program: "pharo" })).toMatchObject({ setting: "program" });
    expect(smalltalk.problem?.({ image: "Pharo.image" })).toMatchObject({ setting: "image" });
    expect(smalltalk.problem?.({ program: "gst" })).toBeUndefined();
    expect(smalltalk.problem?.({ attach: "here" })).toMatchObject({ setting: "attach" });
    expect(smalltalk.problem?.({ attach: "http://127.0.0.1:8086" })).toBeUndefined();
  });

  it("is named in the title and the instructions", () => {
    const { title, instructions } = smalltalkLanguage();
    expect(title).toBe("Smalltalk (Amber)");
    expect(instructions).toContain("run on Amber");
  });

  it("says how to install Amber if it is missing", () => {
    expect(() => checkAmber()).not.toThrow();
    expect(() => checkAmber("@ambers/missing")).toThrow("Amber, which is not installed: npm install @ambers/missing");
  });
});
