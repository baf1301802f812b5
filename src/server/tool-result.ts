// What a tool returns becomes the result of a call. A string is one text block; an array of content blocks is
// content; an object with a `content` array is the result itself; undefined is empty content; anything else is
// structured content with its JSON as text. A tool that declares its output always gives structured content.
// A tool that fails is a result too: `isError`, and a text that a model can read; so is an error that it returns,
// and a value that cannot be sent.

import type { Meta, Result } from "../core/handler.ts";
import { errorMessage } from "../core/text.ts";
import { McpError, REFUSED } from "../protocol/errors.ts";
import type { ContentBlock } from "../protocol/model/index.ts";
import type { Check, Checked } from "./schema-kind.ts";
import { messageOf } from "./tool-errors.ts";

interface Fields {
  readonly content: readonly ContentBlock[];
  readonly structuredContent?: unknown;
  readonly isError: boolean;
  readonly _meta?: Meta;
  readonly [key: string]: unknown;
}

/**
 * A result that needs no more work: whoever makes one vouches that JSON can say all of it, and that it is what the tool
 * has declared. It is not looked at again, which is most of what a small result costs.
 */
export class MadeResult {
  readonly content: readonly ContentBlock[];
  readonly structuredContent: object;
  readonly isError: boolean;

  constructor(text: string, structuredContent: object, isError: boolean) {
    this.content = [{ type: "text", text }];
    this.structuredContent = structuredContent;
    this.isError = isError;
  }
}

export function failure(text: string): Fields {
  return { content: [{ type: "text", text }], isError: true };
}

/** A result that the model can read, and in it, for callers whose revision knows no such result, the error. */
export function refusal(toolName: string, issues: readonly string[]): object {
  const lines = issues.map((issue) => `\n- ${issue}`).join("");
  return {
    ...failure(`Invalid arguments for the tool ${toolName}:${lines}`),
    [REFUSED]: McpError.of("invalid_params", "Invalid params", {
      toolName,
      details: issues.map((issue) => issue.replace(": ", " ")).join("; "),
    }),
  };
}

/** `tool` is its name, for the texts of errors. */
export function toolResult(tool: string, value: unknown): Fields {
  if (typeof value === "string") return { content: [{ type: "text", text: value }], isError: false };
  if (value === undefined) return { content: [], isError: false };
  if (isContent(value)) return { content: named(value), isError: false };
  if (value instanceof Error) return failure(messageOf(value));
  return isResult(value) ? asResult(tool, value) : structured(tool, value);
}

/** For a tool that declares its output. A promise only where the check takes its time. */
export function declaredResult(tool: string, value: unknown, check: Check): Fields | Promise<Fields> {
  if (value instanceof Error) return failure(messageOf(value));
  const whole = isResult(value) && ("structuredContent" in value || value["isError"] === true) ? value : undefined;
  if (whole?.["isError"] === true) return asResult(tool, whole);
  const finish = (checked: Checked): Fields => {
    if (checked.issues !== undefined) {
      const lines = checked.issues.map((issue) => `\n- ${issue}`).join("");
      return failure(`The output of the tool ${tool} does not fit its schema:${lines}`);
    }
    if (whole === undefined) return structured(tool, checked.value);
    const isSame = checked.value === whole["structuredContent"];
    return asResult(tool, isSame ? whole : { ...whole, structuredContent: checked.value });
  };
  const pending = check(whole === undefined ? value : whole["structuredContent"]);
  return pending instanceof Promise ? pending.then(finish) : finish(pending);
}

function structured(tool: string, value: unknown): Fields {
  const { text, problem } = written(value);
  if (problem !== undefined) return failure(`Tool ${tool} returned ${problem}`);
  return { content: [{ type: "text", text }], structuredContent: text === "null" ? null : value, isError: false };
}

type WholeResult = Result & { readonly content: readonly ContentBlock[] };

function asResult(tool: string, value: WholeResult): Fields {
  const { structuredContent } = value;
  const { problem } = structuredContent === undefined ? {} : written(structuredContent);
  if (problem !== undefined) return failure(`Tool ${tool} returned, as structuredContent, ${problem}`);
  return { ...value, content: named(value.content), isError: value["isError"] === true };
}

/** A link must have a name; one that was given none has its address, as a resource has. */
function named(content: readonly ContentBlock[]): readonly ContentBlock[] {
  return content.map((block) => (isNameless(block) ? { ...block, name: block.uri } : block));
}

function isNameless(block: unknown): block is ContentBlock & { readonly uri: string } {
  const { type, uri, name } = Object(block) as Record<string, unknown>;
  return type === "resource_link" && typeof uri === "string" && typeof name !== "string";
}

function isResult(value: unknown): value is WholeResult {
  return typeof value === "object" && value !== null && Array.isArray((value as { content?: unknown }).content);
}

/** An empty array is a list that holds nothing, not content that says nothing. */
function isContent(value: unknown): value is readonly ContentBlock[] {
  return Array.isArray(value) && value.length > 0 && value.every(isBlock);
}

function isBlock(value: unknown): boolean {
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

/** The JSON of a value, or what is wrong with it, to be said after "The tool returned". */
type Written =
  | { readonly text: string; readonly problem?: undefined }
  | { readonly text?: undefined; readonly problem: string };

function written(value: unknown): Written {
  const odd = oddity(value);
  if (odd !== undefined) return { problem: odd };
  try {
    const text = JSON.stringify(value) as string | undefined;
    return text === undefined ? { problem: "a value that has no JSON and cannot be sent" } : { text };
  } catch (error) {
    return { problem: `a value that cannot be sent: ${errorMessage(error)}` };
  }
}

function oddity(value: unknown): string | undefined {
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
      return value === null ? undefined : oddObject(value);
    default:
      return undefined;
  }
}

function oddObject(value: object): string | undefined {
  if (value instanceof Map) return "a Map, which cannot be sent; return an object or an array";
  if (value instanceof Set) return "a Set, which cannot be sent; return an array";
  if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer) {
    return "bytes, which cannot be sent; return an image, audio or resource block";
  }
  return undefined;
}
