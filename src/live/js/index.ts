// The tools of a JavaScript session, in words for a model. The guest does the work (see controller); how long it may
// take, and in which session, is asked for by arguments that all tools get elsewhere.

import type { GuestTool, Language } from "../tool.ts";
import { jsRuntime, type JavaScriptGuestOptions } from "./runtime.ts";

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

// What get-usage-guide says of JavaScript sessions, for a model that is about to use one.

export const INSTRUCTIONS: string =
  "Persistent JavaScript and TypeScript sessions, each a Node.js process of its own. evaluate-js runs code; what it " +
  "declares stays. get-usage-guide tells the rest.";

export const GUIDE: string = `# JavaScript sessions

\`evaluate-js\` runs JavaScript or TypeScript in a Node.js process that stays: what one call declares, the next one has.

## What works
- The result is the value of the last statement, printed as Node prints it. A declaration has no value.
- Everything may be declared again, in any way: \`const x = 1\`, later \`let x = 2\` or \`function x() {}\`. A \`const\` can be
  assigned to as well. Functions that use the name see the new value.
- \`{a: 1}\` is an object. \`_\` is the last value, \`_error\` the last error, unless you declare those names yourself.
- \`await\` at the top level, \`for await\`, static \`import\`, \`import()\` and \`require\`. Relative paths begin at the
  working directory of the session. The built-in modules are there by name: \`fs.readdirSync(".")\`, \`path.join("a", "b")\`.
- A file is read once: when it has changed, \`import("./file.ts?2")\` reads it again (each time with something new behind
  the \`?\`; not the files that it imports itself). For \`require\`: first
  \`delete require.cache[require.resolve("./file.cjs")]\`.
- TypeScript: types are taken out and never checked. \`import("./file.ts")\` works too.
- \`console.log\` and everything else that goes to stdout or stderr is part of the answer.

\`\`\`js
const { readFile } = require("node:fs/promises");
const text = await readFile("package.json", "utf8");
JSON.parse(text).name
\`\`\`

## Errors
An error is answered with its type, its message, its causes and your own frames. \`<eval 3>:2:7\` is line 2, column 7 of
the third piece of code of this session; the column is left out where types that were taken out have moved it.
\`last-error\` shows it again. What fails outside of an evaluation (a timer, a promise that nobody awaits) does not end
the session; it is told with the next answer.

## Long work
- An evaluation has a time limit (30 s, or \`timeout\`). When it is over, or the call is cancelled, the code is stopped
  where it is and all variables are kept: busy loops, also in timers and promises, slow regular expressions, waiting.
- Code that waits is abandoned: what stands behind its \`await\` at the top level is not run any more. Timers and async
  functions that were started go on by themselves.
- What cannot be stopped is native code that blocks (\`execSync\`, very large array operations). Then the process is
  ended and the variables are lost; the answer says so. The same is true when the memory limit is reached.
- \`get-stack\` shows where a running evaluation stands without stopping it.

## Looking around
- \`list-variables\`: what you have made. \`get-source\`: how a function or class looks now.
- \`check-syntax\`: whether a text can be read, without running it.
- \`profile-code\`: where the time goes. \`heap-report\`: how much memory is used, and with \`code\` what it leaves behind.

## What it is not
A session is no sandbox: the code may do whatever the user who started the server may do.
`;

// JavaScript and TypeScript as a language of live sessions. What runs in the session's own process (guest and below) is
// not loaded here.

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
