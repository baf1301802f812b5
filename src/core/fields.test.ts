// Fields: the check of each, with errors that name the owner, the option and the rule, and the schema.

import { expect, it } from "vitest";
import * as fields from "./fields.ts";
import { checkFields, objectSchema, OptionError, OptionPlace, type Field } from "./options.ts";

const check = (field: Field, value: unknown, owner = "f") =>
  checkFields({ a: value }, { a: field }, new OptionPlace(owner));

const INNER = { b: fields.required("how many", fields.count("")) };

it.each<[name: string, field: Field, valid: unknown, invalid: unknown, message: string]>([
  ["ms", fields.ms(""), 5, 0, "f: `a` must be a number of milliseconds above 0, at most 2147483647, not 0"],
  ["msOrZero", fields.msOrZero(""), 0, -1, "f: `a` must be a number of milliseconds; 0 means never, not -1"],
  ["count", fields.count(""), 2, 1.5, "f: `a` must be a whole number above 0, not 1.5"],
  ["count from 0", fields.count("", 0), 0, -1, "f: `a` must be a whole number, 0 or more, not -1"],
  ["number", fields.number("", [1, 9]), 9, 10, "f: `a` must be a whole number from 1 to 9"],
  ["boolean", fields.boolean(""), false, "no", 'f: `a` must be true or false, not "no"'],
  ["string", fields.string(""), "x", "", 'f: `a` must be a non-empty string, not ""'],
  ["text", fields.text(""), "x", " ", "f: `a` must be a non-empty string"],
  ["strings", fields.strings(""), ["x"], [""], "f: `a` must be an array of non-empty strings"],
  ["paths", fields.paths(""), ["x"], "x", "f: `a` must be an array of paths"],
  ["stringMap", fields.stringMap(""), { x: "y" }, { b: 1 }, "f: `a.b` must be a non-empty string, not 1"],
  ["secretMap", fields.secretMap(""), { x: "" }, { b: 1 }, "f: `a` must be an object of strings"],
  ["choice", fields.choice("", ["x", "y"]), "x", "z", 'f: `a` must be "x" or "y", not "z"'],
  ["choices", fields.choices("", ["x", "y"]), ["x"], ["z"], 'f: `a` must be an array of "x", "y"'],
  ["record", fields.record(""), {}, [], "f: `a` must be an object"],
  ["func", fields.func<() => void>(), () => undefined, 1, "f: `a` must be a function, so only code can set it, not 1"],
  ["object", fields.object("", INNER), { b: 1 }, { b: 1, bb: 1 }, "f: `a.bb` is not an option; did you mean `b`?"],
  ["object with a required field", fields.object("", INNER), { b: 1 }, {}, "f: `a.b` is required: how many"],
  ["objectOrFlag", fields.objectOrFlag("", INNER), true, "yes", "f: `a` must be true, false, or { b }"],
  ["listOf", fields.listOf("", INNER), [{ b: 1 }], [{ b: 1 }, 2], "f: `a.1` must be an object with `b`, not 2"],
  [
    "mapOf",
    fields.mapOf("", INNER),
    { x: { b: 1 } },
    { x: { b: 0 } },
    "f: `a.x.b` must be a whole number above 0, not 0",
  ],
  [
    "either",
    fields.either("", fields.boolean(""), fields.count("")),
    true,
    "x",
    'f: `a` must be a whole number above 0, not "x"',
  ],
])("%s returns a valid value, and refuses others with the rule", (_name, field, valid, invalid, message) => {
  expect(check(field, valid)).toEqual({ a: valid });
  expect(check(field, undefined)).toEqual({});
  const error = (() => {
    try {
      return check(field, invalid);
    } catch (thrown) {
      return thrown;
    }
  })();
  expect(error).toBeInstanceOf(OptionError);
  expect(error).toMatchObject({ message });
});

it("sets defaults, also in the description and the schema, and within an option", () => {
  const size = fields.count("A size.").or(1_024, "1 KiB");
  const options = {
    a: fields.ms("A time.").or(5),
    list: fields.listOf("", { size }),
    in: fields.choices("", ["x", "y"]),
  };
  const place = new OptionPlace("f");
  expect(checkFields({ a: undefined, list: [{}] }, options, place)).toEqual({ a: 5, list: [{ size: 1_024 }] });
  expect(checkFields({ a: 7 }, options, place)).toEqual({ a: 7 });
  expect(options.a.description satisfies "A time. Default: 5.").toBe("A time. Default: 5.");
  expect(size.schema).toEqual({ type: "integer", minimum: 1, default: 1_024, description: "A size. Default: 1 KiB." });
});

it("names the options of a public function as it always does", () => {
  expect(() => checkFields({ b: 1 }, { a: fields.count("") }, new OptionPlace("f()"))).toThrow(
    "f() has no option `b`; the options are a",
  );
  expect(() => checkFields(5, {}, new OptionPlace("f()"))).toThrow("f(): the options must be an object, not a number");
  expect(checkFields({ b: undefined }, {}, new OptionPlace("f()"))).toEqual({ b: undefined });
});

it("has a schema with descriptions, without what only code can set", () => {
  const options = { ...INNER, list: fields.listOf("Rules.", INNER), write: fields.func<() => void>() };
  const rule = {
    type: "object",
    properties: { b: { type: "integer", minimum: 1 } },
    required: ["b"],
    additionalProperties: false,
  };
  expect(objectSchema(options)).toEqual({
    ...rule,
    properties: { ...rule.properties, list: { type: "array", items: rule, description: "Rules." } },
  });
});
