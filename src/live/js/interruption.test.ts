// Interrupting code in a real guest: the code is stopped and the variables are kept, or the process visibly ends.
// Deadlines and code that cannot be stopped are the session's business (see ../session.ts).

import { readdirSync, readFileSync } from "node:fs";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { eventually } from "../../../test/support/waiting.ts";
import { JavaScriptGuest } from "../../../test/support/live/javascript-guest.ts";
import { IS_LONG, sampleOf } from "../../../test/support/thoroughness.ts";

let guest: JavaScriptGuest;
beforeAll(async () => {
  guest = await JavaScriptGuest.start();
  await guest.value("const kept = 41; const intervals = []; function spin() {\n  for (;;);\n}");
  await guest.value("function whirl() { console.log('begun'); spin() }");
});
afterAll(() => guest.close());

/** Resolves when the code has printed that it runs. */
async function begun(): Promise<void> {
  await eventually(() => expect(guest.printed).toContain("begun"), 5);
}

/** The value of code that is interrupted and tried again when it takes long, as a caller does who meets a timeout. */
async function valueInTime(code: string): Promise<string | undefined> {
  for (;;) {
    const late = new Promise((resolve) => setTimeout(resolve, 500));
    const { status, values } = await guest.evaluate(code, late);
    if (status === "ok") return values[0];
    expect(status).toBe("interrupted");
  }
}

const BEGIN = "console.log('begun');";
/** An evaluation may end between two intervals that loop. The next one would wait for the second without a limit. */
const CLEAR = "intervals.splice(0).forEach(clearInterval); kept + 1";

/** The code with a message when it runs: at its start, or in `whirl`. */
function announcing(code: string): string {
  return code.includes("whirl") ? code : BEGIN + code;
}

it.each([
  ["a loop", "for (;;);"],
  ["a loop that catches everything", "for (;;) { try { for (;;); } catch { } finally { for (;;); } }"],
  ["a loop in a function", "spin()"],
  ["a slow regular expression", "/(a+)+b/.test('a'.repeat(40))"],
  ["Atomics.wait", "Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)"],
  ["a loop of awaits", "for (;;) await null"],
  ["a loop after an await", "await null; for (;;);"],
  ["a loop in a microtask", "queueMicrotask(function again() { queueMicrotask(again) }); await new Promise(() => {})"],
  ["a loop of ticks", "(function again() { process.nextTick(again) })(); await new Promise(() => {})"],
  ["a loop in a timer", "await new Promise(() => setTimeout(whirl))"],
  ["a loop after a timer", "await new Promise((r) => setTimeout(r)); for (;;);"],
  ["loops in intervals", "setInterval(whirl, 1); setInterval(whirl, 1); await new Promise(() => {})"],
  ["a loop in an immediate", "await new Promise(() => setImmediate(whirl))"],
  ["a loop after a file was read", "await new Promise(() => fs.readFile('/dev/null', whirl))"],
  ["a loop of exceptions", "function fall() { try { fall() } finally { fall() } }; fall()"],
  ["a loop while printing", "({ [util.inspect.custom]() { for (;;); } })"],
  ["a loop in an error", "throw new Proxy({}, { get() { for (;;); } })"],
  ["endless output", "for (;;) console.log('x'.repeat(1000))"],
  ["waiting", "await new Promise(() => {})"],
  ["waiting for a timer", "await new Promise((r) => setTimeout(r, 60_000))"],
])("an interrupt stops %s and keeps the variables", async (_name, code) => {
  const stopped = await guest.evaluate(announcing(code), begun());
  expect(stopped).toMatchObject({ status: "interrupted", values: [], condition: { type: "Interrupted" } });
  expect(await guest.value("kept + 1")).toBe("42");
  expect(await guest.value("await new Promise((r) => setTimeout(r, 1, 'timers work'))")).toBe("'timers work'");
  expect(await guest.value("await fs.promises.readFile('/dev/null', 'utf8')")).toBe("''");
});

it.runIf(IS_LONG)("an interrupt stops a loop in a session with tens of thousands of scripts", async () => {
  const large = await JavaScriptGuest.start();
  try {
    await large.value("globalThis.made = Array.from({ length: 30_000 }, (_, i) => new Function(`return ${i}`)); 1");
    expect(await large.evaluate("for (;;);", Promise.resolve())).toMatchObject({ status: "interrupted" });
    expect(await large.value("made[41]()")).toBe("41");
  } finally {
    await large.close();
  }
});

it.runIf(IS_LONG)("an interrupt stops microtasks and ticks each time, while they are compiled", async () => {
  for (let round = 0; round < 60; round += 1) {
    for (const again of ["queueMicrotask", "process.nextTick"]) {
      const code = `${BEGIN} (function again() { ${again}(again) })(); await new Promise(() => {})`;
      expect(await guest.evaluate(code, begun())).toMatchObject({ status: "interrupted" });
      expect(await guest.value("kept")).toBe("41");
    }
  }
});

it("an interrupt reports the position", async () => {
  const { condition } = await guest.evaluate(`${BEGIN}function outer() { spin() }\n outer()`, begun());
  expect(condition?.frames.map(({ text }) => text.replace(/<eval \d+>/, "<eval>"))).toEqual([
    "spin (<eval>:2:3)",
    "outer (<eval>:1:41)",
    "<eval>:2:2",
  ]);
});

// The limit is half a second, so a stall of the machine can exceed it.
it("an interrupt reports the position of code that is slow to pause", { retry: 3 }, async () => {
  const native = "require('node:child_process').execFileSync('sleep', ['0.48'])";
  const { condition } = await guest.evaluate(BEGIN + native, begun());
  expect(condition?.frames.map(({ text }) => text)).toEqual([expect.stringMatching(/^<eval \d+>:1:\d+$/)]);
});

it("an interrupt keeps abandoned code from continuing and from answering", async () => {
  const code = `globalThis.late = 0; ${BEGIN} await new Promise((r) => globalThis.wake = r); globalThis.late = 1; 'late'`;
  expect(await guest.evaluate(code, begun())).toMatchObject({ status: "interrupted" });
  await guest.value("wake(); await new Promise((r) => setTimeout(r, 5))");
  expect(await guest.value("late")).toBe("0");
});

it.each(
  sampleOf(1, [
    ["intervals", "for (let i = 0; i < 5; i++) intervals.push(setInterval(whirl, 1))"],
    ["a timer", "setTimeout(whirl, 1)"],
    ["an interval", "intervals.push(setInterval(whirl, 1))"],
    ["a promise", "new Promise((r) => setTimeout(r, 1)).then(whirl)"],
    [
      "microtasks",
      "setTimeout(() => queueMicrotask(function again() { if (!again.n) { again.n = 1; console.log('begun') } queueMicrotask(again) }), 1)",
    ],
  ]),
)("an interrupt stops a loop in %s after the evaluation, by itself and for the next one", async (_name, code) => {
  await guest.evaluate(`${code}; 1`);
  await begun();
  // More intervals than one may loop, one after the other.
  await eventually(async () => expect(await guest.guest.control("interrupt", { target: 0 })).toEqual({ busy: false }));
  expect(await valueInTime(CLEAR)).toBe("42");
  await guest.evaluate(`${code}; 1`);
  await begun();
  expect(await valueInTime(CLEAR)).toBe("42");
});

it("an interrupt reports that nothing runs", async () => {
  expect(await guest.guest.control("interrupt", { target: 1 })).toEqual({ busy: false });
  expect(await guest.value("kept")).toBe("41");
});

it("an interrupt ends a profile, which does not appear in the next one", async () => {
  const { id, reply } = guest.guest.request("profile-code", { code: `${BEGIN}spin()` });
  await begun();
  await guest.guest.control("interrupt", { target: id });
  expect(await reply).toEqual({ status: "interrupted" });
  expect((await guest.tool("profile-code", { code: "1" })).text).not.toContain("spin");
});

describe("get-stack", () => {
  let stop: () => void;
  let stopped: Promise<void>;
  beforeEach(() => {
    stopped = new Promise((resolve) => {
      stop = resolve;
    });
  });

  it("get-stack shows the stack of running code, which continues", async () => {
    const running = guest.evaluate(`${BEGIN}(function look() {\n  for (;;);\n})()`, stopped);
    await begun();
    for (const _again of [1, 2]) {
      expect((await guest.control("get-stack")).text).toMatch(/^0: look \(<eval \d+>:2:3\)\n1: <eval \d+>:3:3$/);
    }
    stop();
    expect(await running).toMatchObject({ status: "interrupted" });
  });

  it("get-stack shows no frames if nothing runs or the code waits", async () => {
    expect((await guest.control("get-stack")).text).toBe("Nothing is running.");
    const waiting = guest.evaluate(`${BEGIN}await new Promise(() => {})`, stopped);
    await begun();
    expect((await guest.control("get-stack")).text).toContain("The evaluation is waiting");
    stop();
    expect(await waiting).toMatchObject({ status: "interrupted" });
  });
});

it.each(
  sampleOf(2, [
    ["Promise.prototype.then = null; JSON.stringify = () => { throw 1 }", "1"],
    ["process.removeAllListeners(); delete globalThis.process", "1"],
    ["Object.defineProperty = Reflect.apply = Promise.prototype.catch = null", "1"],
    ["require('process').stdout.destroy()", "console.log('gone'); 1"],
    ["globalThis.queueMicrotask = globalThis.performance = null", "await 1"],
    ["Object.setPrototypeOf(globalThis, null)", "1"],
    ["Object.freeze(globalThis)", "1"],
  ]),
)("code that breaks globals of the guest: %s", async (code, after) => {
  const broken = await JavaScriptGuest.start();
  try {
    await broken.value(`globalThis.kept = 1; ${code}; 1`);
    expect(await broken.value(after)).toBe("1");
    expect(await broken.value("kept")).toBe("1");
    expect(await broken.evaluate("throw new Error('reported')")).toMatchObject({
      condition: { message: "reported" },
    });
    const stopped = await broken.evaluate("for (;;);", Promise.resolve());
    expect(stopped).toMatchObject({ status: "interrupted" });
  } finally {
    await broken.close();
  }
});

it.each(
  sampleOf(1, [
    ["when the code exits", "process.exit(3)", "exit code 3"],
    ["when the code kills it", "process.kill(process.pid, 'SIGKILL'); for (;;);", "SIGKILL"],
    ["when the code closes its channel", "fs.closeSync(3); for (;;);", /^SIG(?:TERM|KILL)$/],
  ] as const),
)("the process ends: %s", async (_name, code, how) => {
  const ended = await JavaScriptGuest.start();
  await expect(ended.evaluate(code)).rejects.toThrow(how);
  await ended.close();
});

it.runIf(IS_LONG)("the process ends when its memory is full", async () => {
  const full = await JavaScriptGuest.start({}, { memoryMb: 64 });
  await expect(full.evaluate("const all = []; for (;;) all.push(new Array(1000).fill({}))")).rejects.toThrow(
    // Which signal V8 uses depends on the processor.
    /^SIG(?:ABRT|TRAP|ILL)$/,
  );
  await full.close();
});

it("the process ends at once when its channel ends, even if it is busy", async () => {
  const busy = await JavaScriptGuest.start();
  void busy.evaluate("for (;;);").catch(() => undefined);
  busy.guest.child.channel?.end();
  expect(await busy.guest.child.exited).toEqual({ code: null, signal: "SIGKILL" });
  await busy.close();
});

it("names and methods that the guest uses too may be declared by the user's code", async () => {
  const named = await JavaScriptGuest.start();
  try {
    await named.value("let Error = 1, String = 2, SyntaxError = 3, globalThis = 4, process = 5, Map = 6, Object = 7");
    await named.value("let Array = 8, Promise = 9, performance = 10, Buffer = 11; function spin() {}");
    expect(await named.value("let later = 'later'; later")).toBe("'later'");
    expect((await named.tool("list-variables", { pattern: "LAT" })).text).toContain("later: string = 'later'");
    expect((await named.tool("get-source", { name: "spin" })).text).toContain("\nfunction spin() ");
    expect((await named.tool("heap-report")).text).toMatch(/^Heap: /);
    expect(await named.evaluate("await null; null.x")).toMatchObject({ condition: { type: "TypeError" } });
    expect(await named.evaluate("throw 1")).toMatchObject({ condition: { type: "Number", message: "1" } });
  } finally {
    await named.close();
  }
});

it.each(
  sampleOf(1, [
    "for (const name of ['map', 'filter', 'slice']) Array.prototype[name] = null",
    "String.prototype.split = String.prototype.includes = Map.prototype.get = Map.prototype.set = null",
    "Array.prototype[Symbol.iterator] = RegExp.prototype.exec = null",
    "for (const name of Object.getOwnPropertyNames(Array.prototype)) delete Array.prototype[name]",
  ]),
)("names and methods that the guest uses too give each evaluation a result or one clear error: %s", async (code) => {
  const broken = await JavaScriptGuest.start();
  try {
    await broken.evaluate(code);
    const broke = { message: expect.stringMatching(/^The session is broken: .*Reset it \(.*\)$/) as string };
    for (const later of ["1", "let a = 1; a", "await 1; null.x", "throw new Error('mine')"]) {
      const { status, condition } = await broken.evaluate(later);
      if (status === "error" && !/^mine$|null/.test(condition?.message ?? "")) expect(condition).toMatchObject(broke);
    }
    expect((await broken.tool("list-variables")).text).not.toBe("");
  } finally {
    await broken.close();
  }
});

it("an abandoned evaluation releases the variables of abandoned code", async () => {
  await guest.value("let held; function hold() { const made = {}; held = new WeakRef(made); return made }");
  const code = `${BEGIN} [hold(), await new Promise((resolve) => { globalThis.wake = resolve })].length`;
  expect(await guest.evaluate(code, begun())).toMatchObject({ status: "interrupted" });
  await guest.value("wake(); wake = undefined; await new Promise((resolve) => setTimeout(resolve))");
  // One collection may not be enough.
  await eventually(async () => {
    await guest.tool("heap-report", { gc: true });
    expect(await guest.value("held.deref() === undefined")).toBe("true");
  });
});

/** The names of the guest's threads, with that of the profiler while it samples. */
function threads(): string[] {
  const folder = `/proc/${guest.guest.pid}/task`;
  return readdirSync(folder).map((thread) => readFileSync(`${folder}/${thread}/comm`, "utf8").trim());
}

it.runIf(process.platform === "linux").each([
  ["runs", "for (;;);"],
  ["waits", "await new Promise(() => undefined)"],
])("an abandoned evaluation ends the profiling of code that %s", async (_how, code) => {
  await guest.value("1");
  const { id, reply } = guest.guest.request("profile-code", { code: `${BEGIN} ${code}` });
  await begun();
  expect(threads()).toContain("v8:ProfEvntProc");
  await guest.guest.control("interrupt", { target: id });
  expect(await reply).toEqual({ status: "interrupted" });
  await eventually(() => expect(threads()).not.toContain("v8:ProfEvntProc"));
  expect((await guest.tool("profile-code", { code: "6 * 7" })).text).toMatch(/=> 42$/);
});
