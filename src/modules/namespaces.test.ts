// Namespaces in modules: what they export, how they merge, and that lines stay where they are.

import { describe, expect, it } from "vitest";
import { compile } from "./typescript.ts";

/** What a module exports. */
async function run(source: string): Promise<Record<string, unknown>> {
  const [text = ""] = compile(source, "/x/mine.ts").code.split("\n//# sourceMappingURL=");
  return (await import(`data:text/javascript,${encodeURIComponent(text)}`)) as Record<string, unknown>;
}

describe("a namespace", () => {
  it.each([
    [
      "of functions and constants",
      "export namespace G {\n  const one: number = 1;\n  export const of = (n: number): number => n + one;\n  export function twice(n: number): number { return of(of(n)); }\n}\nexport const value = G.twice(1);",
      3,
    ],
    [
      "of classes and enums",
      "namespace G {\n  export enum Kind { A = 1, B }\n  export const enum Size { S = 5 }\n  export abstract class Base { abstract n(): number }\n  export class G extends Base { n() { return Kind.B + Size.S; } }\n}\nexport const value = new G.G().n() + G.Kind.A;",
      8,
    ],
    [
      "with another in it",
      "namespace A {\n  export namespace B {\n    export const b = 2;\n    namespace Hidden { export const c = 3; }\n    export const c = Hidden.c;\n  }\n}\nexport const value = [A.B.b, A.B.c, Object.keys(A.B)];",
      [2, 3, ["b", "c"]],
    ],
    [
      "with a name of several parts",
      "namespace A.B.C {\n  export const d = 1;\n  export const e = C.d + B.C.d;\n}\nexport const value = A.B.C.e;",
      2,
    ],
    [
      "in several blocks",
      "export namespace A {\n  export const a = 1;\n}\nexport namespace A {\n  export const b = A.a + 1;\n}\nexport const value = [A.a, A.b];",
      [1, 2],
    ],
    [
      "that adds to a class, a function and an enum",
      "export class A { size = A.SIZE }\nexport namespace A { export const SIZE = 3; }\nfunction f() { return f.n; }\nnamespace f { export const n = 4; }\nenum E { X }\nnamespace E {\n  export function next(e: E): number { return e + 1; }\n}\nexport const value = [new A().size, f(), E.next(E.X)];",
      [3, 4, 1],
    ],
    [
      "with destructured, several and changing variables",
      "namespace A {\n  export const { a, b: [b], ...rest } = { a: 1, b: [2], c: 3 }, d = ((x: number) => x)(4)\n  const hidden = 0\n  export let count: number = hidden\n  export function next() { return ++count; }\n}\nA.next(); A.count += 5; A.next();\nexport const value = [A.a, A.b, A.rest, A.d, A.count, Object.keys(A)];",
      [1, 2, { c: 3 }, 4, 7, ["a", "b", "rest", "d", "count", "next"]],
    ],
    [
      "with types, overloads, aliases and declarations",
      "namespace Types {\n  export interface T { n: number }\n  export type U = T;\n}\nnamespace A {\n  export type X = Types.U;\n  export declare const nothing: number;\n  export function of(n: number): number;\n  export function of(n: string): string;\n  export function of(n: never) { return n; }\n  export async function* many() { yield 1; }\n  export import Inner = A.of;\n}\ndeclare namespace Z {\n  namespace Y { const y: number; }\n}\ndeclare global {\n  namespace X { const x: number; }\n}\nexport const value = [A.of(1), A.Inner(2), Object.keys(A), typeof Types];",
      [1, 2, ["of", "many", "Inner"], "undefined"],
    ],
    [
      "beside the same words in other places",
      "const module = { namespace: 1 };\nconst text = `\nnamespace A {\n`;\n/*\nnamespace B {\n*/\nnamespace C {\n  export const brace = `}${`{`}` + '}'.replace(/}/, '{');\n}\nexport const value = [module.namespace, text.length, C.brace];",
      [1, 15, "}{{"],
    ],
    [
      "with its header in several lines",
      "namespace A {\n  export namespace\n  B\n  {\n    export const c = 1;\n  }\n}\nexport const value = A.B.c;",
      1,
    ],
  ])("%s works", async (_what, source, expected) => {
    expect((await run(source))["value"]).toEqual(expected);
  });

  it("leaves every line where it is", () => {
    const source =
      "namespace A {\n  export const a: number = 1;\n\n  export namespace B {\n    throw new Error('5');\n  }\n}\nthrow new Error('8');\n";
    const lines = compile(source, "/x/mine.ts").code.split("\n");
    expect([lines[1], lines[4], lines[7]]).toEqual([
      expect.stringContaining("const a = 1;"),
      expect.stringContaining("Error('5')"),
      "throw new Error('8');",
    ]);
  });

  it("is in the source map as the author wrote it", () => {
    const source = "export namespace G {\n  export const of = 1;\n}\n";
    expect(compile(source, "/x/mine.ts").map).toMatchObject({ sources: ["/x/mine.ts"], sourcesContent: [source] });
  });

  it("with a mistake is reported with its line", () => {
    expect(() => compile("namespace A {\n  const a: = 1;\n}\n", "/x/mine.ts")).toThrow("/x/mine.ts:2:");
  });
});
