// Smalltalk in the registry of languages: what configs and commands need to know before the language is loaded.

import type { LanguageEntry } from "../tool.ts";
import { engineOf, SETTINGS } from "./engine.ts";
import { scan } from "./scan.ts";

export const smalltalk: LanguageEntry = {
  name: "smalltalk",
  aliases: ["st", "amber"],
  title: "Smalltalk",
  description: "Smalltalk, on Amber, GNU Smalltalk, or an image",
  program: {
    description: "gst, or with image the virtual machine of Pharo, Squeak or Cuis; by default Amber, in node",
    hint: 'install it, write its path in "program", or remove "program" for Amber, which needs no other program',
  },
  settings: SETTINGS,
  problem({ program, image, attach }) {
    const engine = engineOf(program as string | undefined, image, attach);
    if (typeof engine === "string") return undefined;
    const hint = 'write "program": "gst", or both "program" and "image", or "attach", or none of them for Amber';
    return { setting: engine.setting, message: engine.problem, hint, isFatal: true };
  },
  codeProblem(settings) {
    const { program = settings["command"], image, attach } = settings;
    const engine = engineOf(program as string | undefined, image, attach);
    if (typeof engine !== "string") return smalltalk.problem?.({ program, image, attach });
    if (engine === "amber" || engine === "gst") return undefined;
    return {
      setting: engine === "image" ? "image" : "attach",
      message: "code in an image of Pharo, Squeak or Cuis cannot call tools",
      hint: "code mode needs Amber, which is the default, or gst as the program",
    };
  },
  create: async (options) => (await import("./index.ts")).smalltalkLanguage(options),
  needsMore: (code) => scan(code).isOpen || (/^\s*!/.test(code) && !/!\s+!\s*$/.test(code)),
};
