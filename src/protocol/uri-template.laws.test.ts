// Properties of URI templates: a match finds the expanded values, matching never throws, and another implementation
// agrees where both define a result.

import * as fc from "fast-check";
import { expect, it } from "vitest";
import { UriTemplateExpander, UriTemplateMatcher } from "uri-template-matcher";
import { parseTemplate, type UriTemplate } from "./uri-template.ts";
import { runs } from "../../test/support/thoroughness.ts";

// Values without separators, since ambiguous templates are not the subject here.
const word = fc
  .string({ unit: "binary", minLength: 1, maxLength: 12 })
  .filter((text) => !/[.,/?#;&\p{Cs}]/u.test(text));
const anything = fc.string({ unit: "binary", minLength: 1, maxLength: 12 }).filter((text) => !/\p{Cs}/u.test(text));

/** The URI that another implementation makes of a template. */
const expand = (template: UriTemplate, values: object): string =>
  new UriTemplateExpander(template.text).expand(values as never);

it("a URI template: match(expand(v)) = v: any string in an unnamed or a named variable", () => {
  fc.assert(
    fc.property(anything, anything, anything, (a, b, q) => {
      const template = parseTemplate("x://h/{a}/t/{b}{?q,r}");
      expect(template.match(expand(template, { a, b, q }))).toEqual({ a, b, q });
    }),
  );
});

it("a URI template: match(expand(v)) = v: lists, and every operator", () => {
  const operators = ["", "/", ".", ";", "?", "&", "#", "+"] as const;
  fc.assert(
    fc.property(
      fc.constantFrom(...operators),
      fc.array(word, { minLength: 1, maxLength: 5 }),
      word,
      fc.boolean(),
      (operator, list, single, explode) => {
        // "%41" in a reserved value counts as an escape, so it does not survive.
        fc.pre(!/%/.test(single + list.join("")) || !["#", "+"].includes(operator));
        const template = parseTemplate(`x:y{${operator}v${explode ? "*" : ""}}`);
        const v = explode ? list : single;
        expect(template.match(expand(template, { v }))).toEqual({ v });
      },
    ),
  );
});

it("a URI template: match(expand(v)) = v: several in one expression, some left out", () => {
  fc.assert(
    fc.property(fc.constantFrom(";", "?", "&"), fc.option(anything), fc.option(anything), (operator, a, b) => {
      const template = parseTemplate(`x:y{${operator}a,b}`);
      const given = Object.fromEntries(Object.entries({ a, b }).filter(([, value]) => value !== null));
      expect(template.match(expand(template, given))).toEqual(given);
    }),
  );
});

it("a URI template: expands a match to a URI with the same match", () => {
  const uri = fc.string({ unit: fc.constantFrom(..."ab/?#&=;.,%2F-".split("")) });
  const template = fc.constantFrom("{a}", "a{/b*}{?a,c}", "{+a}{#b}", "{a}-{+b}", "a{;b,a}{.c*}", "{a,b}{&c}");
  fc.assert(
    fc.property(template, uri, (text, candidate) => {
      const parsed = parseTemplate(text);
      const found = parsed.match(candidate);
      if (found !== undefined) expect(parsed.match(expand(parsed, found))).toBeDefined();
    }),
    { numRuns: runs(2000) },
  );
});

it("a URI template: never throws on any URI", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary" }), (uri) => {
      for (const text of ["{a}", "{+a}{?b,c*}", "{/a*}{.b}{#c}", "x{;a,b}"]) {
        const found = parseTemplate(text).match(uri);
        expect(found === undefined || typeof found === "object").toBe(true);
      }
    }),
  );
});

const templates = ["/u/{id}", "/u/{id}/p/{post}", "/f/{+path}", "/s{?q}", "/s{?q,lang}", "/t?k=1{&q}", "/n{.fmt}"];
it.each(templates)("compared with another implementation matches %s alike", (text) => {
  const ours = parseTemplate(text);
  const other = new UriTemplateMatcher();
  other.add(text);
  // The other one does not encode characters beyond ASCII in `{+path}`.
  const chars = text.includes("{+") ? "abcXYZ019 -_~" : "abcXYZ019 \u00e9-_~";
  const value = fc.string({ unit: fc.constantFrom(...chars.split("")), minLength: 1, maxLength: 8 });
  fc.assert(
    fc.property(fc.array(value, { minLength: ours.names.length, maxLength: ours.names.length }), (values) => {
      const given = Object.fromEntries(ours.names.map((name, index) => [name, values[index]!]));
      const uri = expand(ours, given);
      expect(ours.match(uri)).toEqual(other.match(uri)?.params);
    }),
  );
});
