// The schema that editors read against the checker: both know the same names, and what one refuses the other refuses,
// as far as a schema can say it.

import { readFileSync } from "node:fs";
import { Ajv } from "ajv";
import { parse } from "jsonc-parser";
import { describe, expect, it } from "vitest";
import { LINKS } from "../chain/middleware/registry.ts";
import { ELSEWHERE } from "../../test/support/config-mistakes-elsewhere.ts";
import { IN_SERVERS, type Mistake } from "../../test/support/config-mistakes.ts";
import { GOOD } from "../../test/support/config-samples.ts";
import { COMMON_FIELDS, RESTART_FIELDS, TIMEOUT_FIELDS } from "./upstreams.ts";
import { LIMIT_FIELDS, LISTEN_FIELDS } from "./listen-options.ts";
import { INPUT_FIELDS } from "./inputs.ts";
import { KINDS } from "./kinds/index.ts";
import { PERMISSION_FIELDS } from "./live-kind.ts";
import { MODULE_FIELDS } from "./middleware.ts";
import { TOP_FIELDS } from "./read.ts";

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
const link = definitions["link"]?.anyOf ?? [];

describe("the schema has the names that the checker knows", () => {
  it.each([
    ["of the whole", SCHEMA, keys(TOP_FIELDS)],
    ["of a server", server, keys(COMMON_FIELDS, ...KINDS.map(({ fields }) => fields))],
    ["of its timeout", server?.properties?.["timeout"]?.anyOf?.[1], keys(TIMEOUT_FIELDS)],
    ["of its restart", server?.properties?.["restart"], keys(RESTART_FIELDS)],
    ["of its permission", server?.properties?.["permission"]?.anyOf?.[1], keys(PERMISSION_FIELDS)],
    ["of listen", properties["listen"], keys(LISTEN_FIELDS)],
    ["of limits", properties["limits"], keys(LIMIT_FIELDS)],
    ["of a module that is a link", definitions["moduleMiddleware"], keys(MODULE_FIELDS)],
    ["of links with options", link[1], [...LINKS.keys()].toSorted()],
  ])("%s", (_name, schema, known) => {
    expect(names(schema)).toEqual(known);
  });

  it("of an input", () => {
    expect(names(definitions["input"])).toEqual(keys(INPUT_FIELDS));
  });

  it("of links, and of kinds of servers", () => {
    expect(link[0]?.anyOf?.[0]?.enum?.toSorted()).toEqual([...LINKS.keys()].toSorted());
    expect(server?.oneOf).toEqual(KINDS.map(({ key }) => ({ required: [key] })));
  });

  it("and says of each what it is", () => {
    const silent: string[] = [];
    const visit = (schema: Schema, way: string): void => {
      for (const [name, inner] of Object.entries(schema.properties ?? {})) {
        if (!/^[A-Z0-9a-z].{15,}\.$/s.test(inner.description ?? "")) silent.push(`${way}.${name}`);
        visit(inner, `${way}.${name}`);
      }
      for (const inner of [...(schema.anyOf ?? []), ...(schema.items ? [schema.items] : [])]) visit(inner, way);
      for (const [name, inner] of Object.entries(schema.definitions ?? {})) visit(inner, name);
    };
    visit(SCHEMA, "");
    expect(silent).toEqual(["input.options.label", "input.options.value"].filter((way) => silent.includes(way)));
  });
});

describe("the schema", () => {
  // Editors know two words more than ajv.
  const validate = new Ajv({ allowUnionTypes: true })
    .addVocabulary(["allowComments", "allowTrailingCommas"])
    .compile(SCHEMA);
  const accepts = (text: string): boolean => validate(parse(text.replace("\uFEFF", "")));

  it.each(GOOD)("takes the file of $name", ({ text }) => {
    expect(accepts(text)).toBe(true);
  });

  const isFor =
    (wanted: Mistake[2]) =>
    ([, , schema]: Mistake): boolean =>
      schema === wanted;
  const mistakes = [...IN_SERVERS, ...ELSEWHERE];

  it.each(mistakes.filter(isFor("seen")))("refuses %s", (_name, text) => {
    expect(accepts(text)).toBe(false);
  });

  it.each(mistakes.filter(isFor("unseen")))("cannot see %s", (_name, text) => {
    expect(accepts(text)).toBe(true);
  });
});
