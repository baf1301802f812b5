// Compiling TypeScript: types, line numbers and errors. That Node runs the result is tested in test/contract/modules.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { SourceMap, type SourceMapPayload } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { load, compile, isTypeScript } from "./typescript.ts";

const SOURCE = `import type { Middleware } from "catenary";
interface Options {
  readonly prefix: string;
}
enum Kind { One = 1, Two }
export const kind: Kind = Kind.Two;
export function fail(options: Options, next?: Middleware): never { const text: string = options.prefix; throw new Error(text); }
`;

let folder = "";
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "catenary-typescript-"));
});
afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
});

it("compile removes types, creates enums, and keeps every line in place", async () => {
  const { code } = await compile(SOURCE, "/x/mine.ts");
  const lines = code.split("\n");
  expect(lines[4]).toContain("var Kind;");
  expect(lines[5]).toBe("export const kind = Kind.Two;");
  expect(lines[6]).toContain("throw new Error(text)");
  expect(code).not.toMatch(/interface|import type|: string/);
});

it("compile adds a source map with the original positions", async () => {
  const { code } = await compile(SOURCE, "/x/mine.ts");
  const [, inline = ""] = /sourceMappingURL=data:application\/json;base64,(.*)$/m.exec(code) ?? [];
  const map = JSON.parse(Buffer.from(inline, "base64").toString()) as SourceMapPayload;
  const column = code.split("\n")[6]?.indexOf("new Error") ?? 0;
  expect(map).toMatchObject({ sources: ["/x/mine.ts"], sourcesContent: [SOURCE] });
  expect(new SourceMap(map).findEntry(6, column)).toMatchObject({
    originalSource: "/x/mine.ts",
    originalLine: 6,
    originalColumn: SOURCE.split("\n")[6]?.indexOf("new Error"),
  });
});

it("compile creates namespaces, with a source map", async () => {
  const source =
    'import type { A } from "a";\nexport namespace G {\n  export const of = (n: number): number => n + 1;\n}\n';
  const { code, map } = await compile(source, "/x/mine.ts");
  const [, text = ""] = /^([^]*)\n\/\/# sourceMappingURL=/.exec(code) ?? [];
  const module = (await import(`data:text/javascript,${encodeURIComponent(text)}`)) as {
    G: { of(n: number): number };
  };
  expect(module.G.of(1)).toBe(2);
  expect(map).toMatchObject({ sources: ["/x/mine.ts"], sourcesContent: [source] });
  await expect(compile("namespace A {\n  const a: = 1;\n}\n", "/x/mine.ts")).rejects.toThrow("/x/mine.ts:2:");
});

it("compile reports an error with file, line and column, without our own stack", async () => {
  const error: unknown = await compile("const a = 1;\nconst b: = 2;\n", "/x (1): y/mine.ts").catch(
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(SyntaxError);
  expect(error).toMatchObject({
    message: "/x (1): y/mine.ts:2:10: Unexpected token",
    stack: "SyntaxError: /x (1): y/mine.ts:2:10: Unexpected token",
  });
});

it.each([
  ["a.ts", true],
  ["a.mts", true],
  ["a.cts", false],
  ["a.tsx", false],
  ["ats", false],
  ["a.ts.js", false],
])("compile is used for %s: %s", (file, isOurs) => {
  expect(isTypeScript(file)).toBe(isOurs);
});

/** What a module exports. */
async function run(source: string): Promise<Record<string, unknown>> {
  const [text = ""] = (await compile(source, "/x/mine.ts")).code.split("\n//# sourceMappingURL=");
  return (await import(`data:text/javascript,${encodeURIComponent(text)}`)) as Record<string, unknown>;
}

/** The values are those of the JavaScript that TypeScript writes. */

it.each([
  [
    "with operators of angle brackets",
    "namespace A { export const a = 8 >= 2, b = 8 >> 1, c = 8 >>> 2; export let d = 8; d >>= 1; }\nexport const value = [A.a, A.b, A.c, A.d];",
    [true, 4, 2, 4],
  ],
  ["with its brace on the next line", "namespace A\n{\n  export const a = 1;\n}\nexport const value = A.a;", 1],
  [
    "with comments around its name",
    "namespace /* of */ A /* has */ . // parts\n B /* { */ { export const a = 1; }\nexport const value = A.B.a;",
    1,
  ],
  [
    "after another statement in its line",
    "const b = 1; namespace A { export const a = b; } export const value = A.a;",
    1,
  ],
  [
    "with a name outside ASCII",
    "namespace Größe { export const ä = 1; }\nnamespace 名 { export const a = 2; }\nexport const value = [Größe.ä, 名.a];",
    [1, 2],
  ],
  ["with a name with an escape", "namespace \\u0041b { export const a = 1; }\nexport const value = Ab.a;", 1],
  [
    "with space around the dots of its name",
    "namespace A . B\n. C { export const a = 1; }\nexport const value = A.B.C.a;",
    1,
  ],
  ["after a byte order mark", "\uFEFFnamespace A { export const a = 1; }\nexport const value = A.a;", 1],
  ["with the keyword module", "module A { export const a = 1; }\nexport const value = A.a;", 1],
  [
    "in several blocks",
    "export namespace A { export const a = 1; export let n = 0; }\nexport namespace A { export const b = A.a + 1; A.n += b; }\nexport const value = [A.a, A.b, A.n];",
    [1, 2, 2],
  ],
  [
    "that adds to a class, a function and an enum",
    "class A { size = A.SIZE }\nnamespace A { export const SIZE = 3; }\nfunction f() { return f.n; }\nnamespace f { export const n = 4; }\nenum E { X }\nnamespace E { export function next(e: E): number { return e + 1; } }\nexport const value = [new A().size, f(), E.next(E.X)];",
    [3, 4, 1],
  ],
  [
    "with a setter whose parameter has the name of an export",
    "namespace A { export let value = 1; export const o = { set n(value: number) { A.value += value; } }; }\nA.o.n = 5;\nexport const value = A.value;",
    6,
  ],
  [
    "with functions named async, get and type",
    "namespace A { export function async() { return 1; } export const get = () => 2; export function type(module: number) { return module; } }\nexport const value = [A.async(), A.get(), A.type(3)];",
    [1, 2, 3],
  ],
  [
    "that uses an export before its value",
    "let seen: unknown;\nnamespace A { seen = b; export var b = 1; }\nexport const value = [seen, A.b];",
    [undefined, 1],
  ],
  [
    "with classes and enums",
    "namespace G { export enum Kind { A = 1, B }\n  export abstract class Base { abstract n(): number }\n  export class G extends Base { n() { return Kind.B; } } }\nexport const value = new G.G().n() + G.Kind.A;",
    3,
  ],
  [
    "with destructured and changing variables",
    "namespace A {\n  export const { a, b: [b], ...rest } = { a: 1, b: [2], c: 3 }\n  export let count: number = 0\n  export function next() { return ++count; }\n}\nA.next(); A.count += 5; A.next();\nexport const value = [A.a, A.b, A.rest, A.count];",
    [1, 2, { c: 3 }, 7],
  ],
  [
    "in another, exported or not",
    "namespace A { export namespace B { export const b = 2; namespace C { export const c = 3; } export const c = C.c; } }\nexport const value = [A.B.b, A.B.c, Object.keys(A.B)];",
    [2, 3, ["b", "c"]],
  ],
  [
    "of types alone",
    "namespace T { export interface I { n: number } }\ndeclare namespace Z { const z: number; }\nexport const value = [typeof T, typeof Z];",
    ["undefined", "undefined"],
  ],
])("a namespace: %s has the values of TypeScript", async (_what, source, expected) => {
  expect((await run(source))["value"]).toEqual(expected);
});

it("a namespace has a temporal dead zone for what it does not export", async () => {
  await expect(run("namespace A { export const a = b; const b = 1; }\nexport const value = A.a;")).rejects.toThrow(
    "Cannot access 'b' before initialization",
  );
});

it("a namespace does not move lines where only words, comments and types have its name", async () => {
  const lines = [
    "// This is a module",
    "// of a namespace A {",
    "const module: { namespace?: string } = { namespace: `",
    "namespace B {` };",
    "declare module 'c';",
    "export const value = module.namespace;",
  ];
  const { code } = await compile(lines.join("\n"), "/x/mine.ts");
  expect(code.split("\n")[5]).toBe("export const value = module.namespace;");
});

const context = { conditions: [], format: undefined, importAssertions: {}, importAttributes: {} };
const next = vi.fn(async () => ({ format: "module", source: "next" }));

it("the hook compiles TypeScript, also with a query in the URL", async () => {
  const file = join(folder, "a b.mts");
  writeFileSync(file, "export const a: number = 1;\n");
  const loaded = await load(`${pathToFileURL(file).href}?again`, context, next);
  const source = expect.stringMatching(/^export const a = 1;\n/) as string;
  expect(loaded).toMatchObject({ format: "module", shortCircuit: true, source });
  expect(next).not.toHaveBeenCalled();
});

it.each(["file:///x/a.js", "node:fs", "data:text/javascript,1", "https://x/a.ts"])(
  "the hook leaves %s to Node",
  async (url) => {
    expect(await load(url, context, next)).toEqual({ format: "module", source: "next" });
    expect(next).toHaveBeenLastCalledWith(url, context);
  },
);
