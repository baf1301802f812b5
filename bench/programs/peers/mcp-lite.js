// The echo server with `mcp-lite`, over HTTP with sessions. It has no stdio transport.

import { InMemorySessionAdapter, McpServer, StreamableHttpTransport } from "mcp-lite";
import { z } from "zod";
import { listenFetch } from "./listen.js";

const server = new McpServer({ name: "echo", version: "1", schemaAdapter: (schema) => z.toJSONSchema(schema) });
server.tool("echo", {
  description: "Echo a text",
  inputSchema: z.object({ text: z.string() }),
  handler: ({ text }) => ({ content: [{ type: "text", text }] }),
});
const sessionAdapter = new InMemorySessionAdapter({ maxEventBufferSize: 1024 });
await listenFetch(new StreamableHttpTransport({ sessionAdapter }).bind(server));
