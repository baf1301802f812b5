// Requests that a server sends to the client during a call, and the capability that each of them needs. A request that
// the client cannot answer fails here, with an error that names the missing capability.

import type { Caller, Params, Request } from "../core/handler.ts";
import { fieldsOf } from "../core/values.ts";
import { McpError } from "./errors.ts";
import type { ClientCapabilities } from "./model/index.ts";

/** Requests during which a server may ask the client for input. */
export const INPUT_METHODS: ReadonlySet<string> = new Set(["tools/call", "prompts/get", "resources/read"]);

function missingCapability(
  method: string,
  params: Params,
  declared: ClientCapabilities,
): ClientCapabilities | undefined {
  switch (method) {
    case "roots/list":
      return declared.roots ? undefined : { roots: {} };
    case "sampling/createMessage": {
      if (params["tools"] === undefined && params["toolChoice"] === undefined) {
        return declared.sampling ? undefined : { sampling: {} };
      }
      return declared.sampling?.tools ? undefined : { sampling: { tools: {} } };
    }
    case "elicitation/create": {
      const { elicitation } = declared;
      if (params["mode"] === "url") return elicitation?.url ? undefined : { elicitation: { url: {} } };
      // An empty object means that forms are supported; an object with only `url` means that they are not.
      if (!elicitation) return { elicitation: {} };
      return elicitation.form || !elicitation.url ? undefined : { elicitation: { form: {} } };
    }
    default:
      throw McpError.of("method_not_found", `A server cannot send ${method} to this client, only within a session`, {
        method,
      });
  }
}

/** Throws an McpError if the client lacks the capability for the request. */
export function checkClientRequest({ method, params }: Request, capabilities: Caller["capabilities"]): void {
  const requiredCapabilities = missingCapability(method, params, capabilities);
  if (requiredCapabilities === undefined) return;
  const names = Object.entries(requiredCapabilities).map(([name, detail]) =>
    [name, ...Object.keys(fieldsOf(detail))].join("."),
  );
  const message = `The caller has not declared the capability ${names.join()} that ${method} needs`;
  throw McpError.of("missing_capability", message, { requiredCapabilities });
}

/** Whether the client has declared the capabilities that the request needs. */
export function canAnswer({ method, params }: Request, { canBeAsked, capabilities }: Caller): boolean {
  return canBeAsked && missingCapability(method, params, capabilities) === undefined;
}
