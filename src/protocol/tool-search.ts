// The tools search-tools and describe-tools, which stand in for a long list: their definitions, and the answers to their
// calls. The middleware `search` and code mode share them; each says how a tool that was found is called.

import type { Context, Handler, Result } from "../core/handler.ts";
import { nearest } from "../core/options.ts";
import { isObject } from "../core/values.ts";
import { toolPages } from "./lists.ts";
import type { ListedTool } from "./tool-index.ts";

export const SEARCH_TOOLS = "search-tools";
export const DESCRIBE_TOOLS = "describe-tools";
/** How many tools a search finds unless the caller says, and at most. */
export const USUAL_FOUND = 10;
export const MAX_FOUND = 50;
const MAX_DESCRIBED = 20;

const READS = { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false };

/** The definition of search-tools. */
export function searchTool(description: string): ListedTool {
  return {
    name: SEARCH_TOOLS,
    title: "Search tools",
    description,
    inputSchema: {
      type: "object",
      properties: {
        query: { type: "string", description: "Words about what the tool should do. Empty: lists the first tools." },
        limit: { type: "integer", minimum: 1, maximum: MAX_FOUND, description: "How many tools to return." },
      },
      required: ["query"],
    },
    annotations: READS,
  };
}

/** The definition of describe-tools. */
export function describeTool(description: string): ListedTool {
  return {
    name: DESCRIBE_TOOLS,
    title: "Describe tools",
    description,
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
  };
}

/** All tools that the caller sees, and the first page of its list. */
export async function readTools(next: Handler, context: Context): Promise<{ tools: ListedTool[]; first: Result }> {
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

/** A list of our own tools, and of those that stay. All are in one page, since few are left. */
export function shortList(
  own: readonly ListedTool[],
  { tools, first }: { readonly tools: readonly ListedTool[]; readonly first: Result },
  isShown: (tool: ListedTool) => boolean,
): Result {
  const { nextCursor: _more, ...rest } = first;
  const taken = new Set(own.map(({ name }) => name));
  return { ...rest, tools: [...own, ...tools.filter((tool) => isShown(tool) && !taken.has(tool.name))] };
}

/** Adds a paragraph to the instructions in the result of `server/discover`. */
export function withInstructions(result: Result, added: string): Result {
  const { instructions } = result;
  return { ...result, instructions: typeof instructions === "string" ? `${instructions}\n\n${added}` : added };
}

export type Arguments = { readonly [name: string]: unknown };

/** What a search has found. */
export interface Found {
  readonly found: readonly { readonly name: string; readonly signature: string; readonly summary: string }[];
  /** How many match. */
  readonly total: number;
}

/** Answers a call of search-tools. `count`: how many tools there are. */
export async function answerSearch(
  { query, limit }: Arguments,
  usual: number,
  count: number,
  search: (query: string, limit: number) => Promise<Found>,
): Promise<Result> {
  if (typeof query !== "string") return mistake("`query` must be a string: words about what the tool should do");
  if (limit !== undefined && !(Number.isInteger(limit) && (limit as number) > 0)) {
    return mistake("`limit` must be a whole number above 0");
  }
  const { found, total } = await search(query, Math.min((limit as number | undefined) ?? usual, MAX_FOUND));
  const lines = found.map(({ signature, summary }) => (summary === "" ? signature : `${signature} - ${summary}`));
  const more = total > found.length ? [`(${total - found.length} more)`] : [];
  const none = `No tool matches; there are ${count} tools. Try other words, or an empty query to list some.`;
  return {
    resultType: "complete",
    content: [{ type: "text", text: lines.length === 0 ? none : [...lines, ...more].join("\n") }],
    structuredContent: {
      tools: found.map(({ name, signature, summary }) => ({ name, signature, description: summary })),
      total,
    },
  };
}

/** Answers a call of describe-tools. `describe` gets those that were found, and gives the content of the result. */
export function answerDescribe<Tool>(
  { names }: Arguments,
  find: (name: string) => Tool | undefined,
  known: () => Iterable<string>,
  describe: (found: readonly Tool[]) => { readonly texts: readonly string[]; readonly structuredContent?: object },
): Result {
  if (!Array.isArray(names) || names.length === 0 || !names.every((name) => typeof name === "string")) {
    return mistake("`names` must be an array of names of tools");
  }
  if (names.length > MAX_DESCRIBED) return mistake(`\`names\` must have at most ${MAX_DESCRIBED} names`);
  const found = [...new Set(names.flatMap((name) => find(name) ?? []))];
  const unknown = names.filter((name) => find(name) === undefined).map((name) => noSuchTool(name, known()));
  const { texts, structuredContent } = describe(found);
  return {
    resultType: "complete",
    content: [...texts, ...unknown].map((text) => ({ type: "text", text })),
    ...(structuredContent && { structuredContent }),
    ...(found.length === 0 && { isError: true }),
  };
}

/** The mistake of a caller that wrote a wrong name. */
export function noSuchTool(name: string, names: Iterable<string>): string {
  const [near] = nearest(name, names);
  const hint = near === undefined ? `find tools with ${SEARCH_TOOLS}` : `did you mean ${near}?`;
  return `There is no tool ${JSON.stringify(name)}; ${hint}`;
}

/** A result that tells the model what to correct. */
export function mistake(text: string): Result {
  return { resultType: "complete", isError: true, content: [{ type: "text", text }] };
}
