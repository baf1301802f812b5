// The tools of a JavaScript session, in words for a model. The guest does the work (see controller); how long it may
// take, and in which session, is asked for by arguments that all tools get elsewhere.

import type { GuestTool } from "../tool.ts";

const CODE = { type: "string", required: true } as const;

export const EVALUATE: GuestTool = {
  name: "evaluate-js",
  title: "Evaluate JavaScript",
  description:
    "Evaluate JavaScript or TypeScript in a persistent Node.js session and return the value of the last statement, " +
    "printed as Node prints it, with everything that was written to stdout and stderr. Variables, functions, classes " +
    "and imports stay for later calls and may be declared again. Top-level await, import, import(), require and all " +
    "globals of Node work; _ is the last value and _error the last error. Long work can be interrupted and the " +
    "variables are kept.",
  arguments: {
    code: { ...CODE, description: "JavaScript or TypeScript, any number of statements. The last value is the result." },
    "capture-time": { type: "boolean", description: "Also say how long it took.", default: false },
  },
  runsCode: true,
};

export const TOOLS: readonly GuestTool[] = [
  {
    name: "list-variables",
    title: "List variables",
    description:
      "List the variables, functions, classes and imports that were made in the session: name, type and a short " +
      "preview of each. Use it to see what is there before you rely on it or define it again.",
    arguments: {
      pattern: { type: "string", description: "Only names that contain this text; case does not matter." },
      max: { type: "integer", description: "At most so many.", default: 200 },
    },
    readOnly: true,
  },
  {
    name: "get-source",
    title: "Get source",
    description:
      "Show the source of a function or class as it was last defined in the session, or of one of a module that was " +
      "loaded, by its name or by a path such as Point.prototype.length or fs.readFileSync.",
    arguments: { name: { type: "string", required: true, description: "Name of the function or class, or a path." } },
    readOnly: true,
  },
  {
    name: "get-stack",
    title: "Get stack",
    description:
      "Show where the evaluation that is running now stands: its stack, innermost first, without stopping it. Works " +
      "while the session is busy. Use it when something takes long, to see whether it is a loop and where.",
    arguments: {},
    readOnly: true,
    atOnce: true,
  },
  {
    name: "last-error",
    title: "Last error",
    description: "Show the last error of the session once more: type, message, causes and stack.",
    arguments: {},
    readOnly: true,
    atOnce: true,
  },
  {
    name: "profile-code",
    title: "Profile code",
    description:
      "Evaluate code in the session under the CPU profiler and list the functions in which the time was spent, the " +
      "most expensive first, with the value of the code. The code should run for at least some tens of milliseconds.",
    arguments: {
      code: { ...CODE, description: "What to run." },
      interval: { type: "integer", description: "Microseconds between two samples.", default: 500 },
    },
    runsCode: true,
  },
  {
    name: "heap-report",
    title: "Heap report",
    description:
      "Say how much memory the session uses. With code: evaluate it, collect garbage, and say by how much the heap has " +
      "grown and which functions allocated what is still held; use that to find a leak.",
    arguments: {
      code: { type: "string", description: "What to run and measure. Without it, only the usage is told." },
      gc: { type: "boolean", description: "Collect garbage first.", default: false },
    },
    runsCode: true,
  },
  {
    name: "check-syntax",
    title: "Check syntax",
    description:
      "Parse JavaScript or TypeScript without running it. Says what it declares, or the line and column of the first " +
      "fault. Types are not checked.",
    arguments: { code: { ...CODE, description: "The text to parse." } },
    readOnly: true,
  },
];
