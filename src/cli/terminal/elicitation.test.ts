// Forms in the terminal: long texts are cut on the screen but sent completely; and each kind of field.

import { expect, it } from "vitest";
import { createElicitation } from "./elicitation.ts";
import { fieldHint, formatValue, parseField, parseFields, type Field } from "./form-fields.ts";
import type { Dialog, Prompter } from "./prompter.ts";

it("cuts long texts on the screen, and sends them completely", async () => {
  const long = "x".repeat(100_000);
  const shown: string[] = [];
  const show = (text: string): Promise<string> => {
    shown.push(text);
    return Promise.resolve("");
  };
  const dialog: Dialog = { print: (text) => void shown.push(text), ask: show, confirm: show, askSecret: show };
  const open = (_signal: AbortSignal, run: (opened: Dialog) => unknown): unknown => run(dialog);
  const prompter = { open } as unknown as Prompter;
  const { form } = createElicitation(
    prompter,
    () => long,
    () => Promise.resolve(false),
  );
  const requestedSchema = {
    type: "object" as const,
    properties: { [long]: { type: "string" as const, title: long, description: long, default: long, format: long } },
  };
  const signal = new AbortController().signal;
  const answer = await form({ message: long, requestedSchema } as Parameters<typeof form>[0], { signal });
  expect(answer).toEqual({ action: "accept", content: { [long]: long } });
  expect(shown.length).toBeGreaterThan(4);
  expect(Math.max(...shown.map((text) => text.length))).toBeLessThan(5_000);
});

function field(schema: unknown, required = true): Field {
  const [only] = parseFields({ properties: { it: schema }, required: required ? ["it"] : [] });
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
  // A value takes precedence over a number.
  [TITLED, "2", "2"],
  [TITLED, "3", "l"],
  [NAMED, "red", "r"],
  [{ type: "string", enum: ["r"], oneOf: [{ const: "r", title: "Red" }] }, "red", "r"],
  [NAMED, "g", "g"],
  [MANY, "1, wed", ["mon", "wed"]],
  [MANY, "1,1", ["mon"]],
  [TITLED_MANY, "Bob,1", ["b", "a"]],
  [TITLED_MANY, "0", []],
  [{ type: "array", items: { type: "string" } }, "x, y", ["x", "y"]],
])("a field: %j accepts %j", (schema, typed, value) => {
  expect(parseField(field(schema), typed)).toEqual({ value });
});

it.each([
  [{ type: "string", minLength: 3 }, "👍👍", "at least 3"],
  [{ type: "string", maxLength: 2 }, "abc", "at most 2"],
  [{ type: "string", format: "email" }, "ab", "name@example.com"],
  [{ type: "string", format: "date" }, "2023-02-29", "look like"],
  [{ type: "string", format: "date-time" }, "2023-02-20", "look like"],
  [{ type: "string", format: "uri" }, "no uri", "look like"],
  [{ type: "integer" }, "1.5", "1.5 is not a whole number"],
  [{ type: "number" }, "Infinity", "Infinity is not a number"],
  [{ type: "integer", minimum: 1 }, "0", "at least 1"],
  [{ type: "number", maximum: 1 }, "1.1", "at most 1"],
  [{ type: "boolean" }, "maybe", "yes or no"],
  [TITLED, "4", "from 1 to 3"],
  [TITLED, "0", "from 1 to 3"],
  [MANY, "0", "at least 1"],
  [MANY, "1,2,3", "at most 2"],
  [MANY, "mon,sun", "sun is not in the list"],
  [{ type: "string" }, "", "required"],
])("a field: %j refuses %j", (schema, typed, message) => {
  expect(parseField(field(schema), typed)).toEqual({ problem: expect.stringContaining(message) as string });
});

it("a field: left empty has its default, or no value", () => {
  expect(parseField(field({ type: "integer", default: 3 }), "")).toEqual({ value: 3 });
  expect(parseField(field({ type: "boolean", default: false }), "")).toEqual({ value: false });
  expect(parseField(field({ type: "string" }, false), "")).toEqual({ value: undefined });
  // A default of the wrong type is ignored.
  expect(parseField(field({ type: "integer", default: "3" }, false), "")).toEqual({ value: undefined });
  expect(parseField(field({ type: "array", default: [1] }, false), "")).toEqual({ value: undefined });
});

it("a field describes what may be typed", () => {
  expect(fieldHint(field({ type: "string", minLength: 2, maxLength: 5 }))).toBe("text, 2 to 5 characters");
  expect(fieldHint(field({ type: "string", format: "email" }, false))).toBe("email, optional");
  expect(fieldHint(field({ type: "integer", minimum: 0 }))).toBe("whole number, at least 0");
  expect(fieldHint(field(MANY))).toBe("numbers separated by commas; 0 for none, 1 to 2 items");
  expect(fieldHint(field({ type: "array", items: { type: "string" } }))).toBe("values separated by commas; 0 for none");
});

it("a field shows a value by its title", () => {
  expect(formatValue(field(TITLED), "s")).toBe("Small");
  expect(formatValue(field(TITLED_MANY), ["a", "b"])).toBe("Ann, Bob");
  expect(formatValue(field(TITLED_MANY), [])).toBe("none");
  expect(formatValue(field({ type: "boolean" }), true)).toBe("yes");
  expect(formatValue(field({ type: "string" }), "a\u001b[1m")).toBe("a\\x1b[1m");
});

it("a field is read from any value that a server sends as a schema", () => {
  for (const schema of [undefined, 3, { properties: [] }, { properties: { a: 1, b: null } }]) {
    expect(parseFields(schema)).toEqual([]);
  }
  expect(field({ type: "string", oneOf: [3, { const: 4 }] }).kind).toBe("text");
});
