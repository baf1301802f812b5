// A server of issues for the pictures of the console, by the official SDK: its answers are made up, and it asks before it
// writes.

import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { z } from "zod";

const server = new McpServer({ name: "issues", version: "1.0.0" });

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const text = (value) => ({ content: [{ type: "text", text: value }] });

server.registerTool(
  "search_issues",
  { description: "Search the issues of a repository", inputSchema: { query: z.string() } },
  async ({ query }) => {
    await pause(410);
    return text(`#412 Names with dots\n#398 Long names are cut (${query})`);
  },
);

server.registerTool(
  "get_issue",
  { description: "Read one issue", inputSchema: { number: z.number() } },
  async ({ number }) => {
    await pause(130);
    if (number === 404) return { ...text("404: there is no issue 404"), isError: true };
    return text(`#${number} Names with dots\nopen`);
  },
);

server.registerTool(
  "issue_write",
  {
    description: "Open an issue in a repository",
    inputSchema: { repository: z.string(), title: z.string(), body: z.string(), key: z.string() },
  },
  async ({ repository, title }) => {
    await pause(140);
    const { action } = await server.server.elicitInput({
      message: `Open "${title}" in the public repository ${repository}?`,
      requestedSchema: { type: "object", properties: { confirm: { type: "boolean", title: "Open it" } } },
    });
    if (action !== "accept") return text("Not created");
    await pause(160);
    return { ...text("Created #412"), structuredContent: { number: 412, repository } };
  },
);

await server.connect(new StdioServerTransport());
