// What an end may ask of its caller in mid-call, and the capability that the caller must have declared for
// it. No caller is asked what it cannot answer: the question ends here, with an error that names what is
// missing. How a question travels is not known here.

import type { Caller } from "../core/context.ts";
import type { Params, Request } from "../core/handler.ts";
import { McpError } from "./errors.ts";
import type { ClientCapabilities } from "./model/index.ts";

/** Requests during which a caller may be asked something. */
export const ASKABLE: ReadonlySet<string> = new Set(["tools/call", "prompts/get", "resources/read"]);

/** What is missing for the question; undefined: nothing. */
function missing(method: string, params: Params, declared: ClientCapabilities): ClientCapabilities | undefined {
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
      // Empty means forms; one that names only url does not.
      if (!elicitation) return { elicitation: {} };
      return elicitation.form || !elicitation.url ? undefined : { elicitation: { form: {} } };
    }
    default:
      throw McpError.of("method_not_found", `A caller cannot be asked for ${method}`, { method });
  }
}

/** Throws an McpError where the caller cannot be asked this. */
export function checkAsk({ method, params }: Request, capabilities: Caller["capabilities"]): void {
  const requiredCapabilities = missing(method, params, capabilities);
  if (requiredCapabilities === undefined) return;
  const names = Object.entries(requiredCapabilities).map(([name, detail]) =>
    [name, ...Object.keys(detail as object)].join("."),
  );
  const message = `The caller has not declared the capability ${names.join()} that ${method} needs`;
  throw McpError.of("missing_capability", message, { requiredCapabilities });
}
