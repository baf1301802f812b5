// Rewriting code before it runs: lines stay, columns are mapped back, declarations become assignments. guest.test.ts
// shows with a real guest that the meaning is the same.

import { inspect } from "node:util";
// Only to get another global object.
// oxlint-disable-next-line no-restricted-imports
import { createContext, runInContext } from "node:vm";
import fc from "fast-check";
import { expect, it } from "vitest";
import { rewrite, writtenColumn, type Rewritten } from "./rewrite.ts";
import { parse, CodeSyntaxError } from "./parse.ts";

const rewritten = (code: string): Rewritten => rewrite(parse(code));

it.each([
  ["const a = 1, b = 2", ";     a = 1, b = 2;"],
  ["let a", ";   a=void 0;"],
  ["var a;", ";   a;"],
  ["const { a, b: [c] } = d", ";(    { a, b: [c] } = d);"],
  ["class A {}\n(1)", ";A=class A {};\n$c.v=((1))"],
  ["function f() {}", ""],
  ["if (a) { function f() {} }\nvar b", "if (a) { function f() {} }\nvar b"],
  ["'use strict'; var b", "'use strict'; var b"],
  ["eval('var a'); a", "eval('var a'); a"],
  ["try { a } finally { b }", "try { $c.v=(a) } finally { b }"],
  ["f(import.meta.url)", "$c.v=(\nf($importMeta.url))\n"],
  ["for (let i = 0;;) {}", "for (let i = 0;;) {}"],
  ["{ let a = 1; var b = a }", "{ let a = 1; ;   b = a; }"],
  ["(() => { var a = 1 })()", "$c.v=(\n(() => { var a = 1 })())\n"],
  ["export const a = 1", "       ;     a = 1;"],
  ["{ a: 1 }", "($c.v=(\n{ a: 1 })\n)"],
])("rewrite rewrites %j", (code, text) => {
  expect(rewritten(code).code).toBe(text);
});

/** The text around an `await`, as it is in the code that runs. */
const awaiting = (text: string): string =>
  text.replaceAll(/await<([^>]*)>/g, "$c.u($c.o&&await $c.n,await $1,$c.o&&await $c.n)");

it.each([
  ["await a", "(async($c)=>{await 0;try{$c.v=(\nawait<a>)\n;$c.k=1}finally{$c.e()}})"],
  ["const a = await b", ";     a = await<b>;"],
  ["{ a: await b }", "($c.v=(\n{ a: await<b> })\n);$c.k=1}"],
  ["await a; if (b) c; else d", "\nawait<a>; if (b) $c.v=(c); else $c.v=(d)\n"],
  ["await 1; for (var i = 0; i < 1; i++) {}", "; for (    i = 0; i < 1; i++) {}"],
  ["await 1; for (var { a } of b) {}", "; for (    { a } of b) {}"],
  ["await 1; if (a) var b = 1; else var b = 2", "; if (a)     b = 1; else     b = 2;"],
  ["await 1; { let a = 1; var b = a }", "; { let a = 1; ;   b = a; }"],
  ["await $c", "(async($c$)=>{await 0;try{$c$.v=(\n"],
  ['import "a"', '\n;await<import("a")>;\n'],
  ['import * as a from "a"', '\n;a=await<import("a")>;\n'],
  ['import a from "a" with { type: "json" }', 'import("a",{with:{type:"json"}})'],
  ['import a, { b as c } from "d"', ';({"default":a,"b":c}=$c.i(await<import("d")>,"d",["default","b"]));'],
])("rewrite makes an async function of %j", (code, text) => {
  expect(rewritten(code).code).toContain(awaiting(text));
});

it("rewrite hoists functions out of code with a top-level await", () => {
  const { hoisted, code } = rewritten("f();\nawait 1; async function f() {\n}\n");
  expect(hoisted?.replaceAll(/ +/g, " ")).toBe(" \n async function f() {\n}");
  expect(code).not.toContain("function f");
});

it.each([
  "const a = 1\nlet b\nclass C {\n  m() {}\n}\na",
  'import {\n  a,\n  b\n} from "x"\na',
  "await 1\nconst {\n a,\n b } = c\nfunction f() {\n}\nf()",
  "{\n  a: await 1\n}",
])("rewrite keeps every line of %j", (code) => {
  const { code: text, lineOffset } = rewritten(code);
  const lines = text.split("\n");
  expect(lines.length + 2 * lineOffset).toBe(code.split("\n").length);
});

it("rewrite maps columns back", () => {
  const source = "class A { m() { return 1 } }; const { a } = await b; here()";
  const { code, shifts } = rewritten(source);
  const line = code.split("\n")[1] ?? "";
  for (const mark of ["m()", "return", "{ a }", "here"]) {
    expect(writtenColumn(shifts, 1, line.indexOf(mark) + 1)).toBe(source.indexOf(mark) + 1);
  }
});

it("rewrite reports the declarations with their lines, and whether there is a value", () => {
  const code = "const a = 1, { b, ...c } = {};\nclass D {}\nfunction e() {}\nfor (var f of []) {}";
  expect(rewritten(code)).toMatchObject({
    hasValue: true,
    declared: [
      { name: "a", type: "variable", line: 1 },
      { name: "b", type: "variable", line: 1 },
      { name: "c", type: "variable", line: 1 },
      { name: "D", type: "class", line: 2 },
      { name: "e", type: "function", line: 3 },
      { name: "f", type: "variable", line: 4 },
    ],
  });
  expect(rewritten("1; const a = 2;;").hasValue).toBe(false);
  expect(rewritten("").hasValue).toBe(false);
});

const statements = [
  "const a = 1",
  "let b",
  "let c = 2, d",
  "var e = [1, 2]",
  "const [g, ...h] = [1, 2]",
  "var { t = 1, u: { v } = { v: 2 } } = {}",
  "class K { static s = 2 }",
  "function fn(x) { return x }",
  "(1, 2)",
  "[1, 2].map((x) => x)",
  "`t`",
  "+1",
  "if (1) { var i = 4; i } else var j = 5",
  "for (var k = 0; k < 2; k++) k",
  "for (var l of [1, 2]) l",
  "switch (1) { case 1: var o = 2; o }",
  "try { throw 1 } catch (q) { q }",
  "{ let r = 1; r }",
  "let y = function () { var hidden = 1 }.name; y",
  "'text'",
];
const code = fc
  .array(fc.tuple(fc.constantFrom(...statements), fc.constantFrom(";", "\n", " // no\n", ";\n\n")), { maxLength: 5 })
  .map((parts) => [...new Map(parts)].flat().join(""));

const native = (text: string): string => printed(() => runInContext(text, createContext()));
const printed = (run: () => unknown): string => {
  try {
    return inspect(run());
  } catch (error) {
    return String(error);
  }
};

it("rewritten code has the same value", () => {
  fc.assert(
    fc.property(code, (text) => {
      const { code: other, form, hasValue, declared, hoisted = "" } = rewritten(text);
      fc.pre(hasValue && form === "function");
      const context = createContext(Object.fromEntries(declared.map(({ name }) => [name, undefined])));
      const scope = { v: undefined };
      const run = (): unknown => {
        runInContext(hoisted, context);
        (runInContext(`(function ($c) {${other}\n})`, context) as (given: object) => void)(scope);
        return scope.v;
      };
      expect(printed(run)).toBe(native(text));
    }),
  );
});

it("rewritten code ends the statement before a hoisted function", () => {
  const { code: other } = rewritten("await 0;+1 // no\nfunction fn() {}\n`t`");
  expect(other).toMatch(/\n; +\n/);
});

it("rewritten code has the same value with a top-level await", async () => {
  await fc.assert(
    fc.asyncProperty(code, async (text) => {
      const { code: other, hasValue, declared, hoisted = "" } = rewritten(`await 0;${text}`);
      const expected = native(text);
      fc.pre(hasValue && !expected.includes("Error") && text !== "");
      const context = createContext(Object.fromEntries(declared.map(({ name }) => [name, undefined])));
      const scope = { u: (_before: unknown, value: unknown) => value, e: () => undefined, v: undefined };
      runInContext(hoisted, context);
      await (runInContext(other, context) as (given: object) => Promise<void>)(scope);
      expect(inspect(scope.v)).toBe(expected);
    }),
  );
});

it.each([
  ["let a: number = 1", "let a = 1"],
  ["interface A { b: string }\nconst c = <T,>(d: T): T => d", "const c = "],
  ["{ a: 1 as number, b: 2 }", "b: 2"],
  ['import b from "b"; let a: number', 'import b from "b"'],
  ["enum A { B }", "var A"],
])("parse accepts TypeScript in %j", (code, part) => {
  const parsed = parse(code);
  expect(parsed.typedColumn).toBeDefined();
  expect(parsed.source.replaceAll(/ +/g, " ")).toContain(part);
});

it.each([
  ["a b", "Unexpected token", 1, 3],
  ["f(\n", "Unexpected end of input", 2, 1],
  ["let a = 1;\nlet a: = 2", "Unexpected token", 2, 8],
  ["let a: number = 1;\nlet b = ;", "Unexpected token", 2, 9],
  ["let a; let a", "Identifier 'a' has already been declared", 1, 12],
  ["return 1", "'return' outside of function", 1, 1],
])("parse refuses %j", (code, message, line, column) => {
  let thrown: unknown;
  try {
    parse(code);
  } catch (error) {
    thrown = error;
  }
  expect(thrown).toBeInstanceOf(CodeSyntaxError);
  expect(thrown).toMatchObject({ message, position: { line, column } });
});
