// The command line of `npm run bench`, as a program.

import { expect, it } from "vitest";
import { endOf } from "../support/blocking-program.ts";
import { ROOT } from "./page.ts";

it.each([
  [["--help"], 0, /^$/, /^Measures costs[^]*Measurements: http, stdio/],
  [["--hlep"], 1, /^Unknown option '--hlep'[^]*Usage: npm run bench/, /^$/],
])("npm run bench: -- %s ends with %i and a help, without a stack trace", (args, status, stderr, stdout) => {
  const result = endOf(process.execPath, ["--import", "tsx", "bench/main.ts", ...args], { cwd: ROOT });
  expect(result).toMatchObject({
    status,
    stdout: expect.stringMatching(stdout) as string,
    stderr: expect.stringMatching(stderr) as string,
  });
  expect(result.stderr).not.toMatch(/^ {4}at /m);
});
