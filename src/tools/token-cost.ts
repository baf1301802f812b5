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

export async function loadTokenizer(): Promise<Tokenizer> {
  try {
    // The tokenizer of current models of OpenAI; others differ by a few percent.
    const { countTokens } = await import("gpt-tokenizer");
    return { count: (text) => countTokens(text), isEstimate: false };
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
