// The registry: names, and when a person who types code wants another line.

import { expect, it } from "vitest";
import { findLanguage, LANGUAGES, LANGUAGE_NAMES, suggestLanguage } from "./languages.ts";

it("the registry has each name and alias once", () => {
  const all = LANGUAGES.flatMap(({ name, alternateName = [], aliases }) => [name, alternateName, aliases].flat());
  expect(new Set(all).size).toBe(all.length);
  expect(all.every((name) => name === name.toLowerCase())).toBe(true);
  expect(LANGUAGE_NAMES).toEqual(expect.arrayContaining(["js", "javascript", "lisp"]));
});

it("the registry creates the language that an entry describes", async () => {
  for (const { name, title, create } of LANGUAGES) {
    const language = await create({});
    expect(language.runtime.language).toBe(name);
    // A language with several engines also names the one that runs.
    expect(language.title.replace(/ \(.*/, "")).toBe(title);
    await language.runtime.close?.();
  }
});

it("the registry finds languages by alias, and suggests one for a misspelling", () => {
  expect(findLanguage("TypeScript")?.name).toBe("js");
  expect(findLanguage("cobol")).toBeUndefined();
  expect(suggestLanguage("lsip")).toBe("did you mean lisp?");
  expect(suggestLanguage("cobol")).toBeUndefined();
});

const FINISHED: readonly (readonly [language: string, code: string])[] = [
  ["js", "1 + 1"],
  ["js", "x++"],
  ["js", "let s = '(' // ["],
  ["js", "`a ${b ? `{` : '}'} c`"],
  ["js", "/[(]/.test('x') && a / b"],
  ["js", "(a) / 2 + '(/'"],
  ["js", '"not closed'],
  ["js", ")"],
  ["lisp", "(+ 1 1)"],
  ["lisp", '(list #\\( "a)\\"" \'|b(|) ; ('],
  ["lisp", '#| ( #| nested |# " |# 1'],
  ["lisp", "#\\Space"],
  ["lisp", ")"],
];

const UNFINISHED: readonly (readonly [language: string, code: string])[] = [
  ["js", "function f() {"],
  ["js", "foo(1,"],
  ["js", "const a ="],
  ["js", "a => "],
  ["js", "`line"],
  ["js", "`${a"],
  ["js", "/* comment"],
  ["js", "interface A {"],
  ["lisp", "(defun f (x)"],
  ["lisp", '"text \\"'],
  ["lisp", "#| a #| b |#"],
  ["lisp", "|symbol"],
  ["lisp", "'"],
];

it.each(FINISHED)("needsMore is false for %s %j", (language, code) => {
  expect(findLanguage(language)?.needsMore(code)).toBe(false);
});

it.each(["1 / 2 + ", "a      /* b */ / ", "x = 'a' + ", "f(/[/]/)\n, "])(
  "needsMore takes time in proportion to %j",
  (part) => {
    expect(findLanguage("js")?.needsMore(part.repeat(50_000))).toBe(true);
    expect(findLanguage("js")?.needsMore(`${part.repeat(50_000)}1`)).toBe(false);
  },
);

it.each(UNFINISHED)("needsMore is true for %s %j", (language, code) => {
  expect(findLanguage(language)?.needsMore(code)).toBe(true);
});
