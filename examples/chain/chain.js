// A chain with three middleware of its own, in front of a server in this process. `npx catenary serve
// examples/chain/chain.js` serves the gateway, since no other export is a server.

import { chain, createServer, McpError } from "catenary";
import { on, transform } from "catenary/chain";

const notes = createServer({ name: "notes", version: "1.0.0" })
  .tool(
    "search",
    {
      description: "Search the notes",
      input: { type: "object", properties: { query: { type: "string" } }, required: ["query"] },
    },
    ({ query }) => `two notes about ${query}`,
  )
  .tool("erase", { description: "Erase all notes" }, () => "gone");

/**
 * Counts the requests of each method. A middleware is a function (request, context, next).
 *
 * @param {Map<string, number>} counts
 * @returns {import("catenary").Middleware}
 */
export const counting = (counts) =>
  function count(request, context, next) {
    counts.set(request.method, (counts.get(request.method) ?? 0) + 1);
    return next(request, context);
  };

/** Refuses some calls. `on` makes middleware for single methods, with their types. */
const protect = on("tools/call", async (request, context, next) => {
  if (request.params.name === "erase") throw McpError.of("access_denied", "The notes are kept");
  return next(request, context);
});

const COMPARE = {
  name: "compare",
  description: "Search several words at once",
  inputSchema: {
    type: "object",
    properties: { words: { type: "array", items: { type: "string" } } },
    required: ["words"],
  },
};

/** Adds a tool that makes several calls. `transform` changes what is listed together with what is called. */
const compare = transform({
  metadata: ({ tools = [], ...rest }) => ({
    ...rest,
    tools: [...tools, COMPARE],
  }),
  request: async (request, context, next) => {
    if (request.params.name !== "compare") return next(request, context);
    // These arguments are not checked yet: the server does not know the tool.
    const { words = [] } = request.params.arguments ?? {};
    const results = await Promise.all(
      words.map((query) => next({ method: "tools/call", params: { name: "search", arguments: { query } } }, context)),
    );
    return { content: results.flatMap(({ content }) => content) };
  },
});

export const counts = new Map();

export const gateway = chain(counting(counts), compare, protect).to(notes);
