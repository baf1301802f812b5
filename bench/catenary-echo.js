// The same echo as a tool of a server of ours, on the process's own stdio.

import { createServer, serve } from "catenary";
import { reportCost } from "./cost.js";

reportCost();
const input = { type: "object", properties: { text: { type: "string" } }, required: ["text"] };
// A hand-written Standard Schema: the price of a schema library is its own, not ours.
const schema = {
  "~standard": {
    version: 1,
    vendor: "bench",
    validate: (value) =>
      typeof value?.text === "string" ? { value } : { issues: [{ message: "text must be a string" }] },
  },
};
await serve(
  createServer({ name: "echo", version: "1" }).tool(
    "echo",
    { description: "Echo a text", input: schema, inputSchema: input },
    ({ text }) => text,
  ),
);
