// The tools of a Lisp session that look at code and at the image: what each is called, what it takes, and what the
// model is told of it. The names and arguments are those of CL-MCP-Server, so that what was written for it works here.
// The work is done in the image, by the tools-*.lisp files; those that load, time or profile are in run-tools.ts.

import type { Argument, GuestTool } from "../tool.ts";

export const PACKAGE: Argument = {
  type: "string",
  description: "Package in which names are looked up and code is read. Default: the package the session is in.",
};

const NAME: Argument = {
  type: "string",
  required: true,
  description: 'Name of the symbol, in any case; may be qualified, such as "cl:mapcar".',
};

const CLASS: Argument = {
  type: "string",
  required: true,
  description: "Name of the class, structure or condition.",
};

export const EVALUATE: GuestTool = {
  name: "evaluate-lisp",
  title: "Evaluate Common Lisp",
  description:
    "Evaluate Common Lisp code in a session that stays: definitions, variables and the current package are there for " +
    "the next call. All forms are read and evaluated in order; the values of the last one come back as `=> value` " +
    "lines, after what was printed, [stderr] and [Warning] lines. An error comes back as [ERROR] with its type, " +
    "message and [Backtrace], and the session lives on.",
  arguments: {
    code: {
      type: "string",
      required: true,
      description: "One or more forms, such as `(defun sq (x) (* x x)) (sq 5)`.",
    },
    package: {
      type: "string",
      description:
        "Package to evaluate in. Default: the one the session is in; in-package changes that for later calls.",
    },
    "capture-time": {
      type: "boolean",
      default: false,
      description: "Add a line with time, GC time and bytes allocated.",
    },
  },
  runsCode: true,
};

const ABOUT_NAMES: readonly GuestTool[] = [
  {
    name: "describe-symbol",
    title: "Describe a symbol",
    description:
      "Tell what a symbol names: its kind (function, macro, variable, class), argument list, value, documentation " +
      "and where it is defined. Call it before using a function that you are not sure of.",
    arguments: { name: NAME, package: PACKAGE },
    readOnly: true,
  },
  {
    name: "apropos-search",
    title: "Search for symbols",
    description:
      "Find symbols whose name contains a text. Without a package: what any package exports, and all that the " +
      "session's own package defines. At most 200 are listed, with the count of all.",
    arguments: {
      pattern: { type: "string", required: true, description: "Part of a name, in any case." },
      package: { type: "string", description: "Search only what is accessible in this package." },
      type: {
        type: "string",
        choices: ["function", "macro", "variable", "class", "generic-function"],
        description: "Only symbols of this kind.",
      },
    },
    readOnly: true,
  },
  {
    name: "who-calls",
    title: "Find callers",
    description:
      "Find what calls a function or uses a macro, as the compiler recorded it, with the file or `defined in this " +
      "session`. Call it before you change a function's arguments.",
    arguments: { name: NAME, package: PACKAGE },
    readOnly: true,
  },
  {
    name: "who-references",
    title: "Find references",
    description: "Find the code that reads, sets or binds a global variable, as the compiler recorded it.",
    arguments: { name: NAME, package: PACKAGE },
    readOnly: true,
  },
  {
    name: "class-info",
    title: "Describe a class",
    description:
      "Tell about a class: superclasses, subclasses, slots with types, initargs, initforms (as written; nothing is " +
      "called), readers and writers, inherited slots, default initargs.",
    arguments: { class: CLASS, package: PACKAGE },
    readOnly: true,
  },
  {
    name: "find-methods",
    title: "Find methods of a class",
    description: "List the methods specialized on a class, with their qualifiers and specializers.",
    arguments: {
      class: CLASS,
      package: PACKAGE,
      "include-inherited": {
        type: "boolean",
        default: false,
        description: "Also those specialized on its superclasses, except the standard ones.",
      },
    },
    readOnly: true,
  },
  {
    name: "list-definitions",
    title: "List definitions",
    description:
      "List what evaluations and load-file have defined in this session, by kind: functions and macros with their " +
      "argument lists, variables with their values, classes, structures, methods, conditions, types; and the names " +
      "of the systems that load-system and quickload have loaded. What (load ...) defined is not listed.",
    arguments: {
      type: {
        type: "string",
        choices: [
          ...["function", "macro", "variable", "class", "condition", "struct", "method"],
          ...["type", "setf", "compiler-macro", "system"],
        ],
        description: "Only this kind.",
      },
    },
    readOnly: true,
  },
];

const ABOUT_CODE: readonly GuestTool[] = [
  {
    name: "validate-syntax",
    title: "Check syntax",
    description:
      "Check that code can be read, without evaluating it: unclosed or extra parentheses with their place, " +
      "unfinished strings and comments, bad tokens. Call it before you write a Lisp file.",
    arguments: { code: { type: "string", required: true, description: "The code to check." } },
    readOnly: true,
  },
  {
    name: "match-paren",
    title: "Match a parenthesis",
    description:
      "Find the other parenthesis of the one at a place in code. Strings, comments and characters such as #\\( are " +
      "skipped.",
    arguments: {
      code: { type: "string", required: true, description: "The code." },
      line: { type: "integer", required: true, description: "Line of the parenthesis, from 1." },
      column: { type: "integer", required: true, description: "Column of the parenthesis, from 0." },
    },
    readOnly: true,
  },
  {
    name: "macroexpand-form",
    title: "Expand a macro",
    description: "Expand a macro form, once or until it is no macro form any more. Subforms are not expanded.",
    arguments: {
      form: { type: "string", required: true, description: "The form, such as `(when x y)`." },
      full: { type: "boolean", default: false, description: "Expand until the form is no macro call." },
      package: PACKAGE,
    },
    readOnly: true,
    runsCode: true,
  },
  {
    name: "compile-form",
    title: "Compile without running",
    description:
      "Compile code and report errors, warnings (type conflicts, undefined names) and compiler notes. The code is " +
      "not run and nothing is defined; only macros that it uses are expanded.",
    arguments: { code: { type: "string", required: true, description: "One or more forms." }, package: PACKAGE },
    readOnly: true,
    runsCode: true,
  },
];

const ABOUT_ERRORS: readonly GuestTool[] = [
  {
    name: "describe-last-error",
    title: "Describe the last error",
    description:
      "Tell about the last error of this session: type, message, the restarts it offered, and the backtrace.",
    arguments: {},
    readOnly: true,
  },
  {
    name: "get-backtrace",
    title: "Backtrace of the last error",
    description:
      "The frames of the last error, the innermost first; only your own code, none of the session's machinery.",
    arguments: { "max-frames": { type: "integer", default: 20, description: "At most so many frames; 20 are kept." } },
    readOnly: true,
  },
];

export const LOOKING_TOOLS: readonly GuestTool[] = [...ABOUT_NAMES, ...ABOUT_CODE, ...ABOUT_ERRORS];

// The tools of a Lisp session that load systems and files, and those that time and profile code: what each is called,
// what it takes, and what the model is told of it. They run the user's code, so they have a deadline, and may be tasks.

const SYSTEM: Argument = { type: "string", required: true, description: "Name of the ASDF system." };
const CODE: Argument = { type: "string", required: true, description: "One or more forms to run." };

const LOADING: readonly GuestTool[] = [
  {
    name: "load-system",
    title: "Load a system",
    description:
      "Load an ASDF system that is on this machine, compiling what needs it. For those on the network see quickload.",
    arguments: {
      "system-name": { type: "string", description: "Name of the system. Required, unless `system` is given." },
      system: { type: "string", description: "The same, under its other name." },
    },
    runsCode: true,
  },
  {
    name: "describe-system",
    title: "Describe a system",
    description: "Tell about an ASDF system: its description, author, license, file, dependencies and components.",
    arguments: { system: SYSTEM },
    readOnly: true,
    runsCode: true,
  },
  {
    name: "system-dependencies",
    title: "Dependencies of a system",
    description: "List what an ASDF system depends on, directly or in all.",
    arguments: {
      system: SYSTEM,
      transitive: { type: "boolean", default: false, description: "Also the dependencies of its dependencies." },
    },
    readOnly: true,
    runsCode: true,
  },
  {
    name: "list-local-systems",
    title: "List local systems",
    description: "List the ASDF systems that can be loaded here, with their files.",
    arguments: {},
    readOnly: true,
    runsCode: true,
  },
  {
    name: "find-system-file",
    title: "Find a system's file",
    description: "Tell in which .asd file a system is defined.",
    arguments: { system: SYSTEM },
    readOnly: true,
    runsCode: true,
  },
  {
    name: "quickload",
    title: "Load with Quicklisp",
    description:
      "Load a system with Quicklisp, fetching it where needed. Only where Quicklisp is loaded in the session.",
    arguments: {
      system: SYSTEM,
      verbose: { type: "boolean", default: false, description: "Also return what loading printed." },
    },
    runsCode: true,
  },
  {
    name: "quicklisp-search",
    title: "Search Quicklisp",
    description: "Find Quicklisp systems whose name contains a text. Only where Quicklisp is loaded in the session.",
    arguments: {
      pattern: { type: "string", required: true, description: "Part of a name, in any case." },
      limit: { type: "integer", default: 30, description: "At most so many names." },
    },
    readOnly: true,
    runsCode: true,
  },
  {
    name: "load-file",
    title: "Load a file",
    description:
      "Load a Lisp file into the session, as source or compiled first (nothing is left beside it). Warnings and what " +
      "it printed come back.",
    arguments: {
      path: { type: "string", required: true, description: "Path of the file; ~/ is your home folder." },
      compile: { type: "boolean", default: false, description: "Compile it first." },
      package: PACKAGE,
    },
    runsCode: true,
  },
];

const MEASURING: readonly GuestTool[] = [
  {
    name: "time-execution",
    title: "Time code",
    description: "Run code once and tell real time, run time, GC time and bytes allocated, with its values and output.",
    arguments: { code: CODE, package: PACKAGE },
    runsCode: true,
  },
  {
    name: "profile-code",
    title: "Profile code",
    description:
      "Run code under the statistical profiler and report in which functions the time went (or the allocation). The " +
      "code should run for at least half a second, or there are too few samples.",
    arguments: {
      code: CODE,
      mode: {
        type: "string",
        choices: ["cpu", "time", "alloc"],
        default: "cpu",
        description: "What is sampled: processor time, wall-clock time, or allocation.",
      },
      "max-samples": { type: "integer", default: 1000, description: "At most so many samples." },
      "sample-interval": { type: "number", default: 0.01, description: "Seconds between two samples." },
      "report-type": {
        type: "string",
        choices: ["flat", "graph"],
        default: "flat",
        description: "A table of functions, or the call graph too.",
      },
      package: PACKAGE,
    },
    runsCode: true,
  },
  {
    name: "profile-functions",
    title: "Profile functions",
    description:
      "Count calls and time of named functions, exactly: `start` with functions, run code with evaluate-lisp, then " +
      "`report`; `reset` sets the counts to zero, `status` says what is profiled, `stop` ends it.",
    arguments: {
      action: {
        type: "string",
        required: true,
        choices: ["start", "stop", "report", "reset", "status"],
        description: "What to do.",
      },
      functions: { type: "strings", description: "For `start`: names of the functions." },
      package: PACKAGE,
    },
  },
  {
    name: "memory-report",
    title: "Report memory",
    description: "Tell how much memory the image uses, by kind of object, and what the garbage collector did.",
    arguments: {
      verbosity: {
        type: "string",
        choices: ["default", "detailed", "minimal"],
        default: "default",
        description: "How much is told.",
      },
      "gc-first": { type: "boolean", default: false, description: "Collect all garbage before." },
    },
    readOnly: true,
    runsCode: true,
  },
  {
    name: "allocation-profile",
    title: "Profile allocation",
    description: "Run code and report which functions allocated memory, and how many bytes in all.",
    arguments: {
      code: CODE,
      "max-samples": { type: "integer", default: 1000, description: "At most so many samples." },
      package: PACKAGE,
    },
    runsCode: true,
  },
];

export const RUNNING_TOOLS: readonly GuestTool[] = [...LOADING, ...MEASURING];

// The seven tools that ask the library telos what a program is for: what each is called, what it takes, and what the
// model is told of it. They stand apart because they answer only where telos is loaded in the session.

const FEATURE: Argument = {
  type: "string",
  required: true,
  description: 'Name of the feature, in any case; "package::name" where several share it.',
};

const INTENT_NAME: Argument = {
  type: "string",
  required: true,
  description: 'Name of a function or class; "package::name" where several share it.',
};

const INTENT_PACKAGE: Argument = {
  type: "string",
  description: "Package of the name. Default: the one the session is in, then any where there is just one.",
};

export const TELOS_TOOLS: readonly GuestTool[] = [
  {
    name: "telos-list-features",
    title: "Telos: list features",
    description: "List the features that telos knows, each with its purpose and its parent.",
    arguments: { filter: { type: "string", description: "Only those whose name or purpose contains this text." } },
    readOnly: true,
  },
  {
    name: "telos-feature-intent",
    title: "Telos: intent of a feature",
    description: "Tell why a feature exists: purpose, goals, constraints, assumptions and failure modes.",
    arguments: { feature: FEATURE },
    readOnly: true,
  },
  {
    name: "telos-get-intent",
    title: "Telos: intent of a function or class",
    description: "Tell why a function or class exists: its role, purpose, feature and failure modes.",
    arguments: { name: INTENT_NAME, package: INTENT_PACKAGE },
    readOnly: true,
  },
  {
    name: "telos-intent-chain",
    title: "Telos: chain of intent",
    description: "Follow the intent of a function or class upward, from feature to feature, to the root.",
    arguments: { name: INTENT_NAME, package: INTENT_PACKAGE },
    readOnly: true,
  },
  {
    name: "telos-feature-members",
    title: "Telos: members of a feature",
    description: "List the functions, classes, structures, conditions, methods and sub-features of a feature.",
    arguments: { feature: FEATURE },
    readOnly: true,
  },
  {
    name: "telos-feature-decisions",
    title: "Telos: decisions of a feature",
    description: "List the decisions recorded for a feature: what was chosen, over what, why, by whom and when.",
    arguments: { feature: FEATURE },
    readOnly: true,
  },
  {
    name: "telos-list-decisions",
    title: "Telos: all decisions",
    description: "List the decisions recorded for all features.",
    arguments: {},
    readOnly: true,
  },
];
