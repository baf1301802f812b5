// URI templates by example: the expansions of RFC 6570, the matching rules of UriTemplate, and invalid
// templates. Properties are in uri-template.laws.test.ts.

import { describe, expect, it } from "vitest";
import { parseTemplate, type TemplateInput } from "./uri-template.ts";
import { IS_LONG } from "../../test/support/thoroughness.ts";

// The variables and results of the tables of RFC 6570, section 3.2.
const VALUES: TemplateInput = {
  count: ["one", "two", "three"],
  dom: ["example", "com"],
  dub: "me/too",
  hello: "Hello World!",
  half: "50%",
  var: "value",
  who: "fred",
  base: "http://example.com/home/",
  path: "/foo/bar",
  list: ["red", "green", "blue"],
  keys: { semi: ";", dot: ".", comma: "," },
  v: 6,
  x: 1024,
  y: "768",
  empty: "",
  empty_keys: [],
  undef: null,
};

const EXPANSIONS: readonly (readonly [string, string])[] = [
  ["{count}", "one,two,three"],
  ["{count*}", "one,two,three"],
  ["{/count}", "/one,two,three"],
  ["{/count*}", "/one/two/three"],
  ["{;count}", ";count=one,two,three"],
  ["{;count*}", ";count=one;count=two;count=three"],
  ["{?count}", "?count=one,two,three"],
  ["{?count*}", "?count=one&count=two&count=three"],
  ["{&count*}", "&count=one&count=two&count=three"],
  ["{var}", "value"],
  ["{hello}", "Hello%20World%21"],
  ["{half}", "50%25"],
  ["O{empty}X", "OX"],
  ["O{undef}X", "OX"],
  ["{x,y}", "1024,768"],
  ["{x,hello,y}", "1024,Hello%20World%21,768"],
  ["?{x,empty}", "?1024,"],
  ["?{x,undef}", "?1024"],
  ["{var:3}", "val"],
  ["{var:30}", "value"],
  ["{list}", "red,green,blue"],
  ["{keys}", "semi,%3B,dot,.,comma,%2C"],
  ["{keys*}", "semi=%3B,dot=.,comma=%2C"],
  ["{+hello}", "Hello%20World!"],
  ["{+half}", "50%25"],
  ["{base}index", "http%3A%2F%2Fexample.com%2Fhome%2Findex"],
  ["{+base}index", "http://example.com/home/index"],
  ["O{+empty}X", "OX"],
  ["{+path}/here", "/foo/bar/here"],
  ["here?ref={+path}", "here?ref=/foo/bar"],
  ["up{+path}{var}/here", "up/foo/barvalue/here"],
  ["{+x,hello,y}", "1024,Hello%20World!,768"],
  ["{+path,x}/here", "/foo/bar,1024/here"],
  ["{+path:6}/here", "/foo/b/here"],
  ["{+list*}", "red,green,blue"],
  ["{+keys}", "semi,;,dot,.,comma,,"],
  ["{+keys*}", "semi=;,dot=.,comma=,"],
  ["{#var}", "#value"],
  ["{#hello}", "#Hello%20World!"],
  ["foo{#empty}", "foo#"],
  ["foo{#undef}", "foo"],
  ["{#path:6}/here", "#/foo/b/here"],
  ["{#keys*}", "#semi=;,dot=.,comma=,"],
  ["{.who}", ".fred"],
  ["{.who,who}", ".fred.fred"],
  ["{.half,who}", ".50%25.fred"],
  ["www{.dom*}", "www.example.com"],
  ["X{.empty}", "X."],
  ["X{.undef}", "X"],
  ["X{.var:3}", "X.val"],
  ["X{.list}", "X.red,green,blue"],
  ["X{.list*}", "X.red.green.blue"],
  ["X{.keys*}", "X.semi=%3B.dot=..comma=%2C"],
  ["X{.empty_keys}", "X"],
  ["X{.empty_keys*}", "X"],
  ["{/who,dub}", "/fred/me%2Ftoo"],
  ["{/var,empty}", "/value/"],
  ["{/var,undef}", "/value"],
  ["{/var:1,var}", "/v/value"],
  ["{/list*,path:4}", "/red/green/blue/%2Ffoo"],
  ["{/keys*}", "/semi=%3B/dot=./comma=%2C"],
  ["{;v,empty,who}", ";v=6;empty;who=fred"],
  ["{;v,undef,who}", ";v=6;who=fred"],
  ["{;hello:5}", ";hello=Hello"],
  ["{;keys}", ";keys=semi,%3B,dot,.,comma,%2C"],
  ["{;keys*}", ";semi=%3B;dot=.;comma=%2C"],
  ["{?x,y,empty}", "?x=1024&y=768&empty="],
  ["{?x,y,undef}", "?x=1024&y=768"],
  ["{?var:3}", "?var=val"],
  ["{?keys*}", "?semi=%3B&dot=.&comma=%2C"],
  ["?fixed=yes{&x}", "?fixed=yes&x=1024"],
  ["{&x,y,empty}", "&x=1024&y=768&empty="],
  ["{&var:3}", "&var=val"],
];

describe("expand", () => {
  it.each(EXPANSIONS)("%s gives %s", (template, uri) => {
    expect(parseTemplate(template).expand(VALUES)).toBe(uri);
  });

  it("encodes literals, keeps their escapes, and replaces lone surrogates", () => {
    expect(parseTemplate("/caf\u00e9 %20%/{a}").expand({ a: "\ud800x" })).toBe("/caf%C3%A9%20%20%25/%EF%BF%BDx");
  });

  it("cuts a prefix by code points", () => {
    expect(parseTemplate("{a:2}").expand({ a: "\u{1f600}\u{1f601}\u{1f602}" })).toBe("%F0%9F%98%80%F0%9F%98%81");
  });

  it("reads own properties only", () => {
    expect(parseTemplate("x{toString}{/constructor}").expand({})).toBe("x");
  });
});

describe("match", () => {
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
  it.each(cases)("%s on %s", (template, uri, expected) => {
    expect(parseTemplate(template).match(uri)).toEqual(expected);
  });

  it("names each variable once, in order", () => {
    expect(parseTemplate("/{b:2}/{b}{?q,a*}{&c}").names).toEqual(["b", "q", "a", "c"]);
  });
});

describe("invalid templates", () => {
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
  it.each(bad)("refuses %s", (template, why) => {
    expect(() => parseTemplate(template)).toThrow(why);
    expect(() => parseTemplate(template)).toThrow(TypeError);
  });
});

describe("hostile input", () => {
  it("may be long and fit a template in many ways", () => {
    const size = 65_536;
    for (const template of ["{a}{b}/{c}!", "{+a}{+b}!", "{a*}{b*}!", "{+a}{+b,c}!", "{a}{b}{c}{d}{e}{f}{g}{h}!"]) {
      expect(parseTemplate(template).match("a".repeat(size))).toBeUndefined();
    }
    expect(parseTemplate("{+a}{+b}").match("a".repeat(size))?.["b"]).toHaveLength(size - 1);
    expect(parseTemplate("{+a}{+b}").match("a".repeat(size + 1))).toBeUndefined();
  });

  it("may repeat every special character", () => {
    const length = IS_LONG ? 16_384 : 4_096;
    const marks = ["/", "/a", "a,", "?a=", "&b=1", "%41", ";a", ".a", "#", ";a=;b"];
    const templates = ["{a}{b}/{c}!", "{+a}{+b}!", "{/a*}{/b*}!", "{?a,b*}{&b*}!", "{;a*}{.b*}{#c*}!"];
    const mixed = ["{x}{a,b*}!", "{+x}{.a}{.b}{.c}!", "{+x}{;a,b*}{;a*}!", "{+x}{?a*}{&a,b}!", "{+x}{/a,b,c}{#d,e}!"];
    for (const template of [...templates, ...mixed]) {
      const parsed = parseTemplate(template);
      for (const mark of marks) expect(parsed.match(mark.repeat(length / mark.length))).toBeUndefined();
    }
  });
});
