// Writes JSON Schemas as TypeScript, for models that call tools from code and for `catenary types`. Schemas come from
// upstreams and may be hostile, endless or huge: names and values are written as JSON, comments cannot be left, and what
// does not fit is cut, with a comment that says so.

import { isObject } from "../core/values.ts";
import { resolveReference } from "../tools/schema.ts";
import { signatureOf, type CallSyntax, type ListedTool } from "../tools/search.ts";

/** How much of a schema is written. */
export interface TypeLimits {
  /** Objects and arrays within each other. */
  readonly depth: number;
  /** Properties of an object. */
  readonly properties: number;
  /** Members of a union. */
  readonly choices: number;
  /** Characters of the comment of a property; 0 for no comments. */
  readonly comment: number;
  /** Types with a name. */
  readonly aliases: number;
  /** Characters in all, about. */
  readonly total: number;
}

interface Alias {
  readonly name: string;
  text: string;
  isUsed: boolean;
}

type Schema = { readonly [keyword: string]: unknown };

/** Where a schema is in the text: within which object, and in which type that is not yet complete. */
interface Place {
  readonly root: unknown;
  readonly indent: number;
  readonly depth: number;
  /** All levels, also those of unions, so that recursion ends. */
  readonly level: number;
  /** The aliases that this type is part of without an object or an array between, which TypeScript calls circular. */
  readonly open: ReadonlySet<string>;
}

const CUT = "unknown /* shortened */";
const MAX_LEVEL = 60;
const MAX_LINE = 80;
/** A type that is shorter is clearer than its name. */
const MIN_ALIAS = 30;
/** Longer names are left out, and longer strings are just strings. */
const MAX_WORD = 200;
const UNKNOWN = "unknown";
/** Text, structured content, or `{ text, content }`. */
const ANY_RESULT = "string | object";
const TAKEN: readonly string[] = ["Array", "Promise", "Tools"];

const PLAIN_TYPES: ReadonlyMap<unknown, string> = new Map([
  ["string", "string"],
  ["number", "number"],
  ["integer", "number"],
  ["boolean", "boolean"],
  ["null", "null"],
]);

/** Writes types. What a schema refers to becomes a type with a name, so that recursive schemas end. */
export class TypeWriter {
  readonly #limits: TypeLimits;
  /** By what the reference leads to. */
  readonly #aliases: Map<string, Alias>;
  readonly #readonly: string;
  /** Schemas as JSON. */
  readonly #scopes = new Map<unknown, string>();
  #spent = 0;

  constructor(limits: TypeLimits, isReadonly = false, aliases: Map<string, Alias> = new Map()) {
    this.#limits = limits;
    this.#aliases = aliases;
    this.#readonly = isReadonly ? "readonly " : "";
  }

  /** The declarations of the types that others refer to. */
  get aliases(): string[] {
    return [...this.#aliases.values()].map(({ name, text }) => `type ${name} = ${text};`);
  }

  /** Whether more was written than the limit allows, so that the rest is `unknown`. */
  get isCut(): boolean {
    return this.#spent > this.#limits.total;
  }

  /** The type of a schema, as text whose further lines are indented by `indent` levels. */
  write(schema: unknown, indent: number): string {
    return this.#type(schema, { root: schema, indent, depth: 0, level: 0, open: new Set() });
  }

  #type(schema: unknown, place: Place): string {
    if (schema === false) return "never";
    if (!isObject(schema)) return UNKNOWN;
    if (place.level > MAX_LEVEL || this.isCut) return CUT;
    const inner = { ...place, level: place.level + 1 };
    const { $ref, const: only, enum: choices, nullable } = schema;
    let type: string;
    if (typeof $ref === "string") type = this.#reference($ref, inner);
    else if (only !== undefined) type = literal(only);
    else if (Array.isArray(choices)) type = this.#union(choices.map(literal));
    else type = this.#combined(schema, inner);
    // What is within an object was counted there.
    this.#spent += type.startsWith("{") ? 4 : Math.min(type.length, MAX_LINE);
    return nullable === true && type !== UNKNOWN ? union([type, "null"]) : type;
  }

  #combined(schema: Schema, place: Place): string {
    const { anyOf, oneOf, allOf } = schema;
    const parts = [this.#ownType(schema, place)];
    for (const either of [anyOf, oneOf]) {
      // Alternatives often only say which properties are required together, which a type need not say.
      if (!Array.isArray(either)) continue;
      parts.push(
        this.#union(either.slice(0, this.#limits.choices + 1).map((alternative) => this.#type(alternative, place))),
      );
    }
    if (Array.isArray(allOf))
      parts.push(...allOf.slice(0, this.#limits.choices).map((part) => this.#type(part, place)));
    const known = [...new Set(parts)].filter((part) => part !== UNKNOWN);
    return known.length < 2 ? (known[0] ?? UNKNOWN) : known.map((part) => grouped(part, [" | "])).join(" & ");
  }

  /** The type that the schema itself names, without what it is combined with. */
  #ownType(schema: Schema, place: Place): string {
    const { type } = schema;
    if (Array.isArray(type))
      return union(type.map((typeName: unknown) => this.#ownType({ ...schema, type: typeName }, place)));
    const plain = PLAIN_TYPES.get(type);
    if (plain !== undefined) return plain;
    const isArray =
      type === "array" || (type === undefined && (schema["items"] ?? schema["prefixItems"]) !== undefined);
    if (!isArray && type !== "object" && !isObject(schema["properties"])) return UNKNOWN;
    if (place.depth >= this.#limits.depth) return CUT;
    const inner = { ...place, depth: place.depth + 1, open: new Set<string>() };
    return isArray ? this.#array(schema, inner) : this.#object(schema, inner);
  }

  #array({ items, prefixItems, additionalItems }: Schema, place: Place): string {
    // Before JSON Schema 2020-12, `items` had the elements of a tuple.
    const elements: unknown = prefixItems ?? (Array.isArray(items) ? items : undefined);
    const rest = prefixItems === undefined && Array.isArray(items) ? additionalItems : items;
    if (!Array.isArray(elements)) return `${this.#readonly}${elementOf(this.#type(items, place))}[]`;
    const fixed = elements.slice(0, this.#limits.choices).map((element) => this.#type(element, place));
    const more =
      rest === false && fixed.length === elements.length ? [] : [`...${elementOf(this.#type(rest, place))}[]`];
    return `${this.#readonly}[${[...fixed, ...more].join(", ")}]`;
  }

  #object({ properties, required, additionalProperties, patternProperties }: Schema, place: Place): string {
    const named = isObject(properties) ? Object.entries(properties) : [];
    const all = named.filter(([name]) => name.length <= MAX_WORD);
    const isRequired = (name: string): boolean => Array.isArray(required) && required.includes(name);
    const others: unknown[] = isObject(patternProperties) ? Object.values(patternProperties) : [];
    if (additionalProperties !== false || others.length === 0) others.push(additionalProperties);
    const inner = { ...place, indent: place.indent + 1 };
    if (named.length === 0) {
      if (additionalProperties === false && others.length === 1) return "{}";
      const value = union(others.map((other) => this.#type(other, place)));
      return `{ ${this.#readonly}[name: string]: ${value} }`;
    }
    const listed = all.slice(0, this.#limits.properties);
    const fields = listed.map(([name, field]) => {
      const type = `${this.#readonly}${propertyKey(name)}${isRequired(name) ? "" : "?"}: ${this.#type(field, inner)}`;
      this.#spent += name.length;
      return { comment: this.#comment(field), type };
    });
    // Other properties may be of another type than those that are named.
    const isOpen = isObject(additionalProperties) || isObject(patternProperties);
    if (isOpen) fields.push({ comment: "", type: `${this.#readonly}[name: string]: unknown` });
    const left = named.length - listed.length;
    const line = `{ ${fields.map(({ type }) => type).join("; ")} }`;
    const isPlain = left === 0 && fields.every(({ comment, type }) => comment === "" && !type.includes("\n"));
    if (isPlain && line.length <= MAX_LINE) return line;
    const pad = "  ".repeat(inner.indent);
    const lines = fields.map(
      ({ comment, type }) => `${comment === "" ? "" : `${pad}/** ${comment} */\n`}${pad}${type};\n`,
    );
    const more = left === 0 ? "" : `${pad}// ${left} more ${left === 1 ? "property" : "properties"}\n`;
    return `{\n${lines.join("")}${more}${"  ".repeat(place.indent)}}`;
  }

  /** The description of a property, and what its type cannot say. */
  #comment(field: unknown): string {
    const max = this.#limits.comment;
    if (!isObject(field) || max === 0) return "";
    const { description, default: preset, minimum, maximum, format } = field;
    const facts = [
      typeof format === "string" ? commentText(format, 40) : "",
      isScalar(preset) && String(preset).length <= 40 ? `default ${JSON.stringify(preset)}` : "",
      typeof minimum === "number" && Math.abs(minimum) < 1e9 ? `at least ${minimum}` : "",
      typeof maximum === "number" && Math.abs(maximum) < 1e9 ? `at most ${maximum}` : "",
    ].filter((fact) => fact !== "");
    const text = typeof description === "string" ? commentText(description, max) : "";
    const more = facts.length === 0 ? "" : `${text === "" ? "" : " "}(${commentText(facts.join(", "), 200)})`;
    this.#spent += text.length + more.length;
    return `${text}${more}`;
  }

  #union(members: readonly string[]): string {
    const max = this.#limits.choices;
    const different = [...new Set(members)];
    if (different.length <= max) return union(different);
    return `${union(different.slice(0, max))} /* ${different.length - max} more */`;
  }

  #reference(pointer: string, place: Place): string {
    const { root, open } = place;
    const target = resolveReference(root, pointer);
    if (!isObject(target)) return UNKNOWN;
    const definitions = /^#\/(?:\$defs|definitions)\//.test(pointer) && isObject(root);
    const aliasKey = `${pointer} ${this.#scope(definitions ? (root["$defs"] ?? root["definitions"]) : root)}`;
    if (open.has(aliasKey)) return UNKNOWN;
    const known = this.#aliases.get(aliasKey);
    if (known !== undefined) {
      known.isUsed = true;
      return known.name;
    }
    if (this.#aliases.size >= this.#limits.aliases) return CUT;
    const alias: Alias = { name: this.#freeName(pointer), text: UNKNOWN, isUsed: false };
    this.#aliases.set(aliasKey, alias);
    const inner = { root, indent: 0, depth: 0, level: place.level, open: new Set([...open, aliasKey]) };
    alias.text = this.#type(target, inner);
    if (alias.text.length >= MIN_ALIAS || alias.isUsed) return alias.name;
    this.#aliases.delete(aliasKey);
    return alias.text;
  }

  /** Tools with the same definitions share their types. */
  #scope(schema: unknown): string {
    const known = this.#scopes.get(schema) ?? JSON.stringify(schema);
    this.#scopes.set(schema, known);
    return known;
  }

  #freeName(pointer: string): string {
    const words = (pointer.split("/").at(-1) ?? "").split(/[^A-Za-z0-9]+/);
    const camel = words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join("");
    const baseName = /^[A-Za-z]/.test(camel) ? camel.slice(0, 40) : `Type${camel}`.slice(0, 40);
    const taken = new Set([...TAKEN, ...[...this.#aliases.values()].map(({ name }) => name)]);
    let name = baseName;
    for (let count = 2; taken.has(name); count += 1) name = `${baseName}${count}`;
    return name;
  }
}

/** What is written of a tool: the first that fits. */
const LEVELS: readonly (TypeLimits & { readonly description: number })[] = [
  { depth: 8, properties: 80, choices: 40, comment: 400, aliases: 40, total: 6_000, description: 2_000 },
  { depth: 5, properties: 50, choices: 12, comment: 120, aliases: 20, total: 6_000, description: 1_000 },
  { depth: 3, properties: 30, choices: 6, comment: 60, aliases: 10, total: 6_000, description: 500 },
  { depth: 2, properties: 20, choices: 4, comment: 0, aliases: 5, total: 6_000, description: 300 },
];

/** A tool and how code names it, such as `notes.search`. */
export interface DeclaredTool {
  readonly path: string;
  readonly tool: ListedTool;
}

/** The tools as TypeScript: `declare const tools: { notes: { search(args: { query: string }): Promise<string | object> } }`. */
export function declareTools(tools: readonly DeclaredTool[]): string {
  let aliases = new Map<string, Alias>();
  const groups = new Map<string, string[]>();
  for (const { path, tool } of tools) {
    const parts = path.split(".");
    const [group, indent] = parts.length > 1 ? [parts[0] ?? "", 2] : ["", 1];
    for (const limits of LEVELS) {
      const known = new Map(aliases);
      const writer = new TypeWriter(limits, false, known);
      const method = methodOf(parts.at(-1) ?? path, tool, indent, limits.description, writer);
      if (writer.isCut && limits !== LEVELS.at(-1)) continue;
      aliases = known;
      groups.set(group, [...(groups.get(group) ?? []), method]);
      break;
    }
  }
  const types = new TypeWriter(LEVELS[0] as TypeLimits, false, aliases).aliases.map((alias) => `${alias}\n`);
  const members = [...groups].map(([group, methods]) =>
    group === "" ? methods.join("") : `  ${propertyKey(group)}: {\n${methods.join("")}  };\n`,
  );
  return `${types.join("")}declare const tools: {\n${members.join("")}};\n`;
}

/** A tool for a language without declarations: how it is called, its description, and a line for each argument. */
export function describeCall({ path, tool }: DeclaredTool, syntax: CallSyntax): string {
  const [limits = LEVELS[0] as (typeof LEVELS)[number]] = LEVELS.slice(1);
  const writer = new TypeWriter({ ...limits, comment: 0 });
  const { description, inputSchema, outputSchema } = tool;
  const { properties, required } = isObject(inputSchema) ? inputSchema : {};
  const isRequired = (name: string): boolean => Array.isArray(required) && required.includes(name);
  const fields = isObject(properties) ? Object.entries(properties).slice(0, limits.properties) : [];
  const lines = fields.map(([name, field]) => {
    const description = isObject(field) && typeof field["description"] === "string" ? field["description"] : "";
    const what = description === "" ? "" : ` - ${commentText(description, limits.comment)}`;
    const root = isObject(field) && isObject(inputSchema) ? withDefinitions(field, inputSchema) : field;
    return `  ${propertyKey(name)}${isRequired(name) ? "" : " (optional)"}: ${writer.write(root, 1)}${what}`;
  });
  const result = outputSchema === undefined ? [] : [`Result: ${writer.write(outputSchema, 0)}`];
  const text = typeof description === "string" ? commentText(description, limits.description) : "";
  return [
    signatureOf({ ...tool, name: path }, syntax),
    ...(text === "" ? [] : [text]),
    ...lines,
    ...result,
    ...writer.aliases.map((alias) => `where ${alias.replace(/^type |;$/g, "")}`),
  ].join("\n");
}

/** A part of a schema that refers to definitions of the whole. */
function withDefinitions(part: Schema, whole: Schema): Schema {
  const { $defs, definitions } = whole;
  return { ...($defs !== undefined && { $defs }), ...(definitions !== undefined && { definitions }), ...part };
}

function methodOf(name: string, tool: ListedTool, indent: number, max: number, writer: TypeWriter): string {
  const { description, inputSchema, outputSchema } = tool;
  const pad = "  ".repeat(indent);
  const text = typeof description === "string" ? commentText(description, max) : "";
  const comment = text === "" ? "" : `${pad}/** ${text} */\n`;
  const type = writer.write(inputSchema, indent);
  // Without a property, nothing need be given.
  const isEmpty = type === UNKNOWN || type === "{}" || type === "{ [name: string]: unknown }";
  const needsNone =
    !isObject(inputSchema) || !Array.isArray(inputSchema["required"]) || !inputSchema["required"].length;
  const args = isEmpty ? "args?: object" : `args${needsNone ? "?" : ""}: ${type}`;
  const result = outputSchema === undefined ? ANY_RESULT : writer.write(outputSchema, indent);
  return `${comment}${pad}${propertyKey(name)}(${args}): Promise<${result}>;\n`;
}

function union(members: readonly string[]): string {
  const different = [...new Set(members)];
  if (different.includes(UNKNOWN)) return UNKNOWN;
  return different.map((alternative) => grouped(alternative, [" & "])).join(" | ") || "never";
}

/** In brackets if one of the operators is in the text, which may be one of a type within it. */
function grouped(type: string, operators: readonly string[]): string {
  return operators.some((operator) => type.includes(operator)) ? `(${type})` : type;
}

function elementOf(type: string): string {
  // An object that has a union within needs no brackets, but a union of objects does, and both end the same way.
  const isOneWord = /^(?:[A-Za-z0-9]+|"[^"\\]*")$/.test(type);
  return isOneWord ? type : `(${type})`;
}

function isScalar(value: unknown): value is string | number | boolean | null {
  return value === null || ["string", "number", "boolean"].includes(typeof value);
}

function literal(value: unknown): string {
  if (typeof value === "string" && value.length > MAX_WORD) return "string";
  return isScalar(value) ? JSON.stringify(value) : UNKNOWN;
}

/** The name of a property, in quotes if it needs them. */
export function propertyKey(name: string): string {
  return /^[A-Za-z_$][A-Za-z0-9_$]*$/.test(name) ? name : JSON.stringify(name);
}

/** One line without control characters, which cannot end the comment. */
export function commentText(text: string, max: number): string {
  const line = text
    .slice(0, max * 2)
    .replaceAll(/[\p{C}\s]+/gu, " ")
    .replaceAll("*/", "*\\/")
    .trim();
  return line.length > max ? `${line.slice(0, max).replace(/[\\*]+$/, "")}…` : line;
}
