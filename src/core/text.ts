// Strings for error messages.

/** The message of a thrown value. Never throws, even if the value's getters do. */
export function errorMessage(error: unknown): string {
  try {
    const text: unknown = error instanceof Error ? error.message : error;
    return typeof text === "symbol" ? text.toString() : String(text);
  } catch {
    return "a value that cannot be converted to a string";
  }
}

/** The end of a program's output, trimmed to about `length` characters: whole lines, unless the last is longer. */
export function lastLines(text: string, length: number): string {
  const trimmed = text.trim();
  if (trimmed.length <= length) return trimmed;
  const last = trimmed.slice(-length);
  const start = trimmed.at(-length - 1) === "\n" ? 0 : last.indexOf("\n") + 1;
  return last.slice(start).trim();
}
