// Smalltalk as a live language, on one of these engines: Amber, which comes with the package and runs in Node; GNU
// Smalltalk; an image of Pharo, Squeak or Cuis with its own virtual machine; or a Pharo image that runs already. The
// tools are the same for all.

import { open } from "node:fs/promises";
import { createRequire } from "node:module";
import { basename, dirname, resolve } from "node:path";
import { ConnectionError } from "../../core/errors.ts";
import { packageFile } from "../../core/files.ts";
import { defined } from "../../core/values.ts";
import { findProgram as lookUp } from "../../process/spawn-problem.ts";
import type { CallSyntax } from "../../tools/search.ts";
import { jsRuntime } from "../js/index.ts";
import type { GuestCommand, GuestRequest, Limits, Runtime } from "../runtime.ts";
import type { CallAdvice, Language } from "../tool.ts";
import { engineOf, type EngineName, type SmalltalkEngine, type SmalltalkGuestOptions } from "./engine.ts";
import { chunkPieces, methodPiece, parseSource } from "./gst-source.ts";
import { EVALUATE, EVALUATE_EXPRESSION, INSTRUCTIONS, PROMPTS, RESOURCES, TOOLS } from "./tools.ts";

/** Sessions in a Pharo image that runs already, through its HTTP server (attach-guest.ts). */
function attachRuntime({ attach = "", env, inheritEnv, cwd }: SmalltalkGuestOptions): Runtime {
  const args = [packageFile("dist/live/smalltalk/attach-guest.js"), attach];
  return {
    language: "smalltalk",
    stopSteps: ["interrupt"],
    noSandbox: 'their code runs in an image that is not started here; remove "attach" or "sandbox"',
    start: () => Promise.resolve({ command: process.execPath, args, ...defined({ env, inheritEnv, cwd }) }),
  };
}

/** Images of Pharo, Squeak and Cuis. The guest in them is the image-*.st files of this folder. */
function imageRuntime({ command = "", image = "", env, inheritEnv, cwd }: SmalltalkGuestOptions): Runtime {
  return {
    language: "smalltalk",
    // The image answers for an interrupted evaluation before it unwinds it.
    stopSteps: ["interrupt"],
    prepare: prepareForImage,
    async start() {
      const program = await findProgram(command, "This session needs the virtual machine of its image", env?.["PATH"]);
      const file = resolve(cwd ?? ".", image);
      await checkImage(file, image);
      const args = [packageFile("dist/live/smalltalk/image-bridge.js"), flavourOf(program, file), program, file];
      // The machine may need the files beside it, and the image its sources.
      const reads = [...["dist", "src/live", "package.json"].map(packageFile), dirname(program), dirname(file)];
      return { command: process.execPath, args, reads, ...defined({ env, inheritEnv, cwd }) };
    },
  };
}

/** The version of the format, with which an image begins, is such a number in either byte order. */
const FIRST_FORMAT = 6_502;
const LAST_FORMAT = 100_000;

/** Rejects if the file is not an image: a virtual machine may end without a word then. */
async function checkImage(file: string, name: string): Promise<void> {
  const refused = (problem: string): ConnectionError =>
    new ConnectionError("spawn", `The image ${name} ${problem}`, { mayHaveRun: false });
  const opened = await open(file).catch(() => {
    throw refused("cannot be read");
  });
  try {
    const { buffer, bytesRead } = await opened.read(Buffer.alloc(4), 0, 4, 0).catch(() => {
      throw refused("cannot be read");
    });
    const isFormat = (version: number): boolean => version >= FIRST_FORMAT && version <= LAST_FORMAT;
    const isImage = bytesRead === 4 && (isFormat(buffer.readUInt32LE()) || isFormat(buffer.readUInt32BE()));
    // Some begin with the line of a script.
    if (isImage || buffer.toString("latin1", 0, 2) === "#!") return;
    throw refused("is not an image of Pharo, Squeak or Cuis: give the file whose name ends with .image");
  } finally {
    await opened.close();
  }
}

/** Which of the systems it is: they take a script in different ways. Squeak's way is that of most other descendants. */
function flavourOf(program: string, image: string): "pharo" | "cuis" | "squeak" {
  for (const flavour of ["pharo", "cuis"] as const)
    if (basename(program).toLowerCase().includes(flavour) || basename(image).toLowerCase().includes(flavour))
      return flavour;
  return "squeak";
}

/** Code for an image is statements or chunks. Its compiler answers the value of the last statement by itself. */
function prepareForImage(request: GuestRequest): GuestRequest {
  const { op, code, value } = request;
  if (op === "eval" || op === "evaluate-in-frame") return { ...request, pieces: chunkPieces(String(code)) };
  return op === "take-restart" && typeof value === "string" ? { ...request, pieces: chunkPieces(value) } : request;
}

interface GstRuntime extends Runtime {
  readonly checkpoint: { start(limits: Limits, file: string): Promise<GuestCommand> };
}

const INSTALL =
  "install it or give its path (Debian 11: apt-get install gnu-smalltalk; macOS: brew install gnu-smalltalk)";

/** The guest's sources in the order in which they are loaded. The last one starts it. */
const SOURCES = ["json", "channel", "print", "evaluate", "pharo", "tools", "main"].map(sourceFile);
/** Loaded by the guest, when its code may call tools. */
const CALLS = sourceFile("calls");

function sourceFile(name: string): string {
  return packageFile(`src/live/smalltalk/guest-${name}.st`);
}

/** A saved image starts with the same sources, so it always runs the guest of this release. */
export function gstRuntime({
  command = "gst",
  image: imagePath,
  env,
  inheritEnv,
  cwd,
}: SmalltalkGuestOptions = {}): GstRuntime {
  const start = async ({ memoryMb }: Limits, image?: string): Promise<GuestCommand> => ({
    command: await findProgram(command, `This session needs GNU Smalltalk; ${INSTALL}`, env?.["PATH"]),
    args: [...(image === undefined ? [] : ["--image", image]), "--quiet", "--no-user-files", ...SOURCES],
    env: { ...env, CATENARY_MEMORY_MB: String(memoryMb) },
    reads: [...SOURCES, CALLS, ...(image === undefined ? [] : [image])],
    ...defined({ inheritEnv, cwd }),
  });
  return {
    language: "smalltalk",
    stopSteps: ["interrupt", "renew"],
    prepare: prepareForGst,
    start: (limits) => start(limits, imagePath === undefined ? undefined : resolve(cwd ?? ".", imagePath)),
    checkpoint: { start },
  };
}

/** Rejects with a ConnectionError that has the advice if the program is not found. */
export async function findProgram(
  command: string,
  advice: string,
  path: string = process.env["PATH"] ?? "",
): Promise<string> {
  const file = await lookUp({ command, env: { PATH: path } });
  if (file !== undefined) return file;
  const problem = command.includes("/") ? "is not an executable file" : "is not on the PATH";
  throw new ConnectionError("spawn", `${command} ${problem}. ${advice}`, { mayHaveRun: false });
}

/** Adds the pieces of code (gst-source.ts), and the file that the guest loads before it can call tools. */
function prepareForGst(request: GuestRequest): GuestRequest {
  const { op, code, value, class: owner, source, protocol } = request;
  if (op === "set-tools") return { ...request, file: CALLS };
  if (op === "eval" || op === "evaluate-in-frame") return { ...request, pieces: parseSource(String(code)) };
  if (op === "take-restart" && typeof value === "string") return { ...request, pieces: parseSource(value) };
  if (op !== "compile-method") return request;
  const category = typeof protocol === "string" ? protocol : undefined;
  return { ...request, pieces: [methodPiece(String(owner), String(source), 1, category)] };
}

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
    const amber = amberFolder();
    const command = await runtime.start(limits);
    return { ...command, reads: [...(command.reads ?? []), amber] };
  };
  return { title: "Amber", runtime: { ...runtime, language: "smalltalk", start }, callsTools: true };
}

/** The folder of Amber. Throws if it is not installed: it is an optional dependency. */
export function amberFolder(name = "@ambers/lang"): string {
  try {
    return dirname(createRequire(import.meta.url).resolve(`${name}/package.json`));
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
    ...(callsTools && { callsTools: CALLS_TOOLS, callSyntax: CALL_SYNTAX, callAdvice: CALL_ADVICE }),
  };
}

/** What every engine reads as a message; on Amber, names have no `_`. */
const IS_MESSAGE = /^[A-Za-z][A-Za-z0-9]*(?:\.[A-Za-z][A-Za-z0-9]*)?$/;

/** Such as `Tools notes search: { 'query' -> string }`, or `Tools call: 'notes.find_all' with: { 'query' -> string }`. */
const CALL_SYNTAX: CallSyntax = {
  parameter: (name, type, isRequired) => `'${name.replaceAll("'", "''")}' -> ${type}${isRequired ? "" : " (optional)"}`,
  call: (name, parameters) => {
    const isMessage = IS_MESSAGE.test(name);
    const call = isMessage ? `Tools ${name.split(".").join(" ")}` : `Tools call: '${name}'`;
    return parameters.length === 0 ? call : `${call}${isMessage ? "" : " with"}: { ${parameters.join(". ")} }`;
  },
};

const CALL_ADVICE: CallAdvice = {
  search: "Tools search: 'words'",
  wait: "Wait for the processes that call tools, for example with a Semaphore.",
  arguments: "a Dictionary",
  output: (number) => `Tools call: 'output' with: { 'number' -> ${number} }`,
};

const CALLS_TOOLS =
  "Run Smalltalk in a persistent session that calls tools: Tools notes search: (Dictionary new at: 'query' put: 'x'; " +
  "yourself), or Tools call: 'notes.search' with: aDictionary. It waits for the result: structured content (objects are " +
  "dictionaries with strings as keys, arrays are arrays), a string, or a dictionary of 'text' and 'content'. A tool that " +
  "fails signals ToolError. Only what the code prints and the value of its last statement are returned; Tools show: value " +
  "adds images and resource links of a result. Variables and classes are kept.";
