// Texts in HTTP headers: plain where a header can carry them, in base64 between two marks where it cannot
// (specification, basic/transports/streamable-http, value encoding). Used for names and for mirrored arguments,
// by both sides. Which header carries what, and whether it agrees with the body, is for others.

const PREFIX = "=?base64?";
const SUFFIX = "?=";

/** What a header may carry: visible ASCII, space and tab. */
const CARRIED = /^[\t\x20-\x7e]*$/;

// A byte order mark is a part of the text, as in the body.
const UTF8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** The value of a header that stands for this text. */
export function encodeHeaderValue(text: string): string {
  // Readers drop the blanks around a value, so a text that has any there is not carried as it is.
  if (CARRIED.test(text) && text.trim() === text && !isMarked(text)) return text;
  return `${PREFIX}${Buffer.from(text).toString("base64")}${SUFFIX}`;
}

/** The text that the value of a header stands for; undefined where it stands for none. */
export function decodeHeaderValue(value: string): string | undefined {
  if (!CARRIED.test(value)) return undefined;
  if (!isMarked(value)) return value;
  // Where the two marks share a character, what is left between them is empty without being so written.
  if (value.length < PREFIX.length + SUFFIX.length) return undefined;
  const inner = value.slice(PREFIX.length, -SUFFIX.length);
  const bytes = Buffer.from(inner, "base64");
  // One text, one form: Buffer passes over what is no base64, padding that is missing and bits that are left over.
  if (bytes.toString("base64") !== inner) return undefined;
  try {
    return UTF8.decode(bytes);
  } catch {
    return undefined;
  }
}

function isMarked(value: string): boolean {
  return value.startsWith(PREFIX) && value.endsWith(SUFFIX);
}
