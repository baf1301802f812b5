// What a definition of a tool, prompt or resource costs a model, in tokens. The tokenizer is an optional package, loaded
// only here; without it, tokens are estimated.

/** Counts the tokens of texts. */
export interface Tokenizer {
  readonly count: (text: string) => number;
  /** Whether no tokenizer is installed, so that tokens are estimated by characters. */
  readonly isEstimate: boolean;
}

/** Characters of a token of JSON in English, about. */
const CHARS_PER_TOKEN = 4;

export const ESTIMATE: Tokenizer = { count: (text) => Math.ceil(text.length / CHARS_PER_TOKEN), isEstimate: true };

/**
 * The time for a long word, or any run of equal characters, grows with the square of its length, so a text is counted in
 * pieces. They end where a word ends, if there is one, since no token goes on there.
 */
const PIECE = /[^]{1,200}(?<=[\p{L}\p{N}])(?=[^\p{L}\p{N}'])|[^]{1,200}/gu;

/** Definitions come from servers: a special token in one is text. */
const AS_TEXT = { disallowedSpecial: new Set<string>() };

export async function loadTokenizer(): Promise<Tokenizer> {
  try {
    // The tokenizer of current models of OpenAI; others differ by a few percent.
    const { countTokens } = await import("gpt-tokenizer");
    const count = (text: string): number =>
      text.match(PIECE)?.reduce((sum, piece) => sum + countTokens(piece, AS_TEXT), 0) ?? 0;
    return { count, isEstimate: false };
  } catch {
    return ESTIMATE;
  }
}

interface ModelTool {
  readonly name?: unknown;
  readonly description?: unknown;
  readonly inputSchema?: unknown;
}

/** What model APIs take of the definition of a tool: its name, description and arguments. */
export function toolForModel({ name, description, inputSchema }: ModelTool): object {
  return { name, description, inputSchema };
}
