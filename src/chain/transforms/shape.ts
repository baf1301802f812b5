// Cuts huge results of tools, and keeps each whole for a while. Only its caller can read it: the model with a tool, since
// many clients do not show resources to it, and the client as a resource. The beginning and the end of the text stay.
// Structured content keeps its shape, so that it still fits the tool's schema: long strings and arrays become shorter.
// Results are kept in memory, within limits; none is listed, and their ids cannot be guessed.

import { randomBytes } from "node:crypto";
import { callerKey } from "../../core/caller-key.ts";
import { copyContext } from "../../core/cancel.ts";
import { ExpiringMap } from "../../core/expiring-map.ts";
import type { Caller, Context, Handler, Middleware, Notification, Request, Result } from "../../core/handler.ts";
import { firstChars, lastChars } from "../../core/text.ts";
import { isObject } from "../../core/values.ts";
import { count, documented, func, ms, type OptionsOf, type ValuesOf } from "../../core/fields.ts";
import { jsonLength } from "../../protocol/pages.ts";
import { define, type DefinedMiddleware } from "../define.ts";
import type { Layer } from "../layer.ts";
import { notFound } from "../named-items.ts";
import { isMethodNotFound } from "../router/failures.ts";

const OPTIONS = {
  maxChars: count("How many characters a result may have.").or(20_000),
  keepMs: ms("How long a whole result is kept.").or(600_000, "10 minutes"),
  keepBytes: count("How many bytes of whole results are kept, for all callers together.").or(67_108_864, "64 MiB"),
  summarize: documented(
    "Returns a text that replaces the whole text, at most `maxChars` of it. Default: its beginning and its end.",
    func<(text: string, request: Request, context: Context) => string | Promise<string>>(),
  ),
};

/** Options of `shape()`. */
export type ShapeOptions = OptionsOf<typeof OPTIONS>;

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

const READ_RESULT = "read-result";
const TOOL = {
  name: READ_RESULT,
  title: "Read the rest of a result",
  description: "Returns characters of a tool result that was too long and has been cut. The result says its id.",
  inputSchema: {
    type: "object",
    properties: {
      id: { type: "string", description: "The id of the result." },
      from: { type: "integer", minimum: 0, description: "The first character to return. Default: 0." },
      to: { type: "integer", minimum: 0, description: "The character before which to stop. Default: as many as fit." },
    },
    required: ["id"],
  },
  annotations: { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false },
};

/**
 * Cuts results of tools that are longer than `maxChars`, and keeps each whole. The tool `read-result` reads the rest.
 *
 * @example
 * shape({ maxChars: 50_000 })
 */
export const shape: DefinedMiddleware<[options?: ShapeOptions]> = define({
  name: "shape",
  summary: "Cuts huge results of tools, and keeps each whole for a while. The tool read-result reads the rest.",
  options: OPTIONS,
  layer: createShape,
});

function createShape({ maxChars, keepMs, keepBytes, summarize }: ValuesOf<typeof OPTIONS>): Layer {
  const keptResults = new KeptResults(keepMs, keepBytes);
  const cut = (result: Result, request: Request, context: Context): Result | Promise<Result> => {
    if (!isTooLong(result, maxChars)) return result;
    if (summarize === undefined || textLength(result) <= maxChars)
      return shorten(result, maxChars, keptResults, context.caller);
    const summary = summaryOf(() => summarize(wholeText(result), request, context), maxChars);
    return summary.then((text) => shorten(result, maxChars, keptResults, context.caller, text));
  };
  const call = (request: Request, context: Context, next: Handler): Promise<Result> =>
    request.params["name"] === READ_RESULT
      ? readResult(keptResults, maxChars, request, context, next)
      : next(request, context).then((result) => cut(result, request, context));
  const cutTask = (notification: Notification, { caller }: Context): Notification => {
    const { method, params } = notification;
    const result = method === "notifications/tasks" ? params?.["result"] : undefined;
    if (!isObject(result) || !isTooLong(result, maxChars)) return notification;
    return { ...notification, params: { ...params, result: shorten(result, maxChars, keptResults, caller) } };
  };
  const middleware: Middleware = function shape(request, context, next) {
    const { method, params } = request;
    if (method === "tools/call") return call(request, context, next);
    if (method === "subscriptions/listen") {
      const notify: Context["notify"] = (notification) => context.notify(cutTask(notification, context));
      return next(request, copyContext(context, { notify }));
    }
    if (method === "tasks/get") {
      return next(request, context).then(async (task) => {
        const { result } = task;
        return isObject(result) ? { ...task, result: await cut(result, request, context) } : task;
      });
    }
    if (method === "resources/read") {
      const { uri } = params;
      const keptResult =
        typeof uri === "string" && uri.startsWith(PREFIX) ? keptResults.read(uri, context.caller) : undefined;
      if (keptResult !== undefined) return Promise.resolve(keptResult);
      // The upstream may be a gateway that keeps results too, or a server without resources.
      return next(request, context).catch((error: unknown) => {
        throw isMethodNotFound(error) ? notFound("resources", String(uri)) : error;
      });
    }
    if (method === "server/discover") return next(request, context).then(withResources);
    if (method === "resources/list") return next(request, context).catch(emptyList("resources"));
    if (method === "resources/templates/list") return next(request, context).catch(emptyList("resourceTemplates"));
    return next(request, context);
  };
  middleware.close = () => keptResults.clear();
  const added = { tools: [TOOL], templates: [TEMPLATE] };
  return { transform: { kinds: new Set(), added, item: (item) => item }, middleware };
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

/** Answers a call of `read-result`. A mistake is a result, so that the model can read it. */
async function readResult(
  keptResults: KeptResults,
  maxChars: number,
  request: Request,
  context: Context,
  next: Handler,
): Promise<Result> {
  const { arguments: callArguments } = request.params;
  const { id, from = 0, to } = isObject(callArguments) ? callArguments : {};
  const isOffset = (value: unknown): value is number => Number.isInteger(value) && (value as number) >= 0;
  const answer = (...texts: readonly string[]): Result => ({
    resultType: "complete",
    content: texts.map((text) => ({ type: "text", text })),
  });
  if (typeof id !== "string") return { ...answer("`id` must be the id of a result"), isError: true };
  if (!isOffset(from) || (to !== undefined && !isOffset(to))) {
    return { ...answer("`from` and `to` must be whole numbers, or 0"), isError: true };
  }
  const result = keptResults.find(id.startsWith(PREFIX) ? id.slice(PREFIX.length) : id, context.caller);
  if (result === undefined) {
    const none = answer(`There is no result ${id}; results are kept for a while only, so call the tool again`);
    // The upstream may be a gateway that keeps results too.
    return next(request, context).catch(() => ({ ...none, isError: true }));
  }
  const { text } = result;
  const total = text.length;
  const start = boundary(text, Math.min(from, total));
  const limit = Math.max(start, Math.min(to ?? total, start + maxChars, total));
  let end = boundary(text, limit);
  // Without the character that does not fit, the page would be empty, and the next the same.
  if (end === start && limit > start) end += 2;
  const part = text.slice(start, end);
  const rest = end < total ? `; for the next, call ${READ_RESULT} with ${JSON.stringify({ id, from: end })}` : "";
  return answer(part, `[Characters ${grouped(start)} to ${grouped(end)} of ${grouped(total)}${rest}]`);
}

type Block = { readonly [field: string]: unknown };

function blocksOf({ content }: Result): readonly Block[] {
  return Array.isArray(content) ? (content as readonly unknown[]).filter(isObject) : [];
}

/** The text of a text block or an embedded resource. */
function textOf({ type, text, resource }: Block): string | undefined {
  const content = type === "text" ? text : type === "resource" && isObject(resource) ? resource["text"] : undefined;
  return typeof content === "string" ? content : undefined;
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

function wholeText(result: Result): string {
  return blocksOf(result)
    .flatMap((block) => textOf(block) ?? [])
    .join("\n");
}

function shorten(result: Result, maxChars: number, keptResults: KeptResults, caller: Caller, summary?: string): Result {
  const blocks = blocksOf(result);
  const total = textLength(result);
  const { structuredContent, ...rest } = result;
  const isText = total > maxChars;
  const whole = isText ? wholeText(result) : JSON.stringify(structuredContent);
  const mimeType = isText ? "text/plain" : "application/json";
  const id = keptResults.add(whole, mimeType, caller);
  const where = (from: number): string =>
    id === undefined ? "" : `; to read more, call the tool ${READ_RESULT} with ${JSON.stringify({ id, from })}`;
  const notice = (leftOut: number, from: number): string =>
    `\n[… ${grouped(leftOut)} of ${grouped(total)} characters left out${where(from)} …]\n`;
  const others = blocks.filter((block) => textOf(block) === undefined);
  const shortened = !isText
    ? [
        ...blocks,
        {
          type: "text",
          text: `[… the structured content is a part of ${grouped(whole.length)} characters of JSON${where(0)} …]`,
        },
      ]
    : summary === undefined
      ? cutBlocks(blocks, total, maxChars, notice)
      : [{ type: "text", text: `${summary}\n[… a summary of ${grouped(total)} characters${where(0)} …]` }, ...others];
  const structured = structuredContent === undefined ? undefined : shortenJson(structuredContent, maxChars);
  return {
    ...rest,
    content: [...shortened, ...(id === undefined ? [] : [linkTo(id, whole, mimeType, maxChars)])],
    ...(structured === undefined ? undefined : { structuredContent: structured }),
  };
}

/** Undefined if it fails: a summary that cannot be made must not lose the result. */
async function summaryOf(summarize: () => string | Promise<string>, maxChars: number): Promise<string | undefined> {
  try {
    const summary: unknown = await summarize();
    return typeof summary === "string" ? firstChars(summary, maxChars) : undefined;
  } catch {
    return undefined;
  }
}

function linkTo(id: string, whole: string, mimeType: string, maxChars: number): Block {
  const uri = `${PREFIX}${id}`;
  const part = `${uri}?from=0&to=${maxChars}`;
  return {
    type: "resource_link",
    uri,
    name: "whole-result",
    description: `The whole result: ${grouped(whole.length)} characters. For a part of it, read a range, such as ${part}`,
    mimeType,
  };
}

/** Keeps the beginning and the end of all texts together. Blocks without text stay. */
function cutBlocks(
  blocks: readonly Block[],
  total: number,
  maxChars: number,
  notice: (left: number, from: number) => string,
): readonly Block[] {
  const headEnd = Math.ceil(maxChars * HEAD);
  const tailStart = total - (maxChars - headEnd);
  let at = 0;
  // The whole has a line break between two texts.
  let breaks = -1;
  let hasNotice = false;
  return blocks.flatMap((block) => {
    const text = textOf(block);
    if (text === undefined) return [block];
    const from = at;
    at += text.length;
    breaks += 1;
    if (at <= headEnd || from >= tailStart) return [block];
    const head = firstChars(text, Math.max(0, headEnd - from));
    const tail = lastChars(text, Math.min(text.length, at - tailStart));
    const between = hasNotice ? "" : notice(tailStart - headEnd, headEnd + breaks);
    hasNotice = true;
    const shortText = `${head}${between}${tail}`;
    return shortText === "" ? [] : [withText(block, shortText)];
  });
}

/** The place itself, or the beginning of the character that it is inside of. Slices that meet have all characters. */
function boundary(text: string, at: number): number {
  return at > 0 && at < text.length && /[\uDC00-\uDFFF]/.test(text.charAt(at)) ? at - 1 : at;
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
  if (typeof value === "string") return value.length > chars ? `${firstChars(value, chars)}…` : value;
  if (Array.isArray(value)) return value.slice(0, items).map((item) => limitJson(item, chars, items));
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, field]) => [name, limitJson(field, chars, items)]));
}

function grouped(number: number): string {
  return number.toLocaleString("en-US");
}

interface KeptResult {
  readonly owner: string;
  readonly text: string;
  readonly mimeType: string;
  readonly bytes: number;
}

/** Whole results by id, the oldest first. */
class KeptResults {
  readonly #keepBytes: number;
  readonly #results: ExpiringMap<string, KeptResult>;

  constructor(keepMs: number, keepBytes: number) {
    this.#keepBytes = keepBytes;
    this.#results = new ExpiringMap({ ttlMs: keepMs });
  }

  /** Returns its id; undefined if the result is too long to be kept, beside those of other callers. */
  add(text: string, mimeType: string, caller: Caller): string | undefined {
    // As it is in memory, if it has characters beyond Latin-1.
    const bytes = 2 * text.length;
    if (bytes > this.#keepBytes) return undefined;
    const id = randomBytes(16).toString("base64url");
    this.#results.set(id, { owner: callerKey(caller, "reader"), text, mimeType, bytes }, undefined, bytes);
    while (this.#results.totalSize > this.#keepBytes || this.#results.size > MAX_KEPT) {
      this.#results.delete(this.#oldestOfGreediest());
    }
    return this.#results.has(id) ? id : undefined;
  }

  /** Undefined also for a result of another caller, who must not learn that there is one. */
  find(id: string, caller: Caller): KeptResult | undefined {
    const result = this.#results.get(id);
    return result?.owner === callerKey(caller, "reader") ? result : undefined;
  }

  /** Undefined if there is no such result for this caller. */
  read(uri: string, caller: Caller): Result | undefined {
    const [id = "", query = ""] = uri.slice(PREFIX.length).split("?", 2);
    const result = this.find(id, caller);
    if (result === undefined) return undefined;
    const { text, mimeType } = result;
    const range = new URLSearchParams(query);
    const limit = (name: string, usual: number): number => {
      const digits = range.get(name);
      return digits === null || !/^\d+$/.test(digits) ? usual : Math.min(Number(digits), text.length);
    };
    const from = limit("from", 0);
    const part = text.slice(boundary(text, from), boundary(text, Math.max(from, limit("to", text.length))));
    return { resultType: "complete", contents: [{ uri, mimeType, text: part }], ttlMs: 0, cacheScope: "private" };
  }

  clear(): void {
    this.#results.clear();
  }

  /** Of the caller whose results have the most bytes. */
  #oldestOfGreediest(): string {
    const sums = new Map<string, number>();
    for (const { owner, bytes } of this.#results.values()) sums.set(owner, (sums.get(owner) ?? 0) + bytes);
    const [greediest] = [...sums].toSorted(([, one], [, other]) => other - one)[0] ?? [];
    return this.#results.entries().find(([, { owner }]) => owner === greediest)?.[0] ?? "";
  }
}
