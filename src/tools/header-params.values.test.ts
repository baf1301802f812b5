// Headers compared with arguments, row by row. Header names are in lower case; repeated headers are one value.

import fc from "fast-check";
import { expect, it } from "vitest";
import { checkHeaderParams, mirrorHeaders, headerParams } from "./header-params.ts";

const annotated = (name: unknown, type: unknown = "string"): object => ({ type, "x-mcp-header": name });
const of = (properties: object): object => ({ type: "object", properties });

const { params } = headerParams(
  of({
    region: annotated("Region"),
    count: annotated("Count", "integer"),
    dry: annotated("Dry-Run", "boolean"),
    at: of({ zone: annotated("Zone") }),
  }),
);
const base64 = (text: string): string => `=?base64?${Buffer.from(text).toString("base64")}?=`;
const header = (name: string) => (value: string) => ({ [`mcp-param-${name}`]: value });
const [region, count, dry, zone] = [header("region"), header("count"), header("dry-run"), header("zone")];

type Row = readonly [args: object, headers: Record<string, string>, fault?: string];

/** Arguments, headers and the mismatch; undefined if there is none. */
const TABLE: readonly Row[] = [
  // Strings
  [{ region: "eu" }, region("eu")],
  [{ region: "eu" }, region("us"), "does not equal"],
  [{ region: "eu" }, region("EU"), "does not equal"],
  [{ region: "eu" }, region("eu "), "does not equal"],
  [{ region: "eu" }, region("eu, eu"), "does not equal"],
  [{ region: "eu" }, region("eu,us"), "does not equal"],
  [{ region: "eu, us" }, region("eu, us")],
  [{ region: "eu" }, region(""), "does not equal"],
  [{ region: "eu" }, region('"eu"'), "does not equal"],
  [{ region: "eu" }, region("e%75"), "does not equal"],
  [{ region: "eu" }, {}, "is missing for"],
  [{ region: "eu" }, { region: "eu" }, "is missing for"],
  [{ region: "eu" }, { "mcp-param-regio": "eu" }, "is missing for"],
  [{ region: "eu" }, { ...region("eu"), "mcp-param-other": "x" }],
  [{ region: "" }, region("")],
  [{ region: "" }, {}, "is missing for"],
  [{ region: "" }, region(base64(""))],
  [{ region: "" }, region("x"), "does not equal"],
  [{ region: "two words" }, region("two words")],
  [{ region: "null" }, region("null")],
  // Strings in base64
  [{ region: "eu" }, region(base64("eu"))],
  [{ region: "eu" }, region(base64("us")), "does not equal"],
  [{ region: "世界" }, region(base64("世界"))],
  [{ region: "世界" }, region("世界"), "is malformed for"],
  [{ region: "é" }, region("\u00e9"), "is malformed for"],
  [{ region: "e\u0301" }, region(base64("é")), "does not equal"],
  [{ region: " eu" }, region(base64(" eu"))],
  [{ region: " eu" }, region("eu"), "does not equal"],
  [{ region: "a\r\nb" }, region(base64("a\r\nb"))],
  [{ region: "a\r\nb" }, region("a b"), "does not equal"],
  [{ region: "eu" }, region("=?base64?ZXU?="), "is malformed for"],
  [{ region: "eu" }, region("=?base64?ZX_=?="), "is malformed for"],
  [{ region: "eu" }, region("=?base64?ZXV=?="), "is malformed for"],
  [{ region: "eu" }, region("=?BASE64?ZXU=?="), "does not equal"],
  [{ region: "eu" }, region("=?base64?ZXU="), "does not equal"],
  [{ region: "eu" }, region("ZXU=?="), "does not equal"],
  [{ region: "eu" }, region("ZXU="), "does not equal"],
  [{ region: "eu" }, region(`${base64("eu")}, ${base64("eu")}`), "is malformed for"],
  [{ region: "=?base64?ZXU=?=" }, region("=?base64?ZXU=?="), "does not equal"],
  [{ region: "=?base64?ZXU=?=" }, region(base64("=?base64?ZXU=?="))],
  [{ region: "\ud800" }, region(base64("\ud800")), "does not equal"],
  // Integers
  [{ count: 42 }, count("42")],
  [{ count: 42 }, count("42.0")],
  [{ count: 42 }, count("42.000")],
  [{ count: 42 }, count(base64("42"))],
  [{ count: 42 }, count("43"), "does not equal"],
  [{ count: 42 }, count("42."), "does not equal"],
  [{ count: 42 }, count("42.00000000000000000001"), "does not equal"],
  [{ count: 42 }, count("+42"), "does not equal"],
  [{ count: 42 }, count("042"), "does not equal"],
  [{ count: 42 }, count("0x2a"), "does not equal"],
  [{ count: 42 }, count("4.2e1"), "does not equal"],
  [{ count: 42 }, count("42, 42"), "does not equal"],
  [{ count: 42 }, count("-42"), "does not equal"],
  [{ count: 42 }, {}, "is missing for"],
  [{ count: -7 }, count("-7")],
  [{ count: 0 }, count("0")],
  [{ count: 0 }, count("-0")],
  [{ count: 0 }, count(""), "does not equal"],
  [{ count: 0 }, count("false"), "does not equal"],
  [{ count: 0 }, {}, "is missing for"],
  [{ count: 9007199254740991 }, count("9007199254740991")],
  [{ count: 9007199254740991 }, count("9007199254740992"), "does not equal"],
  [{ count: 9007199254740992 }, count("9007199254740992"), "cannot carry"],
  [{ count: 4.5 }, count("4.5"), "cannot carry"],
  [{ count: "42" }, count("42")],
  [{ count: "42" }, count("42.0"), "does not equal"],
  // Booleans
  [{ dry: true }, dry("true")],
  [{ dry: false }, dry("false")],
  [{ dry: true }, dry("TRUE"), "does not equal"],
  [{ dry: true }, dry("1"), "does not equal"],
  [{ dry: false }, dry(""), "does not equal"],
  [{ dry: false }, {}, "is missing for"],
  [{ dry: false }, dry(base64("false"))],
  [{ dry: true }, dry("false"), "does not equal"],
  // Absent
  [{}, {}],
  [{}, region("eu"), "is set without"],
  [{}, region(""), "is set without"],
  [{ region: null }, {}],
  [{ region: null }, region("null"), "is set without"],
  [{ region: undefined }, {}],
  // Values that a header cannot express
  [{ region: ["eu"] }, region("eu"), "cannot carry"],
  [{ region: { toString: "eu" } }, {}, "cannot carry"],
  // Nested
  [{ at: { zone: "a" } }, zone("a")],
  [{ at: { zone: "a" } }, zone("b"), "does not equal"],
  [{ at: { zone: "a" } }, {}, "is missing for"],
  [{ zone: "a" }, {}],
  [{ at: null }, zone("a"), "is set without"],
  [{ at: "zone" }, {}],
  [{ at: ["zone"] }, {}],
  [{ "at.zone": "a" }, {}],
  // Several at once
  [
    { region: "eu", count: 1 },
    { ...region("eu"), ...count("1") },
  ],
  [{ region: "eu", count: 1 }, { ...region("eu"), ...count("2") }, "does not equal"],
  [{ region: "eu", dry: true }, region("eu"), "is missing for"],
];

it("checkHeaderParams has a table of some size", () => {
  expect(TABLE.length).toBeGreaterThan(60);
});

it.each(TABLE.map((row) => [row]))("checkHeaderParams compares %j", ([args, headers, fault]) => {
  const said = checkHeaderParams(params, args, headers);
  if (fault === undefined) expect(said).toBeUndefined();
  else expect(said).toMatch(new RegExp(`^Header mismatch: mcp-param-[a-z-]+ ${fault} the argument [a-z.]+$`));
});

it("checkHeaderParams names the header and the argument", () => {
  expect(checkHeaderParams(params, { at: { zone: "a" } }, {})).toBe(
    "Header mismatch: mcp-param-zone is missing for the argument at.zone",
  );
});

it("checkHeaderParams reads own properties only", () => {
  const own = headerParams(of({ constructor: annotated("a"), toString: annotated("b") })).params;
  expect(checkHeaderParams(own, {}, {})).toBeUndefined();
  const wild = headerParams(JSON.parse(`{"properties":{"__proto__":{"type":"string","x-mcp-header":"a"}}}`) as object);
  const args = JSON.parse(`{"__proto__":"x"}`) as object;
  expect(checkHeaderParams(wild.params, args, { "mcp-param-a": "x" })).toBeUndefined();
  expect(checkHeaderParams(wild.params, args, {})).toContain("is missing");
});

it("checkHeaderParams accepts the headers that mirrorHeaders creates", () => {
  const args = { region: "a\tb ", count: -0, dry: false, at: { zone: "" } };
  const headers = mirrorHeaders(params, args);
  expect(headers).toEqual({ ...region(base64("a\tb ")), ...count("0"), ...dry("false"), ...zone("") });
  expect(checkHeaderParams(params, args, headers)).toBeUndefined();
  expect(mirrorHeaders(params, { region: null, count: 1.5, dry: {}, at: 7 })).toEqual({});
  const anyArguments = fc.record(
    {
      region: fc.oneof(fc.string({ unit: "binary" }), fc.constant(null)),
      count: fc.maxSafeInteger(),
      dry: fc.boolean(),
      at: fc.record({ zone: fc.string() }, { requiredKeys: [] }),
    },
    { requiredKeys: [] },
  );
  fc.assert(
    fc.property(anyArguments, (some) => {
      expect(checkHeaderParams(params, some, mirrorHeaders(params, some))).toBeUndefined();
    }),
  );
});
