// A server as they were written in 2024, by hand: it speaks only the first revision of the protocol, answers one line
// after the other, and has never heard of what came later. It does not use this package.

import { createInterface } from "node:readline";

const TOOL = {
  name: "ask_name",
  description: "Ask the model of the client for a name",
  inputSchema: { type: "object", properties: { animal: { type: "string" } }, required: ["animal"] },
};

/** What to do with the answers to our own requests, by id. */
const waiting = new Map();
let nextId = 1;

/** @param {object} message */
const send = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);

const methods = {
  initialize: () => ({
    protocolVersion: "2024-11-05",
    capabilities: { tools: {} },
    serverInfo: { name: "old", version: "0.1.0" },
  }),
  ping: () => ({}),
  "tools/list": () => ({ tools: [TOOL] }),
  "tools/call": async ({ arguments: { animal } }) => {
    // A request of the server during a call: it needs a session, which newer clients no longer have.
    const { content } = await new Promise((resolve) => {
      const id = `old-${nextId++}`;
      waiting.set(id, resolve);
      const messages = [{ role: "user", content: { type: "text", text: `A name for a ${animal}` } }];
      send({ id, method: "sampling/createMessage", params: { messages, maxTokens: 10 } });
    });
    return { content: [{ type: "text", text: `The ${animal} is called ${content.text}.` }] };
  },
};

async function receive(line) {
  const { id, method, params, result } = JSON.parse(line);
  if (method === undefined) waiting.get(id)?.(result);
  else if (id !== undefined && method in methods) send({ id, result: await methods[method](params) });
  else if (id !== undefined) send({ id, error: { code: -32601, message: "Method not found" } });
}

createInterface({ input: process.stdin }).on("line", (line) => void receive(line));
