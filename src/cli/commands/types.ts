// `catenary types TARGET`: writes the tools of a server as TypeScript declarations, for `connect<Tools>()`. What a server
// says is untrusted, so every name and value is written as a JSON string, and descriptions cannot end their comment.

import { isObject } from "../../core/values.ts";
import type { Tool } from "../../protocol/model/index.ts";
import { EXIT, type Command } from "../command.ts";
import { defineCommand } from "../show/problems.ts";
import { withKey } from "../target/arguments.ts";
import { EXIT_HELP, parseTargetLine, TARGET_HELP, unexpectedArguments } from "../target/target.ts";
import { withClient } from "../target/with-client.ts";
import { printJson, printTrusted } from "../terminal/output.ts";

const USAGE = `Usage: catenary types TARGET [OPTIONS]
       catenary types [OPTIONS] -- COMMAND ARGS...
`;

const HELP = `${USAGE}
Writes the tools of a server as TypeScript declarations, for a typed client:

  catenary types http://127.0.0.1:3000/mcp > tools.ts

  import type { Tools } from "./tools.ts";
  const client = await connect<Tools>("http://127.0.0.1:3000/mcp");
${TARGET_HELP}
${EXIT_HELP}`;

async function types(args: readonly string[]): Promise<number> {
  const line = parseTargetLine("types", args, {}, USAGE);
  if (line.words.length > 0) throw unexpectedArguments("types", line.words, USAGE);
  return withClient(line, async ({ client, callOptions, busy, done }) => {
    busy("Listing tools");
    const { tools } = await client.listTools(callOptions);
    const text = declarations(withKey<Tool>(tools, "name"), client.server?.name);
    done();
    if (line.values.json === true) printJson({ declarations: text });
    else printTrusted(text);
    return EXIT.ok;
  });
}

export const typesCommand: Command = defineCommand(HELP, types);

/** A module with one interface, which has a property for each tool. */
export function declarations(tools: readonly Tool[], server = "unknown"): string {
  const entries = tools.map(({ name, description, inputSchema, outputSchema }) => {
    const comment = description === undefined || description === "" ? "" : `  /** ${commentText(description)} */\n`;
    const output = outputSchema === undefined ? "unknown" : typeOf(outputSchema, outputSchema, 2);
    return `${comment}  readonly ${key(name)}: {
    readonly input: ${typeOf(inputSchema, inputSchema, 2)};
    readonly output: ${output};
  };\n`;
  });
  return `// The tools of the server ${JSON.stringify(server)}, written by \`catenary types\`.\n\nexport interface Tools {\n${entries.join("")}}\n`;
}

/** Deeper schemas are `unknown`, and so are references beyond this number: a schema may refer to itself without end. */
const MAX_DEPTH = 20;
const MAX_REFERENCES = 3;

const PLAIN_TYPES: Readonly<Record<string, string>> = {
  string: "string",
  number: "number",
  integer: "number",
  boolean: "boolean",
  null: "null",
};

/** The TypeScript type of a JSON Schema. `references` counts the references that led here, which may be endless. */
function typeOf(schema: unknown, root: unknown, indent: number, references = 0): string {
  if (schema === false) return "never";
  if (!isObject(schema) || indent > MAX_DEPTH) return "unknown";
  const inner = (one: unknown): string => typeOf(one, root, indent, references);
  const { $ref, const: only, enum: choices, anyOf, oneOf, allOf, type } = schema;
  if (typeof $ref === "string") {
    return references < MAX_REFERENCES ? typeOf(target(root, $ref), root, indent, references + 1) : "unknown";
  }
  if (only !== undefined) return literal(only);
  if (Array.isArray(choices)) return union(choices.map(literal));
  const alternatives = anyOf ?? oneOf;
  if (Array.isArray(alternatives)) return union(alternatives.map(inner));
  if (Array.isArray(allOf)) return allOf.map((one) => `(${inner(one)})`).join(" & ") || "unknown";
  if (Array.isArray(type)) return union(type.map((one: unknown) => inner({ ...schema, type: one })));
  if (typeof type === "string" && Object.hasOwn(PLAIN_TYPES, type)) return PLAIN_TYPES[type] ?? "unknown";
  if (type === "array") return arrayType(schema, inner);
  const isRecord = type === "object" || isObject(schema["properties"]);
  return isRecord ? objectType(schema, root, indent, references) : "unknown";
}

function arrayType({ items, prefixItems }: Readonly<Record<string, unknown>>, inner: (one: unknown) => string): string {
  if (!Array.isArray(prefixItems)) return `readonly (${inner(items)})[]`;
  const rest = items === false ? [] : [`...(${inner(items)})[]`];
  return `readonly [${[...prefixItems.map(inner), ...rest].join(", ")}]`;
}

function objectType(
  { properties, required, additionalProperties }: Readonly<Record<string, unknown>>,
  root: unknown,
  indent: number,
  references: number,
): string {
  const fields = isObject(properties) ? Object.entries(properties) : [];
  const isRequired = (name: string): boolean => Array.isArray(required) && required.includes(name);
  if (fields.length === 0) {
    const value =
      additionalProperties === undefined ? "unknown" : typeOf(additionalProperties, root, indent, references);
    return additionalProperties === false ? "Record<string, never>" : `{ readonly [name: string]: ${value} }`;
  }
  const pad = "  ".repeat(indent);
  const lines = fields.map(([name, field]) => {
    const optional = isRequired(name) ? "" : "?";
    return `${pad}  readonly ${key(name)}${optional}: ${typeOf(field, root, indent + 1, references)};\n`;
  });
  return `{\n${lines.join("")}${pad}}`;
}

/** What a reference within the schema leads to. */
function target(root: unknown, reference: string): unknown {
  if (!reference.startsWith("#")) return undefined;
  let found = root;
  for (const part of reference.split("/").slice(1)) {
    const name = part.replaceAll("~1", "/").replaceAll("~0", "~");
    if (typeof found !== "object" || found === null || !Object.hasOwn(found, name)) return undefined;
    found = (found as Readonly<Record<string, unknown>>)[name];
  }
  return found;
}

function union(members: readonly string[]): string {
  return [...new Set(members)].join(" | ") || "never";
}

function literal(value: unknown): string {
  return typeof value === "object" && value !== null ? "unknown" : JSON.stringify(value);
}

function key(name: string): string {
  return /^[A-Za-z_][A-Za-z0-9_]*$/.test(name) ? name : JSON.stringify(name);
}

/** One line without control characters, which cannot end the comment. */
function commentText(text: string): string {
  return text
    .replaceAll(/[\p{C}\s]+/gu, " ")
    .replaceAll("*/", "*\\/")
    .trim();
}
