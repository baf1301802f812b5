// A client that makes calls over HTTP one after another, as many as each message of the parent says. The kind is "bare"
// for node:http (the baseline: keep-alive, the whole body, JSON.parse), "stateless" or "session" for our client, or "sdk"
// for SDK 2.x.

import { Agent, request } from "node:http";

const [kind, url] = process.argv.slice(2);

/** @type {Readonly<Record<string, () => Promise<(text: string) => Promise<string>>>>} */
const KINDS = {
  bare: async () => {
    const agent = new Agent({ keepAlive: true });
    const meta =
      '"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1"}';
    let id = 0;
    return (text) =>
      new Promise((resolve, reject) => {
        id += 1;
        const body = `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":{"_meta":{${meta}},"name":"echo","arguments":{"text":${JSON.stringify(text)}}}}`;
        const headers = {
          "content-type": "application/json",
          accept: "application/json, text/event-stream",
          "mcp-protocol-version": "2026-07-28",
          "mcp-method": "tools/call",
          "mcp-name": "echo",
          "content-length": Buffer.byteLength(body),
        };
        request(url, { agent, method: "POST", headers }, (response) => {
          let answer = "";
          response.setEncoding("utf8");
          response.on("data", (chunk) => (answer += chunk));
          response.on("end", () => resolve(JSON.parse(answer).result.content[0].text));
        })
          .on("error", reject)
          .end(body);
      });
  },
  stateless: () => ours("2026-07-28"),
  session: () => ours("2025-11-25"),
  sdk: async () => {
    const { Client, StreamableHTTPClientTransport } = await import("@modelcontextprotocol/client");
    const client = new Client({ name: "bench", version: "1" });
    await client.connect(new StreamableHTTPClientTransport(new URL(url)));
    return async (text) => (await client.callTool({ name: "echo", arguments: { text } })).content[0].text;
  },
};

/** @param {string} revision */
async function ours(revision) {
  const { connect } = await import("catenary");
  const client = await connect(url, { revision });
  return async (/** @type {string} */ text) => (await client.callTool("echo", { text })).content[0].text;
}

const call = await KINDS[kind]();
async function callAgain({ calls = 0 }) {
  if (calls === 0) return;
  for (let n = 0; n < calls; n += 1)
    if ((await call(`hello ${n}`)) !== `hello ${n}`) throw new Error("Unexpected result");
  process.send?.({ calls });
}

process.on("message", (message) => void callAgain(message));
process.send?.({ url });
