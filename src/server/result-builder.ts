// Adds `resultType`, server info and cache hints to results, and cuts lists into pages. Also the ordered map that holds
// the registrations which a list shows.

import type { Meta, Request, Result } from "../core/handler.ts";
import { defined, errorMessage } from "../core/values.ts";
import { blockProblem, contentProblem, findUnsendable, hasBlockType, isMisspeltBlock } from "../tools/content.ts";
import { page, type PageItem } from "../protocol/lists.ts";
import { META } from "../protocol/model/base.ts";
import type { ContentBlock, Implementation } from "../protocol/model/index.ts";
import type { SchemaCheck, SchemaCheckResult } from "../tools/schema-kind.ts";
import { HandlerErrors, InvalidResult } from "./handler-errors.ts";
import type { CacheHint, ServerOptions } from "./options.ts";

/** An entry of a list; `listItem` is what clients see. */
export interface ListEntry extends PageItem {
  readonly listItem: object;
}

export class ResultBuilder {
  /** The server info, part of the `_meta` of every result. Results without other metadata share this frozen object. */
  readonly meta: Meta;
  /** Whether the server declares the logging capability, and sends log messages. */
  readonly logging: boolean;
  /** Reports the errors of all handlers, and turns them into what callers read. */
  readonly errors: HandlerErrors;
  readonly #cache: CacheHint;
  readonly #pageSize: number;

  constructor(server: ServerOptions) {
    const { name, version, title, description, websiteUrl, icons, pageSize = 1000 } = server;
    const info: Implementation = Object.freeze(defined({ name, version, title, description, websiteUrl, icons }));
    this.meta = Object.freeze({ [META.serverInfo]: info });
    this.logging = server.logging ?? true;
    this.errors = new HandlerErrors(server);
    this.#cache = server.cache ?? { ttlMs: 0, cacheScope: "private" };
    this.#pageSize = pageSize;
  }

  complete(fields: object, meta?: unknown): Result {
    // Most tool results have just these two fields, and a literal is much cheaper than a spread.
    if (isPlain(fields) && meta === undefined) {
      return { content: fields.content, isError: fields.isError, resultType: "complete", _meta: this.meta };
    }
    return { ...fields, resultType: "complete", _meta: this.#metaWith(meta) };
  }

  trusted({ content, structuredContent, isError }: TrustedResult): Result {
    return { content, structuredContent, isError, resultType: "complete", _meta: this.meta };
  }

  cacheable(fields: object, hint: CacheHint = this.#cache, meta?: unknown): Result {
    const { ttlMs, cacheScope } = hint;
    return { ...fields, ttlMs, cacheScope, resultType: "complete", _meta: this.#metaWith(meta) };
  }

  list({ method, params }: Request, field: string, entries: readonly ListEntry[]): Result {
    const { items, nextCursor } = page(method, entries, params["cursor"], this.#pageSize);
    return this.cacheable(defined({ [field]: Object.freeze(items.map((entry) => entry.listItem)), nextCursor }));
  }

  /** Our server info replaces any other, since a handler may pass on the result of another server. */
  #metaWith(meta: unknown): Meta {
    return typeof meta === "object" && meta !== null ? { ...meta, ...this.meta } : this.meta;
  }
}

function isPlain(fields: object): fields is { readonly content: unknown; readonly isError: unknown } {
  return "content" in fields && "isError" in fields && Reflect.ownKeys(fields).length === 2;
}

interface OrderedEntry<Value> extends ListEntry {
  readonly value: Value;
}

/**
 * Registrations by key, in the order in which they were made. Each gets an order number, which is not reused after the
 * key is deleted, so that cursors stay valid while the map changes.
 */
export class OrderedMap<Value> {
  /** Whether there ever was an entry. A server keeps declaring a list that has become empty. */
  wasUsed = false;
  readonly #entries = new Map<string, OrderedEntry<Value>>();
  readonly #onChange: () => void;
  readonly #counter: { last: number };
  #list: readonly OrderedEntry<Value>[] | undefined;

  /** Maps that are listed together share one counter of order numbers. */
  constructor(onChange: () => void, counter: { last: number } = { last: 0 }) {
    this.#onChange = onChange;
    this.#counter = counter;
  }

  set(key: string, value: Value, listItem: object): void {
    // All callers get this object, so middleware that changes it must fail.
    this.#entries.set(key, { key, order: ++this.#counter.last, value, listItem: Object.freeze(listItem) });
    this.#list = undefined;
    this.wasUsed = true;
    this.#onChange();
  }

  /** Returns whether the key was there. */
  delete(key: string): boolean {
    const wasThere = this.#entries.delete(key);
    if (wasThere) {
      this.#list = undefined;
      this.#onChange();
    }
    return wasThere;
  }

  get(key: string): Value | undefined {
    return this.#entries.get(key)?.value;
  }

  entries(): readonly OrderedEntry<Value>[] {
    return (this.#list ??= [...this.#entries.values()]);
  }
}

// Turns a tool's return value into the result of a call. A string is one text block; an array of content blocks is the
// content; an object with a `content` array is the whole result; undefined is empty content; anything else is
// structured content with its JSON as text. A value that the protocol or JSON does not allow throws InvalidResult.

interface ToolResultFields {
  readonly content: readonly ContentBlock[];
  readonly structuredContent?: unknown;
  readonly isError: boolean;
  readonly _meta?: Meta;
  readonly [key: string]: unknown;
}

/**
 * A result that is sent without any check, since the checks are most of the cost of a small result. Its creator
 * guarantees that it is plain JSON and fits the tool's output schema.
 */
export class TrustedResult {
  readonly content: readonly ContentBlock[];
  readonly structuredContent: object;
  readonly isError: boolean;

  constructor(content: readonly ContentBlock[], structuredContent: object, isError: boolean) {
    this.content = content;
    this.structuredContent = structuredContent;
    this.isError = isError;
  }
}

export function errorResult(text: string): ToolResultFields {
  return { content: [{ type: "text", text }], isError: true };
}

/** For a tool without an output schema. `tool` is its name, for error messages. */
export function toolResult(tool: string, value: unknown): ToolResultFields {
  if (typeof value === "string") return { content: [{ type: "text", text: value }], isError: false };
  if (value === undefined) return { content: [], isError: false };
  if (isContent(value)) {
    checkContent(tool, value, "");
    return { content: withLinkNames(value), isError: false };
  }
  if (value instanceof Error) throw value;
  return isWholeResult(value) ? wholeResult(tool, value) : structuredResult(tool, value);
}

/**
 * For a tool with an output schema. Every value is structured content, except an error, and a whole result that has
 * `structuredContent` or `isError: true`. Returns a promise only if the check is asynchronous.
 */
export function checkedToolResult(
  tool: string,
  value: unknown,
  check: SchemaCheck,
): ToolResultFields | Promise<ToolResultFields> {
  if (value instanceof Error) throw value;
  const whole = isWholeResult(value) && ("structuredContent" in value || value["isError"] === true) ? value : undefined;
  if (whole?.["isError"] === true) return wholeResult(tool, whole);
  const finish = (checked: SchemaCheckResult): ToolResultFields => {
    if (checked.issues !== undefined) {
      const lines = checked.issues.map((issue) => `\n- ${issue}`).join("");
      throw new InvalidResult(`The output of the tool ${tool} does not fit its schema:${lines}`);
    }
    if (whole === undefined) return structuredResult(tool, checked.value);
    const isSame = checked.value === whole["structuredContent"];
    return wholeResult(tool, isSame ? whole : { ...whole, structuredContent: checked.value });
  };
  const pending = check(whole === undefined ? value : whole["structuredContent"]);
  return pending instanceof Promise ? pending.then(finish) : finish(pending);
}

function structuredResult(tool: string, value: unknown): ToolResultFields {
  const text = toJson(tool, value, "");
  return { content: [{ type: "text", text }], structuredContent: text === "null" ? null : value, isError: false };
}

type WholeResult = Result & { readonly content: readonly ContentBlock[] };

function wholeResult(tool: string, value: WholeResult): ToolResultFields {
  checkContent(tool, value.content);
  const { structuredContent } = value;
  if (structuredContent !== undefined) toJson(tool, structuredContent, "structuredContent");
  return { ...value, content: withLinkNames(value.content), isError: value["isError"] === true };
}

/** A resource link must have a name. One without a name gets its URI as the name, like a resource. */
function withLinkNames(content: readonly ContentBlock[]): readonly ContentBlock[] {
  return content.some(isNamelessLink)
    ? content.map((block) => (isNamelessLink(block) ? { ...block, name: block.uri } : block))
    : content;
}

function isNamelessLink(block: ContentBlock): block is ContentBlock & { readonly uri: string } {
  return block.type === "resource_link" && typeof block.name !== "string";
}

/** Fields of a whole result. An object with `content` and no other fields than these is meant to be one. */
const RESULT_FIELDS: ReadonlySet<string> = new Set(["content", "structuredContent", "isError", "_meta"]);

function isWholeResult(value: unknown): value is WholeResult {
  if (typeof value !== "object" || value === null || !("content" in value)) return false;
  return Array.isArray(value.content) || Object.keys(value).every((field) => RESULT_FIELDS.has(field));
}

/** An empty array is data, and so is one without any block, unless all of its items are blocks of a misspelt type. */
function isContent(value: unknown): value is readonly ContentBlock[] {
  if (!Array.isArray(value) || value.length === 0) return false;
  const isBlock = (block: unknown): boolean => hasBlockType(block) && blockProblem(block, "") === undefined;
  return value.every(hasBlockType) || value.some(isBlock) || value.every(isMisspeltBlock);
}

const AS_DATA = "to return it as data, declare `output`";

function checkContent(tool: string, content: unknown, path?: string): void {
  const problem = contentProblem(content, path);
  if (problem !== undefined) throw new InvalidResult(`Tool ${tool} returned ${problem} (${AS_DATA})`);
}

/** The JSON of a structured value. Throws if JSON would lose or refuse a part of it. */
function toJson(tool: string, value: unknown, path: string): string {
  const found = findUnsendable(value);
  if (found !== undefined) {
    const place = [path, found.path]
      .filter((part) => part !== "")
      .join(".")
      .replaceAll(".[", "[");
    const at = place === "" ? "" : `, at ${place},`;
    const advice = found.advice === undefined ? "" : `; return ${found.advice}`;
    throw new InvalidResult(`Tool ${tool} returned${at} ${found.what}, which cannot be sent${advice}`);
  }
  const as = path === "" ? "" : `, as ${path},`;
  let text: string | undefined;
  try {
    text = JSON.stringify(value) as string | undefined;
  } catch (error) {
    throw new InvalidResult(`Tool ${tool} returned${as} a value that cannot be sent: ${errorMessage(error)}`);
  }
  if (text === undefined) throw new InvalidResult(`Tool ${tool} returned${as} a value that cannot be sent as JSON`);
  return text;
}
