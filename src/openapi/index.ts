// catenary/openapi: an HTTP API as tools. Each operation of an OpenAPI document is one tool. Nothing is read before the
// first request. Requests go to one base URL only, so that neither callers nor the document can send the credentials
// elsewhere.

import { STATUS_CODES } from "node:http";
import type { StandardSchemaV1 } from "@standard-schema/spec";
import { withTimeout } from "../core/async.ts";
import { ConnectionError, UserError } from "../core/errors.ts";
import type { Handler } from "../core/handler.ts";
import { checkFields, OptionPlace, type ValuesOf } from "../core/options.ts";
import { hiderOf, withWords } from "../core/secrets.ts";
import { firstChars } from "../core/text.ts";
import { errorMessage, isObject } from "../core/values.ts";
import { followSameOrigin } from "../http/client/redirects.ts";
import type { HttpResponse, Requester } from "../http/client/requester.ts";
import type { JsonSchema } from "../protocol/model/index.ts";
import type { SchemaCheck } from "../tools/schema-kind.ts";
import type { ToolContext } from "../server/call-context.ts";
import { printProblem } from "../core/listeners.ts";
import { lazyServer } from "../server/lazy.ts";
import { createServer, type Server } from "../server/server.ts";
import type { ToolAnswer } from "../server/returned-types.ts";
import { attempt } from "./document.ts";
import { loadOperations } from "./load.ts";
import { isJsonType, type Operation } from "./operation.ts";
import { OPENAPI, type OpenApiOptions } from "./options.ts";
import { type Api, type Arguments, toHttpRequest } from "./request.ts";

export type { OpenApiOptions } from "./options.ts";

/** A server with a tool for each operation. */
export interface OpenApi extends Handler {
  /** Closes idle connections. */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** How much of the body of a failed response is shown. */
const MAX_ERROR_LENGTH = 4_000;

/**
 * A server with the operations of an OpenAPI document as tools.
 *
 * @example
 * await serve(openapi({ document: "./shop.yaml", auth: { token: process.env.SHOP_TOKEN } }));
 */
export function openapi(given: OpenApiOptions): OpenApi {
  const options = checkFields(given, OPENAPI, new OptionPlace("openapi()"));
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
    fill: async (signal) => {
      const { nodeRequester } = await import("../http/client/node-requester.ts");
      requester ??= followSameOrigin(nodeRequester());
      await registerAll(server, options, requester, signal).catch((error: unknown) => {
        throw new ConnectionError("protocol", errorMessage(error), { cause: error, mayHaveRun: false });
      });
    },
    end: async () => requester?.close(),
  });
}

async function registerAll(
  server: Server,
  options: ValuesOf<typeof OPENAPI>,
  requester: Requester,
  signal: AbortSignal,
): Promise<void> {
  const { base, credentials, operations, problems: leftOut, unmatched } = await loadOperations(options, signal);
  const api: Api = { base: new URL(base), headers: options.headers ?? {}, credentials };
  const problems = [...leftOut];
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
    const firstProblems = problems.slice(0, 5).join("; ");
    const more = problems.length > 5 ? `; and ${problems.length - 5} more` : "";
    printProblem(`openapi(): these operations are left out: ${firstProblems}${more}`);
  }
}

function register(
  server: Server,
  operation: Operation,
  api: Api,
  options: ValuesOf<typeof OPENAPI>,
  requester: Requester,
): void {
  const { tool, title, description, annotations, inputSchema, outputSchema } = operation;
  const { timeoutMs, maxResponseBytes } = options;
  const texts = { description, annotations, ...(title !== undefined && { title }) };
  const schemas = {
    input: checkedWithoutPatterns(inputSchema, tool),
    inputSchema,
    ...(outputSchema !== undefined && { output: checkedWithoutPatterns(outputSchema, tool), outputSchema }),
  };
  // Some APIs quote in an error what they got.
  const keys = [...api.credentials.values()].map(({ value }) => value);
  const hide = hiderOf(
    [...Object.values(options.auth ?? {}), ...keys, ...Object.values(api.headers)].flatMap(withWords),
  );
  server.tool(tool, { ...texts, ...schemas }, async (args: Arguments, { signal }: ToolContext): Promise<ToolAnswer> => {
    const request = toHttpRequest(operation, args, api);
    const send = async (callSignal: AbortSignal): Promise<ToolAnswer> =>
      toAnswer(operation, await requester({ ...request, signal: callSignal }), maxResponseBytes, hide);
    if (timeoutMs === 0) return send(signal);
    return withTimeout(timeoutMs, signal, send, `The API did not answer in ${timeoutMs} ms`);
  });
}

/**
 * Models see the patterns of a document, and the API checks them. Here they are not run, since one may take forever; nor
 * is a schema whose check may.
 */
function checkedWithoutPatterns(schema: JsonSchema, tool: string): StandardSchemaV1<Arguments> {
  let check: SchemaCheck | undefined;
  const validate = async (value: unknown): Promise<StandardSchemaV1.Result<Arguments>> => {
    const { createUntrustedCheck } = await import("../tools/json-schema.ts");
    try {
      check ??= createUntrustedCheck(schema, `The schema of the tool ${tool}`);
      const { issues = [] } = await check(value);
      if (issues.length > 0) return { issues: issues.map((message) => ({ message })) };
    } catch {
      // The API checks the arguments too.
    }
    return { value: value as Arguments };
  };
  return { "~standard": { version: 1, vendor: "catenary", validate } };
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
    const named = ["content-type", "content-length", "etag", "last-modified"].filter((name) => headers[name]);
    return text([statusLine, ...named.map((name) => `${name}: ${headers[name]}`)].join("\n"), status >= 400);
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
