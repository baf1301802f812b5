// Images and sounds that code has printed as base64, which a model reads as thousands of tokens and cannot see: they are
// taken out of the text, to be shown as content. What they are is known by their first bytes.

import type { ContentBlock } from "../protocol/model/index.ts";

/** By the beginning of their base64. */
const KINDS: readonly (readonly [start: string, type: "image" | "audio", mimeType: string])[] = [
  ["iVBORw0KGgo", "image", "image/png"],
  ["/9j/", "image", "image/jpeg"],
  ["R0lGOD", "image", "image/gif"],
  ["UklGR.{6}XRUJQ", "image", "image/webp"],
  ["UklGR.{6}XQVZF", "audio", "audio/wav"],
  ["SUQz", "audio", "audio/mpeg"],
  ["T2dnUw", "audio", "audio/ogg"],
];
const STARTS = new RegExp(`(?<![A-Za-z0-9+/])(?:${KINDS.map(([start]) => `(${start})`).join("|")})`, "g");
/** Finds the end of base64. A pattern that matches all of it overflows the stack of the matcher at 6 MB. */
const NOT_BASE64 = /[^A-Za-z0-9+/]/g;
/** As long as the smallest images. */
const MIN_LENGTH = 88;
/** What guests write where they have cut a value, and Node where it has cut a string that is printed. */
const CUT_MARK = /^['"`]?\.\.\./;

/**
 * Returns the text with a note in place of each. `isTruncated`: the end of the text is missing. `show` returns whether
 * the block will be shown.
 */
export function takeMedia(text: string, isTruncated: boolean, show: (block: ContentBlock) => boolean): string {
  let taken = "";
  let end = 0;
  for (const match of text.matchAll(STARTS)) {
    const start = match.index;
    const stop = endOfBase64(text, start);
    if (stop - start < MIN_LENGTH) continue;
    const data = text.slice(start, stop);
    const [, type, mimeType] = KINDS[match.indexOf(match[0], 1) - 1] as (typeof KINDS)[number];
    const isCut = isTruncated && stop === text.length ? !data.endsWith("=") : CUT_MARK.test(text.slice(stop, stop + 4));
    taken += text.slice(end, start);
    end = stop;
    const size = `${mimeType}, ${(Math.floor((data.length * 3) / 4) / 1000).toFixed(1)} kB`;
    if (isCut || data.length % 4 !== 0) taken += `[${size}; not whole, so not shown]`;
    else taken += show({ type, data, mimeType }) ? `[${size}; shown below]` : `[${size}; not shown]`;
  }
  return taken + text.slice(end);
}

/** With its padding of up to two `=`. */
function endOfBase64(text: string, start: number): number {
  NOT_BASE64.lastIndex = start;
  const end = NOT_BASE64.exec(text)?.index ?? text.length;
  const padding = text.startsWith("==", end) ? 2 : text.startsWith("=", end) ? 1 : 0;
  return end + padding;
}
