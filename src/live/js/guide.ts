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
