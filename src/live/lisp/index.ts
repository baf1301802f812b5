// Common Lisp as a live language: the runtime that starts SBCL, the tools, and what the model is told of them. What all
// languages have in common is in the rooms above; what happens inside the image is in the .lisp files beside this one.

import type { Language } from "../tool.ts";
import { GUIDE } from "./guide.ts";
import { RUNNING_TOOLS } from "./run-tools.ts";
import { lispRuntime, type LispRuntimeOptions } from "./runtime.ts";
import { TELOS_TOOLS } from "./telos-tools.ts";
import { EVALUATE, LOOKING_TOOLS } from "./tools.ts";

export type LispGuestOptions = LispRuntimeOptions;

const INSTRUCTIONS =
  "Persistent Common Lisp sessions on SBCL. Evaluate with evaluate-lisp: definitions, variables and the current " +
  "package stay for later calls, and errors come back with a backtrace and end nothing. Look things up with " +
  "describe-symbol and apropos-search before using them, and check code with validate-syntax and compile-form before " +
  "saving it. Tools that work in a session take its name, `session`; different names are separate images. get-usage-guide tells more.";

export function lispLanguage(options: LispGuestOptions = {}): Language {
  return {
    runtime: lispRuntime(options),
    title: "Common Lisp",
    instructions: INSTRUCTIONS,
    evaluate: EVALUATE,
    tools: [...LOOKING_TOOLS, ...RUNNING_TOOLS, ...TELOS_TOOLS],
    guide: GUIDE,
  };
}
