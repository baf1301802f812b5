// Middleware that asks the person before certain tools run. It knows nothing of revisions: the question reaches a caller
// of session style in mid-call, and one of exchange style as `input_required`; a caller that cannot be asked is told so.

import { on } from "catenary/chain";

// What a tool asks comes to a caller of the newest revision in rounds, each of them a call that passes here again.
// Where a link takes the questions itself, all rounds are one call, and the person is asked for leave once.
const asOneCall = on(["elicitation/create", "sampling/createMessage", "roots/list"], (question, context, next) =>
  next(question, context),
);

/** @param {{ tools: readonly string[] }} options */
export function middleware({ tools }) {
  return on("tools/call", async (request, context, next) => {
    const { name } = request.params;
    if (!tools.some((one) => (one.endsWith("*") ? name.startsWith(one.slice(0, -1)) : name === one))) {
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
    // A refusal is a result, so that the model reads it and does something else.
    return {
      resultType: "complete",
      isError: true,
      content: [{ type: "text", text: `The person did not want ${name} to be called.` }],
    };
  });
}
