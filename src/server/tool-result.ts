// What a tool returns becomes the result of a call. A string is one text block; an array of content blocks is
// content; an object with a `content` array is the result itself; undefined is empty content; anything else is
// structured content with its JSON as text. A tool that declares its output always gives structured content.
// A tool that fails is a result too: `isError`, and a text that a model can read.

import type { Meta, Result } from "../core/handler.ts";
import type { ContentBlock } from "../protocol/model/index.ts";
import type { Check } from "./issues.ts";

interface Fields {
  readonly content: readonly ContentBlock[];
  readonly structuredContent?: unknown;
  readonly isError: boolean;
  readonly _meta?: Meta;
  readonly [key: string]: unknown;
}

export function failure(text: string): Fields {
  return { content: [{ type: "text", text }], isError: true };
}

export function toolResult(value: unknown): Fields {
  if (typeof value === "string") return { content: [{ type: "text", text: value }], isError: false };
  if (value === undefined) return { content: [], isError: false };
  if (isContent(value)) return { content: named(value), isError: false };
  return isResult(value) ? asResult(value) : structured(value);
}

/** For a tool that declares its output. */
export async function declaredResult(tool: string, value: unknown, check: Check): Promise<Fields> {
  const whole = isResult(value) && ("structuredContent" in value || value["isError"] === true) ? value : undefined;
  if (whole?.["isError"] === true) return asResult(whole);
  const checked = await check(whole === undefined ? value : whole["structuredContent"]);
  if (checked.issues !== undefined) {
    const lines = checked.issues.map((issue) => `\n- ${issue}`).join("");
    return failure(`The output of the tool ${tool} does not fit its schema:${lines}`);
  }
  return whole === undefined ? structured(checked.value) : { ...asResult(whole), structuredContent: checked.value };
}

function structured(value: unknown): Fields {
  // JSON has no word for a function or a symbol; what has none is null.
  const text = (JSON.stringify(value) as string | undefined) ?? "null";
  return { content: [{ type: "text", text }], structuredContent: text === "null" ? null : value, isError: false };
}

type WholeResult = Result & { readonly content: readonly ContentBlock[] };

function asResult(value: WholeResult): Fields {
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
