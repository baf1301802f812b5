// Wrong command lines of `catenary eval` are refused in one sentence before anything is started. test/contract/cli runs whole
// commands.

import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { evalCommand } from "./eval.ts";

let stderr = "";
beforeEach(() => {
  stderr = "";
  vi.spyOn(process.stderr, "write").mockImplementation((text) => (stderr += String(text)) !== "");
});
afterEach(() => {
  vi.restoreAllMocks();
});

it.each([
  [[], 1, "eval needs a LANGUAGE: js, javascript, lisp"],
  [["lsip", "1"], 1, "There is no language lsip; did you mean lisp?"],
  [["SBCL"], 1, "eval needs CODE, - for stdin, or --file PATH"],
  [["TypeScript"], 1, "eval needs CODE, - for stdin, or --file PATH"],
  [["JS", "1", "2"], 1, "eval takes one CODE"],
  [["ts", "1", "2"], 1, "eval takes one CODE"],
  [["cl", "1", "2"], 1, "eval takes one CODE"],
  [["cobol", "1"], 1, "There is no language cobol; the languages are js, javascript, lisp"],
  [["js", "-1"], 1, "-1 looks like an option: put -- before it"],
  [["js"], 1, "eval needs CODE, - for stdin, or --file PATH"],
  [["js", "1", "+", "1"], 1, "eval takes one CODE: put it in quotes, as in catenary eval js 'CODE'"],
  [["js", "1", "--file", "x.js"], 1, "Give CODE or --file PATH, not both"],
  [["js", "1", "--timeout", "soon"], 1, "--timeout soon is not a number of seconds from 0 to "],
  [["js", "1", "--timeout=-1"], 1, "--timeout -1 is not a number of seconds"],
  [["js", "1", "--timout", "1"], 1, "There is no option --timout; did you mean --timeout?"],
  [["js", "1", "--image", "x"], 1, "--image is not an option of JavaScript"],
  [["smalltalk", "1", "--program", "/x/squeak"], 1, '--program is not gst, so it also needs "image"'],
  [["js", "--file"], 1, "--file needs the path of a file"],
  [["js", "--file", "/no/such/file.js"], 2, "There is no file /no/such/file.js"],
  [["js", "--file", "/"], 1, "Cannot read /: "],
])("eval: %j ends with %i", async (args, code, message) => {
  expect(await evalCommand.run(args)).toBe(code);
  expect(stderr).toContain(`catenary: ${message}`);
  expect(stderr.trimEnd().split("\n\n")[0]).not.toContain("\n");
});
