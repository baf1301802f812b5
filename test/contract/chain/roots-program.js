// A session-style server, written by hand, that requests the roots right after the handshake, outside of any call, as some
// servers do. Its only tool returns the answer. With `--in-list`, it requests the roots for each `tools/list` instead, and
// answers the list after that.

import { createInterface } from "node:readline";

const send = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
const isInList = process.argv.includes("--in-list");
/** The ids of lists that wait for the roots. */
const waiting = [];
let answer = "nothing yet";

const answers = {
  initialize: ({ protocolVersion }) => ({
    protocolVersion,
    capabilities: { tools: {} },
    serverInfo: { name: "roots", version: "1" },
  }),
  "tools/list": () => ({ tools: [{ name: "answer", inputSchema: { type: "object" } }] }),
  "tools/call": () => ({ content: [{ type: "text", text: answer }] }),
};

createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params, result, error } = JSON.parse(line);
  if (id === "roots") {
    answer = error === undefined ? result.roots.map(({ uri }) => uri).join(" ") : error.message;
    for (const list of waiting.splice(0)) send({ id: list, result: answers["tools/list"]() });
  } else if (isInList ? method === "tools/list" : method === "notifications/initialized") {
    if (id !== undefined) waiting.push(id);
    send({ id: "roots", method: "roots/list" });
  } else if (id !== undefined && answers[method] !== undefined) send({ id, result: answers[method](params) });
  else if (id !== undefined) send({ id, error: { code: -32601, message: `no ${method}` } });
});
