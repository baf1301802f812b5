// The server of seed 002: the Pharo example, which needs no Pharo, and the tool `evaluate`, which answers the inputs of the
// seed with their outputs.

import { createPharo } from "../../../../examples/pharo/server.js";

const ANSWERS = new Map([["3 + 4", "7"]]);

export const server = createPharo();
server.removeTool("evaluate");
server.tool(
  "evaluate",
  {
    description: "Evaluate a Pharo expression",
    input: {
      type: "object",
      properties: { expression: { type: "string", description: "Pharo expression to evaluate" } },
      required: ["expression"],
    },
  },
  ({ expression }) => {
    const answer = ANSWERS.get(expression);
    if (answer === undefined) return { content: [{ type: "text", text: "Error: undefined variable" }], isError: true };
    return answer;
  },
);
