// The headers of our POSTs. An exchange repeats in them what its body says, for whoever routes requests without
// reading bodies (specification, basic/transports/streamable-http, request metadata); a session names itself and the
// revision that it speaks.

import type { RequestMessage } from "../../jsonrpc/message.ts";
import { encodeHeaderValue } from "../../protocol/header-value.ts";
import { META } from "../../protocol/model/index.ts";
import { isObject } from "../../core/objects.ts";
import { NAMED, REVISION_HEADER, SESSION_HEADER } from "../server/headers.ts";

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
