// Turns a tool's return value into the result of a call. A string is one text block; an array of content blocks is the
// content; an object with a `content` array is the whole result; undefined is empty content; anything else is
// structured content with its JSON as text. A value that the protocol or JSON does not allow throws InvalidResult.

import type { Meta, Result } from "../core/handler.ts";
import { errorMessage } from "../core/values.ts";
import { blockProblem, contentProblem, findUnsendable, hasBlockType } from "../protocol/content.ts";
import type { ContentBlock } from "../protocol/model/index.ts";
import { InvalidResult } from "./handler-errors.ts";
import type { SchemaCheck, SchemaCheckResult } from "../protocol/schema-kind.ts";

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

  constructor(text: string, structuredContent: object, isError: boolean, more: readonly ContentBlock[] = []) {
    this.content = [{ type: "text", text }, ...more];
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

/** An empty array is data, and so is one without any block. */
function isContent(value: unknown): value is readonly ContentBlock[] {
  if (!Array.isArray(value) || value.length === 0) return false;
  return value.every(hasBlockType) || value.some((block) => blockProblem(block, "") === undefined);
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
