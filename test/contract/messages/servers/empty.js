// A server with an empty list of tools, as in the examples of seeds 002 and 004. It is a plain handler, because
// createServer() declares only the capabilities of what is registered.

import { McpError } from "catenary";

const meta = { "io.modelcontextprotocol/serverInfo": { name: "empty", version: "1.0.0" } };

export const server = async ({ method }) => {
  if (method === "server/discover") {
    return { resultType: "complete", capabilities: { tools: {} }, ttlMs: 0, cacheScope: "private", _meta: meta };
  }
  if (method === "tools/list") {
    return { resultType: "complete", tools: [], ttlMs: 0, cacheScope: "private", _meta: meta };
  }
  throw McpError.of("method_not_found", `Method not found: ${method}`, { method });
};
