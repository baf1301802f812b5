// Faults of modules and what is made of them. A syntax error is given as Node gives it to those who import: without
// a place.

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { explained } from "./load-fault.ts";

let folder = "";
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "catenary-fault-"));
});
afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
});

function written(name: string, text: string): string {
  const file = join(folder, name);
  writeFileSync(file, text);
  return file;
}

const bare = (): SyntaxError => new SyntaxError("Somewhere");

describe("a syntax error", () => {
  it("is found in JavaScript", async () => {
    const file = written("a.mjs", "const a = 1;\n  const b = 2; const a = 3;\n");
    expect(await explained(bare(), file)).toMatchObject({
      message: `${file}:2:22: Identifier 'a' has already been declared`,
    });
  });

  it("is found in TypeScript, where it was written", async () => {
    const file = written("b.ts", "export const a: number = 1;\nconst b: string = 'b'; const a = b;\n");
    expect(await explained(bare(), file)).toMatchObject({
      message: `${file}:2:30: Identifier 'a' has already been declared`,
    });
  });

  it("is found where types are wrong", async () => {
    const file = written("c.ts", "let a: = 1;\n");
    expect(await explained(bare(), file)).toMatchObject({ message: `${file}:1:8: Unexpected token` });
  });

  it("is found in what a module imports, once round a circle", async () => {
    const entry = written("d.mjs", "import './e.mjs';\nexport * from './f.mjs';\n");
    written("e.mjs", "import './d.mjs';\n");
    const file = written("f.mjs", "await = 1;\n");
    expect(await explained(bare(), entry)).toMatchObject({
      message: expect.stringMatching(`^${file}:1:7: `) as string,
    });
  });

  it("that is found nowhere is told as it is", async () => {
    const error = bare();
    expect(await explained(error, written("g.mjs", "export const a = 1;\n"))).toBe(error);
    expect(await explained(error, join(folder, "none.mjs"))).toBe(error);
  });

  it("that names its file is told as it is", async () => {
    const error = bare();
    error.stack = "file:///x/a.mjs:1\nimport { b } from './b.mjs';\n         ^\nSyntaxError: no export named 'b'";
    expect(await explained(error, written("h.mjs", "a b"))).toBe(error);
  });
});

describe("another fault", () => {
  it("is told as it is", async () => {
    const error = new Error("no key");
    expect(await explained(error, "/x/a.mjs")).toBe(error);
    expect(await explained("a text", "/x/a.mjs")).toBe("a text");
  });

  function missing(file: string): Error {
    const error = new Error(`Cannot find module '${file}' imported from /x/a.ts`);
    return Object.assign(error, { code: "ERR_MODULE_NOT_FOUND", url: pathToFileURL(file).href });
  }

  it("is told with the name that is right, where TypeScript stands under the name of JavaScript", async () => {
    mkdirSync(join(folder, "lib"));
    const file = written("lib/tools.ts", "export {};\n");
    const error = missing(join(folder, "lib/tools.js"));
    expect(await explained(error, "/x/a.ts")).toMatchObject({
      message: `${error.message}\nThere is ${file}: import it by that name, .ts and all`,
      cause: error,
    });
    const other = missing(join(folder, "lib/others.js"));
    expect(await explained(other, "/x/a.ts")).toBe(other);
  });
});
