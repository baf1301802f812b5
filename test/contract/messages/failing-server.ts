// A server whose every tool, resource and prompt fails in its own way, for tests that compare how failures arrive.

import { McpError } from "../../../src/protocol/errors.ts";
import { createServer, type Server } from "../../../src/server/index.ts";

export function createFailingServer(): Server {
  return createServer({ name: "failing", version: "1.0.0" })
    .tool("guarded", { scopes: ["notes:write"] }, () => "written")
    .tool(
      "numbers",
      { inputSchema: { type: "object", required: ["n"], properties: { n: { type: "number" } } } },
      () => "",
    )
    .tool("own-code", {}, () => {
      throw new McpError(-31000, "Out of paper", { tray: 2 });
    })
    .tool("rate-limited", {}, () => {
      throw McpError.of("rate_limited", "Too many calls; try again later", { retryAfterMs: 1000 });
    })
    .tool("denied", {}, () => {
      throw McpError.of("access_denied", "Not for you", { why: "a rule" });
    })
    .tool("unauthorized", {}, () => {
      throw McpError.of("unauthorized", "Sign in to the database first");
    })
    .tool("broken", {}, () => {
      throw new Error("The disk is full");
    })
    .resource("notes://broken", {}, () => {
      throw new Error("The disk is full");
    })
    .resource("notes://guarded", { scopes: ["notes:read", "notes:write"] }, () => "")
    .prompt("review", { arguments: { name: { required: true } } }, () => "");
}
