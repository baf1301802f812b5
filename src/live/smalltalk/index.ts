// Smalltalk as a live language, on one of three engines: Amber, which comes with the package and runs in Node; GNU
// Smalltalk; or an image of Pharo, Squeak or Cuis with its own virtual machine. The tools are the same for all.

import { basename } from "node:path";
import { packageFile } from "../../core/files.ts";
import { defined } from "../../core/values.ts";
import type { InheritEnv } from "../../process/environment.ts";
import { jsRuntime } from "../js/index.ts";
import type { Runtime } from "../runtime.ts";
import type { Language } from "../tool.ts";
import { EVALUATE, EVALUATE_EXPRESSION, INSTRUCTIONS, TOOLS } from "./tools.ts";

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

/** Throws a TypeError if the options do not say which engine is meant. */
export function smalltalkEngine(options: SmalltalkGuestOptions): SmalltalkEngine {
  const { command, image } = options;
  if (command === undefined && image === undefined) return amberEngine(options);
  const isGnu = command !== undefined && /^gst/i.test(basename(command));
  throw new TypeError(`There is no engine for ${isGnu ? "GNU Smalltalk" : "images"} yet`);
}

/** Amber runs in the process of a JavaScript session: it compiles to JavaScript, so it is interrupted in the same way. */
function amberEngine({ env, inheritEnv, cwd }: SmalltalkGuestOptions): SmalltalkEngine {
  const runtime = jsRuntime(defined({ env, inheritEnv, cwd }), packageFile("dist/live/smalltalk/amber-guest.js"));
  return { title: "Amber", runtime: { ...runtime, language: "smalltalk" } };
}

export function smalltalkLanguage(options: SmalltalkGuestOptions = {}): Language {
  const { title, runtime } = smalltalkEngine(options);
  return {
    runtime,
    title: `Smalltalk (${title})`,
    instructions: `${INSTRUCTIONS} The sessions run on ${title}.`,
    evaluate: EVALUATE,
    tools: [EVALUATE_EXPRESSION, ...TOOLS],
  };
}
