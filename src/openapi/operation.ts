// Turns an operation of a document into a tool. Its parameters and the fields of its body become the arguments, in one
// flat object. Each argument remembers where it goes in the request.

import { firstChars } from "../core/text.ts";
import { isObject } from "../core/values.ts";
import type { JsonSchema, ToolAnnotations } from "../protocol/model/index.ts";
import { type Json, type Method, objectAt, type OpenApiDocument, type RawOperation, resolve } from "./document.ts";
import { type NameCounts, type SchemaConverter, strings, uniqueName } from "./schemas.ts";

/** An argument of the tool, and its place in the request. */
export interface Argument {
  readonly in: "path" | "query" | "header" | "cookie" | "field" | "body";
  /** Its name in the request; unused for a whole body. */
  readonly name: string;
  readonly style: string;
  readonly explode: boolean;
  /** Whether its value is sent as JSON. */
  readonly isJson: boolean;
}

export interface Operation {
  readonly tool: string;
  readonly method: Method;
  readonly path: string;
  readonly tags: readonly string[];
  readonly title: string | undefined;
  readonly description: string;
  readonly annotations: ToolAnnotations;
  readonly inputSchema: JsonSchema;
  /** Undefined unless the response is an object. */
  readonly outputSchema: JsonSchema | undefined;
  readonly arguments: ReadonlyMap<string, Argument>;
  /** The media type of the body; undefined if there is none. */
  readonly contentType: string | undefined;
  readonly isBodyRequired: boolean;
  /** Alternatives; each names the security schemes that are needed together. */
  readonly security: readonly (readonly string[])[];
}

export interface Converters {
  readonly input: SchemaConverter;
  /** Absent if no output schemas are wanted. */
  readonly output?: SchemaConverter;
}

const MAX_NAME_LENGTH = 64;
/** How much of an id or a path a name is made of. */
const MAX_NAME_SOURCE = 1_000;
const MAX_PATH_LENGTH = 4_096;
/** How long the schema of a tool may be, as JSON. */
const MAX_SCHEMA_LENGTH = 500_000;
/** A parameter in a path. */
export const PATH_PARAMETER: RegExp = /\{([^{}]+)\}/g;
const MAX_DESCRIPTION = 1_000;
/** Set by us, by the media type, or by the connection. OpenAPI says to ignore the first three as parameters. */
const OWN_HEADERS: ReadonlySet<string> = new Set(
  `accept content-type authorization host content-length connection expect keep-alive proxy-authorization te trailer
   transfer-encoding upgrade`.split(/\s+/),
);

/** A name that models accept and that no other tool has. */
export function toolName(
  { method, path, operation }: RawOperation,
  taken: ReadonlySet<string>,
  counts: NameCounts,
): string {
  const id = operation["operationId"];
  const base = validName(typeof id === "string" ? id : "") || validName(`${method.toLowerCase()}${path}`);
  return taken.has(base) ? uniqueName(base.slice(0, MAX_NAME_LENGTH - 6), (name) => taken.has(name), counts) : base;
}

function validName(text: string): string {
  return text
    .slice(0, MAX_NAME_SOURCE)
    .replace(/[^A-Za-z0-9_-]+/g, "_")
    .replace(/^_+|_+$/g, "")
    .slice(0, MAX_NAME_LENGTH);
}

/**
 * Throws an Error that says why the operation cannot be a tool. `isSet` says whether a parameter is set by the config,
 * so that callers cannot give it.
 */
export function toOperation(
  document: OpenApiDocument,
  raw: RawOperation,
  tool: string,
  { input, output }: Converters,
  isSet: (place: string, name: string) => boolean,
): Operation {
  const { root } = document;
  const { method, path, operation } = raw;
  const references = new Set<string>();
  const fields = new Fields();
  for (const parameter of raw.parameters) {
    const { in: place, name } = parameter;
    if (typeof name !== "string" || name === "") throw new Error("a parameter has no name");
    if (place === "header" && OWN_HEADERS.has(name.toLowerCase())) continue;
    if (isSet(String(place), name)) continue;
    fields.add(parameterArgument(root, parameter, name), {
      schema: described(input.convert(parameterSchema(root, parameter), references), parameter["description"]),
      isRequired: place === "path" || parameter["required"] === true,
    });
  }
  if (path.length > MAX_PATH_LENGTH) throw new Error(`its path is longer than ${MAX_PATH_LENGTH} characters`);
  const missing = [...path.matchAll(PATH_PARAMETER)].find(([, name = ""]) => !fields.hasPath(name));
  if (missing !== undefined) throw new Error(`the path has {${missing[1]}}, and no parameter of that name`);
  const { contentType, isBodyRequired } = addBody(root, operation, fields, input, references);
  const { summary, description, deprecated } = operation;
  const title = typeof summary === "string" && summary.trim() !== "" ? summary.trim() : undefined;
  const texts = [title ?? "", typeof description === "string" ? description.trim() : ""].filter((text) => text !== "");
  const fullDescription = [...new Set([...texts, ...(deprecated === true ? ["Deprecated."] : [])])].join("\n\n");
  const inputSchema = input.withDefinitions(fields.schema(), references);
  if (JSON.stringify(inputSchema).length > MAX_SCHEMA_LENGTH) {
    throw new Error(`its parameters and body have a schema of more than ${MAX_SCHEMA_LENGTH} characters`);
  }
  return {
    tool,
    method,
    path,
    tags: strings(operation["tags"]),
    title,
    description: firstChars(fullDescription || `${method} ${path}`, MAX_DESCRIPTION),
    annotations: annotationsOf(method),
    inputSchema,
    outputSchema: output && outputSchema(root, operation, output),
    arguments: fields.arguments,
    contentType,
    isBodyRequired,
    security: securityOf(operation["security"] ?? root["security"]),
  };
}

function annotationsOf(method: Method): ToolAnnotations {
  const isSafe = method === "GET" || method === "HEAD" || method === "OPTIONS";
  if (isSafe) return { readOnlyHint: true, openWorldHint: true };
  const isIdempotent = method === "PUT" || method === "DELETE";
  return {
    readOnlyHint: false,
    ...(method === "DELETE" && { destructiveHint: true }),
    ...(isIdempotent && { idempotentHint: true }),
    openWorldHint: true,
  };
}

interface Field {
  readonly schema: JsonSchema | boolean;
  readonly isRequired: boolean;
}

/** The arguments of a tool, each with a unique name. */
class Fields {
  readonly arguments = new Map<string, Argument>();
  readonly #fields = new Map<string, Field>();

  add(argument: Argument, field: Field): void {
    const place = argument.in === "field" ? "body" : argument.in;
    // Models accept few characters in names of arguments.
    const plain = argument.name.replace(/[^A-Za-z0-9_.-]+/g, "_").slice(0, MAX_NAME_LENGTH) || place;
    const names = [plain, `${place}_${plain}`, ...Array.from({ length: 50 }, (_, at) => `${place}_${plain}_${at + 2}`)];
    const name = names.find((candidate) => !this.arguments.has(candidate)) ?? plain;
    this.arguments.set(name, argument);
    this.#fields.set(name, field);
  }

  hasPath(name: string): boolean {
    return [...this.arguments.values()].some((argument) => argument.in === "path" && argument.name === name);
  }

  schema(): JsonSchema {
    const required = [...this.#fields].filter(([, { isRequired }]) => isRequired).map(([name]) => name);
    return {
      type: "object",
      properties: Object.fromEntries([...this.#fields].map(([name, { schema }]) => [name, schema])),
      ...(required.length > 0 && { required }),
      additionalProperties: false,
    };
  }
}

function described(schema: JsonSchema | boolean, description: unknown): JsonSchema | boolean {
  if (typeof schema === "boolean" || typeof description !== "string" || description.trim() === "") return schema;
  return schema["description"] === undefined
    ? { description: firstChars(description.trim(), MAX_DESCRIPTION / 2), ...schema }
    : schema;
}

const STYLES: Readonly<Record<string, string>> = { path: "simple", header: "simple", query: "form", cookie: "form" };

function parameterArgument(root: Json, parameter: Json, name: string): Argument {
  const place = String(parameter["in"]);
  const fallback = Object.hasOwn(STYLES, place) ? STYLES[place] : undefined;
  if (fallback === undefined) throw new Error(`the parameter ${name} is in ${JSON.stringify(place)}, which is unknown`);
  const isJson = Object.keys(objectAt(root, parameter, "content")).some(isJsonType);
  return { in: place as Argument["in"], name, ...styleOf(parameter, fallback), isJson };
}

function styleOf(parameter: Json, fallback: string): Pick<Argument, "style" | "explode"> {
  const style = typeof parameter["style"] === "string" ? parameter["style"] : fallback;
  return { style, explode: typeof parameter["explode"] === "boolean" ? parameter["explode"] : style === "form" };
}

function parameterSchema(root: Json, parameter: Json): unknown {
  if (parameter["schema"] !== undefined) return parameter["schema"];
  const [content] = Object.values(objectAt(root, parameter, "content"));
  return isObject(content) ? content["schema"] : {};
}

export function isJsonType(type: string): boolean {
  return /^[\w.+-]+\/(?:[\w.-]+\+)?json\b/i.test(type.trim());
}

export const FORM_TYPE = "application/x-www-form-urlencoded";

/** The media types that a body can be sent as, in the order of preference. */
const BODY_TYPES: readonly ((type: string) => boolean)[] = [
  isJsonType,
  (type) => type.startsWith(FORM_TYPE),
  (type) => type.startsWith("text/"),
  (type) => type === "*/*",
];

/** Adds the fields of the body as arguments, or the whole body as one. */
function addBody(
  root: Json,
  operation: Json,
  fields: Fields,
  converter: SchemaConverter,
  references: Set<string>,
): Pick<Operation, "contentType" | "isBodyRequired"> {
  if (operation["requestBody"] === undefined) return { contentType: undefined, isBodyRequired: false };
  const body = objectAt(root, operation, "requestBody");
  const content = objectAt(root, body, "content");
  const types = Object.keys(content);
  const isBodyRequired = body["required"] === true;
  const contentType = BODY_TYPES.map((fits) => types.find(fits)).find((type) => type !== undefined);
  if (contentType === undefined) {
    if (types.length === 0) return { contentType: undefined, isBodyRequired: false };
    throw new Error(`its body can only be sent as ${types.join(" or ")}, which is not supported`);
  }
  const media = objectAt(root, content, contentType);
  const { schema } = media;
  const isText = contentType.startsWith("text/");
  const flat = isText ? undefined : flatObject(root, schema);
  if (flat === undefined) {
    const whole = isText ? { type: "string" } : converter.convert(schema ?? {}, references);
    const argument: Argument = { in: "body", name: "body", style: "form", explode: true, isJson: !isText };
    fields.add(argument, { schema: described(whole, body["description"]), isRequired: isBodyRequired });
    return { contentType: contentType === "*/*" ? "application/json" : contentType, isBodyRequired };
  }
  const encodings = objectAt(root, media, "encoding");
  for (const [name, property] of Object.entries(flat.properties)) {
    if (converter.isHidden(property)) continue;
    fields.add(
      { in: "field", name, ...styleOf(objectAt(root, encodings, name), "form"), isJson: false },
      { schema: converter.convert(property, references), isRequired: isBodyRequired && flat.required.has(name) },
    );
  }
  return { contentType: contentType === "*/*" ? "application/json" : contentType, isBodyRequired };
}

interface FlatObject {
  readonly properties: Json;
  readonly required: ReadonlySet<string>;
}

/** The properties of a plain object schema, or of several that are combined by allOf; undefined for all others. */
function flatObject(
  root: Json,
  reference: unknown,
  seen = new Map<unknown, FlatObject | undefined>(),
): FlatObject | undefined {
  const schema = resolve(root, reference);
  // A schema that is used many times is looked at once; one that contains itself is not plain.
  if (!seen.has(schema)) {
    seen.set(schema, undefined);
    seen.set(schema, isObject(schema) ? flatten(root, schema, seen) : undefined);
  }
  return seen.get(schema);
}

function flatten(root: Json, schema: Json, seen: Map<unknown, FlatObject | undefined>): FlatObject | undefined {
  if (["oneOf", "anyOf", "not", "if"].some((key) => key in schema)) return undefined;
  const { type, properties, allOf, additionalProperties, nullable } = schema;
  if (nullable === true || (type !== undefined && type !== "object")) return undefined;
  if (additionalProperties !== undefined && additionalProperties !== false) return undefined;
  const parts = Array.isArray(allOf) ? allOf.map((part) => flatObject(root, part, seen)) : [];
  if (parts.includes(undefined) || (!isObject(properties) && parts.length === 0)) return undefined;
  const all = [...(parts as FlatObject[]), { properties: (properties ?? {}) as Json, required: new Set<string>() }];
  const merged = Object.fromEntries(all.flatMap((part) => Object.entries(part.properties)));
  const required = new Set([...all.flatMap((part) => [...part.required]), ...strings(schema["required"])]);
  return Object.keys(merged).length === 0 ? undefined : { properties: merged, required };
}

/** The schema of a successful response, if that is an object in JSON. */
function outputSchema(root: Json, operation: Json, converter: SchemaConverter): JsonSchema | undefined {
  const responses = objectAt(root, operation, "responses");
  const status = ["200", "201", "202", "203", "2XX", "default"].find((code) => responses[code] !== undefined);
  if (status === undefined) return undefined;
  const content = objectAt(root, objectAt(root, responses, status), "content");
  const type = Object.keys(content).find(isJsonType);
  const { schema } = type === undefined ? {} : objectAt(root, content, type);
  const resolved = resolve(root, schema);
  const isPlainObject = isObject(resolved) && (resolved["type"] === "object" || isObject(resolved["properties"]));
  if (!isPlainObject || resolved["nullable"] === true) return undefined;
  const references = new Set<string>();
  const converted = converter.convert(resolved, references);
  return typeof converted === "boolean"
    ? undefined
    : converter.withDefinitions({ ...converted, type: "object" }, references);
}

function securityOf(value: unknown): readonly (readonly string[])[] {
  return Array.isArray(value) ? value.filter(isObject).map((requirement) => Object.keys(requirement)) : [];
}
