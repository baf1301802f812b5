// The echo server with `@modelcontextprotocol/sdk` 1.x, with sessions and JSON responses.

import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { z } from "zod";
import { reportCostOnRequest } from "./report-cost.js";

const sessions = new Map();

async function open() {
  const transport = new StreamableHTTPServerTransport({
    sessionIdGenerator: randomUUID,
    enableJsonResponse: true,
    onsessioninitialized: (id) => void sessions.set(id, transport),
  });
  const server = new McpServer({ name: "echo", version: "1" });
  server.registerTool("echo", { description: "Echo a text", inputSchema: { text: z.string() } }, ({ text }) => ({
    content: [{ type: "text", text }],
    isError: false,
  }));
  await server.connect(transport);
  return transport;
}

const server = createServer(async (request, response) => {
  const known = sessions.get(request.headers["mcp-session-id"]);
  await (known ?? (await open())).handleRequest(request, response);
});
server.listen(0, "127.0.0.1");
await once(server, "listening");
reportCostOnRequest(`http://127.0.0.1:${server.address().port}/mcp`);
