// A session-style server by hand that asks for roots as soon as hands are shaken, in no call's name, as some servers do.
// Its one tool tells what it was answered.

import { createInterface } from "node:readline";

const send = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
let told = "nothing yet";

const answers = {
  initialize: ({ protocolVersion }) => ({
    protocolVersion,
    capabilities: { tools: {} },
    serverInfo: { name: "nosy", version: "1" },
  }),
  "tools/list": () => ({ tools: [{ name: "told", inputSchema: { type: "object" } }] }),
  "tools/call": () => ({ content: [{ type: "text", text: told }] }),
};

createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params, result, error } = JSON.parse(line);
  if (id === "nosy") told = error === undefined ? result.roots.map(({ uri }) => uri).join(" ") : error.message;
  else if (method === "notifications/initialized") send({ id: "nosy", method: "roots/list" });
  else if (id !== undefined && answers[method] !== undefined) send({ id, result: answers[method](params) });
  else if (id !== undefined) send({ id, error: { code: -32601, message: `no ${method}` } });
});
