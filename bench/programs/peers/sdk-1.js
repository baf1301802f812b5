// The echo server with `@modelcontextprotocol/sdk` 1.x, over stdio or over HTTP with sessions and JSON responses.

import { randomUUID } from "node:crypto";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { z } from "zod";

function createEcho() {
  const server = new McpServer({ name: "echo", version: "1" });
  server.registerTool("echo", { description: "Echo a text", inputSchema: { text: z.string() } }, ({ text }) => ({
    content: [{ type: "text", text }],
  }));
  return server;
}

if (process.argv[2] === "stdio") {
  const { StdioServerTransport } = await import("@modelcontextprotocol/sdk/server/stdio.js");
  await createEcho().connect(new StdioServerTransport());
} else {
  const { StreamableHTTPServerTransport } = await import("@modelcontextprotocol/sdk/server/streamableHttp.js");
  const { listen } = await import("./listen.js");
  const sessions = new Map();
  const open = async () => {
    const transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      enableJsonResponse: true,
      onsessioninitialized: (id) => void sessions.set(id, transport),
    });
    await createEcho().connect(transport);
    return transport;
  };
  await listen(async (request, response) => {
    const known = sessions.get(request.headers["mcp-session-id"]);
    await (known ?? (await open())).handleRequest(request, response);
  });
}
