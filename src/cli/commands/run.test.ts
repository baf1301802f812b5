// Command lines of `catenary run` that are wrong: refused in one sentence, before anything is started.

import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { runCommand } from "./run.ts";

let said = "";
beforeEach(() => {
  said = "";
  vi.spyOn(process.stderr, "write").mockImplementation((text) => (said += String(text)) !== "");
});
afterEach(() => {
  vi.restoreAllMocks();
});

describe("run", () => {
  it.each([
    [[], 1, "run needs a command: catenary run -- COMMAND ARGS..."],
    [["--"], 1, "run needs a command"],
    [["node", "server.js"], 1, "so that its flags are its own: catenary run -- node server.js"],
    [["--", "https://example.com/mcp"], 1, "https://example.com/mcp is a URL, and run starts a command"],
    [["--share", "none", "--", "node"], 1, "--share none is not known; there are shared, per-session"],
    [["--revision", "1", "--", "node"], 1, "--revision: "],
    [["--env", "X", "--", "node"], 1, "--env X is no variable: write KEY=VALUE"],
    [["--path", "/x", "--", "node"], 1, "--path goes with --http HOST:PORT"],
    [["--http", ":70000", "--", "node"], 1, "a port is a number"],
    [["--shared", "--", "node"], 1, "There is no option --shared; did you mean --share?"],
    [["--http", ":0", "--", "catenary-no-such-command"], 2, "there is no command of that name on the PATH"],
    [["--http", ":0", "--cwd", "/no/such", "--", "node"], 2, "its folder /no/such does not exist"],
  ])("%j ends with %i", async (args, code, words) => {
    expect(await runCommand.run(args)).toBe(code);
    expect(said).toContain(words);
    expect(said.trimEnd()).not.toContain("\n");
  });
});
