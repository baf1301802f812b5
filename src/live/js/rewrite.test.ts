// What code becomes before it is run: its lines stay, its columns are found again, and its declarations are gone. That
// the outcome means the same is shown on a real guest (see guest.test).

import { inspect } from "node:util";
// Here it is only another global object.
// oxlint-disable-next-line no-restricted-imports
import { createContext, runInContext } from "node:vm";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { writtenColumn } from "./source-positions.ts";
import { rewrite, type Rewritten } from "./rewrite.ts";
import { parse, SyntaxFault } from "./parse.ts";

const made = (code: string): Rewritten => rewrite(parse(code));

describe("the rewriting", () => {
  it.each([
    ["const a = 1, b = 2", ";     a = 1, b = 2;"],
    ["let a", ";   a=void 0;"],
    ["var a;", "var a;"],
    ["const { a, b: [c] } = d", ";(    { a, b: [c] } = d);"],
    ["class A {}\n(1)", ";A=class A {};\n(1)"],
    ["function f() {}", "function f() {}"],
    ["for (let i = 0;;) {}", "for (let i = 0;;) {}"],
    ["{ let a = 1; var b = a }", "{ let a = 1; var b = a }"],
    ["(() => { var a = 1 })()", "(() => { var a = 1 })()"],
    ["export const a = 1", "       ;     a = 1;"],
    ["{ a: 1 }", "(\n{ a: 1 }\n)"],
  ])("makes of %j", (code, text) => {
    expect(made(code).code).toBe(text);
  });

  it.each([
    ["await a", "(async($c)=>{\n$c.v=(await $c.a( a))\n})"],
    ["const a = await b", "(async($c)=>{\n;     a = await $c.a( b);\n})"],
    ["{ a: await b }", "(async($c)=>{(\n$c.v=({ a: await $c.a( b) })\n)})"],
    ["await a; if (b) c; else d", "(async($c)=>{\nawait $c.a( a); if (b) $c.v=(c); else $c.v=(d)\n})"],
    ["await 1; for (var i = 0; i < 1; i++) {}", "; for (    i = 0; i < 1; i++) {}"],
    ["await 1; for (var { a } of b) {}", "; for (    { a } of b) {}"],
    ["await 1; if (a) var b = 1; else var b = 2", "; if (a)     b = 1; else     b = 2;"],
    ["await 1; { let a = 1; var b = a }", "; { let a = 1; ;   b = a; }"],
    ["await $c", "(async($c$)=>{\n$c$.v=(await $c$.a( $c))\n})"],
    ['import "a"', '(async($c)=>{\n;await $c.a(import("a"));\n})'],
    ['import * as a from "a"', '(async($c)=>{\n;a=await $c.a(import("a"));\n})'],
    ['import a from "a" with { type: "json" }', 'import("a",{with:{type:"json"}})'],
    ['import a, { b as c } from "d"', ';({"default":a,"b":c}=$c.i(await $c.a(import("d")),"d",["default","b"]));'],
  ])("makes an async function of %j", (code, text) => {
    expect(made(code).code).toContain(text);
  });

  it("runs the functions first where something is awaited", () => {
    const { hoisted, code } = made("f();\nawait 1; async function f() {\n}\n");
    expect(hoisted).toBe("    \n                async function f() {\n}");
    expect(code).not.toContain("function f");
  });

  it.each([
    "const a = 1\nlet b\nclass C {\n  m() {}\n}\na",
    'import {\n  a,\n  b\n} from "x"\na',
    "await 1\nconst {\n a,\n b } = c\nfunction f() {\n}\nf()",
    "{\n  a: await 1\n}",
  ])("keeps every line of %j", (code) => {
    const { code: text, lineOffset } = made(code);
    const lines = text.split("\n");
    expect(lines.length + 2 * lineOffset).toBe(code.split("\n").length);
  });

  it("finds the columns again", () => {
    const source = "class A { m() { return 1 } }; const { a } = await b; here()";
    const { code, anchors } = made(source);
    const line = code.split("\n")[1] ?? "";
    for (const mark of ["m()", "return", "{ a }", "here"]) {
      expect(writtenColumn(anchors, 1, line.indexOf(mark) + 1)).toBe(source.indexOf(mark) + 1);
    }
  });

  it("says what was declared, where, and whether there is a value", () => {
    const code = "const a = 1, { b, ...c } = {};\nclass D {}\nfunction e() {}\nfor (var f of []) {}";
    expect(made(code)).toMatchObject({
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
    expect(made("1; const a = 2;;").hasValue).toBe(false);
    expect(made("").hasValue).toBe(false);
  });
});

describe("what was rewritten", () => {
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

  it("has the value that it had before", () => {
    fc.assert(
      fc.property(code, (text) => {
        const { code: other, hasValue, declared } = made(text);
        fc.pre(hasValue);
        const context = createContext(Object.fromEntries(declared.map(({ name }) => [name, undefined])));
        expect(printed(() => runInContext(other, context))).toBe(native(text));
      }),
    );
  });

  it("does not run on over a function that was hoisted", () => {
    const { code: other } = made("await 0;+1 // no\nfunction fn() {}\n`t`");
    expect(other).toMatch(/\n; +\n/);
  });

  it("has it where something is awaited too", async () => {
    await fc.assert(
      fc.asyncProperty(code, async (text) => {
        const { code: other, hasValue, declared, hoisted = "" } = made(`await 0;${text}`);
        const expected = native(text);
        fc.pre(hasValue && !expected.includes("Error") && text !== "");
        const context = createContext(Object.fromEntries(declared.map(({ name }) => [name, undefined])));
        const box = { a: async (value: unknown) => value, v: undefined };
        runInContext(hoisted, context);
        await (runInContext(other, context) as (given: object) => Promise<void>)(box);
        expect(inspect(box.v)).toBe(expected);
      }),
    );
  });
});

describe("the syntax", () => {
  it.each([
    ["let a: number = 1", "let a = 1"],
    ["interface A { b: string }\nconst c = <T,>(d: T): T => d", "const c = "],
    ["{ a: 1 as number, b: 2 }", "b: 2"],
    ['import b from "b"; let a: number', 'import b from "b"'],
    ["enum A { B }", "var A"],
  ])("is that of TypeScript in %j", (code, part) => {
    const parsed = parse(code);
    expect(parsed.isTypeScript).toBe(true);
    expect(parsed.source.replaceAll(/ +/g, " ")).toContain(part);
  });

  it.each([
    ["a b", "Unexpected token", 1, 3],
    ["f(\n", "Unexpected end of input", 2, 1],
    ["let a = 1;\nlet a: = 2", "Unexpected token", 2, 8],
    ["let a: number = 1;\nlet b = ;", "Unexpected token", 2, 9],
    ["let a; let a", "Identifier 'a' has already been declared", 1, 12],
    ["return 1", "'return' outside of function", 1, 1],
  ])("is wrong in %j", (code, message, line, column) => {
    let fault: unknown;
    try {
      parse(code);
    } catch (error) {
      fault = error;
    }
    expect(fault).toBeInstanceOf(SyntaxFault);
    expect(fault).toMatchObject({ message, place: { line, column } });
  });
});
