// Compares what the documentation says with the code: error codes, limits, revisions, middleware, commands, live tools,
// links and paths; and compiles and runs its examples in TypeScript. The commands of the pages are played in
// pages.long.test.ts.

import { existsSync, readdirSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { GATEWAY } from "../../src/chain/chain.ts";
import { UPSTREAM } from "../../src/chain/upstream/options.ts";
import { command, module, url } from "../../src/config/kinds.ts";
import { IGNORED_AT_TOP } from "../../src/config/unknown-keys.ts";
import { live } from "../../src/config/live.ts";
import { CONFIG_SCHEMA } from "../../src/config/schema.ts";
import { MIDDLEWARE } from "../../src/config/built-in.ts";
import { openapi, programs } from "../../src/config/tool-kinds.ts";
import { ENTRY_KEYS } from "../../src/config/upstreams.ts";
import { objectSchema, type Fields, type OptionSchema } from "../../src/core/options.ts";
import { LIMITS } from "../../src/http/server/fields.ts";
import { SETTINGS } from "../../src/live/js/settings.ts";
import { CODE, GUEST, LIVE } from "../../src/live/options.ts";
import { OPENAPI } from "../../src/openapi/options.ts";
import { PROGRAMS } from "../../src/programs/options.ts";
import { COMMANDS } from "../../src/cli/commands/index.ts";
import { CLIENTS } from "../../src/config/clients.ts";
import { EXIT } from "../../src/cli/command.ts";
import { connect } from "../../src/index.ts";
import { javascript, lisp, smalltalk } from "../../src/live/index.ts";
import { TOOLS as LISP_TOOLS } from "../../src/live/lisp/tools.ts";
import { type CompatDocument, DOCUMENTS } from "../../src/protocol/compat-documents.ts";
import { codeOf, type ErrorKind } from "../../src/protocol/errors.ts";
import { REVISIONS } from "../../src/protocol/revisions/index.ts";
import { IS_LONG } from "../support/thoroughness.ts";
import { cliReference } from "./cli-reference.ts";
import { withRoutes } from "./console-routes.ts";
import { ExampleFolder, examplesOf } from "./examples.ts";
import { amount, codeBlocks, fileLinks, tables, tableUnder, writtenNumber } from "./markdown.ts";
import { withOptions } from "./option-tables.ts";
import { readPage, ROOT } from "./page.ts";

const PAGES = [
  ...readdirSync(ROOT).filter((name) => name.endsWith(".md")),
  ...readdirSync(join(ROOT, "docs"), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".md"))
    .map((name) => `docs/${name}`),
].toSorted();
const SESSIONS = REVISIONS.filter((revision) => revision.style === "session");
/** The documents with codes of their own. */
const OTHERS = Object.entries(DOCUMENTS).filter(([, { codes }]) => codes !== undefined);

/** The kinds exist only as types and as the keys of a private table, so they are read from the source. */
function errorKinds(): ErrorKind[] {
  const [, table = ""] = /const CODES = \{([^]*?)\n\}/.exec(readPage("src/protocol/errors.ts")) ?? [];
  return [...table.matchAll(/^\s+(\w+):/gm)].map(([, kind]) => kind as ErrorKind);
}

function compatCode(kind: ErrorKind, { codes }: CompatDocument): string {
  const code = codes?.[kind];
  const isOther = code !== undefined && SESSIONS.some((revision) => codeOf(kind, revision) !== code);
  return isOther ? String(code) : "";
}

/** The words in backquotes in the first column of a table. */
function firstWords(rows: readonly (readonly string[])[]): string[] {
  return rows.flatMap(([cell = ""]) => [...cell.matchAll(/`([^`]+)`/g)].map(([, word = ""]) => word));
}

const page = readPage("docs/reference/errors.md");

it("docs/reference/errors.md has every class of errors that an entry of the package exports, and from where", async () => {
  const { exports } = JSON.parse(readPage("package.json")) as { exports: Record<string, { default?: string }> };
  const entries = Object.entries(exports).flatMap(([entry, { default: file }]) =>
    file === undefined ? [] : [{ entry, file }],
  );
  const exported = new Map<string, string>();
  for (const { entry, file } of entries) {
    const module = (await import(join(ROOT, file.replace("dist", "src").replace(/js$/, "ts")))) as Record<
      string,
      unknown
    >;
    for (const [name, value] of Object.entries(module)) {
      const isError = typeof value === "function" && value.prototype instanceof Error;
      if (isError && !exported.has(name)) exported.set(name, `catenary${entry.slice(1)}`);
    }
  }
  const written = (tables(page)[0] ?? []).map((row) => firstWords([row.slice(0, 1), row.slice(1, 2)]));
  expect(exported.size).toBeGreaterThanOrEqual(5);
  expect(written.filter(([name]) => name !== "TypeError")).toEqual(expect.arrayContaining([...exported]));
  expect(written.length).toBe(exported.size + 1);
});

it("docs/reference/errors.md has the code of every kind, by revision and compat", () => {
  const written = tableUnder("## Kinds and codes", page);
  const expected = errorKinds().map((kind) => [
    `\`${kind}\``,
    ...REVISIONS.toReversed().map((revision) => String(codeOf(kind, revision))),
    ...OTHERS.map(([, document]) => compatCode(kind, document)),
  ]);
  expect(expected.length).toBeGreaterThan(15);
  expect(written.map((row) => row.slice(0, -1))).toEqual(expected);
  expect(written.map((row) => row.at(-1))).not.toContain("");
});

it("docs/reference/errors.md: heads its columns with the revisions, newest first, and the compats", () => {
  const names = REVISIONS.toReversed().map((revision) => revision.name);
  const compats = OTHERS.map(([compat]) => `\`${compat}\``);
  expect(page.replaceAll(/ +/g, " ")).toContain(`| Kind | ${[...names, ...compats].join(" | ")} |`);
});

it("docs/reference/limits.md has the default of every limit as it is in the source, which a comment in each row names", () => {
  const rows = tables(readPage("docs/reference/limits.md")).flat();
  expect(rows.length).toBeGreaterThan(30);
  const wrong = rows.flatMap((row) => {
    const [, value = ""] = row;
    const [, file = "", name = ""] = /<!-- (\S+) (\w+) -->/.exec(row.join(" ")) ?? [];
    // Examples in doc comments are left out.
    const actual = file === "" ? "a source" : writtenNumber(name, readPage(file).replaceAll(/^ \*.*$/gm, ""));
    return actual === amount(value) ? [] : [`${row.join(" | ")}: the source has ${actual}`];
  });
  expect(wrong).toEqual([]);
});

it("docs/reference/limits.md has every number that declared options take", () => {
  const page = readPage("docs/reference/limits.md");
  const declared = [...Object.values(DECLARED), LIVE, CODE, LIMITS];
  const numbers = declared.flatMap((fields) => numbersIn(objectSchema(fields)));
  expect(numbers).toContain("replayBytes");
  expect(numbers.length).toBeGreaterThan(40);
  expect(numbers.filter((name) => !page.includes(`\`${name}\``) && !page.includes(`.${name}\``))).toEqual([]);
});

it("docs/reference/limits.md has no option of a function that its fields do not have", () => {
  const rows = tables(readPage("docs/reference/limits.md")).flat();
  const named = rows.flatMap(([, , cell = ""]) => {
    const [, owner = "", name = ""] = /`([\w-]+)\(\)`[^:]*: `(\w+)`/.exec(cell) ?? [];
    const fields = DECLARED[owner];
    return fields === undefined ? [] : [{ option: `${owner}(): ${name}`, isDeclared: Object.hasOwn(fields, name) }];
  });
  expect(named.length).toBeGreaterThan(15);
  expect(named.filter(({ isDeclared }) => !isDeclared)).toEqual([]);
});

/** The fields of the options of public functions. */
const DECLARED: Readonly<Record<string, Fields>> = {
  ...Object.fromEntries([...MIDDLEWARE].map(([name, { definition }]) => [name, definition.options])),
  to: GATEWAY,
  upstream: UPSTREAM,
  programs: PROGRAMS,
  openapi: OPENAPI,
};

/** The names of the properties in a schema that are numbers. */
function numbersIn({ properties = {}, anyOf = [] }: OptionSchema): string[] {
  const inside = Object.entries(properties as Record<string, OptionSchema>).flatMap(([name, property]) => {
    const choices = [property, ...((property["anyOf"] as OptionSchema[] | undefined) ?? [])];
    // In a config, a string with a variable may take the place of a number.
    const isNumber = choices.flatMap(({ type }) => type).some((type) => type === "integer" || type === "number");
    return [...(isNumber ? [name] : []), ...numbersIn(property)];
  });
  return [...inside, ...(anyOf as OptionSchema[]).flatMap(numbersIn)];
}

it("docs/concepts/revisions-and-styles.md has every revision with its style", () => {
  const rows = tableUnder("## The revisions", readPage("docs/concepts/revisions-and-styles.md"));
  expect(rows.map((row) => row.slice(0, 3))).toEqual(
    REVISIONS.map(({ name, style, batches }) => [name, style, batches ? "yes" : "no"]),
  );
});

it("docs/middleware/ has a page for every built-in middleware", () => {
  const names = readdirSync(join(ROOT, "docs/middleware")).map((name) => basename(name, ".md"));
  expect(names.toSorted()).toEqual(["index", ...MIDDLEWARE.keys()].toSorted());
  // The table has each of them once.
  const [table = []] = tables(readPage("docs/middleware/index.md"));
  expect(firstWords(table).toSorted()).toEqual([...MIDDLEWARE.keys()].toSorted());
});

it.each([...MIDDLEWARE])(
  "docs/middleware/ has the options of %s as they are declared: if not, npm run docs",
  (name, { definition }) => {
    const page = readPage(`docs/middleware/${name}.md`);
    const rows = tables(page.slice(page.indexOf("| Option")))[0] ?? [];
    expect(firstWords(rows.map((row) => row.slice(0, 1)))).toEqual(Object.keys(definition.options));
    expect(withOptions(page, definition.options)).toBe(page);
  },
);

describe.each<[page: string, heading: string, fields: Fields]>([
  ["chain", "### Options of `to()`", GATEWAY],
  ["chain", "### Options of `upstream()`", UPSTREAM],
  ["live", "### Options", { ...LIVE, ...GUEST, ...SETTINGS }],
])("docs/reference/%s.md: %s", (page, heading, fields) => {
  it("a table of options has every option", () => {
    const rows = tableUnder(heading, readPage(`docs/reference/${page}.md`));
    expect(firstWords(rows).toSorted()).toEqual(Object.keys(fields).toSorted());
  });
});

describe("docs/reference/config.md", () => {
  const page = readPage("docs/reference/config.md");
  const { listen = {}, profiles = {}, callers = {} } = CONFIG_SCHEMA["properties"] as Record<string, OptionSchema>;
  const propertiesOf = (schema: unknown): Record<string, OptionSchema> =>
    (schema as { properties: Record<string, OptionSchema> }).properties;
  const found = tables(page).map((rows) => ({ rows, words: firstWords(rows).toSorted() }));
  const written = found.flatMap(({ words }) => words);

  it.each<[what: string, keys: Readonly<Record<string, unknown>>]>([
    ["listen", propertiesOf(listen)],
    ["a profile", propertiesOf(profiles["additionalProperties"])],
    ["a caller", propertiesOf(callers["additionalProperties"])],
    ["an entry with command", command.fields],
    ["an entry with url", url.fields],
    ["an entry with module", module.fields],
    ["an entry with live", live.fields],
    ["an entry with programs", programs.fields],
    ["an entry with openapi", openapi.fields],
  ])("docs/reference/config.md has a table of the keys of %s, with the defaults of numbers", (_what, keys) => {
    const { rows } = found.find(({ words }) => words.join() === Object.keys(keys).toSorted().join()) ?? {};
    expect(rows).toBeDefined();
    for (const [cell = "", , value] of rows ?? []) {
      const schema = keys[cell.replaceAll("`", "")] as { description?: string; schema?: OptionSchema } | undefined;
      const description = schema?.description ?? schema?.schema?.["description"];
      const [, number] = /Default: (\d+)\.$/.exec(String(description)) ?? [];
      if (number !== undefined) expect(value, cell).toBe(number);
    }
  });

  it("docs/reference/config.md has every key", () => {
    const top = Object.keys(propertiesOf(CONFIG_SCHEMA)).filter((key) => !IGNORED_AT_TOP.has(key));
    expect([...top, ...ENTRY_KEYS, ...Object.keys(CODE)].filter((key) => !written.includes(key))).toEqual([]);
    const limits = page.slice(page.indexOf("## Limits"), page.indexOf("## Variables"));
    expect(Object.keys(LIMITS).filter((key) => !limits.includes(`\`${key}\``))).toEqual([]);
  });
});

describe("docs/reference/cli.md", () => {
  const page = readPage("docs/reference/cli.md");

  it("docs/reference/cli.md has a section for every command", () => {
    const sections = [...page.matchAll(/^## `catenary ([a-z]+)/gm)].map(([, name = ""]) => name);
    expect(sections.toSorted()).toEqual(Object.keys(COMMANDS).toSorted());
  });

  it("docs/reference/cli.md has the usage, the options and the exit codes of the commands: if not, npm run docs", async () => {
    expect(await cliReference(page)).toBe(page);
  });

  it("has all routes of the console", async () => {
    const page = readPage("docs/reference/console-api.md");
    expect(await withRoutes(page)).toBe(page);
  });

  it("docs/reference/cli.md has the exit codes", () => {
    const codes = tableUnder("## Exit codes", page).map(([code]) => Number(code));
    expect(codes).toEqual(Object.values(EXIT));
  });
});

it("docs/how-to/add-catenary-to-a-client.md has every client", () => {
  const rows = tableUnder("# Add Catenary to a client", readPage("docs/how-to/add-catenary-to-a-client.md"));
  const named = rows.map(([name = "", title = ""]) => `${name.replaceAll("`", "")} ${title}`);
  expect(named.toSorted()).toEqual(CLIENTS.map(({ name, title }) => `${name} ${title}`).toSorted());
});

it("docs/reference/mcp-chain.md names a test that exists for each feature", () => {
  const rows = tables(readPage("docs/reference/mcp-chain.md")).flat();
  expect(rows.length).toBeGreaterThan(40);
  const wrong = rows.filter((row) => {
    const [, path = "", title = ""] = /^`([^`]+)`(?:: "(.+)")?$/.exec(row.at(-1) ?? "") ?? [];
    return path === "" || !existsSync(join(ROOT, path)) || !readPage(path).includes(title);
  });
  expect(wrong).toEqual([]);
});

describe("docs/reference/live.md and smalltalk.md", () => {
  const live = readPage("docs/reference/live.md");
  it.each([
    { heading: "## JavaScript tools", page: live, make: javascript },
    { heading: "## Common Lisp tools", page: live, make: lisp, own: LISP_TOOLS },
    { heading: "## Smalltalk tools", page: readPage("docs/reference/smalltalk.md"), make: smalltalk },
  ])(
    "docs/reference/live.md and smalltalk.md have a row for every tool under $heading, and no other",
    async ({ heading, page, make, own = [] }) => {
      const rows = [...tableUnder(heading, page), ...tableUnder("## Tools of every language", live)];
      const written = [...new Set(firstWords(rows))];
      // The tools of a library are listed only while it is loaded.
      const unlisted = own.filter(({ library }) => library !== undefined);
      const server = make();
      const client = await connect(server);
      const offered: string[] = unlisted.map(({ name }) => name);
      for await (const { name } of client.tools()) offered.push(name);
      await client.close();
      await server.close();
      expect(written.toSorted()).toEqual(offered.toSorted());
    },
  );
});

describe("ARCHITECTURE.md", () => {
  const page = readPage("ARCHITECTURE.md");

  it("ARCHITECTURE.md is short", () => {
    expect(page.split("\n").length).toBeLessThanOrEqual(301);
  });

  it("ARCHITECTURE.md names only files and folders that exist", () => {
    const paths = [...page.matchAll(/`((?:src|test|docs|bench|examples)\/[\w./-]*)`/g)].map(([, path = ""]) => path);
    expect(paths.length).toBeGreaterThan(10);
    expect(paths.filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
  });
});

it.each(PAGES)("the pages: %s links only to files that exist", (page) => {
  const missing = fileLinks(readPage(page)).filter((target) => !existsSync(resolve(ROOT, dirname(page), target)));
  expect(missing).toEqual([]);
});

it("the pages name the commands that .ci/run calls", () => {
  expect(readPage("README.md")).toContain("npm ci && npm test");
  expect(readPage(".ci/run").split("\n")).toContain("npm ci && npm test");
});

describe("the examples", () => {
  const examples = PAGES.flatMap((page) => examplesOf(page.replaceAll(/[/.]/g, "-"), readPage(page)));
  const folder = new ExampleFolder(ROOT, examples);
  afterAll(() => folder.close());

  it.runIf(IS_LONG)("the examples in TypeScript compile", () => {
    expect(examples.length).toBeGreaterThan(15);
    expect(folder.compile()).toBe("");
  });

  const runnable = examples.filter(({ prints }) => prints !== undefined);
  it.runIf(IS_LONG).each(runnable)("the examples: $name runs, and prints what follows it", async ({ name, prints }) => {
    expect(await folder.run(`${name}.ts`)).toEqual({ code: 0, stdout: prints, stderr: "" });
  });
});

it("the Markdown readers read amounts, and reject anything else", () => {
  expect(["4 MiB", "8 KiB", "2 s", "10 min", "1 h", "500 ms", "100"].map(amount)).toEqual([
    4_194_304, 8_192, 2_000, 600_000, 3_600_000, 500, 100,
  ]);
  expect(() => amount("2 weeks")).toThrow("not a valid amount");
});

it("the Markdown readers find a number in a source", () => {
  const source = "const MAX = 4 * 1_024;\nconst TIMES: Times = { idleMs: 60_000 };\nthis.#ttl = options.ttlMs ?? 5;";
  expect(["MAX", "idleMs", "ttlMs"].map((name) => writtenNumber(name, source))).toEqual([4096, 60_000, 5]);
  expect(() => writtenNumber("MIN", source)).toThrow("MIN");
});

it("the Markdown readers read tables, links and code", () => {
  const page =
    "# A\n\n| x | y |\n| --- | --- |\n| 1 | a \\| b |\n\n[b](b.md#c) [web](https://x.test) [d](#d)\n\n```ts\n1;\n```\n";
  expect(tableUnder("# A", page)).toEqual([["1", "a \\| b"]]);
  expect(() => tableUnder("# B", page)).toThrow("# B");
  expect(tables(`${page}\n${page}`)).toEqual([[["1", "a \\| b"]], [["1", "a \\| b"]]]);
  expect(fileLinks(page)).toEqual(["b.md"]);
  expect(codeBlocks(page)).toEqual([{ line: 9, language: "ts", mark: "", code: "1;\n" }]);
});
