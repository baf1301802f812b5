// The echo server with `tmcp`, over stdio or HTTP. Over HTTP it serves both styles.

import { ZodJsonSchemaAdapter } from "@tmcp/adapter-zod";
import { McpServer } from "tmcp";
import { z } from "zod";

const server = new McpServer(
  { name: "echo", version: "1", description: "Echo a text" },
  { adapter: new ZodJsonSchemaAdapter(), capabilities: { tools: {} } },
);
const schema = z.object({ text: z.string() });
server.tool({ name: "echo", description: "Echo a text", schema }, ({ text }) => ({
  content: [{ type: "text", text }],
}));

if (process.argv[2] === "stdio") {
  const { StdioTransport } = await import("@tmcp/transport-stdio");
  new StdioTransport(server).listen();
} else {
  const { HttpTransport } = await import("@tmcp/transport-http");
  const { listenFetch } = await import("./listen.js");
  const transport = new HttpTransport(server, { path: "/mcp" });
  await listenFetch(async (request) => (await transport.respond(request)) ?? new Response(null, { status: 404 }));
}
