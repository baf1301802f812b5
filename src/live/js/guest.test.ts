// Evaluations in a real guest: values, declarations that are kept, and errors. Interruptions and hostile code are
// tested in interruption.test.ts.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { builtinModules } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { eventually } from "../../../test/support/waiting.ts";
import { JavaScriptGuest } from "../../../test/support/live/javascript-guest.ts";
import { IS_LONG } from "../../../test/support/thoroughness.ts";

/** Newer versions of Node remove the types of imported files themselves, and do not support enums there. */
const NODE_STRIPS_TYPES = ((process.features as { typescript?: unknown }).typescript ?? false) !== false;
const KIND = NODE_STRIPS_TYPES ? "const Kind = { One: 1 }" : "enum Kind { One = 1 }";

let folder = "";
let guest: JavaScriptGuest;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "catenary-js-"));
  writeFileSync(join(folder, "plain.mjs"), "export const here = import.meta.url; export default 'plain';\n");
  writeFileSync(join(folder, "typed.ts"), `export ${KIND}\nexport const two: number = 2;\n`);
  writeFileSync(join(folder, "old.cjs"), "exports.old = __dirname;\n");
  writeFileSync(join(folder, "bad.mjs"), "let right = 1;\nlet wrong = ;\n");
  writeFileSync(join(folder, "outer.mjs"), "import './bad.mjs';\n");
  writeFileSync(join(folder, "bad.cjs"), `"${"x".repeat(1_100)}"; let wrong = ;\n`);
  guest = await JavaScriptGuest.start({ cwd: folder });
});
afterAll(async () => {
  await guest.close();
  rmSync(folder, { recursive: true, force: true });
});

it.each([
  ["1 + 1", "2"],
  ["'text'", "'text'"],
  ["{ a: 1 }", "{ a: 1 }"],
  ["{ a: 1, b: await 2 }", "{ a: 1, b: 2 }"],
  ["{ let a = 1; a }", "1"],
  ["[1, , 3]", "[ 1, <1 empty item>, 3 ]"],
  ["new Map([[1, { a: [] }]])", "Map(1) { 1 => { a: [] } }"],
  ["Promise.resolve(1)", "Promise { 1 }"],
  ["await Promise.resolve(1)", "1"],
  ["await 1; Promise.resolve(1)", "Promise { 1 }"],
  ["if (true) { 5 }", "5"],
  ["await 0; for (const a of [1, 2]) a * 10", "20"],
  ["for await (const a of [1, 2]) a", "2"],
  ["undefined", "undefined"],
  ["void await 1", "undefined"],
  ["typeof require + typeof process + typeof fetch", "'functionobjectfunction'"],
  ["path.join('a', 'b')", "'a/b'"],
  ["Buffer.from('a') instanceof Uint8Array", "true"],
  ["try { fs.readFileSync('/nowhere') } catch (error) { error instanceof Error }", "true"],
  ["(0, eval)('1 + 1')", "2"],
  ["this === globalThis", "true"],
  ["const x: number = 1; x as unknown", "1"],
  ["enum Colour { Red, Green }; Colour.Green", "1"],
  ["'use strict'; function strict() { return this }; strict()", "undefined"],
  ["{ function inBlock() { return 8 } } inBlock()", "8"],
  ["eval('var evaluated = 9'); evaluated", "9"],
  ["try { 5 } finally { 6 }", "5"],
  ["__dirname === process.cwd() && __filename === path.join(__dirname, 'session.js')", "true"],
  ["import.meta.url === url.pathToFileURL(__filename).href && import.meta.dirname === __dirname", "true"],
  ["const where = () => import.meta.resolve('./plain.mjs'); fs.existsSync(new URL(where()))", "true"],
  ["import.meta.resolve('fs')", "'fs'"],
])("an evaluation of %j returns %s", async (code, value) => {
  expect(await guest.evaluate(code)).toMatchObject({ status: "ok", values: [value], stdout: "", stderr: "" });
});

it.each(["const a = 1", "function f() {}", "class C {}", "let a: number", "interface A {}", "", "// nothing"])(
  "an evaluation of %j has no value",
  async (code) => {
    expect(await guest.evaluate(code)).toMatchObject({ status: "ok", values: [] });
  },
);

it("an evaluation that fails reports only the names that it reached", async () => {
  const code = "let before = 1; function lost() {} class Early {}; null.x; let late = 2; class Late {}";
  const { status, defined } = await guest.evaluate(code);
  expect({ status, names: defined.map(({ name }) => name) }).toEqual({
    status: "error",
    names: ["before", "lost", "Early"],
  });
  expect(await guest.evaluate("const twice = 1; return")).toMatchObject({ status: "error", defined: [] });
});

it("an evaluation keeps the last value in _ and the last error in _error, until they are declared", async () => {
  await guest.value("6 * 7");
  expect(await guest.value("_ + 1")).toBe("43");
  await guest.evaluate("throw new RangeError('far')");
  expect(await guest.value("_error.message")).toBe("'far'");
  await guest.value("const _ = 'mine'");
  expect(await guest.value("1; _")).toBe("'mine'");
});

it("an evaluation delivers all output before its result", async () => {
  const lines = "for (let i = 0; i < 5000; i++) console.log('line ' + i); console.error('bad'); 1";
  const { stdout, stderr } = await guest.evaluate(lines);
  expect(stdout.split("\n")).toHaveLength(5001);
  expect(stderr).toBe("bad\n");
});

it.runIf(IS_LONG)("an evaluation has what a reporter prints just after the awaited code", async () => {
  // In a session of its own, since Node's runner changes the process for good.
  const tested = await JavaScriptGuest.start();
  await tested.evaluate("const nodeTest = require('node:module').createRequire('/')('node:test')");
  const { stdout } = await tested.evaluate("await nodeTest.test('adds', () => assert.equal(1 + 1, 3))");
  const next = await tested.evaluate("1");
  expect(stdout).toMatch(/not ok 1 - adds|✖ adds/);
  expect(next.stdout).toBe("");
  // The runner does not take the errors of the session.
  const late = "await new Promise((end) => setTimeout(end, 5))";
  const { stderr } = await tested.evaluate(
    `setTimeout(() => { throw new Error('timer') }, 1); Promise.reject(new Error('refused')); ${late}`,
  );
  await tested.close();
  expect(stderr).toMatch(/Uncaught Error: refused[^]*Uncaught Error: timer/);
});

it("an evaluation respects the print limits", async () => {
  const printing = { printLength: 2, printDepth: 1, outputChars: 10 };
  const values = await guest.evaluate("({ a: [1, 2, 3], b: { c: { d: 1 } } })", undefined, {
    ...printing,
    outputChars: 1000,
  });
  expect(values.values).toEqual(["{ a: [ 1, 2, ... 1 more item ], b: { c: [Object] } }"]);
  // The host cuts a long value.
  expect((await guest.evaluate("'x'.repeat(50)", undefined, printing)).values).toEqual([`'${"x".repeat(50)}'`]);
  const [value] = (await guest.evaluate("'x'.repeat(1_000_007)", undefined, printing)).values;
  expect(value?.slice(-23)).toBe("x'... 7 more characters");
});

it("an evaluation imports and requires relative to its working directory", async () => {
  expect(await guest.value("import plain, { here } from './plain.mjs'; [plain, here.endsWith('plain.mjs')]")).toBe(
    "[ 'plain', true ]",
  );
  expect(await guest.value("(await import('./plain.mjs')).default")).toBe("'plain'");
  expect(await guest.value("const late = () => import('./plain.mjs'); (await late()).default")).toBe("'plain'");
  expect(await guest.value("require('./old.cjs').old === process.cwd()")).toBe("true");
  expect(await guest.value("import { Kind, two } from './typed.ts?1'; Kind.One + two")).toBe("3");
  writeFileSync(join(folder, "typed.ts"), "export const two: number = 22;\n");
  expect(await guest.value("(await import('./typed.ts?2')).two")).toBe("22");
  expect(await guest.evaluate("import { none } from './plain.mjs'")).toMatchObject({
    status: "error",
    condition: { type: "SyntaxError", message: expect.stringContaining("named 'none'") as string },
  });
});

it("an evaluation reports what it defined and how long it took", async () => {
  expect(await guest.evaluate("class A1 {}; function f1() {}; const [v1] = [1]", undefined)).toMatchObject({
    defined: [
      { type: "class", name: "A1" },
      { type: "function", name: "f1" },
      { type: "variable", name: "v1" },
    ],
    timing: { realMs: expect.any(Number) as number, runMs: expect.any(Number) as number },
  });
});

const forms: [name: string, code: string, value: string][] = [
  ["const", "const thing = 'const'", "'const'"],
  ["let", "let thing = 'let'", "'let'"],
  ["an empty let", "let thing", "undefined"],
  ["var", "var thing = 'var'", "'var'"],
  ["a nested var", "{ for (var thing of ['nested']) { } }", "'nested'"],
  ["function", "function thing() { return 1 }", "[Function: thing]"],
  ["async function", "await 1; async function thing() { }", "[AsyncFunction: thing]"],
  ["class", "class thing { }", "[class thing]"],
  ["an object pattern", "const { a: thing = 'object' } = {}", "'object'"],
  ["an array pattern", "let [, ...thing] = [1, 2]", "[ 2 ]"],
  ["await", "const thing = await 'await'", "'await'"],
  ["import", "import { sep as thing } from 'node:path'", "'/'"],
  ["an arrow", "const thing = () => 1", "[Function: thing]"],
  ["an assignment", "thing = 'assigned'", "'assigned'"],
  ["TypeScript", "const thing: string = 'typed'", "'typed'"],
];
it.each(forms)("a redeclaration of every kind may follow %s", async (_name, first, firstValue) => {
  for (const [, second, secondValue] of forms) {
    await guest.value(first);
    expect(await guest.value("thing")).toBe(firstValue);
    await guest.value(second);
    expect(await guest.value("thing"), `${first}; ${second}`).toBe(secondValue);
  }
});

it("a redeclaration is seen by earlier functions", async () => {
  await guest.value("const unit = 2; function area(n) { return n * unit }");
  await guest.value("let unit = 3");
  expect(await guest.value("area(2)")).toBe("6");
});

it("a redeclaration may hide a global of Node", async () => {
  expect(await guest.value("const crypto = 1, fetch = 2; [crypto, fetch]")).toBe("[ 1, 2 ]");
  expect(await guest.value("const fs = require('fs'); typeof fs.readFileSync")).toBe("'function'");
});

it.runIf(IS_LONG)(
  "a redeclaration may have the name of a module or a getter that fails, beside a function",
  async () => {
    const named = await JavaScriptGuest.start();
    await named.value("Object.defineProperty(globalThis, 'failing', { get() { throw 1 }, configurable: true })");
    for (const name of [...builtinModules.filter((one) => /^[a-z]\w+$/.test(one)), "failing"]) {
      await named.value(`const ${name} = '${name}'; function also_${name}() { return ${name} }`);
      expect(await named.value(`also_${name}()`)).toBe(`'${name}'`);
    }
    await named.close();
  },
);

it("an error has the user's own frames at the written positions", async () => {
  await guest.evaluate("function inner() {\n  throw new TypeError('deep')\n}\nclass Outer { run() { inner() } }");
  const { condition, status, values } = await guest.evaluate("\n  await 1; new Outer().run()");
  expect({ status, values }).toEqual({ status: "error", values: [] });
  expect(condition).toMatchObject({ type: "TypeError", message: "deep", restarts: [] });
  const frames = condition?.frames.map(({ number, text }) => `${number} ${text.replace(/<eval \d+>/, "<eval>")}`);
  expect(frames).toEqual(["0 inner (<eval>:2:9)", "1 Outer.run (<eval>:4:23)", "2 <eval>:2:24"]);
});

it.each([
  ["const t: Array<string> = []; (t as any).foo.bar", "<eval>:1:45"],
  ["const t: string = null!.a; const u: number = 1;", "<eval>:1:25"],
  ["missing(1)", "<eval>:1:1"],
  ['import { nope } from "node:fs"', "<eval>:1:1"],
  ["await 1; function f() { null.x } f()", "f (<eval>:1:30)"],
])("an error in %j has the right column or none", async (code, position) => {
  const { condition } = await guest.evaluate(code);
  expect(condition?.frames.map(({ text }) => text.replace(/<eval \d+>/, "<eval>"))[0]).toBe(position);
});

it.each([
  ['import a from "nowhere-at-all"', "install it there (npm install nowhere-at-all), or give the session another"],
  ['require("nowhere-at-all")', "Cannot find package 'nowhere-at-all' from "],
  ['require("./nowhere.js")', "Cannot find module './nowhere.js'"],
])("an error about a module in %j gives advice", async (code, advice) => {
  const { condition } = await guest.evaluate(code);
  expect(condition?.message).toContain(advice);
  expect(condition?.message).not.toContain("session.js");
});

it.each([
  ["import './outer.mjs'", /\/bad\.mjs:2:13\)\n {2}let wrong = ;\n {14}\^$/, /^file:.*\/bad\.mjs:2:13$/],
  ["require('./bad.cjs')", /^Unexpected token ';' \(\/.*\/bad\.cjs:1\)$/, /^\/.*\/bad\.cjs:1$/],
])("an error of syntax in an imported file has its position: %s", async (code, message, frame) => {
  const { condition } = await guest.evaluate(code);
  expect(condition).toMatchObject({ type: "SyntaxError", message: expect.stringMatching(message) as string });
  expect(condition?.frames[0]?.text).toMatch(frame);
});

it("an error has the frames of awaited functions", async () => {
  const { condition } = await guest.evaluate("async function f() { await null; throw new Error('later') }\n await f()");
  expect(condition?.frames.map(({ text }) => text.replace(/<eval \d+>/, "<eval>"))).toEqual([
    "f (<eval>:1:40)",
    "async <eval>:2:2",
  ]);
});

it.each([
  ["throw 42", "Number", "42"],
  ["throw null", "null", "null"],
  ["throw { a: 1 }", "Object", "{ a: 1 }"],
  ["none", "ReferenceError", "none is not defined"],
  ["class Mine extends Error {}; throw new Mine('own')", "Mine", "own"],
  ["throw new Error('a', { cause: new TypeError('b') })", "Error", "a\n  [cause] TypeError: b"],
  ["throw new Error('a', { cause: Object.create(new TypeError('b')) })", "Error", "a\n  [cause] TypeError: b"],
  ["throw Object.defineProperty(new Error(), 'stack', { get() { throw 1 } })", "Error", expect.any(String)],
  ["(function f() { f() })()", "RangeError", "Maximum call stack size exceeded"],
  ["({ [Symbol.for('nodejs.util.inspect.custom')]() { throw new Error('unprintable') } })", "Error", "unprintable"],
])("an error is described for %j", async (code, type, message) => {
  expect(await guest.evaluate(code)).toMatchObject({ status: "error", condition: { type, message } });
});

it.each([
  ["const a = 1;\nfoo(", "Unexpected end of input (line 2, column 5)\n  foo(\n      ^"],
  ["let a: number = ;", "Unexpected token (line 1, column 17)\n  let a: number = ;\n                  ^"],
])("an error of syntax in %j has its position", async (code, message) => {
  expect(await guest.evaluate(code)).toMatchObject({ status: "error", condition: { type: "SyntaxError", message } });
});

it("an error about too deep nesting is an error of the evaluation", async () => {
  const message = expect.stringContaining("nested too deeply") as string;
  const deep = await guest.evaluate("[".repeat(20_000) + "]".repeat(20_000));
  expect(deep).toMatchObject({ status: "error", condition: { type: "RangeError", message } });
});

it("an error that only the engine finds has its position too", async () => {
  const { condition } = await guest.evaluate("1;\n/(?<a>x)(?<a>y)/");
  expect(condition).toMatchObject({ type: "SyntaxError" });
  expect(condition?.frames[0]?.text).toMatch(/^<eval \d+>:2:\d+$/);
});

it("an error is printed as a value without the guest's frames", async () => {
  expect(await guest.value("new Error('kept')")).toMatch(/^Error: kept\n {4}at <eval \d+>:1:1$/);
});

it("an error that is not caught does not end the session", async () => {
  const during = await guest.evaluate(
    "setTimeout(() => { throw new Error('timer') }); await new Promise((r) => setTimeout(r, 20))",
  );
  expect(during).toMatchObject({ status: "ok", stderr: expect.stringContaining("Uncaught Error: timer") as string });
  await guest.value("void Promise.reject(new Error('stray')); 1");
  await eventually(() => expect(guest.printed).toContain("Uncaught Error: stray"));
  await guest.value("process.removeAllListeners(); setTimeout(() => { throw new Error('again') }); 1");
  await eventually(() => expect(guest.printed).toContain("Uncaught Error: again"));
  expect(await guest.value("1")).toBe("1");
});
