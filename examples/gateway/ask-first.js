// Middleware that asks the user before certain tools run. It works for clients of every revision: a session-style client
// gets a request during the call, a stateless one gets `input_required`, and one without elicitation gets an error.

import { on } from "catenary/chain";

// A stateless client answers a tool's question by calling again, and that call would pass through here again. Middleware
// that handles the questions itself keeps them within one call, so that the user is asked for permission once.
const asOneCall = on(["elicitation/create", "sampling/createMessage", "roots/list"], (question, context, next) =>
  next(question, context),
);

/** @param {{ tools: readonly string[] }} options */
export function middleware({ tools }) {
  return on("tools/call", async (request, context, next) => {
    const { name } = request.params;
    if (!tools.some((pattern) => (pattern.endsWith("*") ? name.startsWith(pattern.slice(0, -1)) : name === pattern))) {
      return next(request, context);
    }
    const { action } = await context.ask({
      method: "elicitation/create",
      params: {
        mode: "form",
        message: `May ${name} be called with ${JSON.stringify(request.params.arguments)}?`,
        requestedSchema: { type: "object", properties: {} },
      },
    });
    if (action === "accept") return asOneCall(request, context, next);
    // A result and not an error, so that the model can read it and do something else.
    return {
      resultType: "complete",
      isError: true,
      content: [{ type: "text", text: `The user declined the call of ${name}.` }],
    };
  });
}
