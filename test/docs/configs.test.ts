// Every config in the documentation and the examples is valid, both for the readers and for the schema that editors use:
// whole configs in code blocks, the files of the examples, and single middleware in a line of text.

import { readdirSync } from "node:fs";
import { join } from "node:path";
import { Ajv } from "ajv";
import { type ParseError, parse } from "jsonc-parser";
import { expect, it } from "vitest";
import { MIDDLEWARE } from "../../src/config/built-in.ts";
import { checkConfig } from "../../src/config/index.ts";
import { isObject } from "../../src/core/values.ts";
import { codeBlocks } from "./markdown.ts";
import { readPage, ROOT } from "./page.ts";

function filesUnder(folder: string, pattern: RegExp): string[] {
  const names = readdirSync(join(ROOT, folder), { recursive: folder !== ".", encoding: "utf8" });
  return names.filter((name) => pattern.test(name)).map((name) => join(folder, name));
}

const PAGES = [".", "docs", "examples"].flatMap((folder) => filesUnder(folder, /\.md$/)).toSorted();

interface Example {
  readonly name: string;
  readonly text: string;
}

const blocks = PAGES.flatMap((page) =>
  codeBlocks(readPage(page))
    .filter(({ language, code }) => /^jsonc?$/.test(language) && /"(?:mcpServers|servers)"/.test(code))
    // The file that `catenary check` reports problems of.
    .filter(({ code }) => !code.includes('"comand"'))
    .map(({ line, code }): Example => ({ name: `${page}:${line}`, text: code })),
);
const files = filesUnder("examples", /\.jsonc?$/).map((name): Example => ({ name, text: readPage(name) }));
const entries = PAGES.flatMap((page) =>
  readPage(page)
    .split("\n")
    .flatMap((text, index) =>
      [...text.matchAll(/`([{"][^`]*[}"])`/g)]
        .map(([, code = ""]) => code)
        .filter((code) => isMiddleware(parsed(code)))
        .map((code): Example => ({ name: `${page}:${index + 1}: ${code}`, text: inConfig(code) })),
    ),
);

function parsed(code: string): unknown {
  const errors: ParseError[] = [];
  const value: unknown = parse(code, errors, { allowTrailingComma: true });
  return errors.length > 0 ? undefined : value;
}

function isMiddleware(value: unknown): boolean {
  const name = isObject(value) && Object.keys(value).length === 1 ? Object.keys(value)[0] : value;
  return typeof name === "string" && MIDDLEWARE.has(name);
}

function inConfig(code: string): string {
  return `{ "mcpServers": { "notes": { "command": "notes", "use": [${code}] } }, "chain": [${code}] }`;
}

// Keywords that editors know and ajv does not.
const ajv = new Ajv({ allowUnionTypes: true }).addVocabulary(["allowComments", "allowTrailingCommas"]);
const validate = ajv.compile(JSON.parse(readPage("dist/config/schema.json")) as object);

it("a config in the documentation is found in pages, in examples and in lines about middleware", () => {
  expect(blocks.length).toBeGreaterThan(40);
  expect(files.length).toBeGreaterThan(3);
  const named = entries.map(({ name }) => name).join("\n");
  const missing = [...MIDDLEWARE.keys()].filter((name) => !named.includes(`docs/middleware/${name}.md`));
  // Their pages have a code block.
  expect(missing).toEqual(["inject", "rename"]);
});

it.each([...blocks, ...files, ...entries])(
  "a config in the documentation: $name is accepted by the schema",
  ({ text }) => {
    validate(parsed(text));
    expect(validate.errors).toBeNull();
  },
);

const env = {
  ADA_TOKEN: "1234",
  API_KEY: "1234",
  BOB_TOKEN: "5678",
  BOARD_TOKEN: "1234",
  DB_PASSWORD: "1234",
  GITHUB_TOKEN: "1234",
  TOKEN: "1234",
};
it.each([...blocks, ...files, ...entries])(
  "a config in the documentation: $name is accepted by the readers",
  async ({ name, text }) => {
    const path = files.some((file) => file.name === name) ? name : "catenary.json";
    const problems = await checkConfig(text, join(ROOT, path), { env });
    // Scripts and documents of the pages need not be here.
    expect(
      problems.filter(({ message }) => !/(?:args\[0\]|module|openapi|use): file not found$/.test(message)),
    ).toEqual([]);
  },
);
