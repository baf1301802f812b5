// Headers of an exchange-style POST against its body. Whoever stands between reads only the headers, so what they
// say must be what the body says; a request in which they differ is refused before anybody acts on it
// (specification, basic/transports/streamable-http, server validation). Headers that mirror a tool's arguments are
// checked by the server, which alone knows the tool's schema.

import type { RequestMessage } from "../jsonrpc/message.ts";
import { McpError } from "../protocol/errors.ts";
import { decodeHeaderValue, encodeHeaderValue } from "../protocol/header-value.ts";
import type { RequestHeaders } from "./server/http-request.ts";
import { META } from "../protocol/model/index.ts";
import { isObject } from "../core/objects.ts";

export const REVISION_HEADER = "mcp-protocol-version";
export const SESSION_HEADER = "mcp-session-id";

/** The methods that name something, and the field that does. */
export const NAMED: ReadonlyMap<string, string> = new Map([
  ["tools/call", "name"],
  ["prompts/get", "name"],
  ["resources/read", "uri"],
  ["tasks/get", "taskId"],
  ["tasks/update", "taskId"],
  ["tasks/cancel", "taskId"],
]);

/** Throws a header mismatch. `revision` is the name that the body gives. */
export function checkHeaders({ method, params }: RequestMessage, revision: string, headers: RequestHeaders): void {
  compare("MCP-Protocol-Version", headers[REVISION_HEADER], revision);
  compare("Mcp-Method", headers["mcp-method"], method);
  const field = NAMED.get(method);
  if (field === undefined) return;
  const name = params?.[field];
  // What is no text will be refused for that, by the guard of the method's params.
  if (typeof name !== "string") return;
  const given = headers["mcp-name"];
  compare("Mcp-Name", given === undefined ? undefined : (decodeHeaderValue(given) ?? BROKEN), name);
}

const BROKEN = Symbol("not decodable");

function compare(header: string, given: string | typeof BROKEN | undefined, body: string): void {
  if (given === body) return;
  const problem =
    given === undefined
      ? "is missing"
      : given === BROKEN
        ? "cannot be decoded"
        : `says ${JSON.stringify(given)}, the body says ${JSON.stringify(body)}`;
  throw McpError.of("header_mismatch", `The header ${header} ${problem}; it must repeat what the body says`, {
    header,
  });
}

// The headers of our POSTs. An exchange repeats in them what its body says, for whoever routes requests without
// reading bodies (specification, basic/transports/streamable-http, request metadata); a session names itself and the
// revision that it speaks.


export const POSTED: Readonly<Record<string, string>> = {
  "content-type": "application/json",
  accept: "application/json, text/event-stream",
};

export function statelessHeaders({ method, params }: RequestMessage): Record<string, string> {
  const meta = params?.["_meta"];
  const revision = isObject(meta) ? meta[META.revision] : undefined;
  const field = NAMED.get(method);
  const name = field === undefined ? undefined : params?.[field];
  return {
    ...POSTED,
    ...(typeof revision === "string" ? { [REVISION_HEADER]: revision } : undefined),
    "mcp-method": encodeHeaderValue(method),
    ...(typeof name === "string" ? { "mcp-name": encodeHeaderValue(name) } : undefined),
  };
}

export function sessionHeaders(session: string | undefined, revision: string | undefined): Record<string, string> {
  return {
    ...(session === undefined ? undefined : { [SESSION_HEADER]: session }),
    ...(revision === undefined ? undefined : { [REVISION_HEADER]: revision }),
  };
}
