// The same echo with `@modelcontextprotocol/server` 2.x, each request by itself. It is a web-standard function, so a
// few lines stand between it and node:http.

import { once } from "node:events";
import { createServer } from "node:http";
import { Readable } from "node:stream";
import { createMcpHandler, McpServer } from "@modelcontextprotocol/server";
import { z } from "zod";
import { tellCosts } from "./cost.js";

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
  const answer = await handler.fetch(
    new Request(`http://${headers.host}${url}`, { method, headers, body: Buffer.concat(chunks) }),
  );
  response.writeHead(answer.status, Object.fromEntries(answer.headers));
  if (answer.body === null) response.end();
  else if (answer.headers.get("content-type")?.startsWith("application/json")) response.end(await answer.text());
  else Readable.fromWeb(answer.body).pipe(response);
});
server.listen(0, "127.0.0.1");
await once(server, "listening");
tellCosts(`http://127.0.0.1:${server.address().port}/mcp`);
