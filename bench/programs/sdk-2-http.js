// The echo server with `@modelcontextprotocol/server` 2.x, stateless. It takes web-standard requests, so those of
// node:http are converted.

import { once } from "node:events";
import { createServer } from "node:http";
import { Readable } from "node:stream";
import { createMcpHandler, McpServer } from "@modelcontextprotocol/server";
import { z } from "zod";
import { reportCostOnRequest } from "./report-cost.js";

const text = z.object({ text: z.string() });
const handler = createMcpHandler(() => {
  const server = new McpServer({ name: "echo", version: "1" });
  server.registerTool("echo", { description: "Echo a text", inputSchema: text }, ({ text }) => ({
    content: [{ type: "text", text }],
    isError: false,
  }));
  return server;
});

const server = createServer(async (request, response) => {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  const { method, headers, url } = request;
  const result = await handler.fetch(
    new Request(`http://${headers.host}${url}`, { method, headers, body: Buffer.concat(chunks) }),
  );
  response.writeHead(result.status, Object.fromEntries(result.headers));
  if (result.body === null) response.end();
  else if (result.headers.get("content-type")?.startsWith("application/json")) response.end(await result.text());
  else Readable.fromWeb(result.body).pipe(response);
});
server.listen(0, "127.0.0.1");
await once(server, "listening");
reportCostOnRequest(`http://127.0.0.1:${server.address().port}/mcp`);
