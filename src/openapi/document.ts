// Loads an OpenAPI document, from a file, a URL or an object, as JSON or YAML; finds what its references point to, and
// lists its operations. Only references within the document are followed, so that it cannot make us read other files.

import { readFile } from "node:fs/promises";
import { isObject, errorMessage } from "../core/values.ts";
import { followSameOrigin } from "../http/client/requester.ts";

export type Json = { readonly [key: string]: unknown };

export interface OpenApiDocument {
  readonly root: Json;
  /** Whether schemas are those of OpenAPI 3.0, which differ from JSON Schema. */
  readonly isOld: boolean;
  /** Where the document came from, if that was a URL. */
  readonly url: URL | undefined;
}

export type Method = "GET" | "PUT" | "POST" | "DELETE" | "OPTIONS" | "HEAD" | "PATCH";

/** An operation as the document has it, with the parameters of its path. */
export interface RawOperation {
  readonly method: Method;
  readonly path: string;
  readonly operation: Json;
  readonly parameters: readonly Json[];
}

const METHODS: readonly Method[] = ["GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"];
const MAX_DOCUMENT_BYTES = 50_000_000;
const FETCH_TIMEOUT_MS = 30_000;

export const isUrl = (source: string): boolean => /^https?:\/\//i.test(source);

/** Rejects with an error that names the document and says what is wrong with it. */
export async function loadDocument(source: string | Json): Promise<OpenApiDocument> {
  const name = typeof source === "string" ? shownSource(source) : "The document";
  const root = typeof source === "string" ? await parse(await readText(source), name) : source;
  if (!isObject(root)) throw new Error(`${name} is not an OpenAPI document: it must be an object`);
  const { openapi, swagger, paths } = root;
  if (swagger !== undefined) {
    throw new Error(`${name} is Swagger 2; convert it to OpenAPI 3 first (npx swagger2openapi)`);
  }
  if (typeof openapi !== "string" || !openapi.startsWith("3.")) {
    throw new Error(`${name} is not an OpenAPI 3 document: its field openapi must be 3.0.x or 3.1.x`);
  }
  if (!isObject(paths)) throw new Error(`${name} has no paths, so it has no operations`);
  const url = typeof source === "string" && isUrl(source) ? new URL(source) : undefined;
  return { root, isOld: openapi.startsWith("3.0"), url };
}

/** The path of a file, or the origin and path of a URL, whose query may contain a key. */
function shownSource(source: string): string {
  if (!isUrl(source)) return source;
  const { origin, pathname } = new URL(source);
  return `${origin}${pathname}`;
}

async function readText(source: string): Promise<string> {
  if (!isUrl(source)) {
    return readFile(source, "utf8").catch((error: unknown) => {
      throw new Error(`Cannot read ${source}: ${(error as NodeJS.ErrnoException).code ?? "not a file"}`, {
        cause: error,
      });
    });
  }
  const { nodeRequester } = await import("../http/client/node-requester.ts");
  const requester = followSameOrigin(nodeRequester());
  const accept = "application/json, application/yaml, text/yaml, */*";
  const signal = AbortSignal.timeout(FETCH_TIMEOUT_MS);
  try {
    const response = await requester({ method: "GET", url: new URL(source), headers: { accept }, signal });
    if (response.status === 200) return await response.text(MAX_DOCUMENT_BYTES);
    response.discard();
    throw new Error(`Cannot read ${shownSource(source)}: HTTP ${response.status}`);
  } finally {
    requester.close();
  }
}

async function parse(text: string, name: string): Promise<unknown> {
  const plain = text.replace(/^\uFEFF/, "");
  try {
    if (/^\s*\{/.test(plain)) return JSON.parse(plain);
  } catch (error) {
    // A document in YAML may begin with a brace too.
    if (!/\.ya?ml$/i.test(name)) throw new Error(`${name} is not valid JSON: ${errorMessage(error)}`, { cause: error });
  }
  const yaml = await import("yaml");
  try {
    return yaml.parse(plain, { prettyErrors: true }) as unknown;
  } catch (error) {
    const [first = ""] = errorMessage(error).split("\n");
    throw new Error(`${name} is not valid YAML: ${first}`, { cause: error });
  }
}

/** What a value refers to; the value itself if it is not a reference. Throws if the reference leads nowhere. */
export function resolve(root: Json, value: unknown): unknown {
  let found = value;
  for (const seen = new Set<string>(); isObject(found) && typeof found["$ref"] === "string";) {
    const reference = found["$ref"];
    if (seen.has(reference)) throw new Error(`the reference ${reference} refers to itself`);
    seen.add(reference);
    found = lookUp(root, reference);
  }
  return found;
}

function lookUp(root: Json, reference: string): unknown {
  if (!reference.startsWith("#/")) throw new Error(`the reference ${reference} leads out of the document`);
  let found: unknown = root;
  for (const part of reference.slice(2).split("/")) {
    const key = decode(part).replaceAll("~1", "/").replaceAll("~0", "~");
    const isThere = typeof found === "object" && found !== null && Object.hasOwn(found, key);
    if (!isThere) throw new Error(`the reference ${reference} leads nowhere`);
    found = (found as Json)[key];
  }
  return found;
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** The field as an object, resolved; empty if it is missing or something else. */
export function objectAt(root: Json, holder: Json, key: string): Json {
  const found = resolve(root, holder[key]);
  return isObject(found) ? found : {};
}

/** All operations, and the problem of each that has one. */
export function listOperations({ root }: OpenApiDocument): (RawOperation & { readonly problem?: string })[] {
  return Object.entries(objectAt(root, root, "paths"))
    .filter(([path]) => path.startsWith("/"))
    .flatMap(([path, given]) => {
      const item = attempt(() => resolve(root, given));
      if (!isObject(item.value)) return [];
      const { value: pathItem } = item;
      return METHODS.flatMap((method) => {
        const operation = pathItem[method.toLowerCase()];
        if (!isObject(operation)) return [];
        const { value: parameters = [], problem } = attempt(() => mergeParameters(root, pathItem, operation));
        return [{ method, path, operation, parameters, ...(problem !== undefined && { problem }) }];
      });
    });
}

/** Those of the operation override those of its path. */
function mergeParameters(root: Json, pathItem: Json, operation: Json): Json[] {
  const merged = new Map<string, Json>();
  for (const list of [pathItem["parameters"], operation["parameters"]]) {
    for (const one of Array.isArray(list) ? list : []) {
      const parameter = resolve(root, one);
      if (isObject(parameter)) merged.set(`${String(parameter["in"])} ${String(parameter["name"])}`, parameter);
    }
  }
  return [...merged.values()];
}

/** The value, or the message of what was thrown. */
export function attempt<T>(make: () => T): { readonly value?: T; readonly problem?: string } {
  try {
    return { value: make() };
  } catch (error) {
    return { problem: errorMessage(error) };
  }
}
