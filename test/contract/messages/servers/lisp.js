// The server of seeds 000 and 001 without a Lisp: it answers the inputs of the seeds with their outputs. The tests of live
// sessions play the same transcripts with a real Lisp.

import { createServer } from "catenary";

const failed = (text) => ({ content: [{ type: "text", text }], isError: true });

const ANSWERS = new Map([
  ["(+ 1 2)", "=> 3"],
  ["(+ 1 2 3)", "=> 6"],
  ["(/ 1 0)", failed("[ERROR] DIVISION-BY-ZERO\nArithmetic error signalled.\n\n[Backtrace]\n0: (/ 1 0)\n...")],
  ["(error 'condition-type)", failed("[ERROR] condition-type\nError message...\n[Backtrace]\n...")],
]);

export const server = createServer({ name: "cl-mcp-server", version: "0.1.0", listChanged: false }).tool(
  "evaluate-lisp",
  {
    description: "Evaluate Common Lisp code in a persistent session",
    input: {
      type: "object",
      required: ["code"],
      properties: { code: { type: "string", description: "The Lisp code to evaluate" } },
    },
  },
  ({ code }) => ANSWERS.get(code) ?? failed(`No answer for ${code}`),
);
