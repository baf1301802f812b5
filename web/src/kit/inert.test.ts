// What texts of servers become before they are shown.

import { expect, it } from "vitest";
import { inertParts, inertString } from "./inert.ts";

const codePoint = String.fromCodePoint;

it("leaves out escape sequences of terminals", () => {
  const escape = codePoint(0x1b);
  expect(inertString(`${escape}[31mred${escape}[0m`)).toBe("red");
  expect(inertString(`${escape}]8;;https://elsewhere.example${codePoint(7)}link${escape}]8;;${codePoint(7)}`)).toBe(
    "link",
  );
  expect(inertString(`${escape}]0;title without an end`)).toBe("");
  expect(inertString(`a${escape}`)).toBe("a[U+001B]");
});

it("shows characters that would not be seen, or that change the direction", () => {
  for (const hidden of [0x00, 0x0d, 0x85, 0xad, 0x200b, 0x200d, 0x202e, 0x2066, 0x3164, 0xfeff, 0xe0041]) {
    const name = `U+${hidden.toString(16).toUpperCase().padStart(4, "0")}`;
    expect(inertString(`a${codePoint(hidden)}b`)).toBe(`a[${name}]b`);
  }
});

it("keeps what can be seen", () => {
  const text = "tab\tand\nlines, emoji \u{1f44d}\u{1f3fd} \u2764\ufe0f, é, עברית, 漢字, <b>no markup</b>";
  expect(inertParts(text)).toEqual([{ text, isMark: false }]);
  expect(inertString("one\r\ntwo")).toBe("one\ntwo");
});
