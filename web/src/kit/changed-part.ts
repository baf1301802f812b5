// The part in which two long texts differ, with a little of what is the same on both sides, so that a reader finds it.

export interface ChangedPart {
  /** The end of what is the same before it, and the beginning of what is the same behind it. */
  readonly head: string;
  readonly tail: string;
  readonly removed: string;
  readonly added: string;
}

/** Shorter texts are shown whole. */
const MIN_LENGTH = 40;
/** How much of what is the same is shown on each side. */
const CONTEXT = 24;

/** Undefined if the texts are short, or have too little in common. */
export function changedPart(before: string, after: string): ChangedPart | undefined {
  const shorter = Math.min(before.length, after.length);
  if (Math.max(before.length, after.length) < MIN_LENGTH || before === after) return undefined;
  let start = 0;
  while (start < shorter && before[start] === after[start]) start += 1;
  // Both halves of a character stay together.
  if (isHigh(before, start - 1)) start -= 1;
  let end = 0;
  while (end < shorter - start && before.at(-1 - end) === after.at(-1 - end)) end += 1;
  if (end > 0 && isHigh(before, before.length - end - 1)) end -= 1;
  if (start + end < shorter / 2 && start + end < MIN_LENGTH) return undefined;
  const same = before.slice(0, start);
  const rest = before.slice(before.length - end);
  return {
    head: same.length > CONTEXT ? `…${wholeFrom(same.slice(-CONTEXT))}` : same,
    tail: rest.length > CONTEXT ? `${wholeTo(rest.slice(0, CONTEXT))}…` : rest,
    removed: before.slice(start, before.length - end),
    added: after.slice(start, after.length - end),
  };
}

function isHigh(text: string, at: number): boolean {
  return at >= 0 && (text.charCodeAt(at) & 0xfc00) === 0xd800;
}

function wholeFrom(text: string): string {
  return (text.charCodeAt(0) & 0xfc00) === 0xdc00 ? text.slice(1) : text;
}

function wholeTo(text: string): string {
  return isHigh(text, text.length - 1) ? text.slice(0, -1) : text;
}
