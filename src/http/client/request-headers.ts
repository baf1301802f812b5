// The headers that a client writes, of which the server checks some (../headers.ts).

import { isObject } from "../../core/values.ts";
import type { RequestMessage } from "../../jsonrpc/message.ts";
import { encodeHeaderValue } from "../../protocol/header-values.ts";
import { META } from "../../protocol/model/base.ts";
import { NAME_FIELDS, REVISION_HEADER, SESSION_HEADER } from "../headers.ts";

export const POST_HEADERS: Readonly<Record<string, string>> = {
  "content-type": "application/json",
  accept: "application/json, text/event-stream",
};

export function statelessHeaders({ method, params }: RequestMessage): Record<string, string> {
  const meta = params?.["_meta"];
  const revision = isObject(meta) ? meta[META.revision] : undefined;
  const field = NAME_FIELDS.get(method);
  const name = field === undefined ? undefined : params?.[field];
  return {
    ...POST_HEADERS,
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
