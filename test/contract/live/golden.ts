// Transcripts of tool calls, as files: lines `>>> tool arguments`, each followed by the text of the result, with
// `[isError]` before an error. Replaying one calls the tools again and returns the new transcript.

import type { Client } from "../../../src/client/index.ts";

const MARK = ">>> ";

interface TranscriptCall {
  readonly tool: string;
  /** The arguments as JSON. */
  readonly json: string;
}

/** The lines before the first call, and the calls. */
function parseTranscript(text: string): { readonly head: string; readonly calls: readonly TranscriptCall[] } {
  const [head = "", ...rest] = text.split(new RegExp(`^${MARK}`, "m"));
  const calls = rest.map((part) => {
    const [, tool = "", json = "{}"] = /^(\S+) ?(.*)/.exec(part) ?? [];
    return { tool, json };
  });
  return { head, calls };
}

export interface ReplayOptions {
  readonly session: string;
  /** By name, whether the tool takes a session. */
  readonly tools: ReadonlyMap<string, boolean>;
  /** Replaces what differs between machines in the arguments of a call. */
  readonly restore?: (json: string) => string;
  /** Replaces what differs between machines and runs in the text of a result. */
  readonly normalize: (text: string) => string;
}

/** By name, whether each tool of the server takes a session. */
export async function toolsOf(client: Client): Promise<Map<string, boolean>> {
  const { tools } = await client.listTools();
  return new Map(
    tools.map(({ name, inputSchema }) => [name, Object.hasOwn(inputSchema.properties ?? {}, "session")] as const),
  );
}

export async function replay(client: Client, text: string, options: ReplayOptions): Promise<string> {
  const { session, tools, restore = (json: string) => json, normalize } = options;
  const { head, calls } = parseTranscript(text);
  let transcript = head;
  for (const { tool, json } of calls) {
    const args = JSON.parse(restore(json)) as Record<string, unknown>;
    const result = await client.callTool(tool, tools.get(tool) === true ? { session, ...args } : args);
    const [block] = result.content;
    const output = block?.type === "text" ? block.text : JSON.stringify(result.content);
    transcript += `${MARK}${tool} ${json}\n${result.isError === true ? "[isError]\n" : ""}${normalize(output)}\n\n`;
  }
  return transcript;
}
