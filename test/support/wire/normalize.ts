// Replaces what differs from run to run (ids, times, ports, random strings, paths) in a message or head by a name in
// angle brackets, so that recordings of two commits can be compared.

import { realpathSync } from "node:fs";
import { tmpdir } from "node:os";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../../..", import.meta.url)).replace(/\/$/, "");
const TEMPORARY = [...new Set([tmpdir(), realpathSync(tmpdir()), "/tmp"])].map(escape).join("|");

/** Longer texts are cut here: what differs after so many characters is data of a test. */
const MAX_CHARS = 2000;

type Mask = readonly [pattern: RegExp, replacement: string];

/** In JSON in a string, each quote has a backslash before it. */
const QUOTE = String.raw`(\\*")`;

const MASKS: readonly Mask[] = [
  [new RegExp(`(?:file://)?${escape(ROOT)}`, "g"), "<root>"],
  [new RegExp(String.raw`(?:${TEMPORARY})/[^\s"'\\:,;)\]]*`, "g"), "<tmp>"],
  // JSON-RPC ids, and what repeats them. An id of null says something.
  [
    new RegExp(`${QUOTE}((?:[\\w.]+/)?(?:id|requestId|progressToken|subscriptionId))\\1:-?\\d[\\d.eE+-]*`, "g"),
    "$1$2$1:<id>",
  ],
  [new RegExp(`${QUOTE}(requestState|taskId|cursor|nextCursor)\\1:${QUOTE}[^"\\\\]*\\3`, "g"), "$1$2$1:<$2>"],
  [/^id: ?.*$/gm, "id: <event>"],
  [/^(last-event-id|mcp-session-id|date|etag|traceparent|x-request-id): .*$/gim, "$1: <$1>"],
  [/^(content-length): \d+$/gim, "$1: <length>"],
  [/\b(sessionId|session_id)=[^&\s"\\]+/g, "$1=<session>"],
  // Times.
  [/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)/g, "<time>"],
  [/[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT/g, "<time>"],
  // Random strings: UUIDs, JSON web tokens, and long ones of digits and letters.
  [/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/gi, "<uuid>"],
  [/\beyJ[\w-]+\.[\w-]+\.[\w-]*/g, "<jwt>"],
  [/\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{12,}\b/g, "<hex>"],
  [/(?<![\w-])(?=[\w-]*\d)(?=[\w-]*[A-Z])(?=[\w-]*[a-z])[\w-]{16,}(?![\w-])/g, "<random>"],
  // Addresses and processes.
  [/(localhost|127\.\d+\.\d+\.\d+|\[::1\]|0\.0\.0\.0):\d+/g, "$1:<port>"],
  [new RegExp(`${QUOTE}(pid|port|ms|durationMs|elapsedMs)\\1:\\d[\\d.]*`, "g"), "$1$2$1:<$2>"],
  [/\b(pid|process) \d+/g, "$1 <pid>"],
  // How far a long call has come when it is told, and what only fills a message.
  [new RegExp(`${QUOTE}progress\\1:\\d{2,}`, "g"), "$1progress$1:<progress>"],
  [/([\w ])\1{59,}/g, "<$1...>"],
];

function escape(text: string): string {
  return text.replaceAll(/[.*+?^${}()|[\]\\/]/g, String.raw`\$&`);
}

/** The text in one line, without what differs from run to run. */
export function normalize(text: string): string {
  const cut = text.length > MAX_CHARS ? `${text.slice(0, MAX_CHARS)}… (${text.length} characters)` : text;
  let masked = cut;
  for (const [pattern, replacement] of MASKS) masked = masked.replace(pattern, replacement);
  // A copy, because a part of a string keeps the whole.
  return Buffer.from(masked.replaceAll(/\r?\n/g, " | ")).toString();
}
