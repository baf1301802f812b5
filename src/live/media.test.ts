// Images that are printed as base64, where the text is cut, and in texts of many megabytes.

import { expect, it } from "vitest";
import type { ContentBlock } from "../protocol/model/index.ts";
import { takeMedia } from "./media.ts";

const png = (length: number): string => "iVBORw0KGgo".padEnd(length, "A");

/** The text that is left, and the length of the data of each block that is shown. */
function take(text: string, isTruncated = false): [text: string, ...shown: number[]] {
  const shown: ContentBlock[] = [];
  const left = takeMedia(text, isTruncated, (block) => shown.push(block) > 0);
  return [left, ...shown.map((block) => (block as { readonly data: string }).data.length)];
}

it("knows images and sounds by how they begin", () => {
  const kinds = Object.entries({
    "image/png": "iVBORw0KGgo",
    "image/jpeg": "/9j/",
    "image/gif": "R0lGOD",
    "image/webp": "UklGRaaaaaaXRUJQ",
    "audio/wav": "UklGRaaaaaaXQVZF",
    "audio/mpeg": "SUQz",
    "audio/ogg": "T2dnUw",
  });
  for (const [mimeType, start] of kinds) {
    const type = mimeType.split("/")[0];
    const data = `${start.padEnd(98, "A")}==`;
    const shown: ContentBlock[] = [];
    const text = takeMedia(`a '${data}' b`, false, (block) => shown.push(block) > 0);
    expect([text, shown]).toEqual([`a '[${mimeType}, 0.1 kB; shown below]' b`, [{ type, mimeType, data }]]);
  }
  const others = `${png(84)} A${png(100)} ${"A".repeat(100)}`;
  expect(take(others)).toEqual([others]);
});

it("takes each image of a text", () => {
  const note = "[image/png, 0.1 kB; shown below]";
  expect(take(`${png(100)}\n${png(96)}== ${png(100)}.`)).toEqual([
    `${note}\n[image/png, 0.1 kB; not whole, so not shown] ${note}.`,
    100,
    100,
  ]);
});

it("does not show an image whose end was cut off", () => {
  const cut = "[image/png, 0.1 kB; not whole, so not shown]";
  const whole = "[image/png, 0.1 kB; shown below]";
  // Of a text that was cut, only what its end belongs to.
  expect(take(`${png(100)} ${png(100)}`, true)).toEqual([`${whole} ${cut}`, 100]);
  expect(take(`${png(100)}\n`, true)).toEqual([`${whole}\n`, 100]);
  // Nothing follows padding.
  expect(take(`${png(98)}==`, true)).toEqual([whole, 100]);
  expect(take(`${png(100)}=`, true)).toEqual([cut]);
  // As guests and Node write it.
  for (const mark of ["'... 20 more characters", "... [cut at 100 characters]", '"...', "..."]) {
    expect(take(`${png(100)}${mark}`)).toEqual([`${cut}${mark}`]);
  }
});

it("finds the end of an image of 9 MB, and looks through other base64 of that length", () => {
  const [text, length] = take(`a ${png(9_000_000)} b`);
  expect([text, length]).toEqual(["a [image/png, 6750.0 kB; shown below] b", 9_000_000]);
  const other = "A".repeat(9_000_000);
  expect(take(other)).toEqual([other]);
});
