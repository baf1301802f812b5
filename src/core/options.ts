// Checks the options of public functions. An unknown option throws an error that suggests the nearest name, since a
// misspelt option that is ignored is hard to notice.

import { isObject } from "./values.ts";

const MAX_NAME_LENGTH = 100;

/**
 * The names within `maxDistance` edits, nearest first. A name that starts with `name` counts as one edit, and comes after
 * others that are as near. A name in which every character would be another one is not near.
 */
export function nearest(name: string, names: Iterable<string>, maxDistance = 2): string[] {
  // A name this long is not a typing error, and comparing it is slow.
  if (name.length > MAX_NAME_LENGTH) return [];
  const wanted = name.toLowerCase();
  return [...names]
    .map((candidate) => {
      const edits = editDistance(wanted, candidate.toLowerCase());
      const isPrefix = candidate.toLowerCase().startsWith(wanted);
      return { candidate, edits, distance: isPrefix ? Math.min(edits, 1) : edits < wanted.length ? edits : Infinity };
    })
    .filter(({ distance }) => distance <= maxDistance)
    .toSorted((a, b) => a.distance - b.distance || a.edits - b.edits)
    .map(({ candidate }) => candidate);
}

/** Damerau-Levenshtein distance (optimal string alignment): insert, delete, replace, swap neighbours. */
function editDistance(from: string, to: string): number {
  let before: readonly number[] = [];
  let row: readonly number[] = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (let i = 0; i < from.length; i += 1) {
    const next = [i + 1];
    for (let j = 0; j < to.length; j += 1) {
      const replaced = (row[j] ?? 0) + (from[i] === to[j] ? 0 : 1);
      const areSwapped = i > 0 && j > 0 && from[i] === to[j - 1] && from[i - 1] === to[j];
      const swapped = areSwapped ? (before[j - 1] ?? 0) + 1 : Infinity;
      next.push(Math.min((row[j + 1] ?? 0) + 1, (next[j] ?? 0) + 1, replaced, swapped));
    }
    before = row;
    row = next;
  }
  return row.at(-1) ?? 0;
}

/** "did you mean `x`?", or the list of names if none is near. */
export function didYouMean(name: string, names: readonly string[], noun = "options"): string {
  const [near] = nearest(name, names);
  return near === undefined ? `the ${noun} are ${names.join(", ")}` : `did you mean \`${near}\`?`;
}

/** A set of option names, typed so that a new option must be added to it. */
export type OptionNames<Options> = Readonly<Record<keyof Options, true>>;

type Words<Text extends string> = Text extends `${infer First} ${infer Rest}` ? First | Words<Rest> : Text;

/** Does not compile if a name is missing, or is not a name of the expected options. */
export function optionNames<const Text extends string, Name extends string>(
  ...names: ([Words<Text>] extends [Name] ? Text : Exclude<Words<Text>, Name>)[]
): Readonly<Record<Name & Words<Text>, true>> {
  return Object.fromEntries(names.flatMap((text) => text.split(" ")).map((name) => [name, true])) as never;
}

/** Throws a TypeError if `options` is not an object or has an option that `known` lacks. */
export function checkOptions(owner: string, options: unknown, known: object, prefix = ""): void {
  if (!isObject(options)) throw new TypeError(`${owner}: the options must be an object, not ${kindOf(options)}`);
  for (const name of Object.keys(options)) {
    if (options[name] === undefined || Object.hasOwn(known, name)) continue;
    throw new TypeError(`${owner} has no option \`${prefix}${name}\`; ${didYouMean(name, Object.keys(known))}`);
  }
}

/** An invalid or unknown option: a TypeError, as all public functions throw, with the path of the option for a config. */
export class OptionError extends TypeError {
  /** The path of the option, such as `tools.include`; empty if the options as a whole are wrong. */
  readonly option: string;

  /** `ofOwner`: the problem as one of the owner. */
  constructor(owner: string, option: string, problem: string, ofOwner?: string) {
    super(
      ofOwner === undefined ? `${owner}: ${option === "" ? "" : `\`${option}\` `}${problem}` : `${owner} ${ofOwner}`,
    );
    this.option = option;
  }
}

/** A JSON Schema. */
export type OptionSchema = Readonly<Record<string, unknown>>;

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
  readonly schema: OptionSchema | undefined;
  /** Set if the option is required: what it is. */
  readonly required?: string | undefined;
  /** The value of the option if it is not set. */
  readonly default?: Type;
  /** Whether a config must set the option, since only code can set those that may replace it. */
  readonly isRequiredInConfig?: true | undefined;
  /** Completes "expected" in an error about a config, if the schema does not say it all. */
  readonly expected?: string | undefined;
  /** What is wrong with a string that does not match the pattern of the schema, and what to write instead. */
  readonly problem?: readonly [message: string, hint: string] | undefined;
  /** The fields of an object, or of the objects in an array. */
  readonly fields?: Fields | undefined;
  /** The fields of which the value fits one. */
  readonly forms?: readonly Field[] | undefined;
  /** Whether the value is a path, or an array of paths, which a config may write relative to its folder. */
  readonly isPath?: true | undefined;
  /**
   * Set if the value, its keys or its fields are names of tools, or patterns of names. `catenary doctor` reports those that
   * no tool has.
   */
  readonly tools?: "names" | "patterns" | undefined;
  /** Returns the value, which is not undefined, or throws an OptionError. */
  readonly check: (value: unknown, place: OptionPlace) => Type;
  /** The field with a default, which its description ends with: as `inWords`, such as "64 MiB", if that reads better. */
  or<const Value extends string | number | boolean>(
    value: Value & Type,
  ): DefaultField<`${Description} Default: ${Value}.`, Type>;
  or<const Shown extends string | number>(
    value: Type,
    inWords: Shown,
  ): DefaultField<`${Description} Default: ${Shown}.`, Type>;
}

/** The fields of options, by the names of the options. */
export type Fields = Readonly<Record<string, Field>>;

/** An option that must be set. */
export interface RequiredField<Description extends string, Type> extends Field<Description, Type> {
  readonly required: string;
}

/** An option with a default. */
export interface DefaultField<Description extends string, Type> extends Field<Description, Type> {
  readonly default: Type;
}

/** An option that is an object. Fields with fields of their own have types of their own, whose names the build reads. */
export interface ObjectField<Description extends string, Of extends Fields> extends Field<Description, OptionsOf<Of>> {}
/** An option that is an object, or true or false. */
export interface ObjectOrFlagField<Description extends string, Of extends Fields> extends Field<
  Description,
  boolean | OptionsOf<Of>
> {}
/** An option that is an array of objects. */
export interface ListField<Description extends string, Of extends Fields> extends Field<
  Description,
  readonly OptionsOf<Of>[]
> {}
/** An option that is an object of objects, by any names. */
export interface MapField<Description extends string, Of extends Fields> extends Field<
  Description,
  Readonly<Record<string, OptionsOf<Of>>>
> {}

type TypeOf<Of> = Of extends Field<string, infer Type> ? Type : never;
type RequiredKeys<Of extends Fields> = {
  [Name in keyof Of]: Of[Name] extends { readonly required: string } ? Name : never;
}[keyof Of];

type Needed<Of extends Fields, Names extends keyof Of> = { readonly [Name in Names]: TypeOf<Of[Name]> };
type Possible<Of extends Fields, Names extends keyof Of> = {
  readonly [Name in Names]?: TypeOf<Of[Name]> | undefined;
};

/** The type of the options that have these fields. */
export type OptionsOf<Of extends Fields> = [RequiredKeys<Of>] extends [never]
  ? Possible<Of, keyof Of>
  : Needed<Of, RequiredKeys<Of>> & Possible<Of, Exclude<keyof Of, RequiredKeys<Of>>>;

type DefaultsOf<Of extends Fields> = {
  readonly [Name in keyof Of as Of[Name] extends { readonly default: unknown } ? Name : never]: TypeOf<Of[Name]>;
};

/** The same with the defaults, but for those of options within an option. */
export type ValuesOf<Of extends Fields> = OptionsOf<Of> & DefaultsOf<Of>;

/** Checks options, and adds the defaults. Throws an OptionError that names the owner and the option. */
export function checkFields<Of extends Fields>(options: unknown, fields: Of, place: OptionPlace): ValuesOf<Of> {
  const names = Object.keys(fields);
  // Public functions are named with parentheses.
  const isFunction = place.owner.endsWith("()");
  if (!isObject(options)) {
    if (place.path !== "") throw place.error(`must be an object with ${quoted(names)}${notValue(options)}`);
    throw isFunction
      ? new TypeError(`${place.owner}: the options must be an object, not ${kindOf(options)}`)
      : place.error(`must be an object with ${quoted(names)}`);
  }
  const unknown = Object.keys(options).find((name) => !Object.hasOwn(fields, name) && options[name] !== undefined);
  if (unknown !== undefined) {
    const { owner, path } = place.at(unknown);
    const meant = didYouMean(unknown, names);
    throw new OptionError(
      owner,
      path,
      `is not an option; ${meant}`,
      isFunction ? `has no option \`${path}\`; ${meant}` : undefined,
    );
  }
  const values: Record<string, unknown> = defaultsOf(fields);
  for (const [name, { required: what, check }] of Object.entries(fields)) {
    if (options[name] !== undefined || what === "") values[name] = check(options[name], place.at(name));
    else if (what !== undefined) throw place.at(name).error(`is required: ${what}`);
  }
  return values as ValuesOf<Of>;
}

export function defaultsOf<Of extends Fields>(fields: Of): DefaultsOf<Of> {
  const known = Object.entries(fields).filter((entry) => entry[1].default !== undefined);
  return Object.fromEntries(known.map(([name, { default: usual }]) => [name, usual])) as DefaultsOf<Of>;
}

/** With quotes, since `not` and `in` are names of options too. */
export function quoted(names: readonly string[]): string {
  return names.map((name) => `\`${name}\``).join(", ");
}

/** The schema of an object with these fields, without those that only code can set. */
export function objectSchema(fields: Fields): OptionSchema {
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

/** Quotes the value if it is short. A long string is more likely to be a secret. */
export function notValue(value: unknown): string {
  if (typeof value === "number" || typeof value === "boolean" || value === null) return `, not ${String(value)}`;
  return typeof value === "string" && value.length <= 30 ? `, not ${JSON.stringify(value)}` : "";
}

/** The kind of a value for an error message: "a string", "null", "an array". */
export function kindOf(value: unknown): string {
  if (value === null || value === undefined) return String(value);
  if (Array.isArray(value)) return "an array";
  return typeof value === "object" ? "an object" : `a ${typeof value}`;
}
