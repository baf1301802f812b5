// The tools of a Lisp session: their names, arguments and descriptions. The names and arguments are those of
// CL-MCP-Server, so that prompts written for it work here. The tools-*.lisp files implement the tools in the image.

import {
  choice,
  count,
  flag,
  required,
  text,
  type ArgumentSpec,
  type GuestTool,
  type LanguageResource,
} from "../tool.ts";
import { TELOS_TOOLS } from "./telos-tools.ts";

/** Where code is read and names are looked up; by default the current package. */
const PACKAGE: ArgumentSpec = { type: "string" };

const NAME = required("Such as cl:mapcar");

const CLASS = required();

export const EVALUATE: GuestTool = {
  name: "evaluate-lisp",
  title: "Evaluate Common Lisp",
  description:
    "Evaluate Common Lisp forms in a persistent session: definitions, variables and the package are kept. Returns the " +
    "output, and the values of the last form as `=> value` lines, or [ERROR] with type, message and [Backtrace].",
  arguments: {
    code: required(),
    package: text("Package for this call; in-package changes it for later ones"),
    "capture-time": flag("Show time and allocation"),
  },
  runsCode: true,
};

const NAME_TOOLS: readonly GuestTool[] = [
  {
    name: "describe-symbol",
    title: "Describe a symbol",
    description: "Describe what a symbol names: kind, arguments, value, documentation, place of definition.",
    arguments: { name: NAME, package: PACKAGE },
    readOnly: true,
  },
  {
    name: "apropos-search",
    title: "Search for symbols",
    description: "Find exported symbols, and all of the current package, whose name contains a string.",
    arguments: {
      pattern: required(),
      package: PACKAGE,
      type: choice(["function", "macro", "variable", "class", "generic-function"]),
    },
    readOnly: true,
  },
  {
    name: "who-calls",
    title: "Find callers",
    description: "Find the callers of a function or macro, with their files.",
    arguments: { name: NAME, package: PACKAGE },
    readOnly: true,
  },
  {
    name: "who-references",
    title: "Find references",
    description: "Find the code that reads, sets or binds a global variable.",
    arguments: { name: NAME, package: PACKAGE },
    readOnly: true,
  },
  {
    name: "class-info",
    title: "Describe a class",
    description: "Describe a class: superclasses, subclasses, slots with all their options.",
    arguments: { class: CLASS, package: PACKAGE },
    readOnly: true,
  },
  {
    name: "find-methods",
    title: "Find methods of a class",
    description: "List the methods specialized on a class.",
    arguments: {
      class: CLASS,
      package: PACKAGE,
      "include-inherited": flag("Also those of its superclasses"),
    },
    readOnly: true,
  },
  {
    name: "get-source",
    title: "Get source",
    description: "Show the source of a definition, of the session or of a file, with its place.",
    arguments: { name: NAME, package: PACKAGE },
    readOnly: true,
  },
  {
    name: "list-definitions",
    title: "List definitions",
    description: "List what this session has defined, by kind, and the systems that it has loaded.",
    arguments: {
      type: {
        type: "string",
        enum: [
          ...["function", "macro", "variable", "class", "condition", "struct", "method"],
          ...["type", "setf", "compiler-macro", "system"],
        ],
      },
    },
    readOnly: true,
  },
];

const CODE_TOOLS: readonly GuestTool[] = [
  {
    name: "validate-syntax",
    title: "Check syntax",
    description: "Check that code can be read, without running it: parentheses, strings, tokens, each with its place.",
    arguments: { code: required() },
    readOnly: true,
  },
  {
    name: "match-paren",
    title: "Match a parenthesis",
    description: "Find the parenthesis that matches the one at a position.",
    arguments: {
      code: required(),
      line: { type: "integer", required: true, description: "From 1" },
      column: { type: "integer", required: true, description: "From 0" },
    },
    readOnly: true,
  },
  {
    name: "macroexpand-form",
    title: "Expand a macro",
    description: "Expand a macro form, once or until it is no macro form. Subforms are not expanded.",
    arguments: {
      form: required(),
      full: flag(),
      package: PACKAGE,
    },
    readOnly: true,
    runsCode: true,
  },
  {
    name: "compile-form",
    title: "Compile without running",
    description: "Compile code without running it, and report errors, warnings and compiler notes.",
    arguments: { code: required(), package: PACKAGE },
    readOnly: true,
    runsCode: true,
  },
];

const ERROR_TOOLS: readonly GuestTool[] = [
  {
    name: "describe-last-error",
    title: "Describe the last error",
    description: "Describe the last error: type, message, restarts, backtrace.",
    arguments: {},
    readOnly: true,
  },
  {
    name: "get-backtrace",
    title: "Backtrace of the last error",
    description: "Show the frames of the last error that are your own code, innermost first.",
    arguments: {
      "max-frames": count(20),
    },
    readOnly: true,
  },
  {
    name: "get-stack",
    title: "Get stack",
    description: "Show where the running evaluation is, with its variables, without stopping it.",
    arguments: {},
    readOnly: true,
    whileBusy: true,
  },
];

const SYSTEM = required();
const CODE = required();

const LOADING_TOOLS: readonly GuestTool[] = [
  {
    name: "load-system",
    title: "Load a system",
    description: "Load an ASDF system from this machine or the session's folder. Reports warnings with their places.",
    arguments: {
      "system-name": text(),
      system: { type: "string", unlisted: true },
    },
    runsCode: true,
  },
  {
    name: "run-tests",
    title: "Run tests",
    description:
      "Run the tests of a system, or a suite or test of FiveAM, Parachute or Rove: counts, failures, reasons.",
    arguments: {
      system: text(),
      suite: text("Instead of a system: a suite or test"),
      package: PACKAGE,
    },
    runsCode: true,
  },
  {
    name: "describe-system",
    title: "Describe a system",
    description: "Describe an ASDF system: author, license, dependencies, components.",
    arguments: { system: SYSTEM },
    readOnly: true,
    runsCode: true,
  },
  {
    name: "system-dependencies",
    title: "Dependencies of a system",
    description: "List what an ASDF system depends on.",
    arguments: {
      system: SYSTEM,
      transitive: flag(),
    },
    readOnly: true,
    runsCode: true,
  },
  {
    name: "list-local-systems",
    title: "List local systems",
    description: "List the ASDF systems that can be loaded here.",
    arguments: {},
    readOnly: true,
    runsCode: true,
  },
  {
    name: "find-system-file",
    title: "Find a system's file",
    description: "Find the .asd file of a system.",
    arguments: { system: SYSTEM },
    readOnly: true,
    runsCode: true,
  },
  {
    name: "quickload",
    library: "quicklisp",
    title: "Load with Quicklisp",
    description: "Load a system with Quicklisp, downloading it if needed. Quicklisp must be loaded in the session.",
    arguments: {
      system: SYSTEM,
      verbose: flag("Also return the output of loading."),
    },
    runsCode: true,
  },
  {
    name: "quicklisp-search",
    library: "quicklisp",
    title: "Search Quicklisp",
    description: "Find Quicklisp systems whose name contains a string. Quicklisp must be loaded in the session.",
    arguments: {
      pattern: required(),
      limit: count(30, "The maximum number of names."),
    },
    readOnly: true,
    runsCode: true,
  },
  {
    name: "load-file",
    title: "Load a file",
    description: "Load a Lisp file. Returns warnings with their places, and output.",
    arguments: {
      path: required(),
      compile: flag(),
      package: PACKAGE,
    },
    runsCode: true,
  },
];

const PROFILING_TOOLS: readonly GuestTool[] = [
  {
    name: "time-execution",
    title: "Time code",
    description: "Run code once and report its time and allocation, with values and output.",
    arguments: { code: CODE, package: PACKAGE },
    runsCode: true,
  },
  {
    name: "profile-code",
    title: "Profile code",
    description:
      "Run code under the statistical profiler: where time was spent, or memory allocated. It should run for half a second or more.",
    arguments: {
      code: CODE,
      mode: choice(["cpu", "time", "alloc"], undefined, "cpu"),
      "max-samples": { ...count(1000), unlisted: true },
      "sample-interval": { type: "number", default: 0.01, unlisted: true },
      "report-type": choice(["flat", "graph"], undefined, "flat"),
      package: PACKAGE,
    },
    runsCode: true,
  },
  {
    name: "profile-functions",
    title: "Profile functions",
    description:
      "Count calls and time of functions: start with `functions`, run code, then report. reset zeroes the counts.",
    arguments: {
      action: {
        type: "string",
        required: true,
        enum: ["start", "stop", "report", "reset", "status"],
      },
      functions: { type: "array", items: { type: "string" } },
      package: PACKAGE,
    },
  },
  {
    name: "memory-report",
    title: "Report memory",
    description: "Report the memory of the image by kind of object, and garbage collection.",
    arguments: {
      verbosity: choice(["default", "detailed", "minimal"], undefined, "default"),
      "gc-first": flag(),
    },
    readOnly: true,
    runsCode: true,
  },
  {
    name: "allocation-profile",
    title: "Profile allocation",
    description: "Run code and report which functions allocated memory.",
    arguments: {
      code: CODE,
      "max-samples": { ...count(1000), unlisted: true },
      package: PACKAGE,
    },
    runsCode: true,
  },
];

export const TOOLS: readonly GuestTool[] = [
  ...NAME_TOOLS,
  ...CODE_TOOLS,
  ...ERROR_TOOLS,
  ...LOADING_TOOLS,
  ...PROFILING_TOOLS,
  ...TELOS_TOOLS,
];

export const RESOURCES: readonly LanguageResource[] = [
  {
    uriTemplate: "lisp://package/{name}",
    name: "Package",
    description: "A package of the session main: its documentation, the packages it uses, and its exported symbols",
    mimeType: "text/plain",
  },
  {
    uriTemplate: "lisp://symbol/{package}/{name}",
    name: "Symbol",
    description: "What a symbol names in the session main, as describe-symbol shows it",
    mimeType: "text/plain",
  },
];
