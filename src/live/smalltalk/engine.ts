// The engines that can run Smalltalk sessions, and which of them the options name. Separate, since the registry of
// languages needs it before the engines are loaded.

import { basename } from "node:path";
import type { InheritEnv } from "../../process/program.ts";
import type { Runtime } from "../runtime.ts";

export interface SmalltalkGuestOptions {
  /**
   * The program that runs the sessions: `gst` for GNU Smalltalk, or, with `image`, the virtual machine of Pharo, Squeak
   * or Cuis. Without it, sessions run on Amber, in Node.
   */
  readonly command?: string | undefined;
  /** The image that `command` runs. Each session works on a copy of it; gst only reads it. */
  readonly image?: string | undefined;
  /**
   * The address of PharoSmalltalkInteropServer in a Pharo image that runs already, such as `http://127.0.0.1:8086`. All
   * sessions then work in that image.
   */
  readonly attach?: string | undefined;
  /** Variables to add to the environment that the guest inherits. */
  readonly env?: Readonly<Record<string, string>> | undefined;
  /** Which variables of this process sessions inherit, as for `upstream()`. Default: all but the secrets of Catenary. */
  readonly inheritEnv?: InheritEnv | undefined;
  /** The working directory; by default that of this process. */
  readonly cwd?: string | undefined;
}

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
