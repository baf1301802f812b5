// Options of live servers are checked when the server is created. No session is started.

import { describe, expect, it } from "vitest";
import { javascript, lisp, type JavaScriptOptions, type LispOptions } from "./index.ts";

const unchecked = (options: unknown): JavaScriptOptions & LispOptions => options as JavaScriptOptions & LispOptions;

const REFUSED: readonly (readonly [options: unknown, message: string])[] = [
  [null, ": the options must be an object, not null"],
  [{ limit: {} }, " has no option `limit`; did you mean `limits`?"],
  [
    { limits: 5 },
    ": `limits` must be an object with `timeoutMs`, `memoryMb`, `outputChars`, `valueChars`, `printLength`, `printDepth`, `errorHoldMs`",
  ],
  [{ limits: { timeoutMs: -1 } }, ": `limits.timeoutMs` must be a number from 0 to 86400000"],
  [{ limits: { timeoutMs: Number.NaN } }, ": `limits.timeoutMs` must be a number from 0 to 86400000"],
  [{ limits: { timeoutMs: "5" } }, ": `limits.timeoutMs` must be a number from 0 to 86400000"],
  [{ limits: { memoryMb: 1 } }, ": `limits.memoryMb` must be a whole number from 64 to 16384"],
  [{ limits: { memoryMb: "x" } }, ": `limits.memoryMb` must be a whole number from 64 to 16384"],
  [{ limits: { outputChars: 0 } }, ": `limits.outputChars` must be a whole number from 1 to 1000000"],
  [{ limits: { printLength: 1.5 } }, ": `limits.printLength` must be a whole number from 1 to 100000"],
  [{ limits: { printDepth: Infinity } }, ": `limits.printDepth` must be a whole number from 1 to 1000"],
  [{ maxSessions: 0 }, ": `maxSessions` must be a whole number above 0, not 0"],
  [{ idleMs: -1 }, ": `idleMs` must be a number of milliseconds; 0 means never"],
  [{ idleMs: Number.NaN }, ": `idleMs` must be a number of milliseconds; 0 means never"],
  [{ command: 5 }, ": `command` must be a non-empty string"],
  [{ cwd: " " }, ": `cwd` must be a non-empty string"],
  [{ env: { TOKEN: 7 } }, ": `env` must be an object of strings"],
];

describe.each([
  ["javascript", javascript],
  ["lisp", lisp],
] as const)("%s()", (name, make) => {
  it.each(REFUSED)("a function that makes a live server refuses %j", (options, message) => {
    expect(() => make(unchecked(options))).toThrow(TypeError);
    expect(() => make(unchecked(options))).toThrow(`${name}()${message}`);
  });

  it("a function that makes a live server refuses an unknown limit", () => {
    expect(() => make(unchecked({ limits: { timeout: 1 } }))).toThrow(
      `${name}() has no option \`limits.timeout\`; did you mean \`timeoutMs\`?`,
    );
  });

  it("a function that makes a live server accepts valid options and undefined ones", () => {
    const limits = { timeoutMs: 0, memoryMb: 64, outputChars: undefined };
    const given = { name: "mine", maxSessions: 1, idleMs: 0, cwd: "/", env: { A: "1" }, command: "program" };
    expect(typeof make(unchecked({ ...given, limits }))).toBe("function");
    expect(typeof make(unchecked({ command: undefined, permission: undefined }))).toBe("function");
  });
});

it.each([
  ["yes", "lisp(): `sandbox` must be true, false, or { network, read, write, processes, diskMb }"],
  [{ net: true }, "lisp() has no option `sandbox.net`; did you mean `network`?"],
  [{ write: "./out" }, "lisp(): `sandbox.write` must be an array of paths"],
  [{ processes: 0 }, "lisp(): `sandbox.processes` must be a whole number above 0"],
  [{ diskMb: 1.5 }, "lisp(): `sandbox.diskMb` must be a whole number above 0"],
])("sandbox refuses %j", (sandbox, message) => {
  expect(() => lisp(unchecked({ sandbox }))).toThrow(message);
});

it("sandbox can be true, false, or say what sessions may use", () => {
  for (const sandbox of [true, false, { network: true, read: ["."], write: [], processes: 9, diskMb: 1 }])
    expect(typeof javascript({ sandbox })).toBe("function");
});

it("permission is an option of javascript() only", () => {
  expect(() => lisp(unchecked({ permission: true }))).toThrow(
    "lisp() has no option `permission`; the options are name, limits, maxSessions, idleMs, sandbox, cwd, env, inheritEnv, command",
  );
  expect(typeof javascript({ permission: { read: ["./data"], net: false } })).toBe("function");
});

it.each([
  ["yes", "javascript(): `permission` must be true, false, or { read, write, childProcess, net }"],
  [{ reed: [] }, "javascript() has no option `permission.reed`; did you mean `read`?"],
  [{ write: "./out" }, "javascript(): `permission.write` must be an array of paths"],
  [{ net: 1 }, "javascript(): `permission.net` must be true or false"],
])("permission refuses %j", (permission, message) => {
  expect(() => javascript(unchecked({ permission }))).toThrow(message);
});
