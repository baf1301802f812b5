// The engines that can run Smalltalk sessions, and which of them the options name. Separate, since the registry of
// languages needs it before the engines are loaded.

import { basename } from "node:path";
import type { InheritEnv } from "../../process/environment.ts";
import type { Runtime } from "../runtime.ts";

export interface SmalltalkGuestOptions {
  /**
   * The program that runs the sessions: `gst` for GNU Smalltalk, or, with `image`, the virtual machine of Pharo, Squeak
   * or Cuis. Without it, sessions run on Amber, in Node.
   */
  readonly command?: string;
  /** The image that `command` runs. Each session works on a copy of it. */
  readonly image?: string;
  /** Variables to add to the environment that the guest inherits. */
  readonly env?: Readonly<Record<string, string>>;
  /** Which variables of this process sessions inherit, as for `upstream()`. Default: all but the secrets of Catenary. */
  readonly inheritEnv?: InheritEnv;
  /** The working directory; by default that of this process. */
  readonly cwd?: string;
}

/** An implementation of Smalltalk that can run the sessions. */
export interface SmalltalkEngine {
  /** Its name for people and models, such as "Amber". */
  readonly title: string;
  readonly runtime: Runtime;
}

/** The engines that can run sessions. */
export type EngineName = "amber" | "gst" | "image";

/** The engine that the options name, or why they name none. */
export function engineOf(program: string | undefined, image: unknown): EngineName | { readonly problem: string } {
  if (image !== undefined)
    return program === undefined
      ? { problem: "needs the virtual machine that runs the image as the program" }
      : "image";
  if (program === undefined) return "amber";
  if (/^gst/i.test(basename(program))) return "gst";
  return { problem: `is not gst, so it also needs "image": the file of a Pharo, Squeak or Cuis image` };
}
