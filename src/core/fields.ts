// The fields that declare options. Each gives the type of an option, its check, its JSON Schema and its description.

import { MAX_DELAY_MS } from "./async.ts";
import {
  checkFields,
  kindOf,
  objectSchema,
  notValue,
  type DefaultField,
  type Field,
  type Fields,
  type ListField,
  type MapField,
  type ObjectField,
  type ObjectOrFlagField,
  type OptionPlace,
  type OptionsOf,
  type RequiredField,
  type OptionSchema,
} from "./options.ts";
import { isObject } from "./values.ts";

export type { DefaultField, Field, OptionsOf, ValuesOf } from "./options.ts";

function described(schema: OptionSchema, description: string): OptionSchema {
  return description === "" ? schema : { ...schema, description };
}

function or(this: Field, value: unknown, inWords: unknown = value): DefaultField<string, unknown> {
  const description = `${this.description} Default: ${String(inWords)}.`;
  const schema = this.schema && { ...this.schema, description, default: value };
  return { ...this, default: value, description, schema };
}

function fieldOf<Description extends string, Type>(
  parts: Omit<Field<Description, Type>, "or">,
): Field<Description, Type> {
  return { ...parts, or: or as Field<Description, Type>["or"] };
}

/** A field of any type. `expected` completes "must be"; `show` says what was given. */
export function field<const Description extends string, Type>(
  description: Description,
  schema: OptionSchema | undefined,
  expected: string,
  fits: (value: unknown) => value is Type,
  show: (value: unknown) => string = () => "",
): Field<Description, Type> {
  const check = (value: unknown, place: OptionPlace): Type => {
    if (fits(value)) return value;
    throw place.error(`must be ${expected}${show(value)}`);
  };
  return fieldOf({ description, schema: schema && described(schema, description), check });
}

const MILLISECONDS = `a number of milliseconds above 0, at most ${MAX_DELAY_MS}`;

/** A duration in milliseconds. */
export function ms<const Description extends string>(description: Description): Field<Description, number> {
  return field(
    description,
    { type: "number", exclusiveMinimum: 0, maximum: MAX_DELAY_MS },
    MILLISECONDS,
    (value): value is number => typeof value === "number" && value > 0 && value <= MAX_DELAY_MS,
    notValue,
  );
}

/** A whole number. */
export function count<const Description extends string>(
  description: Description,
  minimum: 0 | 1 = 1,
): Field<Description, number> {
  return field(
    description,
    { type: "integer", minimum },
    minimum === 0 ? "a whole number, 0 or more" : "a whole number above 0",
    (value): value is number => typeof value === "number" && Number.isInteger(value) && value >= minimum,
    notValue,
  );
}

/** A number within bounds: a whole one, unless its unit is milliseconds. */
export function number<const Description extends string>(
  description: Description,
  [minimum, maximum]: readonly [minimum: number, maximum: number],
  unit: string = "a whole number",
): Field<Description, number> {
  const isWhole = unit !== "milliseconds";
  const schema = { type: isWhole ? "integer" : "number", minimum, maximum };
  const fits = (value: unknown): value is number =>
    typeof value === "number" && (!isWhole || Number.isInteger(value)) && value >= minimum && value <= maximum;
  const range = `from ${minimum} to ${maximum}`;
  return {
    ...field(description, schema, `a${isWhole ? " whole" : ""} number ${range}`, fits),
    expected: `${unit} ${range}`,
  };
}

/** A duration in milliseconds, or 0. Unless it is bounded, it may be longer than a timer can wait. */
export function msOrZero<const Description extends string>(
  description: Description,
  range: "bounded" | "unbounded" = "unbounded",
): Field<Description, number> {
  const isBounded = range === "bounded";
  const expected = isBounded ? MILLISECONDS : "a number of milliseconds; 0 means never";
  const fits = (value: unknown): value is number =>
    typeof value === "number" && value >= 0 && (!isBounded || value <= MAX_DELAY_MS);
  return field(description, { type: "number", minimum: 0, maximum: MAX_DELAY_MS }, expected, fits, notValue);
}

export function boolean<const Description extends string>(description: Description): Field<Description, boolean> {
  const fits = (value: unknown): value is boolean => typeof value === "boolean";
  return field(description, { type: "boolean" }, "true or false", fits, notValue);
}

function isText(value: unknown): value is string {
  return typeof value === "string" && value !== "";
}

/** A string that is not empty. */
export function string<const Description extends string>(description: Description): Field<Description, string> {
  return field(description, { type: "string", minLength: 1 }, "a non-empty string", isText, notValue);
}

export function strings<const Description extends string>(
  description: Description,
): Field<Description, readonly string[]> {
  const fits = (value: unknown): value is readonly string[] => Array.isArray(value) && value.every(isText);
  const schema = { type: "array", items: { type: "string", minLength: 1 } };
  return field(description, schema, "an array of non-empty strings", fits, notValue);
}

function isVisible(value: unknown): value is string {
  return typeof value === "string" && value.trim() !== "";
}

/** A string that has more than white space. */
export function text<const Description extends string>(description: Description): Field<Description, string> {
  return field(description, { type: "string", minLength: 1 }, "a non-empty string", isVisible);
}

/** A string that matches a pattern. */
export function textLike<const Description extends string>(
  description: Description,
  pattern: string,
  problem: readonly [message: string, hint: string],
): Field<Description, string> {
  const check = (value: unknown, place: OptionPlace): string => {
    if (typeof value === "string" && new RegExp(pattern).test(value)) return value;
    throw place.error(`is invalid: ${problem.join("; ")}`);
  };
  return fieldOf({ description, schema: described({ type: "string", pattern }, description), problem, check });
}

/** The path of a file or folder. */
export function path<const Description extends string>(description: Description): Field<Description, string> {
  return { ...text(description), isPath: true };
}

export function paths<const Description extends string>(
  description: Description,
): Field<Description, readonly string[]> {
  const schema = { type: "array", items: { type: "string", minLength: 1 } };
  const fits = (value: unknown): value is readonly string[] => Array.isArray(value) && value.every(isVisible);
  return { ...field(description, schema, "an array of paths", fits), isPath: true };
}

/** An object of strings that may be secret or empty, so that no error quotes one. */
export function secretMap<const Description extends string>(
  description: Description,
): Field<Description, Readonly<Record<string, string>>> {
  const fits = (value: unknown): value is Readonly<Record<string, string>> =>
    isObject(value) && Object.values(value).every((field) => field === undefined || typeof field === "string");
  return field(description, { type: "object", additionalProperties: { type: "string" } }, "an object of strings", fits);
}

/** An object of any names, whose values are strings. */
export function stringMap<const Description extends string>(
  description: Description,
): Field<Description, Readonly<Record<string, string>>> {
  const check = (value: unknown, place: OptionPlace): Readonly<Record<string, string>> => {
    if (!isObject(value)) throw place.error(`must be an object of strings${notValue(value)}`);
    for (const [key, text] of Object.entries(value)) {
      if (!isText(text) || key === "") throw place.at(key).error(`must be a non-empty string${notValue(text)}`);
    }
    return value as Readonly<Record<string, string>>;
  };
  const schema = { type: "object", additionalProperties: { type: "string", minLength: 1 } };
  return fieldOf({ description, schema: described(schema, description), check });
}

/** One of these values. */
export function choice<const Description extends string, const Choice extends string>(
  description: Description,
  choices: readonly Choice[],
): Field<Description, Choice> {
  const all = choices.map((known) => JSON.stringify(known)).join(", ");
  const fits = (value: unknown): value is Choice => choices.some((choice) => choice === value);
  return field(description, { enum: choices }, all.replace(/, (?=[^,]*$)/, " or "), fits, notValue);
}

/** An array of some of these values. */
export function choices<const Description extends string, const Choice extends string>(
  description: Description,
  known: readonly Choice[],
): Field<Description, readonly Choice[]> {
  const fits = (value: unknown): value is readonly Choice[] =>
    Array.isArray(value) && value.length > 0 && value.every((item) => known.some((choice) => choice === item));
  const all = known.map((choice) => JSON.stringify(choice)).join(", ");
  return field(description, { type: "array", items: { enum: known } }, `an array of ${all}`, fits);
}

/** Any object. */
export function record<const Description extends string>(
  description: Description,
): Field<Description, { readonly [key: string]: unknown }> {
  return field(description, { type: "object" }, "an object", isObject, notValue);
}

/** A function, which only code can set. Its doc comment is written above it. */
export function func<Type>(): Field<"", Type> {
  const check = (value: unknown, place: OptionPlace): Type => {
    if (typeof value === "function") return value as Type;
    const isInCode = place.owner.endsWith("()");
    throw place.error(
      `must be a function, ${isInCode ? `not ${kindOf(value)}` : `so only code can set it${notValue(value)}`}`,
    );
  };
  return fieldOf({ description: "", schema: undefined, check });
}

/** A field with another description, or one in place of a doc comment above it. It has no default unless it gets one. */
export function documented<const Description extends string, Type>(
  description: Description,
  of: Field<string, Type>,
): Field<Description, Type> {
  const { default: _, ...rest } = of;
  const { default: _usual, ...schema } = of.schema ?? {};
  return { ...rest, schema: of.schema && described(schema, description), description } as Field<Description, Type>;
}

/** A field with words of its own for what a config should have. */
export function expecting<Description extends string, Type>(
  expected: string,
  of: Field<Description, Type>,
): Field<Description, Type> {
  return { ...of, expected };
}

/** A field whose value, keys or fields are names of tools. `catenary doctor` reports those that no tool has. */
export function ofTools<Of extends Field>(of: Of, tools: Field["tools"] = "patterns"): Of {
  return { ...of, tools };
}

/** Any value that only code can set. Its doc comment is written above it. */
export function code<Type>(): Field<"", Type> {
  return field("", undefined, "", (_value): _value is Type => true);
}

/** Options within an option. `expected` is for errors about a config. */
export function object<const Description extends string, const Of extends Fields>(
  description: Description,
  fields: Of,
  expected?: string,
): ObjectField<Description, Of> {
  const check = (value: unknown, place: OptionPlace): OptionsOf<Of> => checkFields(value, fields, place);
  return fieldOf({ description, schema: described(objectSchema(fields), description), expected, fields, check });
}

/** An array of objects with these fields. */
export function listOf<const Description extends string, const Of extends Fields>(
  description: Description,
  fields: Of,
): ListField<Description, Of> {
  const check = (value: unknown, place: OptionPlace): readonly OptionsOf<Of>[] => {
    if (!Array.isArray(value)) throw place.error(`must be an array of objects${notValue(value)}`);
    return value.map((item, index) => checkFields(item, fields, place.at(String(index))));
  };
  const schema = described({ type: "array", items: objectSchema(fields) }, description);
  return fieldOf({ description, schema, fields, check });
}

/** An object of any names, whose values are objects with these fields. */
export function mapOf<const Description extends string, const Of extends Fields>(
  description: Description,
  fields: Of,
): MapField<Description, Of> {
  const check = (value: unknown, place: OptionPlace): Readonly<Record<string, OptionsOf<Of>>> => {
    if (!isObject(value)) throw place.error(`must be an object${notValue(value)}`);
    return Object.fromEntries(
      Object.entries(value).map(([key, item]) => [key, checkFields(item, fields, place.at(key))]),
    );
  };
  const schema = { type: "object", additionalProperties: objectSchema(fields) };
  return fieldOf({ description, schema: described(schema, description), check });
}

/** What fits one of two fields. Errors are those of the second. */
export function either<const Description extends string, First, Second>(
  description: Description,
  first: Field<string, First>,
  second: Field<string, Second>,
): Field<Description, First | Second> {
  const check = (value: unknown, place: OptionPlace): First | Second => {
    try {
      return first.check(value, place);
    } catch {
      return second.check(value, place);
    }
  };
  const schema = described({ anyOf: [first.schema, second.schema] }, description);
  return fieldOf({ description, schema, forms: [first, second], check });
}

/** Options within an option, or true or false. */
export function objectOrFlag<const Description extends string, const Of extends Fields>(
  description: Description,
  fields: Of,
): ObjectOrFlagField<Description, Of> {
  const inner = object("", fields);
  const expected = `true, false, or { ${Object.keys(fields).join(", ")} }`;
  const check = (value: unknown, place: OptionPlace): boolean | OptionsOf<Of> => {
    if (typeof value === "boolean") return value;
    if (isObject(value)) return inner.check(value, place);
    throw place.error(`must be ${expected}`);
  };
  return { ...either(description, boolean(""), inner), expected, check };
}

/** A field with a further check, and what that adds to its schema. */
export function refine<Description extends string, Type>(
  of: Field<Description, Type>,
  check: (value: Type, place: OptionPlace) => void,
  schema: OptionSchema = {},
): Field<Description, Type> {
  return {
    ...of,
    schema: of.schema && { ...of.schema, ...schema },
    check: (value, place) => {
      const checked = of.check(value, place);
      check(checked, place);
      return checked;
    },
  };
}

/** A field that must be set. `what` completes the error; if it is empty, the error is that of the field. */
export function required<Description extends string, Type>(
  what: string,
  of: Field<Description, Type>,
): RequiredField<Description, Type> {
  return { ...of, required: what };
}

/** A field that a config must set, since only code can set those that may replace it. */
export function requiredInConfig<Description extends string, Type>(
  of: Field<Description, Type>,
): Field<Description, Type> {
  return { ...of, isRequiredInConfig: true };
}
