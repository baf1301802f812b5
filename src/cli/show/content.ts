// The content of a result, shown to a person or passed on to a program: text goes to stdout as it is, a link as its
// address, and what is no text into a file where the person has asked for one. What cannot be shown is described in a
// line on stderr. Structured content beside a text says the same to programs, and is left to --json.

import { isObject } from "../../core/objects.ts";
import type { CallToolResult, ContentBlock, ResourceContents } from "../../protocol/model/index.ts";
import { isTerminal } from "../terminal/harmless.ts";
import { bytesText } from "./lists.ts";
import { printText, printValue } from "../terminal/print.ts";
import type { Saver } from "./saving.ts";

export interface Showing {
  readonly saver: Saver;
  /** A line for the person. */
  readonly note: (text: string) => void;
}

export async function showResult(result: CallToolResult, showing: Showing): Promise<void> {
  const { structuredContent } = result;
  const blocks = blocksOf(result.content);
  await showContent(blocks, showing);
  // The text is written for readers: with the JSON behind it, neither of the two could be piped on.
  if (structuredContent !== undefined && !blocks.some(isText)) printValue(structuredContent);
}

/** Whether there is something to read in it. */
function isText(block: ContentBlock): boolean {
  return block.type === "text" && typeof block.text === "string" && block.text.trim() !== "";
}

/** What is a list of blocks; an end may write anything where it should be. */
function blocksOf(content: unknown): readonly ContentBlock[] {
  return Array.isArray(content) ? content.filter((block: unknown): block is ContentBlock => isObject(block)) : [];
}

export async function showContent(blocks: readonly ContentBlock[], showing: Showing): Promise<void> {
  for (const block of blocks) await showBlock(block, showing);
}

async function showBlock(block: ContentBlock, showing: Showing): Promise<void> {
  switch (block.type) {
    case "text":
      if (typeof block.text === "string" && block.text !== "") printText(block.text);
      return;
    case "image":
    case "audio": {
      const mimeType = textIn(block, "mimeType");
      await showBinary(block.data, { hint: block.type, label: mimeType ?? block.type, mimeType }, showing);
      return;
    }
    case "resource":
      if (isObject(block.resource)) await showContents(block.resource, showing);
      else notShown(block, showing);
      return;
    case "resource_link": {
      const uri = textIn(block, "uri");
      if (uri === undefined) return notShown(block, showing);
      const size = typeof block.size === "number" ? bytesText(block.size) : undefined;
      const facts = [textIn(block, "name"), textIn(block, "mimeType"), size].filter(Boolean).join(", ");
      // Whoever reads addresses from a pipe wants nothing else on the line.
      printText(facts === "" || !isTerminal(process.stdout) ? uri : `${uri} (${facts})`);
      return;
    }
    default:
      notShown(block, showing);
  }
}

function notShown({ type }: { readonly type?: unknown }, { note }: Showing): void {
  note(`Content of the type ${String(type)} is not shown; --json has it`);
}

/** A stranger may write anything where a text should be. */
function textIn(block: object, key: string): string | undefined {
  const value = (block as Record<string, unknown>)[key];
  return typeof value === "string" && value !== "" ? value : undefined;
}

/** What was read, or stands embedded in a result. */
export async function showContents(contents: ResourceContents, showing: Showing): Promise<void> {
  const uri = textIn(contents, "uri") ?? "a resource without an address";
  const mimeType = textIn(contents, "mimeType");
  if ("text" in contents && typeof contents.text === "string") {
    showing.note(`${uri}${mimeType === undefined ? "" : ` (${mimeType})`}:`);
    printText(contents.text);
  } else {
    const label = mimeType === undefined ? uri : `${uri}, ${mimeType}`;
    await showBinary("blob" in contents ? contents.blob : undefined, { hint: uri, label, mimeType }, showing);
  }
}

/** What one part of a resource holds; undefined where it is neither a text nor base64. */
export function bytesOf(part: ResourceContents): Buffer | undefined {
  if ("text" in part && typeof part.text === "string") return Buffer.from(part.text);
  return decoded("blob" in part ? part.blob : undefined);
}

interface Binary {
  /** What its file may be called after. */
  readonly hint: string;
  /** What the person is told that it is. */
  readonly label: string;
  readonly mimeType: string | undefined;
}

async function showBinary(data: unknown, { hint, label, mimeType }: Binary, { saver, note }: Showing): Promise<void> {
  const bytes = decoded(data);
  if (bytes === undefined) {
    note(`${label}: its data is not base64, and is left out`);
    return;
  }
  const facts = `${label}, ${bytesText(bytes.length)}`;
  if (saver.isWanted) note(`${facts}: written to ${await saver.save(bytes, hint, mimeType)}`);
  else note(`${facts}: not shown; --save DIR or --output FILE writes it to a file`);
}

/** Undefined where it is not base64: garbage is not written to a file as if it were something. */
function decoded(data: unknown): Buffer | undefined {
  if (typeof data !== "string" || /[^A-Za-z0-9+/_=\s-]/.test(data)) return undefined;
  return Buffer.from(data, "base64");
}
