// Which argument of a program names what it runs.

import { expect, it } from "vitest";
import { isInterpreter, isShell, runBy } from "./runners.ts";

it.each([
  ["npx", ["-y", "notes-mcp", "--key", "k"], "notes-mcp"],
  ["node", ["--no-warnings", "server.js"], "server.js"],
  ["sh", ["start.sh"], "start.sh"],
  ["npx", ["--package", "p", "bin"], undefined],
  ["sh", ["-c", "node x"], undefined],
  ["notes-mcp", ["key"], undefined],
  ["npx", [], undefined],
])("%s %j runs %s", (program, args, run) => {
  expect(runBy(program, args)).toBe(run);
});

it("knows interpreters by their paths and versions, and shells among them", () => {
  expect(["/usr/bin/python3.11", "node", "zsh"].map(isInterpreter)).toEqual([true, true, true]);
  expect(["npx", "nodemon", "shellcheck"].map(isInterpreter)).toEqual([false, false, false]);
  expect(["/bin/bash", "python3"].map(isShell)).toEqual([true, false]);
});
