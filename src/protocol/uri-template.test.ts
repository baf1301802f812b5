// URI templates by example: the matching rules of UriTemplate, and invalid templates. Properties are in uri-template.laws.test.ts.

import { expect, it } from "vitest";
import { parseTemplate } from "./uri-template.ts";
import { IS_LONG } from "../../test/support/thoroughness.ts";

const cases: readonly (readonly [string, string, Record<string, string | string[]> | undefined])[] = [
  ["pharo://class/{className}", "pharo://class/OrderedCollection", { className: "OrderedCollection" }],
  ["pharo://class/{className}", "pharo://class/", undefined],
  ["pharo://class/{className}", "pharo://class/A/b", undefined],
  ["pharo://class/{className}", "pharo://class/A?b", undefined],
  ["pharo://class/{className}", "pharo://class/A#b", undefined],
  ["pharo://class/{className}", "pharo://class/caf%C3%A9%2Fb%20c", { className: "caf\u00e9/b c" }],
  ["pharo://class/{className}", "pharo://class/%E0%A4%A", undefined],
  ["pharo://class/{className}", "PHARO://class/A", undefined],
  ["test://t/{id}/data", "test://t/123/data", { id: "123" }],
  ["plain", "plain", {}],
  ["plain", "plainer", undefined],
  ["", "", {}],
  ["{a}-{b}", "x-y-z", { a: "x", b: "y-z" }],
  ["{a}{b}", "xyz", { a: "x", b: "yz" }],
  ["{a}", "x,y", { a: "x,y" }],
  ["{a,b}", "x,y", { a: "x", b: "y" }],
  ["{a,b}", "x", undefined],
  ["{a,b}", "x,y,z", undefined],
  ["{a*}", "x,y,z", { a: ["x", "y", "z"] }],
  ["file:///{+path}", "file:///a/b/c%20d.txt", { path: "a/b/c d.txt" }],
  ["file:///{+path}", "file:///a?b#c", { path: "a?b#c" }],
  ["/x/{+path}/end", "/x/a/end/b/end", { path: "a/end/b" }],
  ["{+dir}/{name}", "a/b/c", { dir: "a/b", name: "c" }],
  ["{+path}{.ext}", "a/b.txt", { path: "a/b", ext: "txt" }],
  ["{+path}{?raw}", "a/b?raw=1", { path: "a/b", raw: "1" }],
  ["/p{#frag}", "/p#a/b?c", { frag: "a/b?c" }],
  ["/p{#frag}", "/p", {}],
  ["/p{#a,b}", "/p#1,2", { a: "1", b: "2" }],
  ["/f{.x}", "/f.json", { x: "json" }],
  ["/f{.x}", "/f.tar.gz", { x: "tar.gz" }],
  ["/f{.x*}", "/f.tar.gz", { x: ["tar", "gz"] }],
  ["/f{.x}", "/f", {}],
  ["/a{/b}/c", "/a/c", {}],
  ["/a{/b}/c", "/a/x/c", { b: "x" }],
  ["/a{/b,c}", "/a/x", { b: "x" }],
  ["/a{/b,c}", "/a/x/y", { b: "x", c: "y" }],
  ["/a{/seg*}", "/a/x/y%2Fz", { seg: ["x", "y/z"] }],
  ["/a{/seg*}", "/a", {}],
  ["/a{/seg*}", "/a//x", undefined],
  ["/a{/seg*,last}", "/a/x/y/z", { seg: ["x", "y"], last: "z" }],
  ["/p{;x,y}", "/p;x=1;y=2", { x: "1", y: "2" }],
  ["/p{;x,y}", "/p;y=2;x", { y: "2", x: "" }],
  ["/p{;x*}", "/p;x=1;x=2", { x: ["1", "2"] }],
  ["/s{?q,lang}", "/s?q=a&lang=en", { q: "a", lang: "en" }],
  ["/s{?q,lang}", "/s?lang=en&q=a%20b", { q: "a b", lang: "en" }],
  ["/s{?q,lang}", "/s?lang=en", { lang: "en" }],
  ["/s{?q,lang}", "/s?q=", { q: "" }],
  ["/s{?q,lang}", "/s?q=a/b?c", { q: "a/b?c" }],
  ["/s{?q,lang}", "/s", {}],
  ["/s{?q,lang}", "/s?", undefined],
  ["/s{?q,lang}", "/s?other=1", undefined],
  ["/s{?q,lang}", "/s?q=1&q=2", undefined],
  ["/s{?q*}", "/s?q=1&q=2", { q: ["1", "2"] }],
  ["/s{?q,qq}", "/s?qq=1&q=2", { q: "2", qq: "1" }],
  ["/s{?q}{#f}", "/s?q=1#top", { q: "1", f: "top" }],
  ["/s?fixed=1{&x}", "/s?fixed=1&x=2", { x: "2" }],
  ["/s?fixed=1{&x}", "/s?fixed=1", {}],
  ["{v:3}", "abc", { v: "abc" }],
  ["{v:3}", "ab", { v: "ab" }],
  ["{v:3}", "%C3%A9%C3%A9%C3%A9", { v: "\u00e9\u00e9\u00e9" }],
  ["{v:3}", "abcd", undefined],
  ["/{id:2}/{id}", "/ab/abcdef", { id: "abcdef" }],
  ["/{id:2}/{id}", "/ax/abcdef", undefined],
  ["/{id}/{id}", "/a/a", { id: "a" }],
  ["/{id}/{id}", "/a/b", undefined],
  ["/caf\u00e9/{a}", "/caf%C3%A9/x", { a: "x" }],
  ["/caf\u00e9/{a}", "/caf\u00e9/x", { a: "x" }],
  ["{constructor}", "x", { constructor: "x" }],
];
it.each(cases)("match: %s on %s", (template, uri, expected) => {
  expect(parseTemplate(template).match(uri)).toEqual(expected);
});

it("match names each variable once, in order", () => {
  expect(parseTemplate("/{b:2}/{b}{?q,a*}{&c}").names).toEqual(["b", "q", "a", "c"]);
});

const bad: readonly (readonly [string, string])[] = [
  ["/x/{a", "never closed"],
  ["/x}/a", 'without "{"'],
  ["{}", "empty"],
  ["{?}", "not a valid variable name"],
  ["{a,}", "not a valid variable name"],
  ["{a b}", "not a valid variable name"],
  ["{a{b}}", "not a valid variable name"],
  ["{=a}", "is reserved"],
  ["{|a}", "is reserved"],
  ["{a:0}", "prefix"],
  ["{a:10000}", "prefix"],
  ["{a:x}", "prefix"],
  ["{a:1:2}", "prefix"],
  ["{a:1*}", "both"],
  ["{__proto__}", "not a valid variable name"],
  ["{a..b}", "not a valid variable name"],
  ["{a}".repeat(65), "more than 64"],
  ["x".repeat(5000), "longer"],
];
it.each(bad)("invalid templates refuses %s", (template, why) => {
  expect(() => parseTemplate(template)).toThrow(why);
  expect(() => parseTemplate(template)).toThrow(TypeError);
});

it("hostile input may be long and fit a template in many ways", () => {
  const size = 65_536;
  for (const template of ["{a}{b}/{c}!", "{+a}{+b}!", "{a*}{b*}!", "{+a}{+b,c}!", "{a}{b}{c}{d}{e}{f}{g}{h}!"]) {
    expect(parseTemplate(template).match("a".repeat(size))).toBeUndefined();
  }
  expect(parseTemplate("{+a}{+b}").match("a".repeat(size))?.["b"]).toHaveLength(size - 1);
  expect(parseTemplate("{+a}{+b}").match("a".repeat(size + 1))).toBeUndefined();
});

it("hostile input may repeat every special character", () => {
  const length = IS_LONG ? 16_384 : 4_096;
  const marks = ["/", "/a", "a,", "?a=", "&b=1", "%41", ";a", ".a", "#", ";a=;b"];
  const templates = ["{a}{b}/{c}!", "{+a}{+b}!", "{/a*}{/b*}!", "{?a,b*}{&b*}!", "{;a*}{.b*}{#c*}!"];
  const mixed = ["{x}{a,b*}!", "{+x}{.a}{.b}{.c}!", "{+x}{;a,b*}{;a*}!", "{+x}{?a*}{&a,b}!", "{+x}{/a,b,c}{#d,e}!"];
  for (const template of [...templates, ...mixed]) {
    const parsed = parseTemplate(template);
    for (const mark of marks) expect(parsed.match(mark.repeat(length / mark.length))).toBeUndefined();
  }
});
