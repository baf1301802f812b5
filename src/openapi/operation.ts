// Turns an operation of a document into a tool. Its parameters and the fields of its body become the arguments, in one
// flat object. Each argument remembers where it goes in the request.

import { UserError } from "../core/errors.ts";
import { firstChars } from "../core/text.ts";
import { isObject } from "../core/values.ts";
import type { ClientHttpRequest } from "../http/client/requester.ts";
import type { JsonSchema, ToolAnnotations } from "../protocol/model/index.ts";
import {
  type Json,
  type Method,
  type NameCounts,
  objectAt,
  type OpenApiDocument,
  type RawOperation,
  resolve,
  type SchemaConverter,
  strings,
  uniqueName,
} from "./document.ts";

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
const PATH_PARAMETER = /\{([^{}]+)\}/g;
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
  const about = [...new Set([...texts, ...(deprecated === true ? ["Deprecated."] : [])])].join("\n\n");
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
    description: firstChars(about || `${method} ${path}`, MAX_DESCRIPTION),
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
    const name = names.find((one) => !this.arguments.has(one)) ?? plain;
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

function styleOf(given: Json, fallback: string): Pick<Argument, "style" | "explode"> {
  const style = typeof given["style"] === "string" ? given["style"] : fallback;
  return { style, explode: typeof given["explode"] === "boolean" ? given["explode"] : style === "form" };
}

function parameterSchema(root: Json, parameter: Json): unknown {
  if (parameter["schema"] !== undefined) return parameter["schema"];
  const [content] = Object.values(objectAt(root, parameter, "content"));
  return isObject(content) ? content["schema"] : {};
}

export function isJsonType(type: string): boolean {
  return /^[\w.+-]+\/(?:[\w.-]+\+)?json\b/i.test(type.trim());
}

const FORM_TYPE = "application/x-www-form-urlencoded";

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
  for (const [name, one] of Object.entries(flat.properties)) {
    if (converter.isHidden(one)) continue;
    fields.add(
      { in: "field", name, ...styleOf(objectAt(root, encodings, name), "form"), isJson: false },
      { schema: converter.convert(one, references), isRequired: isBodyRequired && flat.required.has(name) },
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
  given: unknown,
  seen = new Map<unknown, FlatObject | undefined>(),
): FlatObject | undefined {
  const schema = resolve(root, given);
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
  const found = resolve(root, schema);
  const isPlainObject = isObject(found) && (found["type"] === "object" || isObject(found["properties"]));
  if (!isPlainObject || found["nullable"] === true) return undefined;
  const references = new Set<string>();
  const converted = converter.convert(found, references);
  return typeof converted === "boolean"
    ? undefined
    : converter.withDefinitions({ ...converted, type: "object" }, references);
}

function securityOf(value: unknown): readonly (readonly string[])[] {
  return Array.isArray(value) ? value.filter(isObject).map((one) => Object.keys(one)) : [];
}

// Turns the arguments of a call into an HTTP request: parameters in the styles of OpenAPI, the body, and the
// credentials. The address is always below the base URL: a path parameter is one segment, or is refused.

/** What is sent for a security scheme. */
export interface Credential {
  readonly in: "header" | "query" | "cookie";
  readonly name: string;
  readonly value: string;
}

export interface Api {
  readonly base: URL;
  /** Sent with every request. */
  readonly headers: Readonly<Record<string, string>>;
  /** By security scheme. */
  readonly credentials: ReadonlyMap<string, Credential>;
}

export type Arguments = Readonly<Record<string, unknown>>;

/** Throws a UserError for a value that cannot be sent. */
export function toHttpRequest(operation: Operation, args: Arguments, api: Api): ClientHttpRequest {
  const { method, path, contentType } = operation;
  const given = [...operation.arguments].flatMap(([name, argument]) =>
    args[name] === undefined ? [] : [{ ...argument, value: args[name] }],
  );
  const inPlace = (place: Argument["in"]): GivenArgument[] => given.filter((one) => one.in === place);
  const credentials = credentialsFor(operation, api.credentials);
  const sent = (place: Credential["in"]): (readonly [name: string, value: string])[] =>
    credentials.filter((one) => one.in === place).map(({ name, value }) => [name, value] as const);
  // An object as an argument may have a key with the name of a credential. That key is not sent.
  const pairs = (place: "query" | "cookie"): Pair[] => {
    const own = sent(place).map(([name, value]) => escaped(name, value));
    const isOwn = ([name]: Pair): boolean => own.some(([key]) => key === name);
    return [
      ...inPlace(place)
        .flatMap(queryPairs)
        .filter((pair) => !isOwn(pair)),
      ...own,
    ];
  };
  const query = pairs("query");
  const cookies = pairs("cookie");
  const body =
    contentType === undefined ? undefined : bodyOf(operation, contentType, inPlace("field"), inPlace("body"));
  const headers: Record<string, string> = { accept: "application/json, text/*;q=0.9, */*;q=0.8" };
  for (const one of inPlace("header")) headers[one.name.toLowerCase()] = headerValue(one);
  for (const [name, value] of [...Object.entries(api.headers), ...sent("header")]) headers[name.toLowerCase()] = value;
  if (cookies.length > 0) headers["cookie"] = cookies.map((pair) => pair.join("=")).join("; ");
  if (body !== undefined && contentType !== undefined) headers["content-type"] = contentType;
  return { method, url: urlOf(api.base, path, inPlace("path"), query), headers, ...(body !== undefined && { body }) };
}

type GivenArgument = Argument & { readonly value: unknown };

/** The credentials of the first alternative for which none is missing. */
function credentialsFor({ security }: Operation, known: Api["credentials"]): Credential[] {
  const usable = security.find((names) => names.length > 0 && names.every((name) => known.has(name))) ?? [];
  return usable.flatMap((name) => known.get(name) ?? []);
}

function urlOf(base: URL, template: string, given: readonly GivenArgument[], query: readonly Pair[]): URL {
  const path = template.replaceAll(PATH_PARAMETER, (_, name: string) => {
    const argument = given.find((one) => one.name === name);
    if (argument === undefined) throw new UserError(`The path parameter ${name} is missing`);
    return pathValue(argument);
  });
  const prefix = base.pathname.replace(/\/+$/, "");
  const url = new URL(base);
  url.pathname = `${prefix}${path}`;
  url.search = query.map((pair) => pair.join("=")).join("&");
  // `pathValue` refuses dot segments, which a URL parser would resolve. This makes sure of it.
  if (!url.pathname.startsWith(`${prefix}/`)) throw new UserError("The path would leave the address of the API");
  return url;
}

function pathValue({ name, value, style, explode, isJson }: GivenArgument): string {
  const text = (one: unknown): string => {
    const plain = primitive(one);
    const isUnsafe = plain === "" || plain.split(/[/\\]/).some((part) => part === "." || part === "..");
    if (isUnsafe)
      throw new UserError(
        `The value of ${name} cannot be a part of a path: it must not be empty, nor have . or .. as a part`,
      );
    return encode(plain);
  };
  if (isJson) return text(JSON.stringify(value));
  const items = Array.isArray(value) ? value.map(text) : undefined;
  const pairs = isObject(value)
    ? Object.entries(value).map(([key, one]) => [encode(key), text(one)] as const)
    : undefined;
  const listed = items ?? pairs?.flatMap((pair) => (explode ? [pair.join("=")] : [...pair])) ?? [text(value)];
  if (listed.length === 0)
    throw new UserError(`The value of ${name} must not be empty, since it is a part of the path`);
  if (style === "label") return `.${listed.join(explode ? "." : ",")}`;
  if (style !== "matrix") return listed.join(",");
  const key = encode(name);
  if (explode && pairs !== undefined) return listed.map((one) => `;${one}`).join("");
  return explode ? listed.map((one) => `;${key}=${one}`).join("") : `;${key}=${listed.join(",")}`;
}

/** Both parts are already escaped, since the commas between the items of a value must not be. */
type Pair = readonly [name: string, value: string];

function escaped(name: string, value: unknown): Pair {
  return [encode(name), encode(primitive(value))];
}

/** The delimiters other than the comma. Both are escaped, since a URL cannot contain a space or a pipe. */
const DELIMITERS: Readonly<Record<string, string>> = { spaceDelimited: "%20", pipeDelimited: "%7C" };

function queryPairs({ name, value, style, explode, isJson }: GivenArgument): Pair[] {
  if (value === null) return [];
  if (isJson) return [escaped(name, JSON.stringify(value))];
  if (style === "deepObject") return nestedPairs(name, value);
  if (typeof value !== "object") return [escaped(name, value)];
  const isList = Array.isArray(value);
  const pairs = Object.entries(value).map(([key, one]) => escaped(isList ? name : key, one));
  if (explode || pairs.length === 0) return pairs;
  const items = isList ? pairs.map(([, item]) => item) : pairs.flat();
  return [[encode(name), items.join(DELIMITERS[style] ?? ",")]];
}

/** `name[key]=value`, at any depth; items of arrays have their indexes as keys. */
function nestedPairs(name: string, value: unknown): Pair[] {
  if (value === null || value === undefined) return [];
  if (typeof value !== "object") return [escaped(name, value)];
  return Object.entries(value).flatMap(([key, one]) => nestedPairs(`${name}[${key}]`, one));
}

function headerValue({ name, value, explode, isJson }: GivenArgument): string {
  const listed = isObject(value)
    ? Object.entries(value).map(([key, one]) => [key, primitive(one)].join(explode ? "=" : ","))
    : [value].flat().map(primitive);
  const text = isJson ? JSON.stringify(value) : listed.join(",");
  // oxlint-disable-next-line no-control-regex
  if (/[\u0000-\u0008\u000a-\u001f\u007f]/.test(text)) throw new UserError(`The value of ${name} must be one line`);
  return text;
}

function bodyOf(
  { isBodyRequired }: Operation,
  type: string,
  fields: readonly GivenArgument[],
  [whole]: readonly GivenArgument[],
): string | undefined {
  if (whole === undefined && fields.length === 0 && !isBodyRequired) return undefined;
  const value = whole === undefined ? Object.fromEntries(fields.map((one) => [one.name, one.value])) : whole.value;
  if (isJsonType(type)) return JSON.stringify(value);
  if (!type.startsWith(FORM_TYPE)) return primitive(value);
  const given =
    whole === undefined
      ? fields
      : Object.entries(isObject(value) ? value : {}).map(([name, one]) => ({ ...whole, name, value: one }));
  return given
    .flatMap(formPairs)
    .map((pair) => pair.join("="))
    .join("&");
}

function formPairs(field: GivenArgument): Pair[] {
  const { name, value, style, explode } = field;
  if (style === "deepObject" || !explode) return queryPairs(field);
  // APIs differ in how they read objects in a form; brackets are the most common.
  return [value].flat().flatMap((item) => nestedPairs(name, item));
}

function primitive(value: unknown): string {
  if (value === null || value === undefined) return "";
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** Half a surrogate pair becomes U+FFFD, as in the body of a request. */
function encode(text: string): string {
  return encodeURIComponent(Buffer.from(text).toString());
}
