// catenary/openapi: an HTTP API as tools. Each operation of an OpenAPI document is one tool. Nothing is read before the
// first request. Requests go to one base URL only, so that neither callers nor the document can send the credentials
// elsewhere.

import { STATUS_CODES } from "node:http";
import { withTimeout } from "../core/async.ts";
import { ConnectionError, UserError } from "../core/errors.ts";
import type { Handler } from "../core/handler.ts";
import { checkOptions, didYouMean, type OptionNames, optionNames, OptionReader } from "../core/options.ts";
import { firstChars, hiderOf, matchesGlob } from "../core/text.ts";
import { errorMessage, isObject } from "../core/values.ts";
import { followSameOrigin, type HttpResponse, type Requester } from "../http/client/requester.ts";
import type { ToolContext } from "../server/call-context.ts";
import { printProblem } from "../server/handler-errors.ts";
import { lazyServer } from "../server/lazy.ts";
import { createServer, type Server } from "../server/server.ts";
import type { ToolAnswer } from "../server/tools.ts";
import {
  attempt,
  isUrl,
  listOperations,
  loadDocument,
  objectAt,
  SchemaConverter,
  type Json,
  type OpenApiDocument,
} from "./document.ts";
import {
  type Api,
  type Arguments,
  type Credential,
  isJsonType,
  type Operation,
  toHttpRequest,
  toolName,
  toOperation,
} from "./operation.ts";

/** Options of `openapi()`. */
export interface OpenApiOptions {
  /** The document: the path of a file, a URL, or an object. OpenAPI 3.0 or 3.1, JSON or YAML. */
  readonly document: string | Readonly<Record<string, unknown>>;
  /** Where the API is. Default: the first server of the document. */
  readonly baseUrl?: string;
  /** The name of the server. Default: the title of the document is its title. */
  readonly name?: string;
  /**
   * The operations that become tools: patterns of tool names, of a method and path, or of a tag. Default: all.
   *
   * @example
   * include: ["list_*", "GET /pets/*", "tag:store"]
   */
  readonly include?: readonly string[];
  /** Operations that do not become tools, even if `include` has them. */
  readonly exclude?: readonly string[];
  /** Headers to send with every request. Callers cannot change them. */
  readonly headers?: Readonly<Record<string, string>>;
  /**
   * The credentials by the names of the document's security schemes: a token, a key, or for basic authentication
   * `user:password`. Sent only with operations that ask for them.
   */
  readonly auth?: Readonly<Record<string, string>>;
  /** Whether tools have the schemas of responses. A response that does not fit is an error then. Default: false. */
  readonly outputSchemas?: boolean;
  /** Milliseconds after which a request fails; 0: never. Default: 30000. */
  readonly timeoutMs?: number;
  /** How many bytes a response may have. Default: 1000000. */
  readonly maxResponseBytes?: number;
}

/** A server with a tool for each operation. */
export interface OpenApi extends Handler {
  /** Closes idle connections. */
  close(): Promise<void>;
}

const OPTION_NAMES: OptionNames<OpenApiOptions> = optionNames(
  "document baseUrl name include exclude headers auth outputSchemas timeoutMs maxResponseBytes",
);

const TIMEOUT_MS = 30_000;
const MAX_RESPONSE_BYTES = 1_000_000;
/** How much of the body of a failed response is shown. */
const MAX_ERROR_LENGTH = 4_000;

/**
 * A server with the operations of an OpenAPI document as tools.
 *
 * @example
 * await serve(openapi({ document: "./shop.yaml", auth: { token: process.env.SHOP_TOKEN } }));
 */
export function openapi(options: OpenApiOptions): OpenApi {
  check(options);
  const server = createServer({
    name: options.name ?? "catenary-openapi",
    version: "1",
    listChanged: false,
    // Our own errors are written for callers.
    maskErrors: false,
    onError: () => undefined,
  });
  let requester: Requester | undefined;
  return lazyServer({
    server,
    name: "the API",
    fill: async () => {
      const { nodeRequester } = await import("../http/client/node-requester.ts");
      requester ??= followSameOrigin(nodeRequester());
      await registerAll(server, options, requester).catch((error: unknown) => {
        throw new ConnectionError("protocol", errorMessage(error), { cause: error, mayHaveRun: false });
      });
    },
    end: async () => requester?.close(),
  });
}

/** Throws a TypeError for an invalid option. No error quotes a header or a credential. */
function check(options: OpenApiOptions): void {
  const owner = "openapi()";
  checkOptions(owner, options, OPTION_NAMES);
  const read = new OptionReader(owner, options, Object.keys(options));
  const { document, baseUrl, headers = {}, auth = {} } = options;
  if (!(typeof document === "string" && document !== "") && !isObject(document)) {
    throw read.error("document", "must be the path of a file, a URL or an object");
  }
  for (const name of ["include", "exclude"]) read.strings(name);
  if (baseUrl !== undefined && !isBaseUrl(baseUrl)) {
    throw read.error("baseUrl", "must be a URL that begins with https:// or http://, without a user name or a query");
  }
  for (const [name, map] of Object.entries({ headers, auth })) {
    if (!isObject(map) || !Object.values(map).every((value) => typeof value === "string")) {
      throw read.error(name, "must be an object of strings");
    }
  }
  if (options.timeoutMs !== 0) read.ms("timeoutMs");
  read.count("maxResponseBytes");
  if (options.outputSchemas !== undefined && typeof options.outputSchemas !== "boolean") {
    throw read.error("outputSchemas", "must be true or false");
  }
  if (options.name !== undefined && (typeof options.name !== "string" || options.name.trim() === "")) {
    throw read.error("name", "must be a non-empty string");
  }
}

function isBaseUrl(text: unknown): boolean {
  if (typeof text !== "string" || !isUrl(text) || !URL.canParse(text)) return false;
  const { username, password, search, hash } = new URL(text);
  return `${username}${password}${search}${hash}` === "";
}

async function registerAll(server: Server, options: OpenApiOptions, requester: Requester): Promise<void> {
  const document = await loadDocument(options.document);
  const api: Api = {
    base: findBase(document, options.baseUrl),
    headers: options.headers ?? {},
    credentials: findCredentials(document.root, options.auth ?? {}),
  };
  const { operations, problems, unmatched } = findOperations(document, options, api);
  if (operations.length === 0) {
    const all = unmatched.length === 0 ? ["check include and exclude"] : unmatched;
    const why = problems.length === 0 ? all.join("; ") : problems.slice(0, 3).join("; ");
    throw new Error(`The document has no operation that can be a tool: ${why}`);
  }
  for (const operation of operations) {
    const { problem } = attempt(() => register(server, operation, api, options, requester));
    if (problem !== undefined) problems.push(`${operation.method} ${operation.path} (${problem})`);
  }
  if (unmatched.length > 0) printProblem(`openapi(): ${unmatched.join("; ")}`);
  if (problems.length > 0) {
    const shown = problems.slice(0, 5).join("; ");
    const more = problems.length > 5 ? `; and ${problems.length - 5} more` : "";
    printProblem(`openapi(): these operations are left out: ${shown}${more}`);
  }
}

/** The base URL of the options, or the first server of the document. */
function findBase({ root, url }: OpenApiDocument, given: string | undefined): URL {
  if (given !== undefined) return new URL(given);
  const [first] = Array.isArray(root["servers"]) ? (root["servers"] as unknown[]) : [];
  const { url: template = "/", variables }: Json = isObject(first) ? first : {};
  const values = isObject(variables) ? variables : {};
  const text = String(template).replaceAll(/\{([^}]+)\}/g, (_, name: string) => {
    const variable = Object.hasOwn(values, name) ? values[name] : undefined;
    return isObject(variable) && typeof variable["default"] === "string" ? variable["default"] : "";
  });
  const found = URL.canParse(text, url?.href) ? new URL(text, url) : undefined;
  if (found === undefined || !/^https?:$/.test(found.protocol)) {
    throw new Error("The document does not say where its API is; set baseUrl");
  }
  // Otherwise a document could send the credentials to another server.
  if (url !== undefined && found.origin !== url.origin) {
    throw new Error(`The document is at ${url.origin}, and its API at ${found.origin}; set baseUrl if you trust that`);
  }
  for (const part of ["username", "password", "search", "hash"] as const) found[part] = "";
  return found;
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

interface Found {
  readonly operations: readonly Operation[];
  /** Why others are left out. */
  readonly problems: string[];
  /** Which patterns match no operation: a typing error in one would show what should be hidden. */
  readonly unmatched: readonly string[];
}

function findOperations(document: OpenApiDocument, options: OpenApiOptions, api: Api): Found {
  const { include, exclude = [], outputSchemas } = options;
  const converters = {
    input: new SchemaConverter(document, "input"),
    ...(outputSchemas === true && { output: new SchemaConverter(document, "output") }),
  };
  const configured = Object.keys(api.headers).map((name) => `header ${name.toLowerCase()}`);
  const keys = [...api.credentials.values()].map((one) => `${one.in} ${one.name.toLowerCase()}`);
  const set = new Set([...configured, ...keys]);
  const isSet = (place: string, name: string): boolean => set.has(`${place} ${name.toLowerCase()}`);
  const names = new Set<string>();
  const matched = new Set<string>();
  const operations: Operation[] = [];
  const problems: string[] = [];
  for (const raw of listOperations(document)) {
    const tool = toolName(raw, names);
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
    const { value, problem = raw.problem } = attempt(() => toOperation(document, raw, tool, converters, isSet));
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

function register(server: Server, operation: Operation, api: Api, options: OpenApiOptions, requester: Requester): void {
  const { tool, title, description, annotations, inputSchema, outputSchema } = operation;
  const { timeoutMs = TIMEOUT_MS, maxResponseBytes = MAX_RESPONSE_BYTES } = options;
  const texts = { description, annotations, ...(title !== undefined && { title }) };
  const schemas = { inputSchema, ...(outputSchema !== undefined && { outputSchema }) };
  // Some APIs quote in an error what they got.
  const keys = [...api.credentials.values()].map(({ value }) => value);
  const hide = hiderOf([...Object.values(options.auth ?? {}), ...keys, ...Object.values(api.headers)]);
  server.tool(tool, { ...texts, ...schemas }, async (args: Arguments, { signal }: ToolContext): Promise<ToolAnswer> => {
    const request = toHttpRequest(operation, args, api);
    const send = async (own: AbortSignal): Promise<ToolAnswer> =>
      toAnswer(operation, await requester({ ...request, signal: own }), maxResponseBytes, hide);
    if (timeoutMs === 0) return send(signal);
    return withTimeout(timeoutMs, signal, send, `The API did not answer in ${timeoutMs} ms`);
  });
}

async function toAnswer(
  { method, outputSchema }: Operation,
  response: HttpResponse,
  limit: number,
  hide: (text: string) => string,
): Promise<ToolAnswer> {
  const { status, headers } = response;
  const statusLine = `HTTP ${status} ${STATUS_CODES[status] ?? ""}`.trim();
  if (method === "HEAD") {
    response.discard();
    const shown = ["content-type", "content-length", "etag", "last-modified"].filter((name) => headers[name]);
    return text([statusLine, ...shown.map((name) => `${name}: ${headers[name]}`)].join("\n"), status >= 400);
  }
  const bytes = await response.read(limit, (all) => Buffer.from(all));
  const type = (headers["content-type"] ?? "").trim();
  if (status >= 400) {
    const body = firstChars(hide(decode(bytes, type)), MAX_ERROR_LENGTH).trim();
    return text(body === "" ? statusLine : `${statusLine}\n\n${body}`, true);
  }
  const [mimeType = ""] = type.split(";");
  const media = /^(?:image|audio)(?=\/)/.exec(mimeType)?.[0] as "image" | "audio" | undefined;
  if (media !== undefined && !mimeType.endsWith("+xml")) {
    return { content: [{ type: media, data: bytes.toString("base64"), mimeType }] };
  }
  const body = decode(bytes, type);
  if (outputSchema !== undefined) return { ...text(body, false), structuredContent: structured(body, type) };
  return text(body === "" ? statusLine : body, false);
}

function text(body: string, isError: boolean): ToolAnswer & { isError: boolean } {
  return { content: [{ type: "text", text: body }], isError };
}

function structured(body: string, type: string): unknown {
  const { value } = isJsonType(type) ? attempt(() => JSON.parse(body) as unknown) : {};
  if (isObject(value)) return value;
  throw new UserError(`The response is not a JSON object, as the document says: ${firstChars(body, MAX_ERROR_LENGTH)}`);
}

/** Bytes that do not fit the encoding become U+FFFD. */
function decode(bytes: Buffer, type: string): string {
  const charset = /charset="?([\w-]+)/i.exec(type)?.[1] ?? "utf-8";
  const { value } = attempt(() => new TextDecoder(charset).decode(bytes));
  return value ?? bytes.toString();
}
