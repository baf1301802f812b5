// The JSON Schema of a config, for editors: what the readers say of their keys. The build writes it to
// dist/config/schema.json. Nothing else uses it, so that reading a config does not take the time to make it.

import { optionsSchema } from "../chain/define.ts";
import { isObject } from "../core/values.ts";
import { MIDDLEWARE } from "./built-in.ts";
import { CONVERTED_KEYS, RENAMED } from "./dialects.ts";
import { INPUT_SCHEMA } from "./inputs.ts";
import { TOP } from "./load.ts";
import { moduleFields } from "./middleware.ts";
import * as read from "./readers.ts";
import { COMMENT_KEY, IGNORED_AT_TOP, IGNORED_IN_ENTRIES, UNSUPPORTED_IN_ENTRIES } from "./unknown-keys.ts";
import { FIELDS, KINDS } from "./upstreams.ts";

/** The schema of an option in a config, where a string with a variable may stand for a number or a choice. */
function withVariables(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(withVariables);
  if (!isObject(schema)) return schema;
  const { enum: choices, ...rest } = schema;
  const { type } = schema;
  if (Array.isArray(choices)) return { ...rest, anyOf: [{ enum: choices }, read.STRING_WITH_VARIABLE] };
  if (type === "number" || type === "integer")
    return { ...schema, ...read.STRING_WITH_VARIABLE, type: [type, "string"] };
  return Object.fromEntries(Object.entries(schema).map(([key, inner]) => [key, withVariables(inner)]));
}

const MIDDLEWARE_SCHEMAS: Readonly<Record<string, read.Schema>> = {
  middlewareList: { type: "array", items: { $ref: "#/definitions/middleware" } },
  middleware: {
    anyOf: [
      read.oneOf([...MIDDLEWARE.keys()]).describe("A built-in middleware by name.").schema,
      {
        description: "A built-in middleware by name, with options.",
        type: "object",
        minProperties: 1,
        maxProperties: 1,
        additionalProperties: false,
        properties: Object.fromEntries(
          [...MIDDLEWARE].map(([name, { definition }]) => [name, withVariables(optionsSchema(definition))]),
        ),
      },
      { $ref: "#/definitions/moduleMiddleware" },
    ],
  },
  moduleMiddleware: { description: "A middleware of your own.", required: ["use"], ...moduleFields.schema },
};

function foreignKeys(
  meanings: Iterable<readonly [key: string, meaning: string]>,
): Readonly<Record<string, read.Schema>> {
  return Object.fromEntries(
    [...meanings].map(([key, what]) => [key, { description: `A key of another client; ${what}.` }]),
  );
}

const sameAs = ([key, field]: readonly [string, string]): readonly [string, read.Schema] => {
  const { description: _, ...schema } = FIELDS[field]?.schema ?? {};
  return [key, { description: `Same as ${field}, by the name that another client uses.`, ...schema }];
};

const SERVER_SCHEMA: read.Schema = {
  type: "object",
  oneOf: [...KINDS.map(({ key }) => key), ...Object.keys(RENAMED).filter((key) => RENAMED[key] === "url")].map(
    (key) => ({
      required: [key],
    }),
  ),
  additionalProperties: false,
  patternProperties: { [COMMENT_KEY]: {} },
  properties: {
    ...foreignKeys(CONVERTED_KEYS.map((key) => [key, "obeyed"])),
    ...foreignKeys(UNSUPPORTED_IN_ENTRIES),
    ...foreignKeys([...IGNORED_IN_ENTRIES].map((key) => [key, "ignored"])),
    ...Object.fromEntries(Object.entries(RENAMED).map(sameAs)),
    ...read.schemasOf(FIELDS),
    auth: {
      description: "How to sign in to the server at a URL, or the credentials of an API.",
      type: ["object", "boolean"],
    },
  },
  // What `auth` is depends on the kind.
  dependencies: Object.fromEntries(
    KINDS.flatMap(({ key, fields: { auth } }) =>
      auth === undefined ? [] : [[key, { properties: { auth: auth.schema } }]],
    ),
  ),
};

export const CONFIG_SCHEMA: read.Schema = {
  $schema: "http://json-schema.org/draft-07/schema#",
  title: "Catenary",
  description:
    "Config of a gateway to MCP servers, a superset of the mcpServers files of clients. ${VAR}, ${VAR:-default}, ${env:VAR}, ${input:id}, ${file:path}, ${workspaceFolder} and ${userHome} are expanded in every string; write $${ for a literal ${.",
  type: "object",
  allowComments: true,
  allowTrailingCommas: true,
  additionalProperties: false,
  patternProperties: { [COMMENT_KEY]: {} },
  properties: {
    ...read.schemasOf(TOP),
    ...Object.fromEntries([...IGNORED_AT_TOP].map((key) => [key, { description: "A setting of a client; ignored." }])),
  },
  anyOf: [{ required: ["mcpServers"] }, { required: ["servers"] }],
  definitions: {
    servers: {
      type: "object",
      propertyNames: { pattern: "\\S" },
      additionalProperties: { $ref: "#/definitions/server" },
    },
    server: SERVER_SCHEMA,
    milliseconds: read.anyMilliseconds.schema,
    ...MIDDLEWARE_SCHEMAS,
    input: INPUT_SCHEMA,
  },
};
