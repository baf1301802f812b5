// The tools of a Lisp session: their names, arguments and descriptions. The names and arguments are those of
// CL-MCP-Server, so that prompts written for it work here. The tools-*.lisp files implement the tools in the image.

import { choice, count, flag, required, text, type GuestTool, type LanguageResource } from "../tool.ts";

const PACKAGE = text("Package for reading code and looking up names. Default: the current package of the session.");

const NAME = required('Name of the symbol, case-insensitive; may be qualified, such as "cl:mapcar".');

const CLASS = required("Name of the class, structure or condition.");

export const EVALUATE: GuestTool = {
  name: "evaluate-lisp",
  title: "Evaluate Common Lisp",
  description:
    "Evaluate Common Lisp code in a persistent session: definitions, variables and the current package are kept for " +
    "later calls. The forms are read and evaluated in order; the values of the last one come back as `=> value` lines, " +
    "after the output and the [stderr] and [Warning] lines. An error comes back as [ERROR] with its type, message and " +
    "[Backtrace], and the session continues.",
  arguments: {
    code: required("One or more forms, such as `(defun sq (x) (* x x)) (sq 5)`."),
    package: text(
      "Package to evaluate in, for this call. Default: the current package of the session, which in-package changes.",
    ),
    "capture-time": flag("Add a line with time, GC time and bytes allocated."),
  },
  runsCode: true,
};

const NAME_TOOLS: readonly GuestTool[] = [
  {
    name: "describe-symbol",
    title: "Describe a symbol",
    description:
      "Describe what a symbol names: its kind (function, macro, variable, class), argument list, value, documentation " +
      "and where it is defined. Call it before you use a function that you are not sure of.",
    arguments: { name: NAME, package: PACKAGE },
    readOnly: true,
  },
  {
    name: "apropos-search",
    title: "Search for symbols",
    description:
      "Find symbols whose name contains a string. Without a package: exported symbols of all packages, and all symbols " +
      "of the session's current package. At most 200 are listed, with the total count.",
    arguments: {
      pattern: required("Part of a name, case-insensitive."),
      package: text("Search only the symbols accessible in this package."),
      type: choice(["function", "macro", "variable", "class", "generic-function"], "Only symbols of this kind."),
    },
    readOnly: true,
  },
  {
    name: "who-calls",
    title: "Find callers",
    description:
      "Find the callers of a function or the uses of a macro, as recorded by the compiler, each with its file or " +
      "`defined in this session`. Call it before you change a function's arguments.",
    arguments: { name: NAME, package: PACKAGE },
    readOnly: true,
  },
  {
    name: "who-references",
    title: "Find references",
    description: "Find the code that reads, sets or binds a global variable, as recorded by the compiler.",
    arguments: { name: NAME, package: PACKAGE },
    readOnly: true,
  },
  {
    name: "class-info",
    title: "Describe a class",
    description:
      "Describe a class: superclasses, subclasses, slots with types, initargs, initforms (as written, not evaluated), " +
      "readers and writers, inherited slots, default initargs.",
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
      "include-inherited": flag("Also list methods specialized on its superclasses, except the standard ones."),
    },
    readOnly: true,
  },
  {
    name: "get-source",
    title: "Get source",
    description:
      "Show the text of a definition: as it was last evaluated in the session, or as its file has it, with file and line.",
    arguments: { name: NAME, package: PACKAGE },
    readOnly: true,
  },
  {
    name: "list-definitions",
    title: "List definitions",
    description:
      "List what evaluations and load-file have defined in this session, by kind: functions and macros with their " +
      "argument lists, variables with their values, classes, structures, methods, conditions, types; and the systems " +
      "that load-system and quickload have loaded. Definitions made by (load ...) are not listed.",
    arguments: {
      type: {
        type: "string",
        enum: [
          ...["function", "macro", "variable", "class", "condition", "struct", "method"],
          ...["type", "setf", "compiler-macro", "system"],
        ],
        description: "Only definitions of this kind.",
      },
    },
    readOnly: true,
  },
];

const CODE_TOOLS: readonly GuestTool[] = [
  {
    name: "validate-syntax",
    title: "Check syntax",
    description:
      "Check that code can be read, without evaluating it: unclosed or extra parentheses with their position, " +
      "unterminated strings and comments, bad tokens. Call it before you write a Lisp file.",
    arguments: { code: required("The code to check.") },
    readOnly: true,
  },
  {
    name: "match-paren",
    title: "Match a parenthesis",
    description:
      "Find the parenthesis that matches the one at a position. Parentheses in strings, comments and characters such " +
      "as #\\( are skipped.",
    arguments: {
      code: required("The code."),
      line: { type: "integer", required: true, description: "Line of the parenthesis, from 1." },
      column: { type: "integer", required: true, description: "Column of the parenthesis, from 0." },
    },
    readOnly: true,
  },
  {
    name: "macroexpand-form",
    title: "Expand a macro",
    description: "Expand a macro form, once or until it is no longer a macro form. Subforms are not expanded.",
    arguments: {
      form: required("The form, such as `(when x y)`."),
      full: flag("Expand until the form is not a macro form."),
      package: PACKAGE,
    },
    readOnly: true,
    runsCode: true,
  },
  {
    name: "compile-form",
    title: "Compile without running",
    description:
      "Compile code and report errors, warnings (type conflicts, undefined names) and compiler notes. The code does " +
      "not run and nothing is defined; only its macros are expanded.",
    arguments: { code: required("One or more forms."), package: PACKAGE },
    readOnly: true,
    runsCode: true,
  },
];

const ERROR_TOOLS: readonly GuestTool[] = [
  {
    name: "describe-last-error",
    title: "Describe the last error",
    description:
      "Describe the last error of this session: type, message, the restarts that were offered, and the backtrace.",
    arguments: {},
    readOnly: true,
  },
  {
    name: "get-backtrace",
    title: "Backtrace of the last error",
    description: "Show the frames of the last error, innermost first: only those of your own code, not of the session.",
    arguments: {
      "max-frames": count(20, "The maximum number of frames, at most 20."),
    },
    readOnly: true,
  },
  {
    name: "get-stack",
    title: "Get stack",
    description:
      "Show where the running evaluation is, with its variables, without stopping it. Works while the session is busy.",
    arguments: {},
    readOnly: true,
    whileBusy: true,
  },
];

const SYSTEM = required("Name of the ASDF system.");
const CODE = required("One or more forms to run.");

const LOADING_TOOLS: readonly GuestTool[] = [
  {
    name: "load-system",
    title: "Load a system",
    description:
      "Load an ASDF system from this machine or the session's folder, compiling it if needed, and report the compiler's warnings with file and line.",
    arguments: {
      "system-name": text("Name of the system. Required, unless `system` is given."),
      system: text("Another name for `system-name`."),
    },
    runsCode: true,
  },
  {
    name: "run-tests",
    title: "Run tests",
    description:
      "Run the tests of an ASDF system, or one suite or test of a loaded framework (FiveAM, Parachute, Rove). Returns the " +
      "counts, and each failure with its reason.",
    arguments: {
      system: text("Name of the system whose tests to run; it is loaded first."),
      suite: text("Instead of a system: name of a suite or test."),
      package: PACKAGE,
    },
    runsCode: true,
  },
  {
    name: "describe-system",
    title: "Describe a system",
    description: "Describe an ASDF system: its description, author, license, file, dependencies and components.",
    arguments: { system: SYSTEM },
    readOnly: true,
    runsCode: true,
  },
  {
    name: "system-dependencies",
    title: "Dependencies of a system",
    description: "List what an ASDF system depends on, directly or transitively.",
    arguments: {
      system: SYSTEM,
      transitive: flag("Also list the dependencies of its dependencies."),
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
    description: "Find the .asd file that defines a system.",
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
      pattern: required("Part of a name, case-insensitive."),
      limit: count(30, "The maximum number of names."),
    },
    readOnly: true,
    runsCode: true,
  },
  {
    name: "load-file",
    title: "Load a file",
    description:
      "Load a Lisp file into the session, as source or compiled first (the compiled file is deleted afterwards). " +
      "Returns warnings and output.",
    arguments: {
      path: required("Path of the file; ~/ is your home folder."),
      compile: flag("Compile it first."),
      package: PACKAGE,
    },
    runsCode: true,
  },
];

const PROFILING_TOOLS: readonly GuestTool[] = [
  {
    name: "time-execution",
    title: "Time code",
    description:
      "Run code once and report real time, run time, GC time and bytes allocated, with its values and output.",
    arguments: { code: CODE, package: PACKAGE },
    runsCode: true,
  },
  {
    name: "profile-code",
    title: "Profile code",
    description:
      "Run code under the statistical profiler and report the functions in which time was spent or memory allocated. " +
      "The code should run for at least half a second, or there are too few samples.",
    arguments: {
      code: CODE,
      mode: choice(["cpu", "time", "alloc"], "What to sample: processor time, wall-clock time, or allocation.", "cpu"),
      "max-samples": count(1000, "The maximum number of samples."),
      "sample-interval": { type: "number", default: 0.01, description: "Seconds between two samples." },
      "report-type": choice(["flat", "graph"], "A table of functions, or also the call graph.", "flat"),
      package: PACKAGE,
    },
    runsCode: true,
  },
  {
    name: "profile-functions",
    title: "Profile functions",
    description:
      "Count the calls and time of named functions exactly: `start` with functions, run code with evaluate-lisp, then " +
      "`report`. `reset` sets the counts to zero, `status` lists the profiled functions, `stop` ends the profiling.",
    arguments: {
      action: {
        type: "string",
        required: true,
        enum: ["start", "stop", "report", "reset", "status"],
        description: "What to do.",
      },
      functions: { type: "array", items: { type: "string" }, description: "For `start`: names of the functions." },
      package: PACKAGE,
    },
  },
  {
    name: "memory-report",
    title: "Report memory",
    description: "Report how much memory the image uses, by kind of object, and the work of the garbage collector.",
    arguments: {
      verbosity: choice(["default", "detailed", "minimal"], "How much to report.", "default"),
      "gc-first": flag("Run a full garbage collection first."),
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
      "max-samples": count(1000, "The maximum number of samples."),
      package: PACKAGE,
    },
    runsCode: true,
  },
];

// The telos tools work only if the library telos is loaded in the session.

const FEATURE = required('Name of the feature, case-insensitive; "package::name" if several share it.');

const INTENT_NAME = required('Name of a function or class; "package::name" if several share it.');

const INTENT_PACKAGE = text(
  "Package of the name. Default: the current package of the session, then any package if only one has it.",
);

const TELOS_TOOLS: readonly GuestTool[] = [
  {
    name: "telos-list-features",
    library: "telos",
    title: "Telos: list features",
    description: "List the features that telos knows, each with its purpose and its parent.",
    arguments: { filter: text("Only those whose name or purpose contains this string.") },
    readOnly: true,
  },
  {
    name: "telos-feature-intent",
    library: "telos",
    title: "Telos: intent of a feature",
    description: "Explain why a feature exists: purpose, goals, constraints, assumptions and failure modes.",
    arguments: { feature: FEATURE },
    readOnly: true,
  },
  {
    name: "telos-get-intent",
    library: "telos",
    title: "Telos: intent of a function or class",
    description: "Explain why a function or class exists: its role, purpose, feature and failure modes.",
    arguments: { name: INTENT_NAME, package: INTENT_PACKAGE },
    readOnly: true,
  },
  {
    name: "telos-intent-chain",
    library: "telos",
    title: "Telos: chain of intent",
    description: "Follow the intent of a function or class upward, from feature to feature, to the root.",
    arguments: { name: INTENT_NAME, package: INTENT_PACKAGE },
    readOnly: true,
  },
  {
    name: "telos-feature-members",
    library: "telos",
    title: "Telos: members of a feature",
    description: "List the functions, classes, structures, conditions, methods and sub-features of a feature.",
    arguments: { feature: FEATURE },
    readOnly: true,
  },
  {
    name: "telos-feature-decisions",
    library: "telos",
    title: "Telos: decisions of a feature",
    description: "List the decisions recorded for a feature: what was chosen, over what, why, by whom and when.",
    arguments: { feature: FEATURE },
    readOnly: true,
  },
  {
    name: "telos-list-decisions",
    library: "telos",
    title: "Telos: all decisions",
    description: "List the decisions recorded for all features.",
    arguments: {},
    readOnly: true,
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
