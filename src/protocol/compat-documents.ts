// The documents that a server can speak as, besides the specification. Each is a value that says only what differs, as an
// older revision is a delta to its successor: the rest is the caller's revision. What the specification requires stays:
// ids, the fields of resource contents, and results with `isError` for tools that fail.

import type { Handler, Request, Result } from "../core/handler.ts";
import { isObject } from "../core/values.ts";
import { PARSE_ERROR } from "../jsonrpc/codec.ts";
import type { ErrorBody, ErrorMessage } from "../jsonrpc/message.ts";
import { type CodeChanges, type ErrorKind, methodNotFound } from "./errors.ts";
import { FAILED_EVALUATION, type FailedEvaluation, withoutHint } from "./failed-evaluation.ts";
import { type List, LISTS } from "./lists.ts";
import { META } from "./model/base.ts";
import { walkPages } from "./walk-pages.ts";

type Json = Readonly<Record<string, unknown>>;

export type DocumentName = "cl-mcp" | "llm-pharo" | "chain" | "reference";

/** What a document changes for session-style callers. */
export interface CompatRules {
  /** The order of requests on a connection that sets none. */
  readonly ordering?: "sequential";
  /** Wraps a handler, so that its results are those of the document. */
  handler(handler: Handler): Handler;
  /** The error as the document writes it. An error without a kind stays as it is. */
  error(body: ErrorBody, kind: ErrorKind | undefined): ErrorBody;
  /** The answer to what is not a valid message, as the document writes it. */
  fault(fault: ErrorMessage): ErrorMessage;
}

export interface CompatDocument {
  /** Replaces the info of servers that no author has named: gateways and live sessions. */
  readonly serverInfo: { readonly name: string; readonly version: string };
  /**
   * The capabilities that the document knows. `true` keeps what the server declares. Others are not declared, and their
   * methods do not exist.
   */
  readonly capabilities: Readonly<Record<string, Json | true>>;
  /** Codes that differ from those of the caller's revision. */
  readonly codes?: CodeChanges;
  /** The message for a code. What our own message says goes into `data`. */
  readonly messages?: Readonly<Record<number, string>>;
  /** Where an error says what is wrong: as a string, in `details`, or only in its message. */
  readonly data: "string" | "details" | "none";
  /** What `data` says about an error of a kind; `%` is the name of what is missing. Empty: no `data`. */
  readonly texts?: Partial<Record<ErrorKind, string>>;
  /** Whether a successful call has `isError: false`. Default: as the server sent it. */
  readonly isError?: "always" | "if true";
  /** The text of a failed call, from that of the server. */
  readonly failure?: (text: string, evaluation: FailedEvaluation | undefined) => string;
  /** The only items that are listed if the server has one of them, by list and by name or URI. */
  readonly items?: Readonly<Record<string, readonly Json[]>>;
  readonly ordering?: "sequential";
}

/** The messages of JSON-RPC. */
const JSON_RPC = {
  [-32700]: "Parse error",
  [-32600]: "Invalid Request",
  [-32601]: "Method not found",
  [-32602]: "Invalid params",
  [-32603]: "Internal error",
} as const;

export const DOCUMENTS: Readonly<Record<DocumentName, CompatDocument>> = {
  "cl-mcp": {
    serverInfo: { name: "cl-mcp-server", version: "0.1.0" },
    capabilities: { tools: {} },
    messages: JSON_RPC,
    data: "string",
    texts: { method_not_found: "Method '%' is not supported" },
    isError: "always",
    ordering: "sequential",
    failure: (text, evaluation) => {
      const before = evaluation?.rest() ?? text;
      if (evaluation?.error === undefined) return before;
      const { type, message, frames } = evaluation.error;
      const backtrace = frames.map((frame) => `${frame.number}: ${frame.text}`).join("\n");
      // There are no frames if none is of the user's code.
      return `${before}${before && "\n"}[ERROR] ${type}\n${message}\n\n[Backtrace]\n${backtrace || "(top level)"}`;
    },
    items: {
      tools: [
        {
          name: "evaluate-lisp",
          description: "Evaluate Common Lisp code in a persistent session",
          inputSchema: {
            type: "object",
            required: ["code"],
            properties: { code: { type: "string", description: "The Lisp code to evaluate" } },
          },
        },
      ],
    },
  },
  "llm-pharo": {
    serverInfo: { name: "pharo-mcp", version: "0.1.0" },
    capabilities: {
      tools: { listChanged: false },
      resources: { subscribe: false, listChanged: false },
      prompts: { listChanged: false },
    },
    // The only code of its table for a URI that is wrong.
    codes: { resource_not_found: -32602 },
    data: "none",
    isError: "if true",
    failure: (text, evaluation) => {
      const message = evaluation?.error?.message ?? evaluation?.rest() ?? text;
      return message.startsWith("Error: ") ? message : `Error: ${message}`;
    },
    items: {
      tools: [
        {
          name: "evaluate",
          description: "Evaluate a Pharo expression",
          inputSchema: {
            type: "object",
            properties: { expression: { type: "string", description: "Pharo expression to evaluate" } },
            required: ["expression"],
          },
        },
      ],
      resources: [
        {
          uri: "pharo://system/version",
          name: "System Version",
          description: "Current Pharo version",
          mimeType: "text/plain",
        },
      ],
      resourceTemplates: [
        {
          uriTemplate: "pharo://class/{className}",
          name: "Class Details",
          description: "Get details for a Pharo class",
          mimeType: "application/json",
        },
      ],
      prompts: [
        {
          name: "review-class",
          description: "Review a Pharo class",
          arguments: [{ name: "className", description: "The class to review", required: true }],
        },
      ],
    },
  },
  chain: {
    serverInfo: { name: "mcp-chain-server", version: "1.0.0" },
    capabilities: { tools: {}, resources: {}, prompts: {} },
    codes: {
      tool_not_found: -32001,
      resource_not_found: -32002,
      prompt_not_found: -32003,
      execution_failed: -32004,
      access_denied: -32005,
    },
    messages: {
      ...JSON_RPC,
      [-32001]: "Tool not found",
      [-32002]: "Resource not found",
      [-32003]: "Prompt not found",
      [-32004]: "Tool execution failed",
      [-32005]: "Resource access denied",
    },
    data: "string",
    texts: {
      parse_error: "",
      method_not_found: "Unknown method: %",
      tool_not_found: "Tool '%' does not exist",
      resource_not_found: "Resource '%' does not exist",
      prompt_not_found: "Prompt '%' does not exist",
    },
    isError: "always",
  },
  reference: {
    serverInfo: { name: "my-mcp-server", version: "1.0.0" },
    capabilities: { resources: true, tools: true, prompts: true },
    codes: {
      resource_not_found: -32001,
      execution_failed: -32002,
      unauthorized: -32003,
      rate_limited: -32004,
    },
    messages: {
      ...JSON_RPC,
      [-32001]: "Resource not found",
      [-32002]: "Tool execution error",
      [-32003]: "Unauthorized",
      [-32004]: "Rate limit exceeded",
    },
    data: "details",
  },
};

/** The capabilities of methods, by the first part of their names. All servers have the methods of other names. */
const CAPABILITIES: Readonly<Record<string, string>> = {
  resources: "resources",
  prompts: "prompts",
  completion: "completions",
};

/** Names that Catenary gives to servers without an author. */
const UNNAMED = /^catenary(?:-|$)/;

export function compatRules(document: CompatDocument): CompatRules {
  return {
    ...(document.ordering && { ordering: document.ordering }),
    handler:
      (handler: Handler): Handler =>
      async (request, context) => {
        const capability = CAPABILITIES[request.method.slice(0, request.method.indexOf("/"))];
        if (capability !== undefined && document.capabilities[capability] === undefined)
          throw methodNotFound(request.method);
        const list = Object.values(LISTS).find(({ method }) => method === request.method);
        return list === undefined
          ? resultOf(document, request, await handler(request, context))
          : listed(document, list, request, (page) => handler(page, context));
      },
    error: (body, kind) => (kind === undefined ? body : errorOf(document, body, kind)),
    fault: ({ error, ...fault }) => {
      const kind = error.code === PARSE_ERROR ? "parse_error" : "invalid_request";
      return { ...fault, error: errorOf(document, error, kind) };
    },
  };
}

function errorOf({ codes, messages, data, texts }: CompatDocument, body: ErrorBody, kind: ErrorKind): ErrorBody {
  const code = codes?.[kind] ?? body.code;
  const message = messages?.[code] ?? body.message;
  if (data === "none") return { code, message: withDetails(body) };
  // The document says nothing about this code.
  if (messages?.[code] === undefined) return { ...body, code };
  const details = detailsOf(body, texts?.[kind], message);
  if (details === "") return { code, message };
  return { code, message, data: data === "string" ? details : { details } };
}

/** The message, with the details that are only in `data`, and without the hint, which names tools that are not listed. */
function withDetails({ message: text, data }: ErrorBody): string {
  const { details, hint } = isObject(data) ? data : { details: data };
  const message = typeof hint === "string" ? withoutHint(text, hint) : text;
  return typeof details === "string" && !message.includes(details) ? `${message}: ${details}` : message;
}

/** What is wrong, without repeating the message of the document. */
function detailsOf({ message, data }: ErrorBody, text: string | undefined, title: string): string {
  if (text === "") return "";
  if (typeof data === "string") return data;
  const { method, toolName, promptName, uri, details } = isObject(data) ? data : {};
  const name = method ?? toolName ?? promptName ?? uri;
  if (text !== undefined && typeof name === "string") return text.replace("%", () => name);
  if (typeof details === "string") return details;
  return message === title ? "" : message.replace(new RegExp(`^${title}: `), "");
}

function resultOf(document: CompatDocument, { method }: Request, result: Result): Result {
  switch (method) {
    case "server/discover":
      return discovered(document, result);
    case "tools/call":
      return withCallErrors(document, result);
    default:
      return result;
  }
}

function discovered({ serverInfo, capabilities }: CompatDocument, result: Result): Result {
  const { instructions: _instructions, ...rest } = result;
  const declared = isObject(result["capabilities"]) ? result["capabilities"] : {};
  const known = Object.entries(capabilities).filter(([name]) => declared[name] !== undefined);
  const info = result._meta?.[META.serverInfo];
  const isNamed = isObject(info) && !UNNAMED.test(String(info["name"]));
  return {
    ...rest,
    capabilities: Object.fromEntries(known.map(([name, value]) => [name, value === true ? declared[name] : value])),
    _meta: { ...result._meta, ...(!isNamed && { [META.serverInfo]: serverInfo }) },
  };
}

function withCallErrors({ isError, failure }: CompatDocument, result: Result): Result {
  const { content } = result;
  if (!Array.isArray(content)) return result;
  if (result["isError"] === true) {
    const blocks: readonly unknown[] = content;
    const [first, ...rest] = blocks;
    if (failure === undefined || !isObject(first) || typeof first["text"] !== "string") return result;
    const attached = (first as { readonly [FAILED_EVALUATION]?: FailedEvaluation })[FAILED_EVALUATION];
    const evaluation = attached?.text === first["text"] ? attached : undefined;
    const text = failure(first["text"], evaluation);
    return { ...result, content: [evaluation === undefined ? { ...first, text } : { type: "text", text }, ...rest] };
  }
  if (isError === "always") return { ...result, isError: false };
  if (isError === undefined) return result;
  const { isError: _isError, ...rest } = result;
  return rest;
}

/**
 * Only the items of the document, as one page, if the server has one of them. They may be on any page of the server, so a
 * request without a cursor reads on until all are found. One with a cursor follows a page that was left as it is.
 */
async function listed(
  { items }: CompatDocument,
  { field, key }: List,
  request: Request,
  fetch: (request: Request) => Promise<Result>,
): Promise<Result> {
  const first = await fetch(request);
  const listedItems = items?.[field];
  if (listedItems === undefined || request.params["cursor"] !== undefined) return first;
  const fetchPage = async (cursor: string | undefined): Promise<Result> =>
    cursor === undefined ? first : fetch({ ...request, params: { ...request.params, cursor } });
  const keys = new Set<unknown>();
  for await (const { page } of walkPages(field, fetchPage)) {
    const pageItems = Array.isArray(page[field]) ? page[field] : [];
    for (const item of pageItems) if (isObject(item)) keys.add(item[key]);
    if (listedItems.every((item) => keys.has(item[key]))) break;
  }
  const known = listedItems.filter((item) => keys.has(item[key]));
  if (known.length === 0) return first;
  const { nextCursor: _more, ...rest } = first;
  return { ...rest, [field]: known };
}
