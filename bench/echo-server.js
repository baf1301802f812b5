// A server with the tools that are measured: `echo` answers at once, `steps` tells of its progress first, so that
// its answer over HTTP is a stream.

import { createServer } from "catenary";

const inputSchema = { type: "object", properties: { text: { type: "string" } }, required: ["text"] };
// A hand-written Standard Schema: the price of a schema library is its own, not ours.
const input = {
  "~standard": {
    version: 1,
    vendor: "bench",
    validate: (value) =>
      typeof value?.text === "string" ? { value } : { issues: [{ message: "text must be a string" }] },
  },
};

export function createEcho() {
  return createServer({ name: "echo", version: "1" })
    .tool("echo", { description: "Echo a text", input, inputSchema }, ({ text }) => text)
    .tool("steps", { description: "Echo a text, after a step", input, inputSchema }, ({ text }, { progress }) => {
      progress(1, 2);
      return text;
    });
}
