// Images and sounds that code has printed as base64, which a model reads as thousands of tokens and cannot see: they are
// taken out of the text, to be shown as content. What they are is known by their first bytes.

import type { ContentBlock } from "../protocol/model/index.ts";

/** As long as the smallest images. */
const BASE64 = /[A-Za-z0-9+/]{88,}={0,2}/g;

/** By the beginning of their base64. */
const KINDS: readonly (readonly [start: RegExp, type: "image" | "audio", mimeType: string])[] = [
  [/^iVBORw0KGgo/, "image", "image/png"],
  [/^\/9j\//, "image", "image/jpeg"],
  [/^R0lGOD/, "image", "image/gif"],
  [/^UklGR.{6}XRUJQ/, "image", "image/webp"],
  [/^UklGR.{6}XQVZF/, "audio", "audio/wav"],
  [/^SUQz/, "audio", "audio/mpeg"],
  [/^T2dnUw/, "audio", "audio/ogg"],
];

/** The text with a note in place of each. `show` returns whether the block will be shown. */
export function takeMedia(text: string, show: (block: ContentBlock) => boolean): string {
  return text.replaceAll(BASE64, (data) => {
    const [, type, mimeType = ""] = KINDS.find(([start]) => start.test(data)) ?? [];
    if (type === undefined) return data;
    const size = `${mimeType}, ${(Math.floor((data.length * 3) / 4) / 1000).toFixed(1)} kB`;
    // One whose end was cut could not be decoded.
    if (data.length % 4 !== 0) return `[${size}; not whole, so not shown]`;
    return show({ type, data, mimeType }) ? `[${size}; shown below]` : `[${size}; not shown]`;
  });
}
