// The server that is measured: `echo` returns at once, `steps` reports progress first, so that its response over HTTP is
// a stream.

import { createServer } from "catenary";

const inputSchema = { type: "object", properties: { text: { type: "string" } }, required: ["text"] };
// A hand-written Standard Schema, so that no schema library is measured.
const input = {
  "~standard": {
    version: 1,
    vendor: "bench",
    validate: (value) =>
      typeof value?.text === "string" ? { value } : { issues: [{ message: "text must be a string" }] },
  },
};

/** With `tools` tools, where that is more than these two. */
export function createEcho(tools = 0) {
  const server = createServer({ name: "echo", version: "1" })
    .tool("echo", { description: "Echo a text", input, inputSchema }, ({ text }) => text)
    .tool("steps", { description: "Echo a text, after a step", input, inputSchema }, ({ text }, { progress }) => {
      progress(1, 2);
      return text;
    });
  for (let n = 2; n < tools; n += 1)
    server.tool(`echo-${n}`, { description: "Echo a text", input, inputSchema }, ({ text }) => text);
  return server;
}
