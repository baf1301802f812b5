// The engines that can run Smalltalk sessions, and which of them the options name. Separate, since the registry of
// languages needs it before the engines are loaded.

import { basename } from "node:path";
import { path, text, type OptionsOf } from "../../core/fields.ts";
import type { GuestOptions } from "../options.ts";
import type { Runtime } from "../runtime.ts";

export const SETTINGS = {
  image: path("The image of Pharo, Squeak or Cuis that live Smalltalk sessions work on, each on a copy of it."),
  attach: text("The address of PharoSmalltalkInteropServer in a running Pharo image, in which all sessions then work."),
};

/** The options that only Smalltalk has. */
type SmalltalkSettings = OptionsOf<typeof SETTINGS>;

/** Options of the guests of Smalltalk. */
export type SmalltalkGuestOptions = GuestOptions & SmalltalkSettings;

/** An implementation of Smalltalk that can run the sessions. */
export interface SmalltalkEngine {
  /** Its name for people and models, such as "Amber". */
  readonly title: string;
  readonly runtime: Runtime;
  /** Whether the code of its sessions can call tools, for code mode. */
  readonly callsTools?: true;
}

/** The engines that can run sessions. */
export type EngineName = "amber" | "gst" | "image" | "attached";

interface EngineProblem {
  /** The option that is wrong. */
  readonly setting: "program" | "image" | "attach";
  readonly problem: string;
}

/** The engine that the options name, or why they name none. */
export function engineOf(program: string | undefined, image: unknown, attach?: unknown): EngineName | EngineProblem {
  if (attach !== undefined) {
    if (program !== undefined || image !== undefined)
      return { setting: "attach", problem: "names an image that runs already, so it cannot be used with a program" };
    const isAddress = typeof attach === "string" && URL.canParse(attach) && /^https?:/.test(attach);
    return isAddress ? "attached" : { setting: "attach", problem: "must be an address such as http://127.0.0.1:8086" };
  }
  const isGst = program !== undefined && /^gst/i.test(basename(program));
  if (image !== undefined && !isGst)
    return program === undefined
      ? { setting: "image", problem: "needs the virtual machine that runs it as the program" }
      : "image";
  if (program === undefined) return "amber";
  if (isGst) return "gst";
  const problem = `is not gst, so it also needs "image": the file of a Pharo, Squeak or Cuis image`;
  return { setting: "program", problem };
}
