// The reason why a program did not start, from what programs of several kinds write to stderr.

import { expect, it } from "vitest";
import { startFailure } from "./start-failure.ts";

const STACK = `    at main (file:///srv/dist/index.js:12:11)
    at ModuleJob.run (node:internal/modules/esm/module_job:325:25)
    at async ModuleLoader.import (node:internal/modules/esm/loader:606:24)`;

it.each([
  [
    "an exception of Node",
    `file:///srv/dist/index.js:3
  throw new Error("STRIPE_KEY is required");
        ^

Error: STRIPE_KEY is required
${STACK}

Node.js v20.20.2
`,
    "Error: STRIPE_KEY is required",
  ],
  [
    "a module that Node does not find",
    `node:internal/modules/cjs/loader:1210
  throw err;
  ^

Error: Cannot find module './nope.js'
Require stack:
- /srv/index.js
${STACK} {
  code: 'MODULE_NOT_FOUND',
  requireStack: [ '/srv/index.js' ]
}

Node.js v20.20.2
`,
    "Error: Cannot find module './nope.js'",
  ],
  [
    "an error that is caught and printed, with a cause",
    `Server error: Error: connect ECONNREFUSED 127.0.0.1:5432
${STACK} {
  code: 'ECONNREFUSED',
  [cause]: Error: no address
      at lookup (node:dns:10:2)
}
`,
    "Server error: Error: connect ECONNREFUSED 127.0.0.1:5432",
  ],
  [
    "a reason before what follows from it",
    "Starting server...\nError: OPENAI_API_KEY environment variable not set\nFatal error in main(): process exited with an error\n",
    "Error: OPENAI_API_KEY environment variable not set",
  ],
  [
    "the name of a key before a general error",
    "\u001b[31mMissing required environment variable: GITLAB_TOKEN\u001b[0m\nServer failed to start: configuration error\n",
    "Missing required environment variable: GITLAB_TOKEN",
  ],
  [
    "advice after an error without a reason",
    "Error in startup\nPlease set SLACK_BOT_TOKEN and SLACK_TEAM_ID\nExiting\n",
    "Please set SLACK_BOT_TOKEN and SLACK_TEAM_ID",
  ],
  [
    "an error before the usage",
    `Error: GITHUB_PERSONAL_ACCESS_TOKEN not set
Usage:
  server stdio [flags]

Flags:
  -h, --help            help for stdio
      --toolsets ENTRY  required toolsets; an error if one is unknown

`,
    "Error: GITHUB_PERSONAL_ACCESS_TOKEN not set",
  ],
  [
    "an error after the usage",
    `usage: server [-h] --token TOKEN [--required-scope SCOPE]
server: error: the following arguments are required: --token
`,
    "server: error: the following arguments are required: --token",
  ],
  [
    "an argument after the list of options",
    `Options:
  --help   Show help                          [boolean]
  --token  API token, must be set    [string] [required]

Missing required argument: token
`,
    "Missing required argument: token",
  ],
  [
    "the last of a chain of exceptions in Python",
    `Traceback (most recent call last):
  File "/srv/server.py", line 4, in main
    key = os.environ["API_KEY"]
          ~~~~~~~~~~^^^^^^^^^^^
  File "<frozen os>", line 679, in __getitem__
KeyError: 'API_KEY'

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/srv/server.py", line 8, in <module>
    main()
  File "/srv/server.py", line 6, in main
    raise RuntimeError("Error: API_KEY is required and must be set")
RuntimeError: Set API_KEY before you start the server
`,
    "RuntimeError: Set API_KEY before you start the server",
  ],
  [
    "a group of exceptions in Python",
    `  + Exception Group Traceback (most recent call last):
  |   File "/srv/server.py", line 7, in <module>
  |     asyncio.run(main())
  |   File "/usr/lib/python3.11/asyncio/taskgroups.py", line 145, in __aexit__
  |     raise me from None
  | ExceptionGroup: unhandled errors in a TaskGroup (1 sub-exception)
  +-+---------------- 1 ----------------
    | Traceback (most recent call last):
    |   File "/srv/server.py", line 4, in one
    |     raise ValueError("no credentials: run \`server login\` first")
    | ValueError: no credentials: run \`server login\` first
    +------------------------------------
`,
    "ValueError: no credentials: run `server login` first",
  ],
  [
    "settings that pydantic refuses",
    `Traceback (most recent call last):
  File "/srv/server.py", line 3, in <module>
    settings = Settings()
               ^^^^^^^^^^
pydantic_core._pydantic_core.ValidationError: 1 validation error for Settings
api_key
  Field required [type=missing, input_value={}, input_type=dict]
    For further information visit https://errors.pydantic.dev/2.9/v/missing
`,
    "pydantic_core._pydantic_core.ValidationError: 1 validation error for Settings api_key Field required [type=missing, input_value={}, input_type=dict]",
  ],
  [
    "an environment that zod refuses",
    `Invalid environment: [
  {
    "code": "invalid_type",
    "path": [
      "LINEAR_API_KEY"
    ],
    "message": "Required"
  }
]
`,
    'Invalid environment: [ { "code": "invalid_type", "path": [ "LINEAR_API_KEY" ], "message": "Required" } ]',
  ],
  [
    "a package that npm does not find",
    `npm warn Unknown user config "x". This will stop working in the next major version of npm.
npm error code E404
npm error 404 Not Found - GET https://registry.example/no-such-server
npm error 404
npm error 404  The requested resource 'no-such-server@*' could not be found
npm error A complete log of this run can be found in: /home/me/.npm/_logs/debug-0.log
`,
    "npm error 404 Not Found - GET https://registry.example/no-such-server",
  ],
  [
    "a package that uvx does not find",
    `  \u00d7 No solution found when resolving tool dependencies:
  \u2570\u2500\u25b6 Because nope was not found in the package registry and you require nope, we can conclude that your requirements are unsatisfiable.
`,
    "\u00d7 No solution found when resolving tool dependencies: \u2570\u2500\u25b6 Because nope was not found in the package registry and you require nope, we can conclude that your requirements are unsatisfiable.",
  ],
  [
    "an error and its cause",
    "error: Failed to spawn: `notes-mcp`\n  Caused by: No such file or directory (os error 2)\n",
    "error: Failed to spawn: `notes-mcp` Caused by: No such file or directory (os error 2)",
  ],
  [
    "a panic of Rust",
    "thread 'main' panicked at src/main.rs:4:5:\nTOKEN_FILE is not readable\nnote: run with `RUST_BACKTRACE=1` environment variable to display a backtrace\n",
    "thread 'main' panicked at src/main.rs:4:5: TOKEN_FILE is not readable",
  ],
  [
    "a panic of Go",
    "panic: DATABASE_URL is required\n\ngoroutine 1 [running]:\nmain.main()\n\t/srv/main.go:5 +0x1c\nexit status 2\n",
    "panic: DATABASE_URL is required",
  ],
  [
    "an error after warnings",
    "(node:12) Warning: invalid option; it must be a string\n(node:12) [DEP0040] DeprecationWarning: required module\nlistening...\nconnection lost\n",
    "connection lost",
  ],
  ["a line that says nothing", "hello\nbye\n", "bye"],
  ["nothing", "\n", ""],
])("the reason of a failed start is the line that says why: %s", (_, stderr, reason) => {
  expect(startFailure(stderr)).toBe(reason);
});

it("hides credentials that are not in the environment, in as many lines as there are", () => {
  expect(startFailure("Error: cannot connect to https://ann:pw1@db.example/x")).not.toContain("pw1");
  expect(startFailure("Error: invalid header Authorization: Bearer abc.def")).not.toContain("abc");
  expect(startFailure(`${"x\n".repeat(200_000)}Error: it is missing`)).toBe("Error: it is missing");
});
