// A short sum of a text, for names that had to be cut and for cursors that came back: it tells texts apart that were
// not made to be mistaken for each other, and keeps nobody out.

/** FNV-1a, as seven letters and digits. */
export function checkSum(text: string): string {
  let sum = 0x811c9dc5;
  for (let index = 0; index < text.length; index += 1) sum = Math.imul(sum ^ text.charCodeAt(index), 0x01000193);
  return (sum >>> 0).toString(36).padStart(7, "0");
}
