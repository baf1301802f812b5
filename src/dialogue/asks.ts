// What an end may ask of a caller, and which capability the caller must have declared for it.
// Checked by every front before a question goes out, so that no caller is asked what it cannot answer.

import type { Context } from "../core/context.ts";
import type { Params, Request } from "../core/handler.ts";
import { McpError } from "../protocol/errors.ts";
import type { Json } from "../protocol/revision.ts";

/** Requests during which a caller may be asked something. */
export const ASKABLE: ReadonlySet<string> = new Set(["tools/call", "prompts/get", "resources/read"]);

/** The capability that a question needs; undefined for what is no question at all. */
function required(method: string, params: Params): { [name: string]: Json } | undefined {
  if (method === "roots/list") return { roots: {} };
  if (method === "sampling/createMessage") return { sampling: params["tools"] === undefined ? {} : { tools: {} } };
  if (method === "elicitation/create") return { elicitation: params["mode"] === "url" ? { url: {} } : {} };
  return undefined;
}

function declares(capabilities: Json, name: string, detail: Json): boolean {
  const declared = capabilities[name] as Json | undefined;
  if (declared === undefined || declared === null) return false;
  if (name === "elicitation" && detail["url"] === undefined) {
    // An empty elicitation capability means forms; one that names only url does not.
    return declared["form"] !== undefined || declared["url"] === undefined;
  }
  return Object.keys(detail).every((key) => declared[key] !== undefined);
}

export function checkAsk(request: Request, capabilities: Context["caller"]["capabilities"]): void {
  const needs = required(request.method, request.params);
  if (needs === undefined) {
    throw McpError.of("method_not_found", `A caller cannot be asked for ${request.method}`, { method: request.method });
  }
  for (const [name, detail] of Object.entries(needs)) {
    if (!declares(capabilities, name, detail)) {
      throw McpError.of("missing_capability", `The caller has not declared the capability ${name} that ${request.method} needs`, {
        requiredCapabilities: needs,
      });
    }
  }
}
