// What is said of live sessions and cannot be meant is refused when it is said, by a sentence. No session is started.

import { describe, expect, it } from "vitest";
import { javascript, lisp, type JavaScriptOptions, type LispOptions } from "./index.ts";

const anything = (options: unknown): JavaScriptOptions & LispOptions => options as JavaScriptOptions & LispOptions;

const REFUSED: readonly (readonly [options: unknown, says: string])[] = [
  [null, ": the options must be an object"],
  [{ limit: {} }, " has no option `limit`; did you mean `limits`?"],
  [{ limits: 5 }, ": `limits` must be an object of timeoutMs, memoryMb, outputChars, printLength, printDepth"],
  [{ limits: { timeoutMs: -1 } }, ": `limits.timeoutMs` must be a number from 0 to 86400000"],
  [{ limits: { timeoutMs: Number.NaN } }, ": `limits.timeoutMs` must be a number from 0 to 86400000"],
  [{ limits: { timeoutMs: "5" } }, ": `limits.timeoutMs` must be a number from 0 to 86400000"],
  [{ limits: { memoryMb: 1 } }, ": `limits.memoryMb` must be a whole number from 64 to 16384"],
  [{ limits: { memoryMb: "x" } }, ": `limits.memoryMb` must be a whole number from 64 to 16384"],
  [{ limits: { outputChars: 0 } }, ": `limits.outputChars` must be a whole number from 1 to 1000000"],
  [{ limits: { printLength: 1.5 } }, ": `limits.printLength` must be a whole number from 1 to 100000"],
  [{ limits: { printDepth: Infinity } }, ": `limits.printDepth` must be a whole number from 1 to 1000"],
  [{ sessions: 0 }, ": `sessions` must be a whole number above 0"],
  [{ idle: -1 }, ": `idle` must be a number of milliseconds; 0: never"],
  [{ idle: Number.NaN }, ": `idle` must be a number of milliseconds; 0: never"],
  [{ command: 5 }, ": `command` must be a text, and not empty"],
  [{ cwd: " " }, ": `cwd` must be a text, and not empty"],
  [{ env: { TOKEN: 7 } }, ": `env` must be an object of texts by name"],
];

describe.each([
  ["javascript", javascript],
  ["lisp", lisp],
] as const)("%s()", (name, make) => {
  it.each(REFUSED)("refuses %j", (options, says) => {
    expect(() => make(anything(options))).toThrow(TypeError);
    expect(() => make(anything(options))).toThrow(`${name}()${says}`);
  });

  it("refuses a limit that there is not", () => {
    expect(() => make(anything({ limits: { timeout: 1 } }))).toThrow(
      `\`limits\` of ${name}() has no option \`timeout\`; did you mean \`timeoutMs\`?`,
    );
  });

  it("takes what can be meant, and what is left open", () => {
    const limits = { timeoutMs: 0, memoryMb: 64, outputChars: undefined };
    const said = { name: "mine", sessions: 1, idle: 0, cwd: "/", env: { A: "1" }, command: "program" };
    expect(typeof make(anything({ ...said, limits }))).toBe("function");
    expect(typeof make(anything({ command: undefined, permission: undefined }))).toBe("function");
  });
});

describe("a fence", () => {
  it("is for JavaScript alone", () => {
    expect(() => lisp(anything({ permission: true }))).toThrow(
      "lisp() has no option `permission`; there are name, limits, sessions, idle, cwd, env, command",
    );
    expect(typeof javascript({ permission: { read: ["./data"], net: false } })).toBe("function");
  });

  it.each([
    ["yes", "javascript(): `permission` must be true, false, or { read, write, childProcess, net }"],
    [{ reed: [] }, "`permission` of javascript() has no option `reed`; did you mean `read`?"],
    [{ write: "./out" }, "javascript(): `permission.write` must be a list of paths"],
    [{ net: 1 }, "javascript(): `permission.net` must be true or false"],
  ])("that cannot be meant is refused: %j", (permission, says) => {
    expect(() => javascript(anything({ permission }))).toThrow(says);
  });
});
