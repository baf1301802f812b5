// A server for inputs at the edge: tools that echo, that wait until they are cancelled or let go, that report
// progress, and that change a resource.

import { createServer } from "catenary";

const waiting = new Set();

export const server = createServer({ name: "edge", version: "1.0.0" })
  .tool(
    "echo",
    {
      description: "Give the text back",
      input: { type: "object", properties: { text: { type: "string" } }, required: ["text"] },
    },
    ({ text }) => text,
  )
  .tool("hold", { description: "Wait until somebody lets go" }, async (_, { signal }) => {
    await new Promise((resolve, reject) => {
      waiting.add(resolve);
      signal.addEventListener("abort", () => {
        waiting.delete(resolve);
        reject(signal.reason);
      });
    });
    return "let go";
  })
  .tool("held", { description: "How many calls wait" }, () => String(waiting.size))
  .tool("let_go", { description: "Let all that wait go on" }, () => {
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
