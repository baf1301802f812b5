// What people see of a definition: everything that a model would read, and what has changed.

import { expect, it } from "vitest";
import { pinned } from "../../chain/pins.ts";
import { visible } from "../../core/visible.ts";
import { difference } from "./pins.ts";

it.each([
  ["plain text, ünïcödé, 日本語", "plain text, ünïcödé, 日本語"],
  ["a\u200bb\u202ec\u2066d", String.raw`a\u{200b}b\u{202e}c\u{2066}d`],
  ["tag \u{e0048}\u{e0049}", String.raw`tag \u{e0048}\u{e0049}`],
  ["\u001b[31mred\u0007", String.raw`\u{1b}[31mred\u{7}`],
  ["a\u00a0b\u3164c\u2800d\ufe01e\u{e0101}", String.raw`a\u{a0}b\u{3164}c\u{2800}d\u{fe01}e\u{e0101}`],
  ["\ud800 \ue000\tx", String.raw`\u{d800} \u{e000}    x`],
])("shows %j with escapes for what cannot be seen", (text, expected) => {
  expect(visible(text)).toBe(expected);
});

it("shows the lines of each field that differ, with one line around them", () => {
  const from = pinned({ name: "a", description: "one\ntwo\nthree\nfour", inputSchema: { type: "object" } });
  const to = pinned({ name: "a", description: "one\ntwo\n3\nthree\nfour", inputSchema: { type: "object", x: 1 } });
  expect(difference(from, to).split("\n")).toEqual([
    "    description:",
    "        two",
    "      + 3",
    "        three",
    "    inputSchema:",
    "        {",
    `      -   "type": "object"`,
    `      +   "type": "object",`,
    `      +   "x": 1`,
    "        }",
    "",
  ]);
});

it("shows a new definition whole, and says if one is too long", () => {
  const a = pinned({ name: "a", description: "does" });
  expect(difference(undefined, a)).toBe("    name:\n      + a\n    description:\n      + does\n");
  expect(difference(a, a)).toBe("    name:\n        a\n    description:\n        does\n");
  const long = pinned({ name: "a", description: "x".repeat(100_000) });
  expect(difference(a, long)).toBe("    (the definition is too long to be shown)\n");
});
