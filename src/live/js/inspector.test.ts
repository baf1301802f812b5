// What a session keeps at an error: the variables of the user's functions, which evaluate-in-frame uses, and handles of
// values that were not printed whole. Each test has a guest of its own, or few evaluations: variables are not captured
// while a program sends one evaluation after the other.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { JavaScriptGuest } from "../../../test/support/live/javascript-guest.ts";
import type { GuestEvaluation } from "../runtime.ts";

let guest: JavaScriptGuest;
beforeAll(async () => {
  guest = await JavaScriptGuest.start();
});
afterAll(() => guest.close());

interface Shown {
  readonly text: string;
  readonly locals?: readonly { readonly name: string; readonly value: string; readonly handle?: number }[];
}

/** The frames of the error, each with its variables. */
function frames({ condition }: Pick<GuestEvaluation, "condition">): string[] {
  return (condition?.frames ?? []).map((frame) => {
    const { text, locals } = frame as Shown;
    const shown = locals?.map(({ name, value }) => `${name} = ${value}`).join(", ");
    return `${text.replace(/ ?\(?<eval \d+>:\d+(?::\d+)?\)?$/, "")} | ${shown ?? "none"}`;
  });
}

const inFrame = async (frame: number, code: string): Promise<GuestEvaluation> =>
  (await guest.guest.request("evaluate-in-frame", { frame, code }).reply) as unknown as GuestEvaluation;

it.each([
  [
    "a function",
    "function inner(z) { const w = z + 1; if (w) { let o = { a: 1 }; null.foo } }\nfunction outer(x) { let y = x * 2; inner(y) }\nouter(3)",
    ["inner | o = { a: 1 }, w = 7, z = 6", "outer | y = 6, x = 3", " | "],
  ],
  [
    "a method that awaits",
    "class Shop { stock = 2; async sell(n) { const price = n * 2; await new Promise((r) => setTimeout(r, 2)); throw new RangeError('no') } }\nawait new Shop().sell(4)",
    ["Shop.sell | this = Shop { stock: 2 }, n = 4, price = 8", "async | none"],
  ],
  [
    "a callback",
    "[5].forEach((five) => { throw new Error('no') })",
    [" | five = 5", "Array.forEach (<anonymous>) | none", " | "],
  ],
  ["a value", "(function f(a) { throw 42 })(1)", ["f | a = 1", " | "]],
  ["a function of Node", "((path) => fs.readFileSync(path))('/nowhere')", [" | path = '/nowhere'", " | "]],
])("an error in %s has the variables", async (_name, code, expected) => {
  const shown = frames(await guest.evaluate(code)).map((one) => one.replace(/^(\S+) \| (.*)$/, "$1 | $2"));
  const sort = (text: string): string =>
    text.replace(/\| (.*)$/, (_, list: string) => `| ${list.split(", ").toSorted().join(", ")}`);
  expect(shown.map(sort)).toEqual(expected.map(sort));
});

it("an error of syntax in a required file has the variables and the position in the file", async () => {
  const file = join(mkdtempSync(join(tmpdir(), "catenary-js-")), "bad.cjs");
  writeFileSync(file, "let right = 1;\nlet wrong = ;\n");
  const found = await guest.evaluate(`(function load(file) { require(file) })(${JSON.stringify(file)})`);
  expect(found.condition?.message).toBe(`Unexpected token ';' (${file}:2:13)\n  let wrong = ;\n              ^`);
  expect(frames(found)).toEqual([`${file}:2:13 | none`, `load | file = '${file}'`, " | "]);
  rmSync(dirname(file), { recursive: true });
});

it("an error that is caught pauses nothing, and the next one has its variables", async () => {
  const code = "for (let i = 0; i < 1000; i++) { try { null.x } catch {} try { await Promise.reject(1) } catch {} }";
  expect(frames(await guest.evaluate(`${code}\n(function last(here) { null.y })(1)`))).toEqual([
    "last | here = 1",
    " | ",
  ]);
});

it("an error has none after too many that looked uncaught", async () => {
  const late = "for (let i = 0; i < 100; i++) { const p = (async () => { throw 1 })(); try { await p } catch {} }";
  expect(frames(await guest.evaluate(`${late}\n(function last(here) { null.y })(1)`))).toEqual([
    "last | none",
    " | none",
  ]);
  expect(frames(await guest.evaluate("(function last(here) { null.y })(1)"))).toEqual(["last | here = 1", " | "]);
});

it("an error has no frames of the guest in its stack", async () => {
  expect(await guest.value("(function f() { return new Error('x').stack })()")).toMatch(
    /^'Error: x\\n    at f \(<eval \d+>:1:24\)\\n    at <eval \d+>:1:47'$/,
  );
  expect(await guest.value("const f = async () => { await 1; return new Error('x').stack }; await f()")).not.toContain(
    "/live/js/",
  );
  const { stderr } = await guest.evaluate("console.trace('here')");
  expect(stderr).toMatch(/^Trace: here\n {4}at <eval \d+>:1:9\n$/);
});

it("evaluate-in-frame sees copies of the variables, this and closures, and changes the copies only", async () => {
  const code =
    "let total = 1; const make = () => { const rate = 3; return { rate: 9, run(n) { let sum = n * rate; total = sum; null.x } } }; make().run(2)";
  expect(frames(await guest.evaluate(code))[0]).toMatch(/^Object\.run \| this = \{.*\}, (?=.*n = 2)(?=.*sum = 6)/);
  expect(await inFrame(0, "[n, sum, rate, this.rate]")).toMatchObject({ values: ["[ 2, 6, 3, 9 ]"] });
  expect(
    await inFrame(0, "sum += 1; const own: number = await sum; function twice() { return own * 2 }; twice()"),
  ).toMatchObject({
    values: ["14"],
  });
  expect(await inFrame(0, "sum")).toMatchObject({ values: ["7"] });
  expect(await inFrame(0, "none.at.all")).toMatchObject({ status: "error", condition: { type: "ReferenceError" } });
  expect(await inFrame(0, "sum")).toMatchObject({ values: ["7"] });
  expect(await guest.value("typeof own + typeof twice + total")).toBe("'undefinedundefined6'");
});

it("evaluate-in-frame captures the variables of the next error once one was asked for, however fast evaluations follow", async () => {
  const quick = await JavaScriptGuest.start();
  const code = "(function f() { const x = 1; null.y })()";
  const inFirst = (): Promise<unknown> => quick.tool("evaluate-in-frame", { frame: 0, code: "x" });
  // Errors of a measured evaluation are not captured, as those of a program that sends one after the other.
  await quick.evaluate(code, undefined, { captureTime: true });
  expect(await inFirst()).toMatchObject({ text: expect.stringContaining("Evaluate the code again") as string });
  await quick.evaluate(code);
  expect(await inFirst()).toMatchObject({ values: ["1"] });
  await quick.close();
});

it("evaluate-in-frame refuses frames without variables", async () => {
  await guest.evaluate("(function f() { f() })()");
  expect(await inFrame(0, "1")).toMatchObject({
    isError: true,
    text: expect.stringContaining("were not captured") as string,
  });
  expect(await inFrame(99, "1")).toMatchObject({
    isError: true,
    text: expect.stringContaining("no frame 99") as string,
  });
  const fresh = await JavaScriptGuest.start();
  expect(await fresh.tool("evaluate-in-frame", { frame: 0, code: "1" })).toMatchObject({
    isError: true,
    text: "There has been no error in this session.",
  });
  await fresh.close();
});

it.each(["list-restarts", "take-restart"])("evaluate-in-frame is what there is instead of %s", async (op) => {
  expect(await guest.tool(op, { restart: "0" })).toMatchObject({
    isError: true,
    text: expect.stringContaining("JavaScript has no restarts") as string,
  });
});

/** Evaluates the code, and shows the value under its handle. */
async function inspected(code: string, params: object = {}): Promise<string[]> {
  const { handles } = (await guest.evaluate(code, undefined, { printDepth: 1 })) as { handles?: readonly number[] };
  const { text } = await guest.tool("inspect", { handle: handles?.[0], ...params });
  return text.replaceAll(/\[handle \d+\]/g, "[handle]").split("\n");
}

it.each([
  [
    "({ a: { b: { c: {} } }, get d() { throw 1 } })",
    ["Object, 2 parts", "0: a = { b: { c: {} } }", "1: d = [Getter, not called]"],
  ],
  ["new Map([[{ k: 1 }, () => 1]])", ["Map, 1 part", "0: [{ k: 1 }] = [Function (anonymous)] [handle]"]],
  ["new Set([[[[]]]])", ["Set, 1 part", "0: [0] = [ [ [] ] ]"]],
  [
    "new Proxy({ t: 1 }, { ownKeys() { throw 1 } })",
    ["Proxy, 2 parts", "0: [[Handler]] = { ownKeys: [Function: ownKeys] } [handle]", "1: [[Target]] = { t: 1 }"],
  ],
  ["Promise.resolve(7)", ["Promise, 2 parts", "0: [[PromiseState]] = 'fulfilled'", "1: [[PromiseResult]] = 7"]],
  ["'x'.repeat(2_000_000)", ["string of 2000000 characters, 2000 parts"]],
])("inspect shows the parts of %s", async (code, expected) => {
  expect(await inspected(code, { count: 3 })).toEqual(expect.arrayContaining(expected));
});

it("inspect shows what a function closes over", async () => {
  const lines = await inspected("(() => { let secret = 5; return function f() { return secret } })()");
  expect(lines[0]).toMatch(/^function, /);
  expect(lines).toContainEqual(expect.stringMatching(/^\d+: closure secret = 5$/));
});

it("inspect shows pages", async () => {
  const lines = await inspected("Array.from({ length: 120 }, (_, i) => [i])", { start: 50, count: 2 });
  expect(lines).toEqual(["Array, 121 parts", "50: 50 = [ 50 ]", "51: 51 = [ 51 ]", "... 69 more; pass start: 52"]);
});

it("inspect refuses a handle that it does not know", async () => {
  expect(await guest.tool("inspect", { handle: 100_000 })).toMatchObject({ isError: true });
});
