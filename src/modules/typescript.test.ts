// Compiling TypeScript: types, line numbers and errors. That Node runs the result is tested in test/contract/modules.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { SourceMap, type SourceMapPayload } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
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

describe("compile", () => {
  it("removes types, creates enums, and keeps every line in place", () => {
    const { code } = compile(SOURCE, "/x/mine.ts");
    const lines = code.split("\n");
    expect(lines[4]).toContain("var Kind;");
    expect(lines[5]).toBe("export const kind = Kind.Two;");
    expect(lines[6]).toContain("throw new Error(text)");
    expect(code).not.toMatch(/interface|import type|: string/);
  });

  it("adds a source map with the original positions", () => {
    const { code } = compile(SOURCE, "/x/mine.ts");
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

  it("reports an error with file, line and column, without our own stack", () => {
    const message = "/x (1): y/mine.ts:2:10: Unexpected token";
    expect(() => compile("const a = 1;\nconst b: = 2;\n", "/x (1): y/mine.ts")).toThrow(
      expect.objectContaining({ name: "SyntaxError", message, stack: `SyntaxError: ${message}` }) as Error,
    );
  });

  it.each([
    ["a.ts", true],
    ["a.mts", true],
    ["a.cts", false],
    ["a.tsx", false],
    ["ats", false],
    ["a.ts.js", false],
  ])("is used for %s: %s", (file, isOurs) => {
    expect(isTypeScript(file)).toBe(isOurs);
  });
});

describe("the hook", () => {
  const context = { conditions: [], format: undefined, importAssertions: {}, importAttributes: {} };
  const next = vi.fn(async () => ({ format: "module", source: "next" }));

  it("compiles TypeScript, also with a query in the URL", async () => {
    const file = join(folder, "a b.mts");
    writeFileSync(file, "export const a: number = 1;\n");
    const loaded = await load(`${pathToFileURL(file).href}?again`, context, next);
    const source = expect.stringMatching(/^export const a = 1;\n/) as string;
    expect(loaded).toMatchObject({ format: "module", shortCircuit: true, source });
    expect(next).not.toHaveBeenCalled();
  });

  it.each(["file:///x/a.js", "node:fs", "data:text/javascript,1", "https://x/a.ts"])(
    "leaves %s to Node",
    async (url) => {
      expect(await load(url, context, next)).toEqual({ format: "module", source: "next" });
      expect(next).toHaveBeenLastCalledWith(url, context);
    },
  );
});
