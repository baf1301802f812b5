// Declares an option once. A field has the type of an option, its check, its JSON Schema and its description, from which
// the types of users, errors with the nearest name, the schema for editors and the tables of the docs are made.

import { MAX_DELAY_MS } from "./async.ts";
import { didYouMean, OptionError, shown } from "./options.ts";
import { isObject } from "./values.ts";

/** A JSON Schema. */
export type Schema = Readonly<Record<string, unknown>>;

/** Where an option is, for errors. */
export class OptionPlace {
  readonly owner: string;
  /** Such as `tools.include`; empty for the options as a whole. */
  readonly path: string;

  constructor(owner: string, path: string = "") {
    this.owner = owner;
    this.path = path;
  }

  at(name: string): OptionPlace {
    return new OptionPlace(this.owner, this.path === "" ? name : `${this.path}.${name}`);
  }

  error(problem: string): OptionError {
    return new OptionError(this.owner, this.path, problem);
  }
}

/** An option. The build turns `Description` into the doc comment of the option. */
export interface Field<Description extends string = string, Type = unknown> {
  readonly description: Description;
  /** Undefined if only code can set the option. */
  readonly schema: Schema | undefined;
  /** Set if the option is required: what it is. */
  readonly required?: string;
  /** Whether a config must set the option, since only code can set those that may replace it. */
  readonly isRequiredInConfig?: true;
  /** Returns the value, which is not undefined, or throws an OptionError. */
  readonly check: (value: unknown, place: OptionPlace) => Type;
}

export type Fields = Readonly<Record<string, Field>>;

/** An option that must be set. */
export interface RequiredField<Description extends string, Type> extends Field<Description, Type> {
  readonly required: string;
}

/** Fields with fields of their own have types of their own, whose names the build reads. */
export interface ObjectField<Description extends string, Of extends Fields> extends Field<Description, OptionsOf<Of>> {}
export interface ListField<Description extends string, Of extends Fields> extends Field<
  Description,
  readonly OptionsOf<Of>[]
> {}
export interface MapField<Description extends string, Of extends Fields> extends Field<
  Description,
  Readonly<Record<string, OptionsOf<Of>>>
> {}

type TypeOf<Of> = Of extends Field<string, infer Type> ? Type : never;
type RequiredKeys<Of extends Fields> = {
  [Name in keyof Of]: Of[Name] extends { readonly required: string } ? Name : never;
}[keyof Of];

// These mapped types keep the doc comments of the fields.
type Needed<Of extends Fields, Names extends keyof Of> = { readonly [Name in Names]: TypeOf<Of[Name]> };
type Possible<Of extends Fields, Names extends keyof Of> = {
  readonly [Name in Names]?: TypeOf<Of[Name]> | undefined;
};

/** The type of the options that have these fields. */
export type OptionsOf<Of extends Fields> = [RequiredKeys<Of>] extends [never]
  ? Possible<Of, keyof Of>
  : Needed<Of, RequiredKeys<Of>> & Possible<Of, Exclude<keyof Of, RequiredKeys<Of>>>;

function described(schema: Schema, description: string): Schema {
  return description === "" ? schema : { ...schema, description };
}

/** A field of any type. `expected` completes "must be"; `show` says what was given. */
export function field<const Description extends string, Type>(
  description: Description,
  schema: Schema | undefined,
  expected: string,
  fits: (value: unknown) => value is Type,
  show: (value: unknown) => string = () => "",
): Field<Description, Type> {
  const check = (value: unknown, place: OptionPlace): Type => {
    if (fits(value)) return value;
    throw place.error(`must be ${expected}${show(value)}`);
  };
  return { description, schema: schema && described(schema, description), check };
}

/** A duration in milliseconds. */
export function ms<const Description extends string>(description: Description): Field<Description, number> {
  return field(
    description,
    { type: "number", exclusiveMinimum: 0, maximum: MAX_DELAY_MS },
    `a number of milliseconds above 0, at most ${MAX_DELAY_MS}`,
    (value): value is number => typeof value === "number" && value > 0 && value <= MAX_DELAY_MS,
    shown,
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
    minimum === 0 ? "a whole number, or 0" : "a whole number above 0",
    (value): value is number => Number.isInteger(value) && (value as number) >= minimum,
    shown,
  );
}

export function boolean<const Description extends string>(description: Description): Field<Description, boolean> {
  const fits = (value: unknown): value is boolean => typeof value === "boolean";
  return field(description, { type: "boolean" }, "true or false", fits, shown);
}

function isText(value: unknown): value is string {
  return typeof value === "string" && value !== "";
}

/** A string that is not empty. */
export function string<const Description extends string>(description: Description): Field<Description, string> {
  return field(description, { type: "string", minLength: 1 }, "a non-empty string", isText, shown);
}

export function strings<const Description extends string>(
  description: Description,
): Field<Description, readonly string[]> {
  const fits = (value: unknown): value is readonly string[] => Array.isArray(value) && value.every(isText);
  const schema = { type: "array", items: { type: "string", minLength: 1 } };
  return field(description, schema, "an array of non-empty strings", fits, shown);
}

/** An object of any names, whose values are strings. */
export function stringMap<const Description extends string>(
  description: Description,
): Field<Description, Readonly<Record<string, string>>> {
  const check = (value: unknown, place: OptionPlace): Readonly<Record<string, string>> => {
    if (!isObject(value)) throw place.error(`must be an object of strings${shown(value)}`);
    for (const [key, text] of Object.entries(value)) {
      if (!isText(text) || key === "") throw place.at(key).error(`must be a non-empty string${shown(text)}`);
    }
    return value as Readonly<Record<string, string>>;
  };
  const schema = { type: "object", additionalProperties: { type: "string", minLength: 1 } };
  return { description, schema: described(schema, description), check };
}

/** One of these values. */
export function choice<const Description extends string, const Choice extends string>(
  description: Description,
  choices: readonly Choice[],
): Field<Description, Choice> {
  const all = choices.map((known) => JSON.stringify(known)).join(", ");
  const fits = (value: unknown): value is Choice => choices.includes(value as Choice);
  return field(description, { enum: choices }, all.replace(/, (?=[^,]*$)/, " or "), fits, shown);
}

/** An array of some of these values. */
export function choices<const Description extends string, const Choice extends string>(
  description: Description,
  known: readonly Choice[],
): Field<Description, readonly Choice[]> {
  const fits = (value: unknown): value is readonly Choice[] =>
    Array.isArray(value) && value.length > 0 && value.every((one) => known.includes(one as Choice));
  const all = known.map((one) => JSON.stringify(one)).join(", ");
  return field(description, { type: "array", items: { enum: known } }, `an array of ${all}`, fits);
}

/** Any object. */
export function record<const Description extends string>(
  description: Description,
): Field<Description, { readonly [key: string]: unknown }> {
  return field(description, { type: "object" }, "an object", isObject, shown);
}

/** A function, which only code can set. Its doc comment is written above it. */
export function func<Type>(): Field<"", Type> {
  const fits = (value: unknown): value is Type => typeof value === "function";
  return field("", undefined, "a function, so only code can set it", fits, shown);
}

/** Any value that only code can set. Its doc comment is written above it. */
export function code<Type>(): Field<"", Type> {
  return field("", undefined, "", (_value): _value is Type => true);
}

/** Options within an option. */
export function object<const Description extends string, const Of extends Fields>(
  description: Description,
  fields: Of,
): ObjectField<Description, Of> {
  const check = (value: unknown, place: OptionPlace): OptionsOf<Of> => checkFields(value, fields, place);
  return { description, schema: described(objectSchema(fields), description), check };
}

/** An array of objects with these fields. */
export function listOf<const Description extends string, const Of extends Fields>(
  description: Description,
  fields: Of,
): ListField<Description, Of> {
  const check = (value: unknown, place: OptionPlace): readonly OptionsOf<Of>[] => {
    if (!Array.isArray(value)) throw place.error(`must be an array of objects${shown(value)}`);
    return value.map((item, index) => checkFields(item, fields, place.at(String(index))));
  };
  return { description, schema: described({ type: "array", items: objectSchema(fields) }, description), check };
}

/** An object of any names, whose values are objects with these fields. */
export function mapOf<const Description extends string, const Of extends Fields>(
  description: Description,
  fields: Of,
): MapField<Description, Of> {
  const check = (value: unknown, place: OptionPlace): Readonly<Record<string, OptionsOf<Of>>> => {
    if (!isObject(value)) throw place.error(`must be an object${shown(value)}`);
    for (const [key, item] of Object.entries(value)) checkFields(item, fields, place.at(key));
    return value as Readonly<Record<string, OptionsOf<Of>>>;
  };
  const schema = { type: "object", additionalProperties: objectSchema(fields) };
  return { description, schema: described(schema, description), check };
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
  return { description, schema: described({ anyOf: [first.schema, second.schema] }, description), check };
}

/** A field with a further check, and what that adds to its schema. */
export function refine<Description extends string, Type>(
  of: Field<Description, Type>,
  check: (value: Type, place: OptionPlace) => void,
  schema: Schema = {},
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

/** A field that must be set. `what` says what for. */
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

/** Checks options. Throws an OptionError that names the owner and the option. */
export function checkFields<Of extends Fields>(given: unknown, fields: Of, place: OptionPlace): OptionsOf<Of> {
  const names = Object.keys(fields);
  if (!isObject(given)) {
    const isInner = place.path !== "";
    throw place.error(`must be an object with ${quoted(names)}${isInner ? shown(given) : ""}`);
  }
  const unknown = Object.keys(given).find((name) => !Object.hasOwn(fields, name) && given[name] !== undefined);
  if (unknown !== undefined) throw place.at(unknown).error(`is not an option; ${didYouMean(unknown, names)}`);
  for (const [name, { required: what, check }] of Object.entries(fields)) {
    if (given[name] !== undefined) check(given[name], place.at(name));
    else if (what !== undefined) throw place.at(name).error(`is required: ${what}`);
  }
  return given as OptionsOf<Of>;
}

/** With quotes, since `not` and `in` are names of options too. */
export function quoted(names: readonly string[]): string {
  return names.map((name) => `\`${name}\``).join(", ");
}

/** The schema of an object with these fields, without those that only code can set. */
export function objectSchema(fields: Fields): Schema {
  const inSchema = Object.entries(fields).filter(([, { schema }]) => schema !== undefined);
  const needed = inSchema
    .filter((entry) => entry[1].required !== undefined || entry[1].isRequiredInConfig === true)
    .map(([name]) => name);
  return {
    type: "object",
    properties: Object.fromEntries(inSchema.map(([name, { schema }]) => [name, schema])),
    ...(needed.length > 0 && { required: needed }),
    additionalProperties: false,
  };
}
