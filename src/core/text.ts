// Texts for errors. Whatever was thrown, as text: that never throws itself, since errors come from users' code, and some
// of them bite. And the end of what a program has said, which an error quotes.

export function errorMessage(error: unknown): string {
  try {
    const text: unknown = error instanceof Error ? error.message : error;
    return typeof text === "symbol" ? text.toString() : String(text);
  } catch {
    return "something that has no text";
  }
}

/** The last of it, trimmed, and about so long: whole lines, unless the last line alone is longer. */
export function lastLines(text: string, length: number): string {
  const trimmed = text.trim();
  if (trimmed.length <= length) return trimmed;
  const last = trimmed.slice(-length);
  const start = trimmed.at(-length - 1) === "\n" ? 0 : last.indexOf("\n") + 1;
  return last.slice(start).trim();
}
