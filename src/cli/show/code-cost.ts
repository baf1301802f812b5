// What `catenary tools TARGET --code` shows: the tools that a model would see in code mode, and what their definitions
// cost in tokens beside those of the full list.

import type { CodeSettings } from "../../config/live.ts";
import type { Tool } from "../../protocol/model/index.ts";
import { loadTokenizer, toolForModel } from "../../tools/token-cost.ts";
import { listStyle, toolList } from "./lists.ts";

/** The cost of a list of tools for a model. */
interface Cost {
  readonly tools: number;
  readonly tokens: number;
  readonly bytes: number;
}

interface CodeReport {
  /** What a model would see. */
  readonly tools: readonly Tool[];
  readonly code: Cost;
  readonly full: Cost;
  /** How many percent fewer tokens. */
  readonly savedPercent: number;
  /** Whether no tokenizer is installed, so that tokens are estimated by characters. */
  readonly isEstimate: boolean;
}

/** `full` is the list without code mode. */
export async function reportCodeTools(full: readonly Tool[], settings: CodeSettings): Promise<CodeReport> {
  const { codeModeTools } = await import("../../live/code-mode.ts");
  const { codeLanguage } = await import("../../config/live.ts");
  const language = await codeLanguage(settings).create({});
  // A listed tool may have any further fields.
  const tools = (await codeModeTools(language, full as never, settings)) as unknown as readonly Tool[];
  const { count, isEstimate } = await loadTokenizer();
  const code = costOf(tools, count);
  const whole = costOf(full, count);
  const savedPercent = whole.tokens === 0 ? 0 : Math.floor((1 - code.tokens / whole.tokens) * 1_000) / 10;
  return { tools, code, full: whole, savedPercent, isEstimate };
}

export function formatCodeTools(report: CodeReport): string {
  const { tools, code, full, savedPercent, isEstimate } = report;
  const roughly = isEstimate ? "about " : "";
  const line = (what: string, { tools: count, tokens, bytes }: Cost): string =>
    `${what} ${count} ${count === 1 ? "tool" : "tools"}, ${roughly}${tokens} tokens, ${bytes} bytes`;
  const saved = savedPercent > 0 ? ` (${roughly}${savedPercent} % fewer tokens)` : "";
  const hint = isEstimate
    ? "Install gpt-tokenizer (npm install --global gpt-tokenizer) to count tokens exactly.\n"
    : "";
  return `${toolList(tools, listStyle())}\n${line("Code mode:", code)}${saved}\n${line("Full list:", full)}\n${hint}`;
}

function costOf(tools: readonly Tool[], count: (text: string) => number): Cost {
  const text = JSON.stringify(tools.map(toolForModel));
  return { tools: tools.length, tokens: count(text), bytes: Buffer.byteLength(text) };
}
