// The server of seed 002: the example, which needs no Pharo, and its tool `evaluate`, which does. Here the tool
// answers the seed's inputs with the seed's outputs. Live images come later; then a real one stands here.

import { createPharo } from "../../../../examples/pharo/server.js";

const ANSWERS = new Map([["3 + 4", "7"]]);

export const server = createPharo().tool(
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
