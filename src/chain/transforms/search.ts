// Shows three tools in place of many: one that finds tools by words, one that describes them, and one that calls them. A
// model then need not load hundreds of definitions. What a caller finds is what its own list has. The call of a tool
// passes on as if the caller had made it, so that progress, questions, tasks and errors are the same.

import { copyContext } from "../../core/cancel.ts";
import type { Context, Handler, Middleware, Request, Result } from "../../core/handler.ts";
import { isObject } from "../../core/values.ts";
import { count, ofTools, refine, strings, type OptionsOf, type ValuesOf } from "../../core/fields.ts";
import { McpError } from "../../protocol/errors.ts";
import { ToolIndex, type ListedTool } from "../../tools/search.ts";
import {
  answerDescribe,
  answerSearch,
  DESCRIBE_TOOLS,
  describeTool,
  MAX_FOUND,
  mistake,
  noSuchTool,
  notListed,
  readTools,
  SEARCH_TOOLS,
  searchTool,
  shortList,
  USUAL_FOUND,
  withInstructions,
  type Arguments,
} from "../../tools/search-tools.ts";
import { define, type DefinedMiddleware } from "../define.ts";
import type { Item } from "../item.ts";
import { kindsOf, type Layer } from "../layer.ts";

const OPTIONS = {
  include: ofTools(strings("The tools that stay in the list, by name; `*` matches any characters. Default: none.")),
  limit: refine(
    count("The default for the argument `limit` of `search-tools`; at most 50."),
    (limit, place) => {
      if (limit > MAX_FOUND) throw place.error(`must be at most ${MAX_FOUND}, not ${limit}`);
    },
    { maximum: MAX_FOUND },
  ).or(USUAL_FOUND),
};

/** Options of `search()`. */
export type SearchOptions = OptionsOf<typeof OPTIONS>;

const CALL_TOOL = "call-tool";

const INSTRUCTIONS = `Most tools of this server are not in its list. Find them with ${SEARCH_TOOLS}, read their schemas with ${DESCRIBE_TOOLS}, and call them with ${CALL_TOOL}.`;

const TOOLS: readonly ListedTool[] = [
  searchTool(
    `Finds tools by words about what they do. Returns their signatures, the best match first. Describe a tool with ${DESCRIBE_TOOLS} and call it with ${CALL_TOOL}.`,
  ),
  describeTool("Returns the full definitions of tools: descriptions and JSON Schemas of their arguments and results."),
  {
    name: CALL_TOOL,
    title: "Call a tool",
    description: `Calls a tool that ${SEARCH_TOOLS} has found. The result is that of the tool.`,
    inputSchema: {
      type: "object",
      properties: {
        name: { type: "string", description: "The name of the tool." },
        arguments: { type: "object", description: `The arguments of the tool, as ${DESCRIBE_TOOLS} describes them.` },
      },
      required: ["name"],
    },
  },
];

/**
 * Shows three tools in place of many: `search-tools`, `describe-tools` and `call-tool`.
 *
 * @example
 * search({ include: ["notes_search"] })
 */
export const search: DefinedMiddleware<[options?: SearchOptions]> = define({
  name: "search",
  summary: "Shows three tools in place of many: search-tools, describe-tools and call-tool.",
  options: OPTIONS,
  layer: createSearch,
});

function createSearch({ include = [], limit }: ValuesOf<typeof OPTIONS>): Layer {
  const middleware: Middleware = (request, context, next) => {
    const { method, params } = request;
    if (method === "tools/list") return readTools(next, context).then((read) => shortList(TOOLS, read, include));
    if (method === "server/discover") {
      return next(request, context).then((result) => withInstructions(result, INSTRUCTIONS));
    }
    if (method !== "tools/call") return next(request, context);
    const args = isObject(params["arguments"]) ? params["arguments"] : {};
    if (params["name"] === SEARCH_TOOLS) return find(args, limit, context, next);
    if (params["name"] === DESCRIBE_TOOLS) return describeTools(args, context, next);
    return params["name"] === CALL_TOOL ? call(args, request, context, next) : next(request, context);
  };
  // What is not in the short list can still be called.
  const transform = { kinds: kindsOf(["tools"]), added: { tools: TOOLS }, answersLists: true, item: same };
  return { transform, middleware, readsLists: true };
}

function same(item: Item): Item {
  return item;
}

async function find(args: Arguments, usual: number, context: Context, next: Handler): Promise<Result> {
  const list = await readTools(next, context);
  return answerSearch(args, usual, list, async (query, limit, offset) => {
    const { found: matches, total } = (await ToolIndex.of(list.tools)).search(query, limit, offset);
    return { found: matches.map(({ tool, ...rest }) => ({ name: tool.name, ...rest })), total };
  });
}

async function describeTools(args: Arguments, context: Context, next: Handler): Promise<Result> {
  const { tools, missing } = await readTools(next, context);
  const byName = new Map(tools.map((tool) => [tool.name, tool]));
  return answerDescribe(
    args,
    missing,
    (name) => byName.get(name),
    () => byName.keys(),
    (tools) => ({ texts: tools.map((tool) => JSON.stringify(tool)), structuredContent: { tools } }),
  );
}

/** Everything but the name and the arguments is the caller's: progress token, answers to questions, trace context. */
async function call(args: Arguments, request: Request, context: Context, next: Handler): Promise<Result> {
  const { name, arguments: toolArguments = {} } = args;
  if (typeof name !== "string") return mistake("`name` must be the name of a tool");
  if (!isObject(toolArguments)) return mistake("`arguments` must be an object");
  const sent = { ...request, params: { ...request.params, name, arguments: toolArguments } };
  try {
    // The caller's headers are about the tool that it called, so they repeat none of these arguments.
    return await next(sent, copyContext(context, { headersChecked: true }));
  } catch (error) {
    if (!(error instanceof McpError) || error.kind !== "tool_not_found") throw error;
    // Not the error of a tool, but a wrong name, which the model can correct.
    const { tools, missing } = await readTools(next, context);
    const names = tools.map((tool) => tool.name);
    if (names.includes(name)) throw error;
    return mistake([noSuchTool(name, names), ...notListed(missing.map(({ message }) => message))].join("\n"));
  }
}
