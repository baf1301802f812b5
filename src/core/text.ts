// Whatever was thrown, as text. It never throws itself: errors come from users' code, and some of them bite.

export function textOf(error: unknown): string {
  try {
    const text: unknown = error instanceof Error ? error.message : error;
    return typeof text === "symbol" ? text.toString() : String(text);
  } catch {
    return "something that has no text";
  }
}
