// Prints the content of a result. Text and the URIs of resource links go to stdout; images, audio and other bytes go to
// a file if the user asked for one. Content that cannot be printed is described in a note on stderr.
// If a result has text, its structured content repeats the text for programs, so only --json prints it.

import { isObject } from "../../core/values.ts";
import type { CallToolResult, ContentBlock, ResourceContents } from "../../protocol/model/index.ts";
import { isTerminal, printText, printValue } from "../terminal/output.ts";
import { formatBytes } from "./lists.ts";
import type { Saver } from "./saver.ts";

export interface ContentOutput {
  readonly saver: Saver;
  readonly note: (text: string) => void;
}

export async function printResult(result: CallToolResult, output: ContentOutput): Promise<void> {
  const { structuredContent } = result;
  const blocks = contentBlocks(result.content);
  await printContent(blocks, output);
  // Text and JSON together would be of no use in a pipe.
  if (structuredContent !== undefined && !blocks.some(hasText)) printValue(structuredContent);
}

function hasText(block: ContentBlock): boolean {
  return block.type === "text" && typeof block.text === "string" && block.text.trim() !== "";
}

/** The server may send anything as content. */
function contentBlocks(content: unknown): readonly ContentBlock[] {
  return Array.isArray(content) ? content.filter((block: unknown): block is ContentBlock => isObject(block)) : [];
}

export async function printContent(blocks: readonly ContentBlock[], output: ContentOutput): Promise<void> {
  for (const block of blocks) await printBlock(block, output);
}

async function printBlock(block: ContentBlock, output: ContentOutput): Promise<void> {
  switch (block.type) {
    case "text":
      if (typeof block.text === "string" && block.text !== "") printText(block.text);
      return;
    case "image":
    case "audio": {
      const mimeType = stringIn(block, "mimeType");
      await saveBinary(block.data, { hint: block.type, label: mimeType ?? block.type, mimeType }, output);
      return;
    }
    case "resource":
      if (isObject(block.resource)) await printResource(block.resource, output);
      else noteUnprintable(block, output);
      return;
    case "resource_link": {
      const uri = stringIn(block, "uri");
      if (uri === undefined) return noteUnprintable(block, output);
      const size = typeof block.size === "number" ? formatBytes(block.size) : undefined;
      const facts = [stringIn(block, "name"), stringIn(block, "mimeType"), size].filter(Boolean).join(", ");
      // A pipe gets the URI alone.
      printText(facts === "" || !isTerminal(process.stdout) ? uri : `${uri} (${facts})`);
      return;
    }
    default:
      noteUnprintable(block, output);
  }
}

function noteUnprintable({ type }: { readonly type?: unknown }, { note }: ContentOutput): void {
  note(`Content of type ${String(type)} is not shown; use --json to see it`);
}

/** Undefined for anything but a non-empty string: the server may send any value. */
function stringIn(block: object, key: string): string | undefined {
  const value = (block as Record<string, unknown>)[key];
  return typeof value === "string" && value !== "" ? value : undefined;
}

/** Prints a resource that was read, or is embedded in a result. */
export async function printResource(contents: ResourceContents, output: ContentOutput): Promise<void> {
  const uri = stringIn(contents, "uri") ?? "a resource without a URI";
  const mimeType = stringIn(contents, "mimeType");
  if ("text" in contents && typeof contents.text === "string") {
    output.note(`${uri}${mimeType === undefined ? "" : ` (${mimeType})`}:`);
    printText(contents.text);
  } else {
    const label = mimeType === undefined ? uri : `${uri}, ${mimeType}`;
    await saveBinary("blob" in contents ? contents.blob : undefined, { hint: uri, label, mimeType }, output);
  }
}

/** The bytes of one part of a resource; undefined if it has neither text nor base64. */
export function decodePart(part: ResourceContents): Buffer | undefined {
  if ("text" in part && typeof part.text === "string") return Buffer.from(part.text);
  return decodeBase64("blob" in part ? part.blob : undefined);
}

/** The file is named after `hint`; `label` is for notes. */
async function saveBinary(
  data: unknown,
  { hint, label, mimeType }: { hint: string; label: string; mimeType: string | undefined },
  { saver, note }: ContentOutput,
): Promise<void> {
  const bytes = decodeBase64(data);
  if (bytes === undefined) {
    note(`${label}: skipped, its data is not base64`);
    return;
  }
  const facts = `${label}, ${formatBytes(bytes.length)}`;
  if (saver.isEnabled) note(`${facts}: written to ${await saver.save(bytes, hint, mimeType)}`);
  else note(`${facts}: not shown; use --save DIR or --output FILE to write it to a file`);
}

/** Undefined if it is not base64, so that no garbage is written to a file. */
function decodeBase64(data: unknown): Buffer | undefined {
  if (typeof data !== "string" || /[^A-Za-z0-9+/_=\s-]/.test(data)) return undefined;
  return Buffer.from(data, "base64");
}
