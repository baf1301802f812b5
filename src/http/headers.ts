// The MCP headers of HTTP requests, which the client writes and the server checks. Stateless requests repeat parts of the
// body in headers, so that proxies can route them without reading the body. Headers and body must agree (specification,
// basic/transports/streamable-http). Headers that repeat tool arguments are checked where the tool's schema is known.

import { copyFields, isObject } from "../core/values.ts";
import type { RequestMessage } from "../jsonrpc/message.ts";
import { McpError } from "../protocol/errors.ts";
import { decodeHeaderValue, encodeHeaderValue } from "../protocol/header-values.ts";
import { META } from "../protocol/model/base.ts";
import type { RequestHeaders } from "./server/http-request.ts";

export const REVISION_HEADER = "mcp-protocol-version";
export const SESSION_HEADER = "mcp-session-id";

/** The params field that Mcp-Name repeats, by method. */
const NAME_FIELDS: ReadonlyMap<string, string> = new Map([
  ["tools/call", "name"],
  ["prompts/get", "name"],
  ["resources/read", "uri"],
  ["tasks/get", "taskId"],
  ["tasks/update", "taskId"],
  ["tasks/cancel", "taskId"],
]);

/** Throws an McpError if a header differs from the body. `revision` is the one in the body. */
export function checkHeaders({ method, params }: RequestMessage, revision: string, headers: RequestHeaders): void {
  compare("MCP-Protocol-Version", headers[REVISION_HEADER], revision);
  compare("Mcp-Method", headers["mcp-method"], method);
  const field = NAME_FIELDS.get(method);
  if (field === undefined) return;
  const name = params?.[field];
  // A missing or wrong name is rejected later, when the params are checked.
  if (typeof name !== "string") return;
  const header = headers["mcp-name"];
  // What looks encoded is decoded, even if the body has the same string.
  if (header === name && !name.startsWith("=?")) return;
  compare("Mcp-Name", header === undefined ? undefined : (decodeHeaderValue(header) ?? INVALID), name);
}

const INVALID = Symbol("not decodable");

function compare(header: string, value: string | typeof INVALID | undefined, body: string): void {
  if (value === body) return;
  const problem =
    value === undefined
      ? "is missing"
      : value === INVALID
        ? "cannot be decoded"
        : `is ${JSON.stringify(value)}, but the body has ${JSON.stringify(body)}`;
  throw McpError.of("header_mismatch", `The header ${header} ${problem}; it must repeat the value in the body`, {
    header,
  });
}

export const POST_HEADERS: Readonly<Record<string, string>> = {
  "content-type": "application/json",
  accept: "application/json, text/event-stream",
};

export function statelessHeaders({ method, params }: RequestMessage): Record<string, string> {
  const meta = params?.["_meta"];
  const revision = isObject(meta) ? meta[META.revision] : undefined;
  const field = NAME_FIELDS.get(method);
  const name = field === undefined ? undefined : params?.[field];
  const headers = copyFields(POST_HEADERS);
  if (typeof revision === "string") headers[REVISION_HEADER] = revision;
  headers["mcp-method"] = encodeHeaderValue(method);
  if (typeof name === "string") headers["mcp-name"] = encodeHeaderValue(name);
  return headers;
}

export function sessionHeaders(session: string | undefined, revision: string | undefined): Record<string, string> {
  return {
    ...(session === undefined ? undefined : { [SESSION_HEADER]: session }),
    ...(revision === undefined ? undefined : { [REVISION_HEADER]: revision }),
  };
}
