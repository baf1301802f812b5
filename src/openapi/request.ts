// Turns the arguments of a call into an HTTP request: parameters in the styles of OpenAPI, the body, and the
// credentials. The address is always below the base URL: a path parameter is one segment, or is refused.

import { UserError } from "../core/errors.ts";
import { isObject } from "../core/values.ts";
import type { ClientHttpRequest } from "../http/client/requester.ts";
import { type Argument, FORM_TYPE, isJsonType, type Operation, PATH_PARAMETER } from "./operation.ts";

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
  const givenArguments = [...operation.arguments].flatMap(([name, argument]) =>
    args[name] === undefined ? [] : [{ ...argument, value: args[name] }],
  );
  const inPlace = (place: Argument["in"]): GivenArgument[] =>
    givenArguments.filter((argument) => argument.in === place);
  const credentials = credentialsFor(operation, api.credentials);
  const sent = (place: Credential["in"]): (readonly [name: string, value: string])[] =>
    credentials.filter((credential) => credential.in === place).map(({ name, value }) => [name, value] as const);
  // An object as an argument may have a key with the name of a credential. That key is not sent.
  const pairs = (place: "query" | "cookie"): Pair[] => {
    const fromCredentials = sent(place).map(([name, value]) => escaped(name, value));
    const isOwn = ([name]: Pair): boolean => fromCredentials.some(([key]) => key === name);
    return [
      ...inPlace(place)
        .flatMap(queryPairs)
        .filter((pair) => !isOwn(pair)),
      ...fromCredentials,
    ];
  };
  const query = pairs("query");
  const cookies = pairs("cookie");
  const body =
    contentType === undefined ? undefined : bodyOf(operation, contentType, inPlace("field"), inPlace("body"));
  const headers: Record<string, string> = { accept: "application/json, text/*;q=0.9, */*;q=0.8" };
  for (const argument of inPlace("header")) headers[argument.name.toLowerCase()] = headerValue(argument);
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

function urlOf(base: URL, template: string, pathArguments: readonly GivenArgument[], query: readonly Pair[]): URL {
  const path = template.replaceAll(PATH_PARAMETER, (_, name: string) => {
    const argument = pathArguments.find((candidate) => candidate.name === name);
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
  const text = (value: unknown): string => {
    const plain = primitive(value);
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
    ? Object.entries(value).map(([key, item]) => [encode(key), text(item)] as const)
    : undefined;
  const listed = items ?? pairs?.flatMap((pair) => (explode ? [pair.join("=")] : [...pair])) ?? [text(value)];
  if (listed.length === 0)
    throw new UserError(`The value of ${name} must not be empty, since it is a part of the path`);
  if (style === "label") return `.${listed.join(explode ? "." : ",")}`;
  if (style !== "matrix") return listed.join(",");
  const key = encode(name);
  if (explode && pairs !== undefined) return listed.map((item) => `;${item}`).join("");
  return explode ? listed.map((item) => `;${key}=${item}`).join("") : `;${key}=${listed.join(",")}`;
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
  const pairs = Object.entries(value).map(([key, item]) => escaped(isList ? name : key, item));
  if (explode || pairs.length === 0) return pairs;
  const items = isList ? pairs.map(([, item]) => item) : pairs.flat();
  return [[encode(name), items.join(DELIMITERS[style] ?? ",")]];
}

/** `name[key]=value`, at any depth; items of arrays have their indexes as keys. */
function nestedPairs(name: string, value: unknown): Pair[] {
  if (value === null || value === undefined) return [];
  if (typeof value !== "object") return [escaped(name, value)];
  return Object.entries(value).flatMap(([key, item]) => nestedPairs(`${name}[${key}]`, item));
}

function headerValue({ name, value, explode, isJson }: GivenArgument): string {
  const listed = isObject(value)
    ? Object.entries(value).map(([key, item]) => [key, primitive(item)].join(explode ? "=" : ","))
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
  const value =
    whole === undefined ? Object.fromEntries(fields.map((field) => [field.name, field.value])) : whole.value;
  if (isJsonType(type)) return JSON.stringify(value);
  if (!type.startsWith(FORM_TYPE)) return primitive(value);
  const parts =
    whole === undefined
      ? fields
      : Object.entries(isObject(value) ? value : {}).map(([name, field]) => ({ ...whole, name, value: field }));
  return parts
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
