// JavaScript and TypeScript as a live language: its tools, the texts for the language model, and the command that runs
// the guest in Node, with the flags that restrict it. The guest's own modules are not loaded here. The guest always runs
// from dist/, even if this file runs as TypeScript: plain Node must be able to load its worker thread.

import { existsSync } from "node:fs";
import { ConnectionError } from "../../core/errors.ts";
import { packageFile } from "../../core/files.ts";
import { defined } from "../../core/values.ts";
import { outputOf } from "../../process/child.ts";
import type { GuestOptions } from "../options.ts";
import type { GuestCommand, Limits, Runtime } from "../runtime.ts";
import { choice, count, flag, required, text, type GuestTool, type Language, type LanguageResource } from "../tool.ts";
import { MIN_PERMISSION_NODE, type JavaScriptSettings } from "./settings.ts";

/** Options of the guests of JavaScript. */
export type JavaScriptGuestOptions = GuestOptions & JavaScriptSettings;

/** The first Node that can restrict the network. */
const MIN_NET_PERMISSION_NODE = 25;
const VERSION_TIMEOUT_MS = 10_000;

/** `evaluator` is the file of a module that evaluates another language in the guest; see `Evaluator` in messages.ts. */
export function jsRuntime(options: JavaScriptGuestOptions, evaluator?: string): Runtime {
  return {
    language: "js",
    stopSteps: ["interrupt"],
    async start(limits) {
      const isRestricted = options.permission !== undefined && options.permission !== false;
      const command = guestCommand(options, limits, isRestricted ? await permissionFlags(options) : []);
      return { ...command, args: [...command.args, evaluator ?? "-"] };
    },
    withArguments: (command, args) => ({ ...command, args: [...command.args, ...args] }),
  };
}

function guestCommand(options: JavaScriptGuestOptions, limits: Limits, flags: readonly string[]): GuestCommand {
  return {
    command: options.command ?? process.execPath,
    args: [
      `--max-old-space-size=${limits.memoryMb}`,
      // Without this flag, Node aborts when an interrupt terminates a callback of its event loop.
      "--no-force-async-hooks-checks",
      // An interrupt uses the debugger, which can crash V8 (before version 13) while it compiles in another thread.
      "--no-concurrent-recompilation",
      ...flags,
      guestFile(),
    ],
    // The guest must not preload the modules that this process preloads.
    env: { NODE_OPTIONS: "", ...options.env },
    reads: ["dist", "src/live", "package.json"].map(packageFile),
    ...defined({ cwd: options.cwd, inheritEnv: options.inheritEnv }),
  };
}

function guestFile(): string {
  const file = packageFile("dist/live/js/guest.js");
  if (existsSync(file)) return file;
  const advice = "a bundle cannot contain it, so leave the package catenary out of the bundle";
  throw new ConnectionError("spawn", `A JavaScript session needs the file ${file}: ${advice}`, { mayHaveRun: false });
}

async function permissionFlags(options: JavaScriptGuestOptions): Promise<string[]> {
  const major = await nodeMajor(options.command ?? process.execPath);
  if (major < MIN_PERMISSION_NODE) {
    const hint = { text: 'set "command" ("program" in a config) to a later one, or leave the option out' };
    const message = `The option "permission" of a JavaScript session needs Node ${MIN_PERMISSION_NODE} or later, but this is Node ${major}`;
    throw new ConnectionError("spawn", message, { mayHaveRun: false, hint });
  }
  const { read, write = [], childProcess, net } = typeof options.permission === "object" ? options.permission : {};
  return [
    "--permission",
    "--allow-worker",
    "--allow-inspector",
    ...(read === undefined
      ? ["--allow-fs-read=*"]
      : [...read, packageFile(".")].map((path) => `--allow-fs-read=${path}`)),
    ...write.map((path) => `--allow-fs-write=${path}`),
    ...(childProcess === true ? ["--allow-child-process"] : []),
    ...(net === true && major >= MIN_NET_PERMISSION_NODE ? ["--allow-net"] : []),
    // Node warns at each start that workers and the inspector weaken the restriction. Our documentation explains that.
    "--disable-warning=SecurityWarning",
  ];
}

async function nodeMajor(node: string): Promise<number> {
  if (node === process.execPath) return Number.parseInt(process.versions.node, 10);
  const options = { command: node, args: ["--version"] };
  const { stdout } = await outputOf(options, VERSION_TIMEOUT_MS).catch(() => ({ stdout: "" }));
  const [, major] = /^v(\d+)\./.exec(stdout) ?? [];
  if (major !== undefined) return Number(major);
  const message = `A JavaScript session could not be started: ${node} is not a Node executable, or cannot be run`;
  throw new ConnectionError("spawn", message, { mayHaveRun: false });
}

export function jsLanguage(options: JavaScriptGuestOptions): Language {
  return {
    runtime: jsRuntime(options),
    title: "JavaScript",
    instructions: INSTRUCTIONS,
    evaluate: EVALUATE,
    tools: TOOLS,
    hasDebugger: true,
    resources: RESOURCES,
    callsTools: CALLS_TOOLS,
    callAdvice: {
      prefix: "tools.",
      search: 'tools.search("words")',
      wait: "Use await for each call: await tools.NAME(...), or await Promise.all([...]) for several.",
      arguments: "an object",
      output: (number) => `await tools.output({ number: ${number} })`,
    },
  };
}

export const EVALUATE: GuestTool = {
  name: "evaluate-js",
  title: "Evaluate JavaScript",
  description:
    "Evaluate JavaScript or TypeScript in a persistent Node.js session. Returns the value of the last statement and the " +
    "output. Declarations and imports are kept, and may be declared again. Top-level await, import and require work; _ " +
    "is the last value, _error the last error.",
  arguments: {
    code: required(),
    "capture-time": flag("Show how long it took"),
  },
  runsCode: true,
};

export const TOOLS: readonly GuestTool[] = [
  {
    name: "list-variables",
    title: "List variables",
    description: "List the session's variables, functions, classes and imports, with types and previews.",
    arguments: {
      pattern: text("Part of a name"),
      max: count(200),
    },
    readOnly: true,
  },
  {
    name: "list-definitions",
    title: "List definitions",
    description: "The same as list-variables.",
    arguments: {
      pattern: text(),
      max: { ...count(200), unlisted: true },
    },
    readOnly: true,
  },
  {
    name: "get-source",
    title: "Get source",
    description: "Show the source of a function or class of the session or of a loaded module.",
    arguments: { name: required("Name, or a path such as fs.readFileSync") },
    readOnly: true,
  },
  {
    name: "get-stack",
    title: "Get stack",
    description: "Show where the running evaluation is, without stopping it.",
    arguments: {},
    readOnly: true,
    whileBusy: true,
  },
  {
    name: "last-error",
    title: "Last error",
    description: "Show the last error again: type, message, causes and stack.",
    arguments: {},
    readOnly: true,
    whileBusy: true,
  },
  {
    name: "profile-code",
    title: "Profile code",
    description: "Evaluate code under the CPU profiler: the functions in which time was spent.",
    arguments: {
      code: required(),
      interval: count(500, "Microseconds"),
    },
    runsCode: true,
  },
  {
    name: "heap-report",
    title: "Heap report",
    description:
      "Show the memory in use. With code: run it, and show what it left in use and which functions allocated it.",
    arguments: {
      code: text(),
      gc: flag("Collect garbage first"),
    },
    runsCode: true,
  },
  {
    name: "run-tests",
    title: "Run tests",
    description:
      "Run the tests defined in the session (node:test), else those of its folder (vitest or node:test). Shows counts, " +
      "and each failure with its reason.",
    arguments: {
      files: { type: "array", items: { type: "string" }, description: "Of the folder" },
      pattern: text("Regular expression for names"),
      framework: choice(["vitest", "node"]),
    },
    runsCode: true,
  },
  {
    name: "reload",
    title: "Reload modules",
    description:
      "Load modules anew whose files have changed, and all that import them. Names imported from them get the new values.",
    arguments: {},
    runsCode: true,
  },
  {
    name: "check-syntax",
    title: "Check syntax",
    description:
      "Parse code without running it: what it declares, or the place of the first error. Types are not checked.",
    arguments: { code: required() },
    readOnly: true,
  },
];

const RESOURCES: readonly LanguageResource[] = [
  {
    uriTemplate: "js://variable/{name}",
    name: "Variable",
    description:
      "A variable of the session by its name or a path such as shop.items: its type, and its value or source.",
    mimeType: "text/plain",
  },
];

const CALLS_TOOLS =
  "Run JavaScript or TypeScript in a persistent Node.js session in which every tool is an async function, as describe-tools " +
  "declares it: `await tools.notes.search({ query })`. Structured content comes as a value, other results as a string or " +
  "as { text, content }. A tool that fails throws a ToolError. Promise.all runs calls side by side. Only what the code " +
  "prints and the value of its last statement are returned; show(value) adds images and resource links of a result. " +
  "Variables and files are kept.";

const INSTRUCTIONS =
  "Persistent JavaScript and TypeScript sessions, each in its own Node.js process. evaluate-js runs code and keeps its " +
  "declarations. get-usage-guide explains the rest.";
