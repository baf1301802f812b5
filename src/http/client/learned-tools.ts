// Learns about tools from their lists. If calls repeat arguments in headers, the schema of a tool must be known before a
// call, and tools with invalid declarations are removed from lists, as the specification requires of HTTP clients
// (basic/transports/streamable-http, schema extension). A call whose headers do not match the tool's schema is sent once
// more with the headers of the current schema.

import { ConnectionError } from "../../core/errors.ts";
import type { Handler, Result } from "../../core/handler.ts";
import { isObject } from "../../core/values.ts";
import { codeOf, McpError } from "../../protocol/errors.ts";
import type { Revision } from "../../protocol/revision.ts";
import type { ToolFacts } from "../../tools/facts.ts";

export function learning(
  handler: Handler,
  tools: ToolFacts,
  revision: Revision,
  warn: (text: string) => void,
): Handler {
  return async (request, context) => {
    const { method, params } = request;
    if (method === "tools/list") return withoutInvalid(await handler(request, context), tools, warn);
    if (method !== "tools/call" || !tools.readsHeaders) return handler(request, context);
    if (tools.get(params["name"]) === undefined) await tools.find(params["name"], handler, context);
    try {
      return await handler(request, context);
    } catch (error) {
      const cause: unknown = error instanceof ConnectionError ? error.cause : error;
      if (!(cause instanceof McpError) || cause.code !== codeOf("header_mismatch", revision)) throw error;
      const before = JSON.stringify(tools.get(params["name"])?.headers);
      await tools.refresh(handler, context);
      if (JSON.stringify(tools.get(params["name"])?.headers) === before) throw error;
      return handler(request, context);
    }
  };
}

function withoutInvalid(result: Result, facts: ToolFacts, warn: (text: string) => void): Result {
  facts.learn(result);
  const { tools } = result;
  if (!Array.isArray(tools) || !facts.readsHeaders) return result;
  const validTools = tools.filter((tool: unknown) => {
    const name = isObject(tool) ? tool["name"] : undefined;
    const problem = facts.get(name)?.headerProblem;
    if (problem === undefined) return true;
    warn(`The tool ${JSON.stringify(name)} is omitted because it cannot be called over HTTP: ${problem}`);
    return false;
  });
  return validTools.length === tools.length ? result : { ...result, tools: validTools };
}
