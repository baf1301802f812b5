// JavaScript and TypeScript as a language of live sessions. What runs in the session's own process (guest and below) is
// not loaded here.

import type { Language } from "../tool.ts";
import { GUIDE, INSTRUCTIONS } from "./guide.ts";
import { jsRuntime, type JavaScriptGuestOptions } from "./runtime.ts";
import { EVALUATE, TOOLS } from "./tools.ts";

export type { JavaScriptGuestOptions, JavaScriptPermission } from "./runtime.ts";

export function jsLanguage(options: JavaScriptGuestOptions): Language {
  return {
    runtime: jsRuntime(options),
    title: "JavaScript",
    instructions: INSTRUCTIONS,
    evaluate: EVALUATE,
    tools: TOOLS,
    guide: GUIDE,
  };
}
