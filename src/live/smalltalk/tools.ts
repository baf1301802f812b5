// The Smalltalk tools, resources and prompts, for all engines: their names, arguments and texts for the language model.
// Each engine's guest implements the tools as operations of the same names, with the arguments in camel case.

import {
  count,
  flag,
  required,
  text,
  type ArgumentSpec,
  type GuestTool,
  type LanguagePrompt,
  type LanguageResource,
} from "../tool.ts";

const CLASS = "Name of the class, such as OrderedCollection. The class side is 'OrderedCollection class'.";

function className(): ArgumentSpec {
  return required(CLASS);
}

function selector(): ArgumentSpec {
  return required("The selector, such as do: or inject:into: or +.");
}

export const EVALUATE: GuestTool = {
  name: "evaluate-smalltalk",
  title: "Evaluate Smalltalk",
  description:
    "Evaluate Smalltalk in a persistent session. Returns the print string of the last expression and what was written " +
    "to the Transcript. Names that you assign (total := 3) are kept as variables for later calls, without a " +
    "declaration; temporaries (| x |) are not. Also takes class definitions by message and code in chunk format (!). " +
    "Long-running code can be interrupted without losing the variables and classes.",
  arguments: {
    code: required("Smalltalk: expressions separated by periods, or chunks. The value of the last one is the result."),
    "capture-time": flag("Also show how long it took."),
  },
  runsCode: true,
};

/** Same as the tool of LLM-Pharo-MCP: the result is the bare print string. */
export const EVALUATE_EXPRESSION: GuestTool = {
  name: "evaluate",
  title: "Evaluate an expression",
  description:
    "Evaluate a Smalltalk expression and return only its print string. evaluate-smalltalk also shows output, timing " +
    "and the details of errors.",
  arguments: { expression: required("Smalltalk expression to evaluate") },
  evaluates: "expression",
  runsCode: true,
};

/** The tools besides those that evaluate. */
export const TOOLS: readonly GuestTool[] = [
  {
    name: "browse-class",
    title: "Browse a class",
    description:
      "Show a class: superclasses, subclasses, instance variables, package, comment, and its methods by protocol, of " +
      "both sides. Use it before you send messages that you are not sure of.",
    arguments: { class: className() },
    readOnly: true,
  },
  {
    name: "method-source",
    title: "Method source",
    description: "Show the source of a method. If a superclass defines it, that one's source is shown and named.",
    arguments: { class: className(), selector: selector() },
    readOnly: true,
  },
  {
    name: "define-class",
    title: "Define a class",
    description:
      "Define a class, or change the definition of an existing one. Methods are added with compile-method. Variables " +
      "that are left out of the definition of an existing class are removed from it.",
    arguments: {
      name: required("Name of the class, with a capital first letter."),
      superclass: { ...text("Name of the superclass."), default: "Object" },
      "instance-variables": text("Names of the instance variables, separated by spaces."),
      "class-variables": text("Names of the class variables, separated by spaces, if the engine has them."),
      package: text("Package (category) of the class."),
      comment: text("What the class is for."),
    },
  },
  {
    name: "compile-method",
    title: "Compile a method",
    description:
      "Compile a method into a class, or replace it. Existing objects use the new one at once. A syntax error comes back " +
      "with its position, and the old method stays.",
    arguments: {
      class: className(),
      source: required("The whole source: the message pattern, then the body."),
      protocol: text("Protocol (method category), such as accessing."),
    },
  },
  {
    name: "search-classes",
    title: "Search classes",
    description: "List the classes whose names contain a string, each with its superclass and package.",
    arguments: {
      pattern: required("A part of the name, ignoring case. An empty string lists all."),
      max: count(100, "The maximum number of classes."),
    },
    readOnly: true,
  },
  {
    name: "implementors",
    title: "Implementors",
    description: "List the methods with a selector, in all classes.",
    arguments: { selector: selector() },
    readOnly: true,
  },
  {
    name: "senders",
    title: "Senders",
    description: "List the methods that send a selector, in all classes. Use it before you rename or change a method.",
    arguments: { selector: selector() },
    readOnly: true,
  },
  {
    name: "class-references",
    title: "Class references",
    description: "List the methods that refer to a class by its name.",
    arguments: { class: required("Name of the class.") },
    readOnly: true,
  },
  {
    name: "run-tests",
    title: "Run tests",
    description:
      "Run SUnit tests: of one test class, of one test method, of the test classes of a package, or of all test " +
      "classes that were defined in this session. Shows how many passed, and each failure with its reason.",
    arguments: {
      class: text("Name of a subclass of TestCase."),
      selector: text("Run only this test of the class."),
      package: text("Run the test classes of this package."),
    },
    runsCode: true,
  },
  {
    name: "list-definitions",
    title: "List definitions",
    description: "List what was defined in this session: variables with their values, classes, and methods.",
    arguments: {},
    readOnly: true,
  },
  {
    name: "describe-last-error",
    title: "Describe the last error",
    description: "Show the last error of the session again: class, message and stack, with the variables if known.",
    arguments: {},
    readOnly: true,
  },
  {
    name: "save-image",
    title: "Save the image",
    description: "Save the image of the session, with all its objects and classes, to a file.",
    arguments: { path: required("Path of the file to write, relative to the session's folder.") },
    runsCode: true,
  },
];

/** With the URIs of LLM-Pharo-MCP, whatever the engine. */
export const RESOURCES: readonly LanguageResource[] = [
  {
    uriTemplate: "pharo://system/version",
    name: "System Version",
    title: "System version",
    description: "The Smalltalk engine of the sessions and its version",
    mimeType: "text/plain",
  },
  {
    uriTemplate: "pharo://class/{className}",
    name: "Class Details",
    title: "Class",
    description: "A class: its superclass, instance variables, methods, comment and package",
    mimeType: "application/json",
  },
  {
    uriTemplate: "pharo://method/{className}/{selector}",
    name: "Method Source",
    title: "Method",
    description: "The source of a method. A / in the selector is written as %2F",
    mimeType: "text/plain",
  },
];

export const PROMPTS: readonly LanguagePrompt[] = [
  {
    name: "review-class",
    title: "Review a class",
    description: "Review a class",
    arguments: { className: { description: "The class to review", required: true } },
    about: ({ className }) => `Code review for ${className}`,
    text: ({ className }) => `Please review the class ${className}.`,
  },
  {
    name: "explain-method",
    title: "Explain a method",
    description: "Explain what a method does, and who sends it",
    arguments: {
      className: { description: "The class of the method", required: true },
      selector: { description: "The selector of the method", required: true },
    },
    text: ({ className, selector }) =>
      `Please explain the method ${selector} of the class ${className}: read its source with method-source, and look at ` +
      "its senders and at the methods that it calls. Say what it answers, what it changes, and what can go wrong.",
  },
  {
    name: "write-tests",
    title: "Write tests",
    description: "Write SUnit tests for a class",
    arguments: { className: { description: "The class to test", required: true } },
    text: ({ className }) =>
      `Please write SUnit tests for the class ${className}: look at it with browse-class and method-source, define ` +
      `${className}Test as a subclass of TestCase with define-class, add a test for each public method with ` +
      "compile-method, and run them with run-tests. Report failures that show errors in the class; do not change it.",
  },
];

export const INSTRUCTIONS: string =
  "Persistent Smalltalk sessions. Evaluate with evaluate-smalltalk: variables and classes are kept for later calls, and " +
  "errors come back with their stack without ending the session. Look at classes with browse-class, method-source, " +
  "implementors and senders before you use or change them, write them with define-class and compile-method, and test " +
  "them with run-tests. Most tools take the name of a `session`; different names are separate images. get-usage-guide " +
  "explains more.";
