// Where content stands in messages, and the edits of it that more than one delta needs: tool results,
// prompt messages, and the messages and answers of sampling. What a revision cannot say is refused here
// in one way. Which kinds a revision lacks is said in that revision's own file.

import { McpError } from "../errors.ts";
import { at, items, object } from "./edit.ts";
import type { Edit } from "./edit.ts";

/** A content block of one kind; the other kinds stay. */
export function block(kind: string, edit: Edit): Edit {
  return object((value) => (value.type === kind ? edit(value) : value));
}

/** Sampling content is one block or a list of them. */
function oneOrMany(edit: Edit): Edit {
  const many = items(edit);
  return (value) => (Array.isArray(value) ? many(value) : edit(value));
}

export function toolContent(edit: Edit): Edit {
  return at("content", items(edit));
}

export function promptContent(edit: Edit): Edit {
  return at("messages", items(at("content", edit)));
}

export function sampledContent(edit: Edit): Edit {
  return at("content", oneOrMany(edit));
}

export function samplingContent(edit: Edit): Edit {
  return at("messages", items(sampledContent(edit)));
}

/**
 * Structured content that the revision cannot carry. A result that has nothing else to show keeps it as text,
 * because a caller of that revision would otherwise get nothing at all.
 */
export function dropStructured(cannot: (structured: unknown) => boolean): Edit {
  return object((result) => {
    if (!Object.hasOwn(result, "structuredContent") || !cannot(result.structuredContent)) return result;
    const { structuredContent, ...rest } = result;
    const empty = Array.isArray(rest.content) && rest.content.length === 0;
    return empty ? { ...rest, content: [{ type: "text", text: JSON.stringify(structuredContent) }] } : rest;
  });
}

/** An ask that the caller's revision has no words for. */
export function cannotAsk(what: string, requiredCapabilities: Readonly<Record<string, unknown>>): McpError {
  return McpError.of("missing_capability", `The caller's revision cannot express ${what}`, { requiredCapabilities });
}

/** A result or an answer that the receiver's revision has no words for. */
export function cannotAnswer(what: string): McpError {
  return McpError.of("internal_error", `The receiver's revision cannot express ${what}`);
}
