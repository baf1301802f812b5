// Turns a tool's return value into the result of a call. A string is one text block; an array of content blocks is the
// content; an object with a `content` array is the whole result; undefined is empty content; anything else is
// structured content with its JSON as text. A value that the protocol or JSON does not allow throws InvalidResult.

import type { Meta } from "../core/handler.ts";
import { errorMessage, jsonOf } from "../core/values.ts";
import type { CallToolResult, ContentBlock } from "../protocol/model/index.ts";
import { blockProblem, contentProblem, findUnsendable, hasBlockType, isMisspeltBlock } from "../tools/content.ts";
import type { SchemaCheck, SchemaCheckResult } from "../tools/schema-kind.ts";
import { InvalidResult } from "./handler-errors.ts";
import { withMeta } from "./result-builder.ts";

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

/** `meta` is that of the server, here and below. */
export function errorResult(text: string, meta: Meta): CallToolResult {
  return { content: [{ type: "text", text }], isError: true, resultType: "complete", _meta: meta };
}

/**
 * `tool` is its name, for error messages. With an output schema, every value is structured content, except an error, and a
 * whole result that has `structuredContent` or `isError: true`. Returns a promise only if the check is asynchronous.
 */
export function toolResult(
  tool: string,
  value: unknown,
  output: SchemaCheck | undefined,
  meta: Meta,
): CallToolResult | Promise<CallToolResult> {
  if (output !== undefined && !(value instanceof TrustedResult)) return checkedResult(tool, value, output, meta);
  if (typeof value === "string") {
    return { content: [{ type: "text", text: value }], isError: false, resultType: "complete", _meta: meta };
  }
  if (value instanceof TrustedResult) {
    const { content, structuredContent, isError } = value;
    return { content, structuredContent, isError, resultType: "complete", _meta: meta };
  }
  if (value === undefined) return { content: [], isError: false, resultType: "complete", _meta: meta };
  if (isContent(value)) {
    checkContent(tool, value, "");
    return { content: withLinkNames(value), isError: false, resultType: "complete", _meta: meta };
  }
  if (value instanceof Error) throw value;
  return isWholeResult(value) ? wholeResult(tool, value, meta) : structuredResult(tool, value, meta);
}

function checkedResult(
  tool: string,
  value: unknown,
  check: SchemaCheck,
  meta: Meta,
): CallToolResult | Promise<CallToolResult> {
  if (value instanceof Error) throw value;
  const whole = isWholeResult(value) && ("structuredContent" in value || value["isError"] === true) ? value : undefined;
  if (whole?.["isError"] === true) return wholeResult(tool, whole, meta);
  const finish = (checked: SchemaCheckResult): CallToolResult => {
    if (checked.issues !== undefined) {
      const lines = checked.issues.map((issue) => `\n- ${issue}`).join("");
      throw new InvalidResult(`The output of the tool ${tool} does not fit its schema:${lines}`);
    }
    if (whole === undefined) return structuredResult(tool, checked.value, meta);
    const isSame = checked.value === whole["structuredContent"];
    return wholeResult(tool, isSame ? whole : { ...whole, structuredContent: checked.value }, meta);
  };
  const pending = check(whole === undefined ? value : whole["structuredContent"]);
  return pending instanceof Promise ? pending.then(finish) : finish(pending);
}

function structuredResult(tool: string, value: unknown, meta: Meta): CallToolResult {
  const text = toJson(tool, value, "");
  const structuredContent = text === "null" ? null : value;
  return { content: [{ type: "text", text }], structuredContent, isError: false, resultType: "complete", _meta: meta };
}

type WholeResult = { readonly content: readonly ContentBlock[]; readonly [field: string]: unknown };

function wholeResult(tool: string, value: WholeResult, meta: Meta): CallToolResult {
  checkContent(tool, value.content);
  const structuredContent = value["structuredContent"];
  if (structuredContent !== undefined) toJson(tool, structuredContent, "structuredContent");
  const isError = value["isError"] === true;
  const _meta = withMeta(value["_meta"], meta);
  return { ...value, content: withLinkNames(value.content), isError, resultType: "complete", _meta };
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
  const unsendable = findUnsendable(value);
  if (unsendable !== undefined) {
    const place = [path, unsendable.path]
      .filter((part) => part !== "")
      .join(".")
      .replaceAll(".[", "[");
    const at = place === "" ? "" : `, at ${place},`;
    const advice = unsendable.advice === undefined ? "" : `; return ${unsendable.advice}`;
    throw new InvalidResult(`Tool ${tool} returned${at} ${unsendable.what}, which cannot be sent${advice}`);
  }
  const as = path === "" ? "" : `, as ${path},`;
  let text: string | undefined;
  try {
    text = jsonOf(value);
  } catch (error) {
    throw new InvalidResult(`Tool ${tool} returned${as} a value that cannot be sent: ${errorMessage(error)}`);
  }
  if (text === undefined) throw new InvalidResult(`Tool ${tool} returned${as} a value that cannot be sent as JSON`);
  return text;
}
