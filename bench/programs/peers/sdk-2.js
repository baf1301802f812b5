// The echo server with `@modelcontextprotocol/server` 2.x: over stdio, or over HTTP, stateless or with sessions.

import { randomUUID } from "node:crypto";
import { createMcpHandler, McpServer } from "@modelcontextprotocol/server";
import { z } from "zod";

const inputSchema = z.object({ text: z.string() });

function createEcho() {
  const server = new McpServer({ name: "echo", version: "1" });
  server.registerTool("echo", { description: "Echo a text", inputSchema }, ({ text }) => ({
    content: [{ type: "text", text }],
  }));
  return server;
}

const MODES = {
  stdio: async () => {
    const { serveStdio } = await import("@modelcontextprotocol/server/stdio");
    serveStdio(createEcho);
  },
  stateless: async () => {
    const { toNodeHandler } = await import("@modelcontextprotocol/node");
    const { listen } = await import("./listen.js");
    await listen(toNodeHandler(createMcpHandler(createEcho)));
  },
  session: async () => {
    const { NodeStreamableHTTPServerTransport } = await import("@modelcontextprotocol/node");
    const { listen } = await import("./listen.js");
    const sessions = new Map();
    const open = async () => {
      const transport = new NodeStreamableHTTPServerTransport({
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
  },
};
await MODES[process.argv[2]]();
