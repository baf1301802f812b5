// Hostile JavaScript, by a caller of the tools: loops wherever code can run, calls that block, heaps and buffers that
// grow, processes that end, and globals that are broken. Each row says what is left. Beside them, every way in which a
// name may be declared again.

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { javascript } from "../../src/live/index.ts";
import { Ground, type Row } from "./hostile.ts";
import { Stage } from "./stage.ts";

const STOPPED = { status: "timeout", step: "interrupt" } as const;
const KILLED = { status: "timeout", step: "restart" } as const;
const DEFINED = { notice: expect.stringContaining("defined were: earlier") as string };
/** It is found out at once, or when something is asked of it. */
const GONE = { status: expect.stringMatching(/^(timeout|lost)$/) as "lost", step: "restart", shows: DEFINED } as const;

const failed = (type: string): Pick<Row, "status" | "shows"> => ({ status: "error", shows: { condition: { type } } });
const answered = (...values: string[]): Pick<Row, "status" | "shows"> => ({ status: "ok", shows: { values } });
const ended = (how: string): Pick<Row, "status" | "step" | "shows"> => ({
  status: "lost",
  step: "restart",
  shows: { notice: expect.stringContaining(how) as string },
});
/** It needs no time limit, and has one that no machine reaches. */
const SLOW = 20;

const ROWS: readonly Row[] = [
  { name: "an endless loop", code: "while (true) {}", ...STOPPED },
  {
    name: "loops that catch everything",
    code: "for (;;) { try { for (;;) { try { for (;;); } catch {} finally {} } } catch {} }",
    ...STOPPED,
  },
  { name: "a regular expression", code: '/^(a+)+$/.test("a".repeat(60) + "!")', ...STOPPED },
  { name: "an array that is made for long", code: "Array.from({ length: 2e8 }, () => 0)", ...STOPPED },
  { name: "an array that is made by native code", code: "Array.from({ length: 2e8 }).length", ...KILLED },
  {
    name: "a thread that waits",
    code: "Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)",
    ...STOPPED,
  },
  { name: "an endless loop of awaits", code: "for (;;) await null", ...STOPPED },
  { name: "a loop after an await", code: "await null; for (;;);", ...STOPPED },
  { name: "a loop in a microtask", code: "await Promise.resolve().then(() => { for (;;); })", ...STOPPED },
  {
    name: "ticks without end",
    code: "await new Promise(() => { const again = () => process.nextTick(again); again(); })",
    ...STOPPED,
  },
  { name: "a promise that is never kept", code: "await new Promise(() => {})", ...STOPPED },
  {
    name: "a loop in a timer",
    code: "await new Promise(() => setTimeout(() => { for (;;); }, 1))",
    ...STOPPED,
  },
  {
    name: "a loop that begins after the answer",
    first: "setImmediate(() => { for (;;); }); 1",
    code: "1 + 1",
    // The loop is stopped for the sake of the next, which then runs.
    ...answered("2"),
  },
  { name: "a program that is waited for", code: 'require("node:child_process").execSync("sleep 20")', ...KILLED },
  { name: "a number that is too large", code: "(7n ** 3_000_000n) ** 10n", ...KILLED },
  { name: "an exit", code: "process.exit(3)", ...ended("(exit code 3); defined were: earlier") },
  { name: "an abort", code: "process.abort()", timeout: SLOW, ...ended("(SIGABRT); defined were: earlier") },
  {
    name: "a kill",
    code: 'process.kill(process.pid, "SIGKILL"); for (;;);',
    timeout: SLOW,
    ...ended("(SIGKILL); defined were: earlier"),
  },
  {
    name: "a heap without end",
    code: "const hog = []; for (;;) hog.push(new Array(100_000).fill(0.5))",
    timeout: SLOW,
    ...ended("configure-limits sets that for the time after a reset); defined were: earlier"),
  },
  {
    name: "buffers without end",
    code: `const hog = [];
      for (;;) {
        hog.push(new Uint8Array(32 * 1024 * 1024).fill(1));
        await new Promise((resolve) => setTimeout(resolve, 20));
      }`,
    timeout: SLOW,
    ...ended("MB of memory, so it was ended; defined were: earlier"),
  },
  {
    name: "output without end",
    code: 'for (;;) console.log("more and more")',
    ...STOPPED,
    shows: { stdout: expect.stringMatching(/^(more and more\n)+/) as string },
  },
  { name: "an endless recursion", code: "(function deeper() { return 1 + deeper(); })()", ...failed("RangeError") },
  { name: "a rejection that nobody awaits", code: 'Promise.reject(new Error("stray")); 1', ...answered("1") },
  {
    name: "a timer that throws",
    code: `setTimeout(() => { throw new Error("late"); }, 1);
      await new Promise((resolve) => setTimeout(resolve, 30)); 1`,
    timeout: SLOW,
    ...answered("1"),
  },
  { name: "a channel that is closed", code: 'require("node:fs").closeSync(3); for (;;);', timeout: 1, ...GONE },
  {
    name: "a channel that is written to",
    code: 'require("node:fs").writeSync(3, "garbage\\n"); for (;;);',
    timeout: SLOW,
    ...ended("no frame); defined were: earlier"),
  },
  {
    name: "a program that writes to the channel",
    code: 'require("node:child_process").spawnSync("sh", ["-c", "echo bad >&3"]).status !== 0',
    timeout: SLOW,
    ...answered("true"),
  },
  { name: "stdin that is read", code: 'require("node:fs").readFileSync(0, "utf8")', ...answered("''") },
  {
    name: "a value that loops while it is printed",
    code: '({ [Symbol.for("nodejs.util.inspect.custom")]() { for (;;); } })',
    ...STOPPED,
  },
  {
    name: "a value whose traps loop",
    code: "new Proxy({}, { get() { for (;;); }, ownKeys() { for (;;); } }); 1",
    ...answered("1"),
  },
  {
    name: "a circular value",
    code: "const ring = {}; ring.ring = ring",
    ...answered("<ref *1> { ring: [Circular *1] }"),
  },
  { name: "the debugger", code: "debugger; 1", ...answered("1") },
  {
    name: "a worker in an endless loop",
    code: 'new (require("node:worker_threads").Worker)("for (;;);", { eval: true }); 1',
    ...answered("1"),
    last: true,
  },
  { name: "a process that is deleted", code: "delete globalThis.process; 1", ...answered("1"), last: true },
  {
    name: "JSON that is broken",
    code: 'JSON.stringify = JSON.parse = () => { throw new Error("broken"); }; 1',
    ...answered("1"),
    last: true,
  },
  {
    name: "promises that are broken",
    code: 'Promise.prototype.then = () => { throw new Error("broken"); }; 1',
    ...answered("1"),
    last: true,
  },
  {
    name: "prototypes that are broken",
    code: `Object.prototype.toJSON = () => "broken"; Array.prototype.map = Map.prototype.get = undefined; 1`,
    ...answered("1"),
    last: true,
  },
  { name: "listeners that are removed", code: "process.removeAllListeners(); 1", ...answered("1"), last: true },
  {
    name: "streams that are destroyed",
    code: "process.stdout.destroy(); process.stderr.destroy(); 1",
    ...answered("1"),
    last: true,
  },
  { name: "globals that are frozen", code: "Object.freeze(globalThis); 1", status: "ok", last: true },
];

const KINDS: Readonly<Record<string, string>> = {
  var: "var name = VALUE",
  let: "let name = VALUE",
  const: "const name = VALUE",
  assigned: "name = VALUE",
  function: "function name() {} name = VALUE",
  class: "class name {} name = VALUE",
  destructured: "const { name } = { name: VALUE }",
};

let stage: Stage;
let ground: Ground;
beforeAll(async () => {
  stage = await Stage.open(javascript({ limits: { memoryMb: 256 } }), "js");
  const define = (number: number): string => `const earlier = ${number}`;
  ground = new Ground(stage, { define, recall: "earlier", unknown: "ReferenceError" });
  await ground.open();
}, 60_000);
afterAll(async () => {
  await stage?.close();
  console.error(ground.report("JavaScript"));
});

describe("hostile JavaScript", () => {
  it.each(ROWS)("$name", async (row) => {
    await ground.play(row);
  });

  it("in four sessions at once", async () => {
    await ground.playTogether("for (;;);", 4);
  });
});

describe("a name that was declared", () => {
  it.each(Object.keys(KINDS))("by %s is declared again in every way", async (first) => {
    for (const second of Object.keys(KINDS)) {
      const declared = await stage.evaluate(String(KINDS[first]).replace("VALUE", "1"), { session: "names" });
      const again = await stage.evaluate(String(KINDS[second]).replace("VALUE", "2"), { session: "names" });
      const { values } = await stage.evaluate("name", { session: "names" });
      const seen = { first, second, declared: declared.status, again: again.status, values };
      expect(seen).toEqual({ first, second, declared: "ok", again: "ok", values: ["2"] });
    }
  });
});
