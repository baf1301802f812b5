// A server for bad inputs and exact ids: its tools echo, wait until they are cancelled or released, report progress, and
// update a resource.

import { createServer } from "catenary";

const waiting = new Set();

export const server = createServer({ name: "edge", version: "1.0.0" })
  .tool(
    "echo",
    {
      description: "Return the text",
      input: { type: "object", properties: { text: { type: "string" } }, required: ["text"] },
    },
    ({ text }) => text,
  )
  .tool("hold", { description: "Wait for let_go or a cancellation" }, async (_, { signal }) => {
    await new Promise((resolve, reject) => {
      waiting.add(resolve);
      signal.addEventListener("abort", () => {
        waiting.delete(resolve);
        reject(signal.reason);
      });
    });
    return "let go";
  })
  .tool("held", { description: "Count waiting calls" }, () => String(waiting.size))
  .tool("let_go", { description: "Release all waiting calls" }, () => {
    const count = waiting.size;
    for (const resolve of waiting) resolve();
    waiting.clear();
    return String(count);
  })
  .tool("steps", { description: "Report progress twice" }, (_, { progress }) => {
    progress(1, 2);
    progress(2, 2);
    return "done";
  })
  .tool("touch", { description: "Change the resource" }, () => {
    server.resourceUpdated("edge://thing");
    return "touched";
  })
  .resource("edge://thing", { name: "Thing" }, () => "thing")
  .prompt("say", { arguments: { text: { required: true } } }, ({ text }) => text);
