// The tools search-tools and describe-tools, which stand in for a long list: their definitions, and the answers to their
// calls. The middleware `search` and code mode share them; each says how a tool that was found is called.

import type { Context, Handler, Result } from "../core/handler.ts";
import { nearest } from "../core/options.ts";
import { matchesGlob } from "../core/text.ts";
import { isObject } from "../core/values.ts";
import { type Unavailable, unavailableIn } from "../protocol/lists.ts";
import { toolPages } from "../protocol/walk-pages.ts";
import { type ListedTool, oneLine } from "./search.ts";

export const SEARCH_TOOLS = "search-tools";
export const DESCRIBE_TOOLS = "describe-tools";
/** How many tools a search finds unless the caller says, and at most. */
export const USUAL_FOUND = 10;
export const MAX_FOUND = 50;
const MAX_DESCRIBED = 20;

const READS = { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false };

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
        offset: { type: "integer", minimum: 0, description: "How many to skip, to list those that follow." },
      },
      required: ["query"],
    },
    annotations: READS,
  };
}

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

/** What a caller sees. */
export interface ToolList {
  readonly tools: readonly ListedTool[];
  /** The first page. */
  readonly first: Result;
  /** The upstreams whose tools are not listed, because they are still starting or have failed. */
  readonly missing: readonly Unavailable[];
}

/** Reads all pages of the caller's list. */
export async function readTools(next: Handler, context: Context): Promise<ToolList> {
  const tools: ListedTool[] = [];
  let first: Result | undefined;
  for await (const page of toolPages(next, context)) {
    first ??= page;
    const listed: readonly unknown[] = Array.isArray(page["tools"]) ? page["tools"] : [];
    tools.push(...listed.filter(isTool));
  }
  return { tools, first: first ?? {}, missing: unavailableIn(first) };
}

function isTool(tool: unknown): tool is ListedTool {
  return isObject(tool) && typeof tool["name"] === "string";
}

/** A list of our own tools, and of those that stay, by globs. All are in one page, since few are left. */
export function shortList(
  searchTools: readonly ListedTool[],
  { tools, first }: Pick<ToolList, "tools" | "first">,
  include: readonly string[],
): Result {
  const { nextCursor: _more, ...rest } = first;
  const takenNames = new Set(searchTools.map(({ name }) => name));
  const isShown = (name: string): boolean => !takenNames.has(name) && include.some((glob) => matchesGlob(glob, name));
  return { ...rest, tools: [...searchTools, ...tools.filter(({ name }) => isShown(name))] };
}

/** Puts a paragraph before the instructions in the result of `server/discover`: how tools are called at all comes first. */
export function withInstructions(result: Result, first: string): Result {
  const { instructions } = result;
  return { ...result, instructions: typeof instructions === "string" ? `${first}\n\n${instructions}` : first };
}

export type Arguments = { readonly [name: string]: unknown };

interface SearchMatches {
  readonly found: readonly { readonly name: string; readonly signature: string; readonly summary: string }[];
  readonly total: number;
}

const MAX_NOT_LISTED = 1_000;

/** A line that says which upstreams are missing from a list, and why, if some are. */
export function notListed(reasons: readonly string[]): readonly string[] {
  return reasons.length === 0 ? [] : [`Not listed: ${oneLine(reasons.join("; ")).slice(0, MAX_NOT_LISTED)}`];
}

function reasonsOf(missing: readonly Unavailable[]): readonly string[] {
  return missing.map(({ message }) => message);
}

/** Answers a call of search-tools. */
export async function answerSearch(
  { query, limit, offset = 0 }: Arguments,
  usual: number,
  { tools, missing }: Pick<ToolList, "tools" | "missing">,
  search: (query: string, limit: number, offset: number) => Promise<SearchMatches>,
): Promise<Result> {
  if (typeof query !== "string") return mistake("`query` must be a string: words about what the tool should do");
  if (limit !== undefined && !isCount(limit, 1)) return mistake("`limit` must be a whole number above 0");
  if (!isCount(offset, 0)) return mistake("`offset` must be a whole number, 0 or more");
  const { found: matches, total } = await search(query, Math.min(limit ?? usual, MAX_FOUND), offset);
  const lines = matches.map(({ signature, summary }) => (summary === "" ? signature : `${signature} - ${summary}`));
  const end = offset + matches.length;
  const more = total > end ? [`(${total - end} more; the next with offset ${end})`] : [];
  const [be, noun] = tools.length === 1 ? ["is", "tool"] : ["are", "tools"];
  const count =
    missing.length === 0 ? `there ${be} ${tools.length} ${noun}` : `${tools.length} ${noun} ${be} known so far`;
  const none =
    total > 0
      ? `Only ${total} match, so that there is none with offset ${offset}.`
      : `No tool matches; ${count}. Try other words, or an empty query to list some.`;
  const rest = notListed(reasonsOf(missing));
  return {
    resultType: "complete",
    content: [{ type: "text", text: [...(lines.length === 0 ? [none] : [...lines, ...more]), ...rest].join("\n") }],
    structuredContent: {
      tools: matches.map(({ name, signature, summary }) => ({ name, signature, description: summary })),
      total,
      ...(missing.length > 0 && { unavailable: missing }),
    },
  };
}

function isCount(value: unknown, least: number): value is number {
  return typeof value === "number" && Number.isInteger(value) && value >= least;
}

/** Answers a call of describe-tools. `describe` gets those that were found, and gives the content of the result. */
export function answerDescribe<Tool>(
  { names }: Arguments,
  missing: readonly Unavailable[],
  find: (name: string) => Tool | undefined,
  known: () => Iterable<string>,
  describe: (matches: readonly Tool[]) => { readonly texts: readonly string[]; readonly structuredContent?: object },
): Result {
  if (!Array.isArray(names) || names.length === 0 || !names.every((name) => typeof name === "string")) {
    return mistake("`names` must be an array of names of tools");
  }
  if (names.length > MAX_DESCRIBED) return mistake(`\`names\` must have at most ${MAX_DESCRIBED} names`);
  const matches = [...new Set(names.flatMap((name) => find(name) ?? []))];
  const unknown = names.filter((name) => find(name) === undefined).map((name) => noSuchTool(name, known()));
  const { texts, structuredContent } = describe(matches);
  const rest = unknown.length === 0 ? [] : notListed(reasonsOf(missing));
  return {
    resultType: "complete",
    content: [...texts, ...unknown, ...rest].map((text) => ({ type: "text", text })),
    ...(structuredContent && { structuredContent }),
    ...(matches.length === 0 && { isError: true }),
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
