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
