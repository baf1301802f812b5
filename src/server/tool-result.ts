// Turns a tool's return value into the result of a call. A string is one text block; an array of content blocks is the
// content; an object with a `content` array is the whole result; undefined is empty content; anything else is
// structured content with its JSON as text. An error, or a value without a JSON form, gives a result with `isError`.

import type { Meta, Result, Context } from "../core/handler.ts";
import { asError, errorMessage, isObject } from "../core/values.ts";
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

function errorResult(text: string): ToolResultFields {
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
  if (value instanceof Error) return errorResult(describeError(asError(value)));
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
  if (value instanceof Error) return errorResult(describeError(asError(value)));
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

/** By type: the fields that a content block must have, and their type. */
const BLOCK_FIELDS: Readonly<Record<string, Readonly<Record<string, "string" | "object">>>> = {
  text: { text: "string" },
  image: { data: "string", mimeType: "string" },
  audio: { data: "string", mimeType: "string" },
  resource: { resource: "object" },
  resource_link: { uri: "string" },
};

function isContentBlock(block: unknown): boolean {
  if (!isObject(block)) return false;
  const type = String(block["type"]);
  const fields = Object.hasOwn(BLOCK_FIELDS, type) ? BLOCK_FIELDS[type] : undefined;
  if (fields === undefined) return false;
  return Object.entries(fields).every(([name, kind]) => typeof block[name] === kind && block[name] !== null);
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
  const [what, advice] = unsendable(value);
  if (what === undefined) return undefined;
  return `${what}, which cannot be sent${advice === undefined ? "" : `; return ${advice}`}`;
}

/** What a value without a JSON form is, and what to return instead. */
function unsendable(value: unknown): readonly [what?: string, advice?: string] {
  if (value === undefined) return ["undefined"];
  if (typeof value === "function" || typeof value === "symbol") return [`a ${typeof value}`];
  if (typeof value === "bigint") return ["a BigInt", "a number or a string"];
  if (typeof value === "number" && !Number.isFinite(value)) return [String(value), "null or a string"];
  if (value instanceof Map) return ["a Map", "an object or an array"];
  if (value instanceof Set) return ["a Set", "an array"];
  const isBytes = ArrayBuffer.isView(value) || value instanceof ArrayBuffer;
  return isBytes ? ["bytes", "an image, audio or resource block"] : [];
}

// Errors that a handler throws. A tool's error becomes a result for the model; resources and prompts have no such
// result, so theirs become protocol errors. Stacks are never sent.

/** The result for a value that a tool threw. Rethrows a protocol error, and any error of a cancelled call. */
export function thrownResult(thrown: unknown, context: Context): ToolResultFields {
  return errorResult(describeThrown(thrown, context));
}

/** For handlers of resources, prompts and completions, which have no error results: errors become McpErrors. */
export async function runHandler<Value>(context: Context, run: () => Value | Promise<Value>): Promise<Value> {
  try {
    return await run();
  } catch (thrown) {
    throw McpError.of("internal_error", describeThrown(thrown, context), {}, { cause: thrown });
  }
}

function describeThrown(thrown: unknown, context: Context): string {
  const error = asError(thrown);
  if (error instanceof McpError || context.signal.aborted) throw thrown;
  return describeError(error);
}

/** The error's message, or its name if it has none. */
function describeError(error: Error): string {
  return errorMessage(error) || error.name || "Error";
}
