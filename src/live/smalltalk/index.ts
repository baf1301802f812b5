// Smalltalk as a live language, on one of these engines: Amber, which comes with the package and runs in Node; GNU
// Smalltalk; an image of Pharo, Squeak or Cuis with its own virtual machine; or a Pharo image that runs already. The
// tools are the same for all.

import { createRequire } from "node:module";
import { ConnectionError } from "../../core/errors.ts";
import { packageFile } from "../../core/files.ts";
import { defined } from "../../core/values.ts";
import { jsRuntime } from "../js/index.ts";
import type { Runtime } from "../runtime.ts";
import type { Language } from "../tool.ts";
import { engineOf, type EngineName, type SmalltalkEngine, type SmalltalkGuestOptions } from "./engine.ts";
import { gstRuntime } from "./gst.ts";
import { attachRuntime, imageRuntime } from "./image.ts";
import { EVALUATE, EVALUATE_EXPRESSION, INSTRUCTIONS, PROMPTS, RESOURCES, TOOLS } from "./tools.ts";

const ENGINES: Readonly<Partial<Record<EngineName, (options: SmalltalkGuestOptions) => SmalltalkEngine>>> = {
  amber: amberEngine,
  gst: (options) => ({ title: "GNU Smalltalk", runtime: gstRuntime(options), callsTools: true }),
  image: (options) => ({ title: "an image", runtime: imageRuntime(options) }),
  attached: (options) => ({ title: `the image at ${options.attach}`, runtime: attachRuntime(options) }),
};

/** Amber runs in the process of a JavaScript session: it compiles to JavaScript, so it is interrupted in the same way. */
function amberEngine({ env, inheritEnv, cwd }: SmalltalkGuestOptions): SmalltalkEngine {
  const runtime = jsRuntime(defined({ env, inheritEnv, cwd }), packageFile("dist/live/smalltalk/amber-guest.js"));
  const start: Runtime["start"] = async (limits) => {
    checkAmber();
    return runtime.start(limits);
  };
  return { title: "Amber", runtime: { ...runtime, language: "smalltalk", start }, callsTools: true };
}

/** Throws if Amber is not installed: it is an optional dependency. */
export function checkAmber(name = "@ambers/lang"): void {
  try {
    createRequire(import.meta.url).resolve(`${name}/package.json`);
  } catch (cause) {
    const advice = `npm install ${name}, or set "command" ("program" in a config) to gst`;
    const message = `A Smalltalk session needs Amber, which is not installed: ${advice}`;
    throw new ConnectionError("spawn", message, { mayHaveRun: false, cause });
  }
}

export function smalltalkLanguage(options: SmalltalkGuestOptions = {}): Language {
  const engine = engineOf(options.command, options.image, options.attach);
  if (typeof engine !== "string") throw new TypeError(`smalltalk(): the ${engine.setting} ${engine.problem}`);
  const create = ENGINES[engine];
  if (create === undefined) throw new TypeError(`smalltalk(): there is no engine ${engine} yet`);
  const { title, runtime, callsTools } = create(options);
  return {
    runtime,
    title: `Smalltalk (${title})`,
    instructions: `${INSTRUCTIONS} The sessions run on ${title}.`,
    evaluate: EVALUATE,
    tools: [EVALUATE_EXPRESSION, ...TOOLS],
    hasDebugger: true,
    resources: RESOURCES,
    prompts: PROMPTS,
    ...(callsTools && { callsTools: CALLS_TOOLS }),
  };
}

const CALLS_TOOLS =
  "Run Smalltalk in a persistent session that calls tools: Tools notes search: (Dictionary new at: 'query' put: 'x'; " +
  "yourself), or Tools call: 'notes.search' with: aDictionary. It waits for the result: structured content (objects are " +
  "dictionaries with strings as keys, arrays are arrays), a string, or a dictionary of 'text' and 'content'. A tool that " +
  "fails signals ToolError. Only what the code prints and the value of its last statement are returned; Tools show: value " +
  "adds images and resource links of a result. Variables and classes are kept.";
