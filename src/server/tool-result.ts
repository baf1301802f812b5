// Turns a tool's return value into the result of a call. A string is one text block; an array of content blocks is the
// content; an object with a `content` array is the whole result; undefined is empty content; anything else is
// structured content with its JSON as text. An error, or a value without a JSON form, gives a result with `isError`.

import type { Meta, Result, Context } from "../core/handler.ts";
import { errorMessage } from "../core/values.ts";
import { McpError } from "../protocol/errors.ts";
import type { ContentBlock } from "../protocol/model/index.ts";
import type { SchemaCheck, SchemaCheckResult } from "./schema-kind.ts";

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

  constructor(text: string, structuredContent: object, isError: boolean) {
    this.content = [{ type: "text", text }];
    this.structuredContent = structuredContent;
    this.isError = isError;
  }
}

export function errorResult(text: string): ToolResultFields {
  return { content: [{ type: "text", text }], isError: true };
}

/** The model can read this result and correct its arguments. */
export function invalidArguments(toolName: string, issues: readonly string[]): ToolResultFields {
  const lines = issues.map((issue) => `\n- ${issue}`).join("");
  return errorResult(`Invalid arguments for the tool ${toolName}:${lines}`);
}

/** The same as a protocol error, for older revisions. */
export function invalidArgumentsError(toolName: string, issues: readonly string[]): McpError {
  const details = issues.map((issue) => issue.replace(": ", " ")).join("; ");
  return McpError.of("invalid_params", "Invalid params", { toolName, details });
}

/** For a tool without an output schema. `tool` is its name, for error messages. */
export function toolResult(tool: string, value: unknown): ToolResultFields {
  if (typeof value === "string") return { content: [{ type: "text", text: value }], isError: false };
  if (value === undefined) return { content: [], isError: false };
  if (isContent(value)) return { content: withLinkNames(value), isError: false };
  if (value instanceof Error) return errorResult(describeError(value));
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
  if (value instanceof Error) return errorResult(describeError(value));
  const whole = isWholeResult(value) && ("structuredContent" in value || value["isError"] === true) ? value : undefined;
  if (whole?.["isError"] === true) return wholeResult(tool, whole);
  const finish = (checked: SchemaCheckResult): ToolResultFields => {
    if (checked.issues !== undefined) {
      const lines = checked.issues.map((issue) => `\n- ${issue}`).join("");
      return errorResult(`The output of the tool ${tool} does not fit its schema:${lines}`);
    }
    if (whole === undefined) return structuredResult(tool, checked.value);
    const isSame = checked.value === whole["structuredContent"];
    return wholeResult(tool, isSame ? whole : { ...whole, structuredContent: checked.value });
  };
  const pending = check(whole === undefined ? value : whole["structuredContent"]);
  return pending instanceof Promise ? pending.then(finish) : finish(pending);
}

function structuredResult(tool: string, value: unknown): ToolResultFields {
  const { text, problem } = toJson(value);
  if (problem !== undefined) return errorResult(`Tool ${tool} returned ${problem}`);
  return { content: [{ type: "text", text }], structuredContent: text === "null" ? null : value, isError: false };
}

type WholeResult = Result & { readonly content: readonly ContentBlock[] };

function wholeResult(tool: string, value: WholeResult): ToolResultFields {
  const { structuredContent } = value;
  const { problem } = structuredContent === undefined ? {} : toJson(structuredContent);
  if (problem !== undefined) return errorResult(`Tool ${tool} returned, as structuredContent, ${problem}`);
  return { ...value, content: withLinkNames(value.content), isError: value["isError"] === true };
}

/** A resource link must have a name. One without a name gets its URI as the name, like a resource. */
function withLinkNames(content: readonly ContentBlock[]): readonly ContentBlock[] {
  return content.map((block) => (isNamelessLink(block) ? { ...block, name: block.uri } : block));
}

function isNamelessLink(block: unknown): block is ContentBlock & { readonly uri: string } {
  const { type, uri, name } = Object(block) as Record<string, unknown>;
  return type === "resource_link" && typeof uri === "string" && typeof name !== "string";
}

function isWholeResult(value: unknown): value is WholeResult {
  return typeof value === "object" && value !== null && Array.isArray((value as { content?: unknown }).content);
}

/** An empty array is data, not content. */
function isContent(value: unknown): value is readonly ContentBlock[] {
  return Array.isArray(value) && value.length > 0 && value.every(isContentBlock);
}

function isContentBlock(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  const block = value as Record<string, unknown>;
  switch (block["type"]) {
    case "text":
      return typeof block["text"] === "string";
    case "image":
    case "audio":
      return typeof block["data"] === "string" && typeof block["mimeType"] === "string";
    case "resource":
      return typeof block["resource"] === "object" && block["resource"] !== null;
    case "resource_link":
      return typeof block["uri"] === "string";
    default:
      return false;
  }
}

/** The JSON of a value, or the problem with it, worded to follow "The tool returned". */
type JsonOrProblem =
  | { readonly text: string; readonly problem?: undefined }
  | { readonly text?: undefined; readonly problem: string };

function toJson(value: unknown): JsonOrProblem {
  const problem = jsonProblem(value);
  if (problem !== undefined) return { problem };
  try {
    const text = JSON.stringify(value) as string | undefined;
    return text === undefined ? { problem: "a value that cannot be sent as JSON" } : { text };
  } catch (error) {
    return { problem: `a value that cannot be sent: ${errorMessage(error)}` };
  }
}

function jsonProblem(value: unknown): string | undefined {
  switch (typeof value) {
    case "undefined":
      return "undefined, which cannot be sent";
    case "function":
      return "a function, which cannot be sent";
    case "symbol":
      return "a symbol, which cannot be sent";
    case "bigint":
      return "a BigInt, which cannot be sent; return a number or a string";
    case "number":
      return Number.isFinite(value) ? undefined : `${value}, which cannot be sent; return null or a string`;
    case "object":
      return value === null ? undefined : objectProblem(value);
    default:
      return undefined;
  }
}

function objectProblem(value: object): string | undefined {
  if (value instanceof Map) return "a Map, which cannot be sent; return an object or an array";
  if (value instanceof Set) return "a Set, which cannot be sent; return an array";
  if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer) {
    return "bytes, which cannot be sent; return an image, audio or resource block";
  }
  return undefined;
}

// Errors that a handler throws. A tool's error becomes a result for the model; resources and prompts have no such
// result, so theirs become protocol errors. Stacks are never sent. A thrown value can be anything, even a Proxy whose
// traps throw.

/** The error's message, or its name if it has none. */
export function describeError(error: unknown): string {
  return errorMessage(error) || errorMessage(errorName(error));
}

function errorName(error: unknown): unknown {
  try {
    return error instanceof Error && error.name !== "" ? error.name : "Error";
  } catch {
    return "Error";
  }
}

/** Whether to rethrow the error unchanged: it is a protocol error, or the call was cancelled. */
export function shouldRethrow(error: unknown, context: Context): boolean {
  return isMcpError(error) || context.signal.aborted;
}

function isMcpError(error: unknown): boolean {
  try {
    return error instanceof McpError;
  } catch {
    return false;
  }
}

/** For handlers of resources, prompts and completions, which have no error results: errors become McpErrors. */
export async function runHandler<Value>(context: Context, run: () => Value | Promise<Value>): Promise<Value> {
  try {
    return await run();
  } catch (error) {
    if (shouldRethrow(error, context)) throw error;
    throw McpError.of("internal_error", describeError(error), {}, { cause: error });
  }
}
