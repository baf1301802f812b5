// Wrong command lines of `catenary run` are refused in one sentence before anything is started; the names of programs.

import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { programName, runCommand } from "./run.ts";

let stderr = "";
beforeEach(() => {
  stderr = "";
  vi.spyOn(process.stderr, "write").mockImplementation((text) => (stderr += String(text)) !== "");
});
afterEach(() => {
  vi.restoreAllMocks();
});

it.each([
  [[], 1, "run needs a command or a URL: catenary run -- COMMAND ARGS..."],
  [["--"], 1, "run needs a command"],
  [["-y", "node", "server.js"], 1, "There is no option -y; catenary run --help lists the options"],
  [["--http", ":0", "catenary-no-such-command", "--json"], 2, "there is no command of that name on the PATH"],
  [["--", "https://user:pw@example.com/mcp"], 1, "The URL contains a user name or password"],
  [["--share", "none", "--", "node"], 1, "--share none is not valid; write one of shared, per-session"],
  [["--revision", "1", "--", "node"], 1, "--revision: "],
  [["--env", "X", "--", "node"], 1, "--env X is not a variable: write KEY=VALUE"],
  [["--path", "/x", "--", "node"], 1, "--path needs --http HOST:PORT"],
  [["--require-token", "--", "node"], 1, "--require-token needs --http HOST:PORT"],
  [["--http", ":70000", "--", "node"], 1, "the port must be from 0"],
  [["--shared", "--", "node"], 1, "There is no option --shared; did you mean --share?"],
  [["--http", ":0", "--", "catenary-no-such-command"], 2, "there is no command of that name on the PATH"],
  [["--http", ":0", "--cwd", "/no/such", "--", "node"], 2, "its folder /no/such does not exist"],
])("run: %j ends with %i", async (args, code, message) => {
  expect(await runCommand.run(args)).toBe(code);
  expect(stderr).toContain(message);
  expect(stderr.trimEnd()).not.toContain("\n");
});

it.each([
  ["notes-mcp", "npx", ["-y", "@me/notes-mcp@1.2"]],
  ["server", "node", ["server.js"]],
  ["server", "/usr/bin/node", ["--enable-source-maps", "./a/server.mjs", "-x"]],
  ["my-server", "my-server", ["--stdio"]],
  ["node", "node", []],
  ["sh", "sh", ["-c", "exec node $1"]],
  ["node", "node", ["--api-key", "secret", "server.js"]],
])("a program is called %s", (name, command, args) => {
  expect(programName({ command, args })).toBe(name);
});
