// Shows three tools in place of many: one that finds tools by words, one that describes them, and one that calls them. A
// model then need not load hundreds of definitions. What a caller finds is what its own list has. The call of a tool
// passes on as if the caller had made it, so that progress, questions, tasks and errors are the same.

import { copyContext } from "../../core/cancel.ts";
import type { Context, Handler, Middleware, Request, Result } from "../../core/handler.ts";
import { isObject } from "../../core/values.ts";
import { nearest, OPTION_SCHEMAS, OptionReader, type OptionsHelp } from "../../core/options.ts";
import { McpError } from "../../protocol/errors.ts";
import { toolPages } from "../../protocol/pages.ts";
import { ToolIndex, type ListedTool } from "../../protocol/tool-index.ts";
import { matchesGlob } from "./filter.ts";

/** Options of `search()`. */
export interface SearchOptions {
  /** The tools that stay in the list, by name; `*` matches any characters. Default: none. */
  readonly include?: readonly string[];
  /** How many tools a search finds, unless the caller says; at most 50. Default: 10. */
  readonly limit?: number;
}

const LIMIT = 10;
const MAX_FOUND = 50;

export const SEARCH: OptionsHelp<SearchOptions> = {
  summary: "Shows three tools in place of many: search-tools, describe-tools and call-tool.",
  options: {
    include: {
      ...OPTION_SCHEMAS.strings,
      description: "The tools that stay in the list, by name; `*` matches any characters. Default: none.",
    },
    limit: {
      ...OPTION_SCHEMAS.count,
      maximum: MAX_FOUND,
      description: "How many tools a search finds, unless the caller says; at most 50. Default: 10.",
    },
  },
};

const MAX_DESCRIBED = 20;
const SEARCH_TOOLS = "search-tools";
const DESCRIBE_TOOLS = "describe-tools";
const CALL_TOOL = "call-tool";

const INSTRUCTIONS = `Most tools of this server are not in its list. Find them with ${SEARCH_TOOLS}, read their schemas with ${DESCRIBE_TOOLS}, and call them with ${CALL_TOOL}.`;

const READS = { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false };

const TOOLS: readonly ListedTool[] = [
  {
    name: SEARCH_TOOLS,
    title: "Search tools",
    description: `Finds tools by words about what they do. Returns their signatures, the best match first. Describe a tool with ${DESCRIBE_TOOLS} and call it with ${CALL_TOOL}.`,
    inputSchema: {
      type: "object",
      properties: {
        query: { type: "string", description: "Words about what the tool should do. Empty: lists the first tools." },
        limit: { type: "integer", minimum: 1, maximum: MAX_FOUND, description: "How many tools to return." },
      },
      required: ["query"],
    },
    annotations: READS,
  },
  {
    name: DESCRIBE_TOOLS,
    title: "Describe tools",
    description: "Returns the full definitions of tools: descriptions and JSON Schemas of their arguments and results.",
    inputSchema: {
      type: "object",
      properties: {
        names: {
          type: "array",
          items: { type: "string" },
          minItems: 1,
          maxItems: MAX_DESCRIBED,
          description: `The names of the tools, as ${SEARCH_TOOLS} returns them.`,
        },
      },
      required: ["names"],
    },
    annotations: READS,
  },
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
export function search(options: SearchOptions = {}): Middleware {
  const read = new OptionReader("search", options, Object.keys(SEARCH.options));
  const include = read.strings("include") ?? [];
  const limit = read.count("limit") ?? LIMIT;
  if (limit > MAX_FOUND) throw read.error("limit", `must be at most ${MAX_FOUND}, not ${limit}`);
  const isShown = ({ name }: ListedTool): boolean => include.some((glob) => matchesGlob(glob, name));
  return function search(request, context, next) {
    const { method, params } = request;
    if (method === "tools/list") return list(context, next, isShown);
    if (method === "server/discover") return next(request, context).then(withInstructions);
    if (method !== "tools/call") return next(request, context);
    const args = isObject(params["arguments"]) ? params["arguments"] : {};
    if (params["name"] === SEARCH_TOOLS) return find(args, limit, context, next);
    if (params["name"] === DESCRIBE_TOOLS) return describeTools(args, context, next);
    return params["name"] === CALL_TOOL ? call(args, request, context, next) : next(request, context);
  };
}

/** All tools in one page, since few are left. The other fields are those of the first page. */
async function list(context: Context, next: Handler, isShown: (tool: ListedTool) => boolean): Promise<Result> {
  const { tools, first } = await readTools(context, next);
  const { nextCursor: _more, ...rest } = first;
  const own = new Set(TOOLS.map(({ name }) => name));
  return { ...rest, tools: [...TOOLS, ...tools.filter((tool) => isShown(tool) && !own.has(tool.name))] };
}

async function readTools(context: Context, next: Handler): Promise<{ tools: ListedTool[]; first: Result }> {
  const tools: ListedTool[] = [];
  let first: Result | undefined;
  for await (const page of toolPages(next, context)) {
    first ??= page;
    const listed: readonly unknown[] = Array.isArray(page["tools"]) ? page["tools"] : [];
    tools.push(...listed.filter(isTool));
  }
  return { tools, first: first ?? {} };
}

function isTool(tool: unknown): tool is ListedTool {
  return isObject(tool) && typeof tool["name"] === "string";
}

function withInstructions(result: Result): Result {
  const { instructions } = result;
  return {
    ...result,
    instructions: typeof instructions === "string" ? `${instructions}\n\n${INSTRUCTIONS}` : INSTRUCTIONS,
  };
}

type Arguments = { readonly [name: string]: unknown };

async function find({ query, limit }: Arguments, usual: number, context: Context, next: Handler): Promise<Result> {
  if (typeof query !== "string") return mistake("`query` must be a string: words about what the tool should do");
  if (limit !== undefined && !(Number.isInteger(limit) && (limit as number) > 0)) {
    return mistake("`limit` must be a whole number above 0");
  }
  const { tools } = await readTools(context, next);
  const index = await ToolIndex.of(tools);
  const { found, total } = index.search(query, Math.min((limit as number | undefined) ?? usual, MAX_FOUND));
  const lines = found.map(({ signature, summary }) => (summary === "" ? signature : `${signature} - ${summary}`));
  const more = total > found.length ? [`(${total - found.length} more)`] : [];
  const none = `No tool matches; there are ${tools.length} tools. Try other words, or an empty query to list some.`;
  return {
    resultType: "complete",
    content: [{ type: "text", text: lines.length === 0 ? none : [...lines, ...more].join("\n") }],
    structuredContent: {
      tools: found.map(({ tool, signature, summary }) => ({ name: tool.name, signature, description: summary })),
      total,
    },
  };
}

async function describeTools({ names }: Arguments, context: Context, next: Handler): Promise<Result> {
  if (!Array.isArray(names) || names.length === 0 || !names.every((name) => typeof name === "string")) {
    return mistake("`names` must be an array of names of tools");
  }
  if (names.length > MAX_DESCRIBED) return mistake(`\`names\` must have at most ${MAX_DESCRIBED} names`);
  const byName = new Map((await readTools(context, next)).tools.map((tool) => [tool.name, tool]));
  const tools = names.flatMap((name) => byName.get(name) ?? []);
  const unknown = names.filter((name) => !byName.has(name)).map((name) => noSuchTool(name, byName.keys()));
  const texts = [...tools.map((tool) => JSON.stringify(tool)), ...unknown];
  return {
    resultType: "complete",
    content: texts.map((text) => ({ type: "text", text })),
    structuredContent: { tools },
    ...(tools.length === 0 && { isError: true }),
  };
}

function noSuchTool(name: string, names: Iterable<string>): string {
  const [near] = nearest(name, names);
  const hint = near === undefined ? `find tools with ${SEARCH_TOOLS}` : `did you mean ${near}?`;
  return `There is no tool ${JSON.stringify(name)}; ${hint}`;
}

/** Everything but the name and the arguments is the caller's: progress token, answers to questions, trace context. */
async function call(args: Arguments, request: Request, context: Context, next: Handler): Promise<Result> {
  const { name, arguments: given = {} } = args;
  if (typeof name !== "string") return mistake("`name` must be the name of a tool");
  if (!isObject(given)) return mistake("`arguments` must be an object");
  const sent = { ...request, params: { ...request.params, name, arguments: given } };
  try {
    // The caller's headers are about the tool that it called, so they repeat none of these arguments.
    return await next(sent, copyContext(context, { headersChecked: true }));
  } catch (error) {
    if (!(error instanceof McpError) || error.kind !== "tool_not_found") throw error;
    // Not the error of a tool, but a wrong name, which the model can correct.
    const names = (await readTools(context, next)).tools.map((tool) => tool.name);
    if (names.includes(name)) throw error;
    return mistake(noSuchTool(name, names));
  }
}

function mistake(text: string): Result {
  return { resultType: "complete", isError: true, content: [{ type: "text", text }] };
}
