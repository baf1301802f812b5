// Cuts huge results of tools, and keeps each whole for a while as a resource that only its caller can read. The beginning
// and the end of the text stay. Structured content keeps its shape, so that it still fits the tool's schema: long strings
// and arrays become shorter. Results are kept in memory, within limits; none is listed, and their ids cannot be guessed.

import { randomBytes } from "node:crypto";
import { unref } from "../../core/async.ts";
import type { Caller, Context, Middleware, Request, Result } from "../../core/handler.ts";
import { isObject } from "../../core/values.ts";
import { OPTION_SCHEMAS, OptionReader, type OptionsHelp } from "../../core/options.ts";
import { jsonLength } from "../../protocol/pages.ts";
import { notFound } from "../result-items.ts";
import { isMethodNotFound } from "../router/failures.ts";

/** Options of `shape()`. */
export interface ShapeOptions {
  /** How many characters of text a result may have; the same for its structured content as JSON. Default: 20,000. */
  readonly maxChars?: number;
  /** How long a whole result is kept, in milliseconds. Default: 10 minutes. */
  readonly keepMs?: number;
  /** How many bytes of whole results are kept, for all callers together. The oldest go first. Default: 64 MiB. */
  readonly keepBytes?: number;
  /** Returns a text that replaces the whole text, at most `maxChars` of it. Default: its beginning and its end. */
  readonly summarize?: (text: string, request: Request, context: Context) => string | Promise<string>;
}

export const SHAPE: OptionsHelp<ShapeOptions> = {
  summary: "Cuts huge results of tools, and keeps each whole for a while as a resource.",
  options: {
    maxChars: { ...OPTION_SCHEMAS.count, description: "How many characters a result may have. Default: 20,000." },
    keepMs: { ...OPTION_SCHEMAS.ms, description: "How long a whole result is kept. Default: 10 minutes." },
    keepBytes: {
      ...OPTION_SCHEMAS.count,
      description: "How many bytes of whole results are kept, for all callers together. Default: 64 MiB.",
    },
    summarize: "code only",
  },
};

const MAX_CHARS = 20_000;
const KEEP_MS = 600_000;
const KEEP_BYTES = 64 * 1024 * 1024;
/** Results that are kept, however short they are. */
const MAX_KEPT = 1_000;
/** The part of the limit that the beginning gets; the end gets the rest. */
const HEAD = 2 / 3;
const PREFIX = "catenary://results/";
const TEMPLATE = {
  name: "whole-result",
  title: "A whole result",
  uriTemplate: `${PREFIX}{id}{?from,to}`,
  description: "The whole of a result that was cut, or some of its characters. Only its caller can read it.",
};

/**
 * Cuts results of tools that are longer than `maxChars`, and keeps each whole as a resource.
 *
 * @example
 * shape({ maxChars: 50_000 })
 */
export function shape(options: ShapeOptions = {}): Middleware {
  const read = new OptionReader("shape", options, Object.keys(SHAPE.options));
  const maxChars = read.count("maxChars") ?? MAX_CHARS;
  const summarize = read.function("summarize") as ShapeOptions["summarize"];
  const kept = new KeptResults(read.ms("keepMs") ?? KEEP_MS, read.count("keepBytes") ?? KEEP_BYTES);
  const cut = (result: Result, request: Request, context: Context): Result | Promise<Result> =>
    isTooLong(result, maxChars) ? shorten(result, maxChars, kept, request, context, summarize) : result;
  const middleware: Middleware = function shape(request, context, next) {
    const { method, params } = request;
    if (method === "tools/call") return next(request, context).then((result) => cut(result, request, context));
    if (method === "tasks/get") {
      return next(request, context).then(async (task) => {
        const { result } = task;
        return isObject(result) ? { ...task, result: await cut(result, request, context) } : task;
      });
    }
    if (method === "resources/read") {
      const { uri } = params;
      return typeof uri === "string" && uri.startsWith(PREFIX)
        ? kept.read(uri, context.caller)
        : next(request, context);
    }
    if (method === "server/discover") return next(request, context).then(withResources);
    if (method === "resources/list") return next(request, context).catch(emptyList("resources"));
    if (method === "resources/templates/list") {
      const withTemplate = (result: Result): Result => (params["cursor"] === undefined ? addTemplate(result) : result);
      return next(request, context).catch(emptyList("resourceTemplates")).then(withTemplate);
    }
    return next(request, context);
  };
  middleware.close = () => kept.clear();
  return middleware;
}

/** A server without resources has some now. */
function withResources(result: Result): Result {
  const capabilities = isObject(result["capabilities"]) ? result["capabilities"] : {};
  return "resources" in capabilities ? result : { ...result, capabilities: { ...capabilities, resources: {} } };
}

function emptyList(field: string): (error: unknown) => Result {
  return (error) => {
    if (isMethodNotFound(error)) return { resultType: "complete", [field]: [] };
    throw error;
  };
}

function addTemplate(result: Result): Result {
  const { resourceTemplates: listed } = result;
  return { ...result, resourceTemplates: [...(Array.isArray(listed) ? (listed as unknown[]) : []), TEMPLATE] };
}

type Block = { readonly [field: string]: unknown };

function blocksOf({ content }: Result): readonly Block[] {
  return Array.isArray(content) ? (content as readonly unknown[]).filter(isObject) : [];
}

/** The text of a text block or an embedded resource. */
function textOf({ type, text, resource }: Block): string | undefined {
  const found = type === "text" ? text : type === "resource" && isObject(resource) ? resource["text"] : undefined;
  return typeof found === "string" ? found : undefined;
}

function withText(block: Block, text: string): Block {
  return block["type"] === "text"
    ? { ...block, text }
    : { ...block, resource: { ...(block["resource"] as Block), text } };
}

/** Without copies, since every result of a tool comes here. */
function textLength({ content }: Result): number {
  if (!Array.isArray(content)) return 0;
  let sum = 0;
  for (const block of content as readonly unknown[]) if (isObject(block)) sum += textOf(block)?.length ?? 0;
  return sum;
}

function isTooLong(result: Result, maxChars: number): boolean {
  if (result.resultType !== undefined && result.resultType !== "complete") return false;
  if (textLength(result) > maxChars) return true;
  const { structuredContent } = result;
  return structuredContent !== undefined && jsonLength(structuredContent) > maxChars;
}

async function shorten(
  result: Result,
  maxChars: number,
  kept: KeptResults,
  request: Request,
  context: Context,
  summarize: ShapeOptions["summarize"],
): Promise<Result> {
  const blocks = blocksOf(result);
  const total = textLength(result);
  const { structuredContent, ...rest } = result;
  const whole =
    total > 0 ? blocks.flatMap((block) => textOf(block) ?? []).join("\n") : JSON.stringify(structuredContent);
  const mimeType = total > 0 ? "text/plain" : "application/json";
  const uri = kept.add(whole, mimeType, context.caller);
  const where = uri === undefined ? "" : "; the whole is the resource that is linked at the end";
  const notice = (left: number): string => `\n[… ${count(left)} of ${count(total)} characters left out${where} …]\n`;
  const summary = total > maxChars ? await summaryOf(() => summarize?.(whole, request, context), maxChars) : undefined;
  const shown =
    total <= maxChars
      ? blocks
      : summary === undefined
        ? cutBlocks(blocks, total, maxChars, notice)
        : [{ type: "text", text: summary }, ...blocks.filter((block) => textOf(block) === undefined)];
  const structured = structuredContent === undefined ? undefined : shortenJson(structuredContent, maxChars);
  const link = uri === undefined ? [] : [linkTo(uri, whole, mimeType, maxChars)];
  return {
    ...rest,
    content: [...shown, ...link],
    ...(structured === undefined ? undefined : { structuredContent: structured }),
  };
}

/** Undefined if there is no function, or if it fails: a summary that cannot be made must not lose the result. */
async function summaryOf(
  summarize: () => string | Promise<string> | undefined,
  maxChars: number,
): Promise<string | undefined> {
  try {
    const summary: unknown = await summarize();
    return typeof summary === "string" ? slice(summary, 0, maxChars) : undefined;
  } catch {
    return undefined;
  }
}

function linkTo(uri: string, whole: string, mimeType: string, maxChars: number): Block {
  const part = `${uri}?from=0&to=${maxChars}`;
  return {
    type: "resource_link",
    uri,
    name: "whole-result",
    description: `The whole result: ${count(whole.length)} characters. For a part of it, read a range, such as ${part}`,
    mimeType,
  };
}

/** Keeps the beginning and the end of all texts together. Blocks without text stay. */
function cutBlocks(
  blocks: readonly Block[],
  total: number,
  maxChars: number,
  notice: (left: number) => string,
): readonly Block[] {
  const headEnd = Math.ceil(maxChars * HEAD);
  const tailStart = total - (maxChars - headEnd);
  let at = 0;
  let hasNotice = false;
  return blocks.flatMap((block) => {
    const text = textOf(block);
    if (text === undefined) return [block];
    const from = at;
    at += text.length;
    if (at <= headEnd || from >= tailStart) return [block];
    const head = slice(text, 0, Math.max(0, headEnd - from));
    const tail = slice(text, Math.max(0, tailStart - from), text.length);
    const between = hasNotice ? "" : notice(tailStart - headEnd);
    hasNotice = true;
    const left = `${head}${between}${tail}`;
    return left === "" ? [] : [withText(block, left)];
  });
}

/** Never cuts a character in two. */
function slice(text: string, from: number, to: number): string {
  const isInside = (at: number): boolean => at > 0 && at < text.length && /[\uDC00-\uDFFF]/.test(text.charAt(at));
  return text.slice(isInside(from) ? from + 1 : from, isInside(to) ? to - 1 : to);
}

const STEPS = [
  { chars: 2_000, items: 50 },
  { chars: 500, items: 20 },
  { chars: 200, items: 5 },
  { chars: 50, items: 1 },
] as const;

/** The same value with shorter strings and arrays. Undefined if that is not enough. */
function shortenJson(value: unknown, maxChars: number): unknown {
  if (jsonLength(value) <= maxChars) return value;
  for (const { chars, items } of STEPS) {
    const shorter = limitJson(value, chars, items);
    if (jsonLength(shorter) <= maxChars) return shorter;
  }
  return undefined;
}

function limitJson(value: unknown, chars: number, items: number): unknown {
  if (typeof value === "string") return value.length > chars ? `${slice(value, 0, chars)}…` : value;
  if (Array.isArray(value)) return value.slice(0, items).map((item) => limitJson(item, chars, items));
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, field]) => [name, limitJson(field, chars, items)]));
}

function count(number: number): string {
  return number.toLocaleString("en-US");
}

interface KeptResult {
  readonly owner: string;
  readonly text: string;
  readonly mimeType: string;
  readonly bytes: number;
  readonly until: number;
}

/** Whole results by id, the oldest first. */
class KeptResults {
  readonly #keepMs: number;
  readonly #keepBytes: number;
  readonly #results = new Map<string, KeptResult>();
  #bytes = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(keepMs: number, keepBytes: number) {
    this.#keepMs = keepMs;
    this.#keepBytes = keepBytes;
  }

  /** Returns the URI; undefined if the result is too long to be kept. */
  add(text: string, mimeType: string, caller: Caller): string | undefined {
    // As it is in memory, if it has characters beyond Latin-1.
    const bytes = 2 * text.length;
    if (bytes > this.#keepBytes) return undefined;
    const id = randomBytes(16).toString("base64url");
    this.#results.set(id, { owner: ownerOf(caller), text, mimeType, bytes, until: performance.now() + this.#keepMs });
    this.#bytes += bytes;
    this.#sweep();
    return `${PREFIX}${id}`;
  }

  async read(uri: string, caller: Caller): Promise<Result> {
    this.#sweep();
    const [id = "", query = ""] = uri.slice(PREFIX.length).split("?", 2);
    const found = this.#results.get(id);
    // The same error as for one that never was, so that other callers do not learn of it.
    if (found === undefined || found.owner !== ownerOf(caller)) throw notFound("resources", uri);
    const { text, mimeType } = found;
    const range = new URLSearchParams(query);
    const limit = (name: string, usual: number): number => {
      const given = range.get(name);
      return given === null || !/^\d+$/.test(given) ? usual : Math.min(Number(given), text.length);
    };
    const from = limit("from", 0);
    const part = slice(text, from, Math.max(from, limit("to", text.length)));
    return { resultType: "complete", contents: [{ uri, mimeType, text: part }], ttlMs: 0, cacheScope: "private" };
  }

  clear(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#results.clear();
    this.#bytes = 0;
  }

  /** Drops what is too old, and the oldest if there is too much. */
  #sweep(): void {
    const now = performance.now();
    for (const [id, { bytes, until }] of this.#results) {
      if (until > now && this.#bytes <= this.#keepBytes && this.#results.size <= MAX_KEPT) break;
      this.#results.delete(id);
      this.#bytes -= bytes;
    }
    clearTimeout(this.#timer);
    const [oldest] = this.#results.values();
    this.#timer = oldest && unref(setTimeout(() => this.#sweep(), oldest.until - now));
  }
}

/** Who may read the result: callers with the same identity, or the same client if it has none. */
function ownerOf({ principal, key }: Caller): string {
  return principal === undefined ? `key ${key}` : `principal ${principal}`;
}
