// Parsing of flags, and the error for each mistake.

import { describe, expect, it } from "vitest";
import { UsageError } from "../command.ts";
import { parseFlags } from "./target.ts";

const FLAGS = {
  http: { type: "string" },
  path: { type: "string" },
  "allow-host": { type: "string", multiple: true },
  json: { type: "boolean" },
} as const;

const parsed = (...args: readonly string[]): unknown => parseFlags("serve", args, FLAGS, { path: "a path" });

describe("a command line", () => {
  it("is parsed", () => {
    expect(parsed("a.js", "--path", "/x", "--allow-host", "a", "--allow-host=b", "--json", "--", "--c")).toMatchObject({
      positionals: ["a.js", "--c"],
      values: { path: "/x", "allow-host": ["a", "b"], json: true },
    });
    expect(parsed("--path=--odd")).toMatchObject({ values: { path: "--odd" } });
    expect(parsed()).toMatchObject({ positionals: [], values: {} });
  });

  it.each([
    [["--pat", "/x"], "There is no option --pat; did you mean --path?"],
    [["--allow-hosts", "a"], "There is no option --allow-hosts; did you mean --allow-host?"],
    [["--allow"], "There is no option --allow; did you mean --allow-host?"],
    [["--jsno"], "There is no option --jsno; did you mean --json?"],
    [["--verbose"], "There is no option --verbose; catenary serve --help lists the options"],
    [["--constructor"], "There is no option --constructor; catenary serve --help lists the options"],
    [["-x"], "There is no option -x; catenary serve --help lists the options"],
    [["-j"], "There is no option -j; catenary serve --help lists the options"],
    [["-p", "3000"], "There is no option -p; did you mean --http :PORT?"],
    [["--port", "3000"], "There is no option --port; did you mean --http :PORT?"],
    [["--port=3000"], "There is no option --port; did you mean --http :PORT?"],
    [["-e", "A=b"], "There is no option -e; catenary serve --help lists the options"],
    [["--path"], "--path needs a path"],
    [["--path", "--json"], "--path needs a path"],
    [["--path="], "--path needs a path"],
    [["--allow-host"], "--allow-host needs a value"],
    [["--path", "/x", "--path=/y"], "--path was given twice, and takes one value"],
    [["--json=yes"], "--json takes no value"],
  ])("%j is refused in one message", (args, message) => {
    expect(() => parsed(...args)).toThrow(new UsageError(message));
  });
});
