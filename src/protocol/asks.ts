// What an end may ask of its caller in mid-call, and the capability that the caller must have declared for
// it. No caller is asked what it cannot answer: the question ends here, with an error that names what is
// missing. What comes back is looked at too, as far as its method promises. How a question travels is not known
// here.

import type { Caller, Params, Request, Result } from "../core/handler.ts";
import { isObject } from "../core/objects.ts";
import { invalidParams, McpError } from "./errors.ts";
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

/** What is wrong with the answer; undefined: nothing. */
const ANSWERS: Readonly<Record<string, (answer: Result) => string | undefined>> = {
  "roots/list": ({ roots }) =>
    Array.isArray(roots) && roots.every((root) => isObject(root) && typeof root["uri"] === "string")
      ? undefined
      : "must have `roots`, an array of objects with a string `uri`",
  "elicitation/create": ({ action, content }) => {
    if (action !== "accept" && action !== "decline" && action !== "cancel") {
      return "must have an `action`: accept, decline or cancel";
    }
    // Some callers write null for what they leave out.
    return content === undefined || content === null || isObject(content)
      ? undefined
      : "has a `content` that is no object";
  },
  "sampling/createMessage": ({ role, model, content }) => {
    if (typeof role !== "string" || typeof model !== "string") return "must have a `role` and a `model`, both strings";
    return isObject(content) || Array.isArray(content) ? undefined : "must have a `content`, an object or an array";
  },
};

/** Throws invalid params where a handler could not rely on what the answer's type says. */
export function checkAnswer(method: string, result: Result): void {
  const problem = Object.hasOwn(ANSWERS, method) ? ANSWERS[method]?.(result) : undefined;
  if (problem !== undefined) throw invalidParams(`The caller's answer to ${method} ${problem}`, { method });
}
