// JavaScript and TypeScript as a live language: its tools, and the texts for the language model. The guest's own
// modules are not loaded here; they run in the session's process.

import type { GuestTool, Language } from "../tool.ts";
import { jsRuntime, type JavaScriptGuestOptions } from "./runtime.ts";

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

const CODE = { type: "string", required: true } as const;

export const EVALUATE: GuestTool = {
  name: "evaluate-js",
  title: "Evaluate JavaScript",
  description:
    "Evaluate JavaScript or TypeScript in a persistent Node.js session. Returns the value of the last statement, " +
    "printed as Node prints it, and everything written to stdout and stderr. Variables, functions, classes and imports " +
    "are kept for later calls and may be declared again. Top-level await, import, import(), require and all globals of " +
    "Node work; _ is the last value and _error the last error. Long-running code can be interrupted without losing the " +
    "variables.",
  arguments: {
    code: {
      ...CODE,
      description: "JavaScript or TypeScript, any number of statements. The value of the last one is the result.",
    },
    "capture-time": { type: "boolean", description: "Also show how long it took.", default: false },
  },
  runsCode: true,
};

export const TOOLS: readonly GuestTool[] = [
  {
    name: "list-variables",
    title: "List variables",
    description:
      "List the variables, functions, classes and imports of the session, each with its type and a short preview. Use " +
      "it to see what exists before you rely on it or define it again.",
    arguments: {
      pattern: { type: "string", description: "Only names that contain this string, ignoring case." },
      max: { type: "integer", description: "The maximum number of names.", default: 200 },
    },
    readOnly: true,
  },
  {
    name: "get-source",
    title: "Get source",
    description:
      "Show the source of a function or class as last defined in the session, or of one in a loaded module, by its " +
      "name or by a path such as Point.prototype.length or fs.readFileSync.",
    arguments: { name: { type: "string", required: true, description: "Name of the function or class, or a path." } },
    readOnly: true,
  },
  {
    name: "get-stack",
    title: "Get stack",
    description:
      "Show the stack of the running evaluation, innermost frame first, without stopping it. Works while the session " +
      "is busy. Use it if something takes long, to see whether it is in a loop and where.",
    arguments: {},
    readOnly: true,
    whileBusy: true,
  },
  {
    name: "last-error",
    title: "Last error",
    description: "Show the last error of the session again: type, message, causes and stack.",
    arguments: {},
    readOnly: true,
    whileBusy: true,
  },
  {
    name: "profile-code",
    title: "Profile code",
    description:
      "Evaluate code under the CPU profiler and list the functions in which the time was spent, the most expensive " +
      "first, with the value of the code. The code should run for at least a few tens of milliseconds.",
    arguments: {
      code: { ...CODE, description: "The code to run." },
      interval: { type: "integer", description: "Microseconds between two samples.", default: 500 },
    },
    runsCode: true,
  },
  {
    name: "heap-report",
    title: "Heap report",
    description:
      "Show how much memory the session uses. With code: evaluate it, collect garbage, and show how much the heap has " +
      "grown and which functions allocated what is still in use. Use that to find a leak.",
    arguments: {
      code: { type: "string", description: "The code to run and measure. Without it, only the usage is shown." },
      gc: { type: "boolean", description: "Collect garbage first.", default: false },
    },
    runsCode: true,
  },
  {
    name: "check-syntax",
    title: "Check syntax",
    description:
      "Parse JavaScript or TypeScript without running it. Shows what it declares, or the line and column of the first " +
      "error. Types are not checked.",
    arguments: { code: { ...CODE, description: "The code to parse." } },
    readOnly: true,
  },
];

const INSTRUCTIONS =
  "Persistent JavaScript and TypeScript sessions, each in its own Node.js process. evaluate-js runs code and keeps its " +
  "declarations. get-usage-guide explains the rest.";

const GUIDE = `# JavaScript sessions

\`evaluate-js\` runs JavaScript or TypeScript in a Node.js process that keeps running: later calls see what earlier calls
declared.

## What works
- The result is the value of the last statement, printed as Node prints it. A declaration has no value.
- Everything may be declared again, in any form: \`const x = 1\`, later \`let x = 2\` or \`function x() {}\`. A \`const\` can be
  assigned to as well. Functions that use the name see the new value.
- \`{a: 1}\` is an object. \`_\` is the last value, \`_error\` the last error, unless you declare those names yourself.
- \`await\` at the top level, \`for await\`, static \`import\`, \`import()\` and \`require\` work. Relative paths start at the
  working directory of the session. The built-in modules are global: \`fs.readdirSync(".")\`, \`path.join("a", "b")\`.
- A module is loaded once. After the file has changed, \`import("./file.ts?2")\` loads it again (use a new query each
  time; the files that it imports are not reloaded). For \`require\`, first
  \`delete require.cache[require.resolve("./file.cjs")]\`.
- TypeScript: types are removed and never checked. \`import("./file.ts")\` works too.
- \`console.log\` and everything else written to stdout or stderr is part of the result.

\`\`\`js
const { readFile } = require("node:fs/promises");
const text = await readFile("package.json", "utf8");
JSON.parse(text).name
\`\`\`

## Errors
An error comes back with its type, its message, its causes and your own stack frames. \`<eval 3>:2:7\` is line 2, column 7
of the third piece of code in this session; the column is left out if removed types make it uncertain. \`last-error\` shows
the error again. An error outside an evaluation (in a timer, or in a promise that is not awaited) does not end the
session; it is reported with the next result.

## Long-running code
- An evaluation has a time limit (30 s, or \`timeout\`). When it is reached, or the call is cancelled, the code is stopped
  and all variables are kept. This works for busy loops (in timers and promises too), for slow regular expressions, and
  for code that waits.
- Waiting code is abandoned: what follows its top-level \`await\` does not run. Timers and async functions that it started
  continue.
- Native code that blocks (\`execSync\`, very large array operations) cannot be stopped. Then the process is ended, the
  variables are lost, and the result reports this. The same happens when the memory limit is reached.
- \`get-stack\` shows where a running evaluation is, without stopping it.

## Looking around
- \`list-variables\` lists what you have defined. \`get-source\` shows a function or class as it is now.
- \`check-syntax\` parses code without running it.
- \`profile-code\` shows where the time goes. \`heap-report\` shows how much memory is used, and with \`code\` what stays
  allocated.

## Security
A session is not a sandbox: the code can do everything that the user who started the server can do.
`;
