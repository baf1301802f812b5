// What the documents say, held against the code, so that they cannot go stale: codes, limits, files, links,
// and the examples, which must compile.

import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { codeOf } from "../src/protocol/errors.ts";
import type { ErrorKind } from "../src/protocol/errors.ts";
import { REVISIONS } from "../src/protocol/revisions/index.ts";
import { amount, codeBlocks, fileLinks, tableUnder, writtenNumber } from "./house/markdown.ts";
import { isTest, readSources } from "./house/source.ts";

const ROOT = dirname(dirname(fileURLToPath(import.meta.url)));
const read = (path: string): string => readFileSync(join(ROOT, path), "utf8");
const PAGES = [
  ...readdirSync(ROOT).filter((name) => name.endsWith(".md")),
  ...readdirSync(join(ROOT, "docs")).map((name) => `docs/${name}`),
];
const SESSIONS = REVISIONS.filter((revision) => revision.style === "session");

/** Kinds are types alone but for the table in the source, so they are read there. */
function kinds(): ErrorKind[] {
  const [, table = ""] = /const CODES = \{([^]*?)\n\}/.exec(read("src/protocol/errors.ts")) ?? [];
  return [...table.matchAll(/^\s+(\w+):/gm)].map(([, kind]) => kind as ErrorKind);
}

function chainCode(kind: ErrorKind): string {
  const own = SESSIONS.filter((revision) => codeOf(kind, revision, "chain") !== codeOf(kind, revision));
  return [...new Set(own.map((revision) => codeOf(kind, revision, "chain")))].join(" or ");
}

describe("docs/errors.md", () => {
  it("has the code of every kind, by revision and profile", () => {
    const written = tableUnder("## Kinds and codes", read("docs/errors.md"));
    const expected = kinds().map((kind) => [
      `\`${kind}\``,
      ...REVISIONS.toReversed().map((revision) => String(codeOf(kind, revision))),
      chainCode(kind),
    ]);
    expect(expected.length).toBeGreaterThan(15);
    expect(written.map((row) => row.slice(0, -1))).toEqual(expected);
    expect(written.map((row) => row.at(-1))).not.toContain("");
  });

  it("heads its columns with the revisions, newest first", () => {
    const names = REVISIONS.toReversed().map((revision) => revision.name);
    expect(read("docs/errors.md").replaceAll(/ +/g, " ")).toContain(`| Kind | ${names.join(" | ")} | \`chain\` |`);
  });
});

describe("docs/limits.md", () => {
  const text = read("docs/limits.md");
  const rows = [...text.matchAll(/^## .*$/gm)].flatMap(([heading]) => tableUnder(heading, text));

  it.each(rows.map(([what = "", value = "", , where = ""]) => ({ what, value, where })))(
    "$what",
    ({ value, where }) => {
      const [, file = "", name = ""] = /^`([^`]+)` `(\w+)`$/.exec(where) ?? [];
      expect(writtenNumber(name, read(file))).toBe(amount(value));
    },
  );

  it("has rows to check", () => {
    expect(rows.length).toBeGreaterThan(20);
  });
});

describe("the table of revisions", () => {
  it.each(["README.md", "docs/revisions.md"])("is true in %s", (page) => {
    const heading = page === "README.md" ? "## Revisions" : "# Revisions";
    expect(tableUnder(heading, read(page)).map((row) => row.slice(0, 3))).toEqual(
      REVISIONS.map(({ name, style, batches }) => [name, style, batches ? "yes" : "no"]),
    );
  });
});

describe("ARCHITECTURE.md", () => {
  it("has a line for every file, and for no other", () => {
    const files = readSources(ROOT, "src").map(({ path }) => path.slice("src/".length));
    const named = [...read("ARCHITECTURE.md").matchAll(/^\| `([\w./-]+\.ts)` +\|/gm)].map(([, name = ""]) => name);
    expect(named.toSorted()).toEqual(files.filter((path) => !isTest(path)).toSorted());
  });
});

describe("the pages", () => {
  it.each(PAGES)("%s links only to files that are there", (page) => {
    const missing = fileLinks(read(page)).filter((target) => !existsSync(resolve(ROOT, dirname(page), target)));
    expect(missing).toEqual([]);
  });

  it("name the commands that .ci/run calls", () => {
    expect(read("README.md")).toContain("npm ci && npm test");
    expect(read(".ci/run").split("\n")).toContain("npm ci && npm test");
  });

  it("have examples in TypeScript that compile", () => {
    const folder = mkdtempSync(join(tmpdir(), "catenary-documents-"));
    try {
      const examples = codeBlocks("ts", read("README.md"));
      expect(examples.length).toBeGreaterThan(1);
      for (const [index, code] of examples.entries()) {
        writeFileSync(join(folder, `example-${index}.ts`), `${code}\nexport {};\n`);
      }
      symlinkSync(join(ROOT, "node_modules"), join(folder, "node_modules"));
      writeFileSync(
        join(folder, "tsconfig.json"),
        JSON.stringify({
          extends: join(ROOT, "tsconfig.json"),
          compilerOptions: {
            rootDir: "/",
            paths: {
              catenary: [join(ROOT, "src/index.ts")],
              "catenary/stdio": [join(ROOT, "src/stdio.ts")],
              "catenary/testing": [join(ROOT, "src/testing.ts")],
              "catenary/*": [join(ROOT, "src/*/index.ts")],
            },
          },
          include: [folder],
        }),
      );
      writeFileSync(join(folder, "package.json"), JSON.stringify({ type: "module" }));
      const compiler = join(ROOT, "node_modules/typescript/bin/tsc");
      const { status, stdout } = spawnSync(process.execPath, [compiler, "-p", folder], { encoding: "utf8" });
      expect(stdout).toBe("");
      expect(status).toBe(0);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
});

describe("the readers of documents", () => {
  it("read amounts and refuse what is none", () => {
    expect(["4 MiB", "8 KiB", "2 s", "10 min", "1 h", "500 ms", "100"].map(amount)).toEqual([
      4_194_304, 8_192, 2_000, 600_000, 3_600_000, 500, 100,
    ]);
    expect(() => amount("2 weeks")).toThrow("no amount");
  });

  it("find a number where it is written", () => {
    const source = "const MOST = 4 * 1_024;\nconst TIMES: Times = { idleMs: 60_000 };\nthis.#ttl = options.ttlMs ?? 5;";
    expect(["MOST", "idleMs", "ttlMs"].map((name) => writtenNumber(name, source))).toEqual([4096, 60_000, 5]);
    expect(() => writtenNumber("LEAST", source)).toThrow("LEAST");
  });

  it("read tables, links and code", () => {
    const page =
      "# A\n\n| x | y |\n| --- | --- |\n| 1 | a \\| b |\n\n[b](b.md#c) [web](https://x.test) [d](#d)\n\n```ts\n1;\n```\n";
    expect(tableUnder("# A", page)).toEqual([["1", "a \\| b"]]);
    expect(() => tableUnder("# B", page)).toThrow("# B");
    expect(fileLinks(page)).toEqual(["b.md"]);
    expect(codeBlocks("ts", page)).toEqual(["1;\n"]);
    expect(codeBlocks("js", page)).toEqual([]);
  });
});
