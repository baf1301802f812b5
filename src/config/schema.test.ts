// schema.json, for editors, is what the readers say, describes every key, and accepts and refuses the same configs as
// they do, as far as JSON Schema can express it.

import { readFileSync } from "node:fs";
import { Ajv } from "ajv";
import { parse } from "jsonc-parser";
import { expect, it } from "vitest";
import { SETTING_MISTAKES } from "../../test/support/config/setting-mistakes.ts";
import { SERVER_MISTAKES, type Mistake } from "../../test/support/config/server-mistakes.ts";
import { GOOD } from "../../test/support/config/valid-configs.ts";
import { CONFIG_SCHEMA } from "./schema.ts";

interface Schema {
  readonly description?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly definitions?: Readonly<Record<string, Schema>>;
  readonly anyOf?: readonly Schema[];
  readonly items?: Schema;
}

const SCHEMA = JSON.parse(readFileSync(new URL("../../dist/config/schema.json", import.meta.url), "utf8")) as Schema;

it("the schema is that of the readers; if not, run npm run build", () => {
  expect(SCHEMA).toEqual(CONFIG_SCHEMA);
});

it("the schema describes every key", () => {
  const undescribed: string[] = [];
  const visit = (schema: Schema, path: string): void => {
    for (const [name, inner] of Object.entries(schema.properties ?? {})) {
      if (!/^[A-Z0-9a-z].{15,}\.$/s.test(inner.description ?? "")) undescribed.push(`${path}.${name}`);
      visit(inner, `${path}.${name}`);
    }
    for (const inner of [...(schema.anyOf ?? []), ...(schema.items ? [schema.items] : [])]) visit(inner, path);
    for (const [name, inner] of Object.entries(schema.definitions ?? {})) visit(inner, name);
  };
  visit(SCHEMA, "");
  expect(undescribed).toEqual(
    ["input.options.label", "input.options.value"].filter((path) => undescribed.includes(path)),
  );
});

// Keywords that editors know and ajv does not.
const validate = new Ajv({ allowUnionTypes: true })
  .addVocabulary(["allowComments", "allowTrailingCommas"])
  .compile(SCHEMA);
const accepts = (text: string): boolean => validate(parse(text.replace("\uFEFF", "")));

it.each(GOOD)("the schema accepts the file of $name", ({ text }) => {
  expect(accepts(text)).toBe(true);
});

const isFor =
  (expected: Mistake[2]) =>
  ([, , schema]: Mistake): boolean =>
    schema === expected;
const mistakes = [...SERVER_MISTAKES, ...SETTING_MISTAKES];

it.each(mistakes.filter(isFor("detected")))("the schema refuses %s", (_name, text) => {
  expect(accepts(text)).toBe(false);
});

it.each(mistakes.filter(isFor("undetected")))("the schema cannot detect %s", (_name, text) => {
  expect(accepts(text)).toBe(true);
});
