// What the documents say, held against the code, so that they cannot go stale: codes, limits, files, links,
// and the examples, which must compile and print what stands under them.

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, it } from "vitest";
import { checkConfig } from "../../src/config/index.ts";
import { codeOf } from "../../src/protocol/errors.ts";
import type { ErrorKind } from "../../src/protocol/errors.ts";
import { REVISIONS } from "../../src/protocol/revisions/index.ts";
import { examplesOf, Stage } from "./examples.ts";
import { amount, codeBlocks, fileLinks, tables, tableUnder, writtenNumber } from "./markdown.ts";
import { isTest, readSources } from "../support/house/source.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
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
  const rows = tables(text).flat();

  it.each(rows.map(([what = "", value = "", , where = ""]) => ({ what, value, where })))(
    "$what",
    ({ value, where }) => {
      const [, file = "", name = ""] = /^`([^`]+)` `(\w+)`$/.exec(where) ?? [];
      expect(writtenNumber(name, read(file))).toBe(amount(value));
    },
  );

  it("has rows to check", () => {
    expect(rows.length).toBeGreaterThan(40);
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
});

describe("the examples in TypeScript", () => {
  const pages = [
    "README",
    ...["guide", "chain", "links", "config", "live", "http", "client", "oauth"].map((name) => `docs/${name}`),
  ];
  const examples = pages.flatMap((page) => examplesOf(basename(page), read(`${page}.md`)));
  const runnable = examples.filter(({ prints }) => prints !== undefined);
  const stage = new Stage(ROOT, examples);
  afterAll(() => stage.close());

  it("are there", () => {
    expect(examples.length).toBeGreaterThan(15);
    expect(runnable.length).toBeGreaterThan(10);
  });

  it("compile", () => {
    expect(stage.compile()).toBe("");
  });

  it.each(runnable)("$name runs, and prints what stands under it", async ({ name, prints }) => {
    expect(await stage.run(`${name}.ts`)).toEqual({ code: 0, stdout: prints, stderr: "" });
  });

  const configs = ["README", "docs/chain", "docs/config", "docs/live"].flatMap((page) =>
    codeBlocks(read(`${page}.md`))
      .filter(({ language }) => language === "json")
      .map(({ line, code }) => ({ name: `${basename(page)}-${line}`, code })),
  );

  it.each(configs)("$name is a config that can be used", async ({ code }) => {
    expect(await checkConfig(code, stage.path("catenary.json"), { env: { BOARD_TOKEN: "t" } })).toEqual([]);
  });

  it("are served in both ways that the guide names", async () => {
    const files = examples.flatMap(({ file }) => file ?? []);
    expect(files).toEqual(["notes.js", "served.js", "leave.ts", "issuer.ts"]);
    const ping = '{"jsonrpc":"2.0","id":1,"method":"ping"}\n';
    const alive = { code: 0, stdout: '{"jsonrpc":"2.0","id":1,"result":{}}\n', stderr: "" };
    expect(await stage.run("notes.js", [], ping)).toEqual(alive);
    const command = join(ROOT, "src/cli/main.ts");
    expect(await stage.run(command, ["serve", "./served.js"], ping)).toEqual(alive);
    const both = await stage.run(command, ["serve", "./notes.js"], ping);
    expect(both).toMatchObject({ code: 1, stderr: expect.stringContaining("calls serve() itself") as string });
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
    expect(tables(`${page}\n${page}`)).toEqual([[["1", "a \\| b"]], [["1", "a \\| b"]]]);
    expect(fileLinks(page)).toEqual(["b.md"]);
    expect(codeBlocks(page)).toEqual([{ line: 9, language: "ts", mark: "", code: "1;\n" }]);
  });
});
