// The content of a result, shown to a person or passed on to a program: text goes to stdout as it is, a link as its
// address, and what is no text into a file where the person has asked for one. What cannot be shown is described in a
// line on stderr, so that nothing is lost in silence.

import { isDeepStrictEqual } from "node:util";
import { isObject } from "../protocol/check.ts";
import type { CallToolResult, ContentBlock, ResourceContents } from "../protocol/model/index.ts";
import { bytesText } from "./lists.ts";
import { printText } from "./print.ts";
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
  if (structuredContent === undefined) return;
  const isSaid = blocks.some(
    (block) => block.type === "text" && isDeepStrictEqual(parsed(block.text), structuredContent),
  );
  if (!isSaid) printText(JSON.stringify(structuredContent, undefined, 2));
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
    case "audio":
      await showBinary(block.data, { hint: block.type, label: block.mimeType, mimeType: block.mimeType }, showing);
      return;
    case "resource":
      await showContents(block.resource, showing);
      return;
    case "resource_link": {
      const { uri, name, mimeType, size } = block;
      const facts = [name, mimeType, size === undefined ? undefined : bytesText(size)].filter(Boolean).join(", ");
      printText(facts === "" ? uri : `${uri} (${facts})`);
      return;
    }
    default:
      showing.note(`Content of the type ${String((block as { type?: unknown }).type)} is not shown; --json has it`);
  }
}

/** What was read, or stands embedded in a result. */
export async function showContents(contents: ResourceContents, showing: Showing): Promise<void> {
  const { uri, mimeType } = contents;
  if ("text" in contents) {
    showing.note(`${uri}${mimeType === undefined ? "" : ` (${mimeType})`}:`);
    printText(contents.text);
  } else {
    const label = mimeType === undefined ? uri : `${uri}, ${mimeType}`;
    await showBinary(contents.blob, { hint: uri, label, mimeType }, showing);
  }
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
export function decoded(data: unknown): Buffer | undefined {
  if (typeof data !== "string" || /[^A-Za-z0-9+/_=\s-]/.test(data)) return undefined;
  return Buffer.from(data, "base64");
}

function parsed(text: unknown): unknown {
  try {
    return JSON.parse(String(text)) as unknown;
  } catch {
    return undefined;
  }
}
