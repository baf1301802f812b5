// Hostile JavaScript through the tools: loops wherever code can run, blocking calls, growing heaps and buffers, exits,
// and broken globals. Also every way to declare a name again.

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { javascript } from "../../../src/live/index.ts";
import { HostileHarness, RETRIES, type HostileCase } from "./hostile-harness.ts";
import { LiveFixture } from "./live-fixture.ts";

const STOPPED = { status: "timeout", step: "interrupt" } as const;
const KILLED = { status: "timeout", step: "restart" } as const;
const DEFINED = { notice: expect.stringContaining("lost definitions: earlier") as string };
/** The host notices at once, or with the next request. */
const GONE = { status: expect.stringMatching(/^(timeout|lost)$/) as "lost", step: "restart", shows: DEFINED } as const;

const failed = (type: string): Pick<HostileCase, "status" | "shows"> => ({
  status: "error",
  shows: { condition: { type } },
});
const answered = (...values: string[]): Pick<HostileCase, "status" | "shows"> => ({ status: "ok", shows: { values } });
const ended = (how: string): Pick<HostileCase, "status" | "step" | "shows"> => ({
  status: "lost",
  step: "restart",
  shows: { notice: expect.stringContaining(how) as string },
});
/** Ends by itself, so the timeout only guards against a hang. */
const SLOW = 60;

const CASES: readonly HostileCase[] = [
  { name: "an endless loop", code: "while (true) {}", ...STOPPED },
  {
    name: "loops that catch everything",
    code: "for (;;) { try { for (;;) { try { for (;;); } catch {} finally {} } } catch {} }",
    ...STOPPED,
  },
  { name: "a regular expression", code: '/^(a+)+$/.test("a".repeat(60) + "!")', ...STOPPED },
  { name: "an array that takes long to fill", code: "Array.from({ length: 2e8 }, () => 0)", ...STOPPED },
  { name: "an array that native code fills", code: "Array.from({ length: 2e8 }).length", ...KILLED },
  {
    name: "Atomics.wait",
    code: "Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)",
    ...STOPPED,
  },
  { name: "an endless loop of awaits", code: "for (;;) await null", ...STOPPED },
  { name: "a loop after an await", code: "await null; for (;;);", ...STOPPED },
  { name: "a loop in a microtask", code: "await Promise.resolve().then(() => { for (;;); })", ...STOPPED },
  {
    name: "endless ticks",
    code: "await new Promise(() => { const again = () => process.nextTick(again); again(); })",
    ...STOPPED,
  },
  { name: "a promise that is never resolved", code: "await new Promise(() => {})", ...STOPPED },
  {
    name: "a loop in a timer",
    code: "await new Promise(() => setTimeout(() => { for (;;); }, 1))",
    ...STOPPED,
  },
  {
    name: "a loop that starts after the result",
    first: "setImmediate(() => { for (;;); }); 1",
    code: "1 + 1",
    // The loop is stopped so that the next evaluation can run.
    ...answered("2"),
  },
  {
    name: "a child process that is waited for",
    code: 'require("node:child_process").execSync("sleep 20")',
    status: "timeout",
    step: "children",
  },
  { name: "a huge number", code: "(7n ** 3_000_000n) ** 10n", ...KILLED },
  { name: "an exit", code: "process.exit(3)", ...ended("(exit code 3); lost definitions: earlier") },
  { name: "an abort", code: "process.abort()", timeout: SLOW, ...ended("(SIGABRT); lost definitions: earlier") },
  {
    name: "a kill",
    code: 'process.kill(process.pid, "SIGKILL"); for (;;);',
    timeout: SLOW,
    ...ended("(SIGKILL); lost definitions: earlier"),
  },
  {
    name: "a growing heap",
    code: "const hog = []; for (;;) hog.push(new Array(100_000).fill(0.5))",
    timeout: SLOW,
    ...ended("configure-limits raises it from the next reset on); lost definitions: earlier"),
  },
  {
    name: "growing buffers",
    code: `const hog = [];
      for (;;) {
        hog.push(new Uint8Array(32 * 1024 * 1024).fill(1));
        await new Promise((resolve) => setTimeout(resolve, 20));
      }`,
    timeout: SLOW,
    ...ended("MB of memory, so it was ended; lost definitions: earlier"),
  },
  {
    name: "endless output",
    code: 'for (;;) console.log("more and more")',
    ...STOPPED,
    shows: { stdout: expect.stringMatching(/^(more and more\n)+/) as string },
  },
  { name: "an endless recursion", code: "(function deeper() { return 1 + deeper(); })()", ...failed("RangeError") },
  { name: "a rejection that is not awaited", code: 'Promise.reject(new Error("stray")); 1', ...answered("1") },
  {
    name: "a timer that throws",
    code: `setTimeout(() => { throw new Error("late"); }, 1);
      await new Promise((resolve) => setTimeout(resolve, 30)); 1`,
    timeout: SLOW,
    ...answered("1"),
  },
  { name: "a closed channel", code: 'require("node:fs").closeSync(3); for (;;);', timeout: 1, ...GONE },
  {
    name: "a write to the channel",
    code: 'require("node:fs").writeSync(3, "garbage\\n"); for (;;);',
    timeout: SLOW,
    ...ended("invalid frame); lost definitions: earlier"),
  },
  {
    name: "a child process that writes to the channel",
    code: 'require("node:child_process").spawnSync("sh", ["-c", "echo bad >&3"]).status !== 0',
    timeout: SLOW,
    ...answered("true"),
  },
  { name: "reading stdin", code: 'require("node:fs").readFileSync(0, "utf8")', ...answered("''") },
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
  { name: "a deleted process object", code: "delete globalThis.process; 1", ...answered("1"), last: true },
  {
    name: "broken JSON functions",
    code: 'JSON.stringify = JSON.parse = () => { throw new Error("broken"); }; 1',
    ...answered("1"),
    last: true,
  },
  {
    name: "broken promises",
    code: 'Promise.prototype.then = () => { throw new Error("broken"); }; 1',
    ...answered("1"),
    last: true,
  },
  {
    name: "broken prototypes",
    code: `Object.prototype.toJSON = () => "broken"; Array.prototype.map = Map.prototype.get = undefined; 1`,
    ...answered("1"),
    last: true,
  },
  { name: "removed listeners", code: "process.removeAllListeners(); 1", ...answered("1"), last: true },
  {
    name: "destroyed streams",
    code: "process.stdout.destroy(); process.stderr.destroy(); 1",
    ...answered("1"),
    last: true,
  },
  { name: "frozen globals", code: "Object.freeze(globalThis); 1", status: "ok", last: true },
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

let fixture: LiveFixture;
let harness: HostileHarness;
beforeAll(async () => {
  fixture = await LiveFixture.open(javascript({ limits: { memoryMb: 256 } }), "js");
  const define = (number: number): string => `const earlier = ${number}`;
  harness = new HostileHarness(fixture, { define, recall: "earlier", unknown: "ReferenceError" });
  await harness.open();
});
afterAll(async () => {
  await fixture?.close();
  console.error(harness.report("JavaScript"));
});

describe("hostile JavaScript", RETRIES, () => {
  it.each(CASES)("hostile JavaScript: $name", async (hostile) => {
    await harness.run(hostile);
  });

  it("hostile JavaScript in four sessions at once", async () => {
    await harness.runTogether("for (;;);", 4);
  });
});

it.each(Object.keys(KINDS))("a declared name by %s can be declared again in every way", async (first) => {
  for (const second of Object.keys(KINDS)) {
    const declared = await fixture.evaluate(String(KINDS[first]).replace("VALUE", "1"), { session: "names" });
    const again = await fixture.evaluate(String(KINDS[second]).replace("VALUE", "2"), { session: "names" });
    const { values } = await fixture.evaluate("name", { session: "names" });
    const seen = { first, second, declared: declared.status, again: again.status, values };
    expect(seen).toEqual({ first, second, declared: "ok", again: "ok", values: ["2"] });
  }
});
