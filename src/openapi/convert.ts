// Turns an OpenAPI document into the operations that become tools, with the address and the credentials of the API. Its
// result is plain data, since it is made in a thread of its own (load.ts).

import { didYouMean } from "../core/options.ts";
import { matchesGlob } from "../core/text.ts";
import { isObject } from "../core/values.ts";
import {
  attempt,
  checkDocument,
  isUrl,
  listOperations,
  objectAt,
  type OpenApiDocument,
  parseDocument,
  type RawOperation,
  shownSource,
  type Json,
} from "./document.ts";
import { type NameCounts, SchemaConverter } from "./schemas.ts";
import { type Operation, toolName, toOperation } from "./operation.ts";
import type { Credential } from "./request.ts";

/** More could not be listed: callers stop reading there. */
const MAX_OPERATIONS = 10_000;
/** How long all operations may be together, as JSON: the main thread copies them. GitHub's 1,222 have 6 million. */
const MAX_TOTAL_LENGTH = 32_000_000;

/** What the conversion depends on, beside the document. */
export interface ConvertOptions {
  readonly baseUrl?: string | undefined;
  readonly include?: readonly string[] | undefined;
  readonly exclude?: readonly string[] | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly auth?: Readonly<Record<string, string>> | undefined;
  readonly outputSchemas?: boolean | undefined;
}

export interface Converted {
  readonly base: string;
  readonly credentials: ReadonlyMap<string, Credential>;
  readonly operations: readonly Operation[];
  /** Why others are left out. */
  readonly problems: readonly string[];
  /** Which patterns match no operation: a typing error in one would show what should be hidden. */
  readonly unmatched: readonly string[];
}

/** Rejects with an error that names the document, its source, and says what is wrong with it. */
export async function convertText(text: string, source: string, options: ConvertOptions): Promise<Converted> {
  const name = shownSource(source);
  const root = await parseDocument(text, name);
  return convert(checkDocument(root, name, isUrl(source) ? new URL(source) : undefined), options);
}

/** Throws an Error that says what is wrong with the document. */
export function convert(document: OpenApiDocument, options: ConvertOptions): Converted {
  const credentials = findCredentials(document.root, options.auth ?? {});
  const base = findBase(document, options.baseUrl).href;
  return { base, credentials, ...findOperations(document, options, credentials) };
}

/** The base URL of the options, or the first server of the document. */
function findBase({ root, url }: OpenApiDocument, baseUrl: string | undefined): URL {
  if (baseUrl !== undefined) return new URL(baseUrl);
  const [first] = Array.isArray(root["servers"]) ? (root["servers"] as unknown[]) : [];
  const { url: template = "/", variables }: Json = isObject(first) ? first : {};
  const values = isObject(variables) ? variables : {};
  const text = String(template).replaceAll(/\{([^{}]+)\}/g, (_, name: string) => {
    const variable = Object.hasOwn(values, name) ? values[name] : undefined;
    return isObject(variable) && typeof variable["default"] === "string" ? variable["default"] : "";
  });
  const base = URL.canParse(text, url?.href) ? new URL(text, url) : undefined;
  if (base === undefined || !/^https?:$/.test(base.protocol)) {
    throw new Error("The document does not say where its API is; set baseUrl");
  }
  // Otherwise a document could send the credentials to another server.
  if (url !== undefined && base.origin !== url.origin) {
    throw new Error(`The document is at ${url.origin}, and its API at ${base.origin}; set baseUrl if you trust that`);
  }
  for (const part of ["username", "password", "search", "hash"] as const) base[part] = "";
  return base;
}

/** Throws if there is no such scheme, or if it cannot be used. */
function findCredentials(root: Json, auth: Readonly<Record<string, string>>): ReadonlyMap<string, Credential> {
  const schemes = objectAt(root, objectAt(root, root, "components"), "securitySchemes");
  return new Map(
    Object.entries(auth).map(([name, secret]) => {
      if (!Object.hasOwn(schemes, name)) {
        const known = Object.keys(schemes);
        const hint = known.length === 0 ? "it has none; use headers" : didYouMean(name, known, "schemes");
        throw new Error(`The document has no security scheme ${name}; ${hint}`);
      }
      return [name, credentialOf(name, objectAt(root, schemes, name), secret)];
    }),
  );
}

function credentialOf(name: string, scheme: Json, secret: string): Credential {
  const { type, in: place, name: parameter } = scheme;
  const authorization = (value: string): Credential => ({ in: "header", name: "authorization", value });
  if (type === "apiKey" && typeof parameter === "string" && /^(?:header|query|cookie)$/.test(String(place))) {
    return { in: place as Credential["in"], name: parameter, value: secret };
  }
  if (type === "http" && String(scheme["scheme"]).toLowerCase() === "basic") {
    return authorization(`Basic ${Buffer.from(secret).toString("base64")}`);
  }
  const isBearer = type === "http" && String(scheme["scheme"]).toLowerCase() === "bearer";
  if (isBearer || type === "oauth2" || type === "openIdConnect") return authorization(`Bearer ${secret}`);
  throw new Error(`The security scheme ${name} (${String(type)}) is not supported; use headers`);
}

type Found = Pick<Converted, "operations" | "problems" | "unmatched">;

function findOperations(
  document: OpenApiDocument,
  options: ConvertOptions,
  credentials: Converted["credentials"],
): Found {
  const { include, exclude = [], headers = {}, outputSchemas } = options;
  const converters = {
    input: new SchemaConverter(document, "input"),
    ...(outputSchemas === true && { output: new SchemaConverter(document, "output") }),
  };
  const configured = Object.keys(headers).map((name) => `header ${name.toLowerCase()}`);
  const keys = [...credentials.values()].map((credential) => `${credential.in} ${credential.name.toLowerCase()}`);
  const set = new Set([...configured, ...keys]);
  const isSet = (place: string, name: string): boolean => set.has(`${place} ${name.toLowerCase()}`);
  const names = new Set<string>();
  const counts: NameCounts = new Map();
  const matched = new Set<string>();
  const operations: Operation[] = [];
  const problems: string[] = [];
  let length = 0;
  const make = (raw: RawOperation, tool: string): Operation => {
    if (length <= MAX_TOTAL_LENGTH) {
      const operation = toOperation(document, raw, tool, converters, isSet);
      length += JSON.stringify([operation, [...operation.arguments]]).length;
      if (length <= MAX_TOTAL_LENGTH) return operation;
    }
    throw new Error(
      `the schemas of all tools are longer than ${MAX_TOTAL_LENGTH} characters; choose some with include`,
    );
  };
  for (const raw of listOperations(document)) {
    const tool = toolName(raw, names, counts);
    names.add(tool);
    const tags = Array.isArray(raw.operation["tags"]) ? raw.operation["tags"] : [];
    const forms = [tool, `${raw.method} ${raw.path}`, ...tags.map((tag) => `tag:${String(tag)}`)];
    const hits = (patterns: readonly string[]): boolean => {
      const fitting = patterns.filter((pattern) => forms.some((form) => matchesGlob(pattern, form)));
      for (const pattern of fitting) matched.add(pattern);
      return fitting.length > 0;
    };
    const [isIncluded, isExcluded] = [include === undefined || hits(include), hits(exclude)];
    if (!isIncluded || isExcluded) continue;
    const { value, problem = raw.problem } = attempt(() => make(raw, tool));
    if (operations.length >= MAX_OPERATIONS) {
      throw new Error(`The document has more than ${MAX_OPERATIONS} operations; choose some with include`);
    }
    if (value !== undefined && problem === undefined) operations.push(value);
    else problems.push(`${raw.method} ${raw.path} (${problem})`);
  }
  const unmatched = Object.entries({ include: include ?? [], exclude }).flatMap(([option, patterns]) =>
    patterns
      .filter((pattern) => !matched.has(pattern))
      .map((pattern) => `the pattern ${JSON.stringify(pattern)} of ${option} matches no operation`),
  );
  return { operations, problems, unmatched };
}
