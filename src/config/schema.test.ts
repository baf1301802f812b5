// Compares schema.json, for editors, with the readers: both have the same keys and accept and refuse the same configs, as
// far as JSON Schema can express it.

import { readFileSync } from "node:fs";
import { Ajv } from "ajv";
import { parse } from "jsonc-parser";
import { describe, expect, it } from "vitest";
import { MIDDLEWARE } from "../chain/middleware/index.ts";
import { SETTING_MISTAKES } from "../../test/support/config/setting-mistakes.ts";
import { SERVER_MISTAKES, type Mistake } from "../../test/support/config/server-mistakes.ts";
import { GOOD } from "../../test/support/config/valid-configs.ts";
import { LIMIT_FIELDS, LISTEN_FIELDS, TOP_FIELDS } from "./load.ts";
import { INPUT_FIELDS } from "./inputs.ts";
import { PERMISSION_FIELDS } from "./live.ts";
import { MODULE_FIELDS } from "./middleware.ts";
import { COMMON_FIELDS, KINDS, POLICY_FIELDS, RESTART_FIELDS } from "./upstreams.ts";

interface Schema {
  readonly description?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly definitions?: Readonly<Record<string, Schema>>;
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly items?: Schema;
  readonly required?: readonly string[];
  readonly enum?: readonly string[];
}

const SCHEMA = JSON.parse(readFileSync(new URL("schema.json", import.meta.url), "utf8")) as Schema;

const names = (schema: Schema | undefined): string[] => Object.keys(schema?.properties ?? {}).toSorted();
const keys = (...fields: readonly object[]): string[] => [...new Set(fields.flatMap(Object.keys))].toSorted();
const { definitions = {}, properties = {} } = SCHEMA;
const server = definitions["server"];
const middleware = definitions["middleware"]?.anyOf ?? [];

describe("the schema has the keys of the readers", () => {
  it.each([
    ["of the config", SCHEMA, keys(TOP_FIELDS)],
    ["of a server", server, keys(COMMON_FIELDS, ...KINDS.map(({ fields }) => fields))],
    ["of its restart", server?.properties?.["restart"], keys(RESTART_FIELDS)],
    ["of its permission", server?.properties?.["permission"]?.anyOf?.[1], keys(PERMISSION_FIELDS)],
    ["of the defaults", properties["defaults"], keys(POLICY_FIELDS)],
    ["of listen", properties["listen"], keys(LISTEN_FIELDS)],
    ["of limits", properties["limits"], keys(LIMIT_FIELDS)],
    ["of a middleware module", definitions["moduleMiddleware"], keys(MODULE_FIELDS)],
    ["of middleware with options", middleware[1], [...MIDDLEWARE.keys()].toSorted()],
  ])("%s", (_name, schema, known) => {
    expect(names(schema)).toEqual(known);
  });

  it("of an input", () => {
    expect(names(definitions["input"])).toEqual(keys(INPUT_FIELDS));
  });

  it("of middleware by name, and of the kinds of servers", () => {
    expect(middleware[0]?.anyOf?.[0]?.enum?.toSorted()).toEqual([...MIDDLEWARE.keys()].toSorted());
    expect(server?.oneOf).toEqual(KINDS.map(({ key }) => ({ required: [key] })));
  });

  it("and describes each of them", () => {
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
});

describe("the schema", () => {
  // Keywords that editors know and ajv does not.
  const validate = new Ajv({ allowUnionTypes: true })
    .addVocabulary(["allowComments", "allowTrailingCommas"])
    .compile(SCHEMA);
  const accepts = (text: string): boolean => validate(parse(text.replace("\uFEFF", "")));

  it.each(GOOD)("accepts the file of $name", ({ text }) => {
    expect(accepts(text)).toBe(true);
  });

  const isFor =
    (expected: Mistake[2]) =>
    ([, , schema]: Mistake): boolean =>
      schema === expected;
  const mistakes = [...SERVER_MISTAKES, ...SETTING_MISTAKES];

  it.each(mistakes.filter(isFor("detected")))("refuses %s", (_name, text) => {
    expect(accepts(text)).toBe(false);
  });

  it.each(mistakes.filter(isFor("undetected")))("cannot detect %s", (_name, text) => {
    expect(accepts(text)).toBe(true);
  });
});
