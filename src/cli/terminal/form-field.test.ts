// Each kind of field: what a person may type, what becomes of it, and what is said of the rest.

import { describe, expect, it } from "vitest";
import { fieldHint, fieldsOf, readField, valueText, type Field } from "./form-field.ts";

function field(schema: unknown, required = true): Field {
  const [only] = fieldsOf({ properties: { it: schema }, required: required ? ["it"] : [] });
  if (only === undefined) throw new Error("no field");
  return only;
}

const TITLED = {
  type: "string",
  oneOf: [{ const: "s", title: "Small" }, { const: "2", title: "Two" }, { const: "l" }],
};
const NAMED = { type: "string", enum: ["r", "g"], enumNames: ["Red"] };
const MANY = { type: "array", items: { type: "string", enum: ["mon", "tue", "wed"] }, minItems: 1, maxItems: 2 };
const TITLED_MANY = {
  type: "array",
  items: {
    anyOf: [
      { const: "a", title: "Ann" },
      { const: "b", title: "Bob" },
    ],
  },
};

describe("a field", () => {
  it.each([
    [{ type: "string" }, "hi", "hi"],
    [{ type: "string", format: "email" }, "a@b", "a@b"],
    [{ type: "string", format: "date" }, "2024-02-29", "2024-02-29"],
    [{ type: "string", format: "date-time" }, "2024-02-29T10:00:00+01:00", "2024-02-29T10:00:00+01:00"],
    [{ type: "string", format: "uri" }, "urn:x", "urn:x"],
    [{ type: "string", format: "unheard-of" }, "x", "x"],
    [{ type: "whatever" }, "x", "x"],
    [{ type: "integer" }, "-3", -3],
    [{ type: "number" }, "1e-2", 0.01],
    [{ type: "boolean" }, "Y", true],
    [{ type: "boolean" }, "no", false],
    [TITLED, "1", "s"],
    [TITLED, "small", "s"],
    // A value is worth more than a place in the list.
    [TITLED, "2", "2"],
    [TITLED, "3", "l"],
    [NAMED, "red", "r"],
    [NAMED, "g", "g"],
    [MANY, "1, wed", ["mon", "wed"]],
    [MANY, "1,1", ["mon"]],
    [TITLED_MANY, "Bob,1", ["b", "a"]],
    [TITLED_MANY, "0", []],
    [{ type: "array", items: { type: "string" } }, "x, y", ["x", "y"]],
  ])("%j takes %j", (schema, typed, value) => {
    expect(readField(field(schema), typed)).toEqual({ value });
  });

  it.each([
    [{ type: "string", minLength: 3 }, "👍👍", "at least 3"],
    [{ type: "string", maxLength: 2 }, "abc", "at most 2"],
    [{ type: "string", format: "email" }, "ab", "name@example.com"],
    [{ type: "string", format: "date" }, "2023-02-29", "written like"],
    [{ type: "string", format: "date-time" }, "2023-02-20", "written like"],
    [{ type: "string", format: "uri" }, "no uri", "written like"],
    [{ type: "integer" }, "1.5", "1.5 is no whole number"],
    [{ type: "number" }, "Infinity", "Infinity is no number"],
    [{ type: "integer", minimum: 1 }, "0", "at least 1"],
    [{ type: "number", maximum: 1 }, "1.1", "at most 1"],
    [{ type: "boolean" }, "maybe", "yes or no"],
    [TITLED, "4", "from 1 to 3"],
    [TITLED, "0", "from 1 to 3"],
    [MANY, "0", "at least 1"],
    [MANY, "1,2,3", "at most 2"],
    [MANY, "mon,sun", "sun is not in the list"],
    [{ type: "string" }, "", "needed"],
  ])("%j does not take %j", (schema, typed, words) => {
    expect(readField(field(schema), typed)).toEqual({ problem: expect.stringContaining(words) as string });
  });

  it("left empty is its default, or nothing", () => {
    expect(readField(field({ type: "integer", default: 3 }), "")).toEqual({ value: 3 });
    expect(readField(field({ type: "boolean", default: false }), "")).toEqual({ value: false });
    expect(readField(field({ type: "string" }, false), "")).toEqual({ value: undefined });
    // A default of the wrong kind is none.
    expect(readField(field({ type: "integer", default: "3" }, false), "")).toEqual({ value: undefined });
    expect(readField(field({ type: "array", default: [1] }, false), "")).toEqual({ value: undefined });
  });

  it("says what it wants", () => {
    expect(fieldHint(field({ type: "string", minLength: 2, maxLength: 5 }))).toBe("text, 2 to 5 characters");
    expect(fieldHint(field({ type: "string", format: "email" }, false))).toBe("email, may be left out");
    expect(fieldHint(field({ type: "integer", minimum: 0 }))).toBe("whole number, at least 0");
    expect(fieldHint(field(MANY))).toBe("numbers with commas between; 0 for none, 1 to 2 of them");
    expect(fieldHint(field({ type: "array", items: { type: "string" } }))).toBe(
      "texts with commas between; 0 for none",
    );
  });

  it("shows a value by its title", () => {
    expect(valueText(field(TITLED), "s")).toBe("Small");
    expect(valueText(field(TITLED_MANY), ["a", "b"])).toBe("Ann, Bob");
    expect(valueText(field(TITLED_MANY), [])).toBe("none");
    expect(valueText(field({ type: "boolean" }), true)).toBe("yes");
    expect(valueText(field({ type: "string" }), "a\u001b[1m")).toBe("a\\x1b[1m");
  });

  it("is found in whatever an end calls a form", () => {
    for (const schema of [undefined, 3, { properties: [] }, { properties: { a: 1, b: null } }]) {
      expect(fieldsOf(schema)).toEqual([]);
    }
    expect(field({ type: "string", oneOf: [3, { const: 4 }] }).kind).toBe("text");
  });
});
