// What a form shows for a JSON Schema: a field for each property, as far as a person can fill it in. What is too general
// for a field, such as a choice between objects, becomes a field for JSON. Nothing of a schema is run or followed: only
// references within it are.

export type Schema = { readonly [keyword: string]: unknown };

interface Common {
  readonly name: string;
  readonly title: string | undefined;
  readonly description: string | undefined;
  readonly required: boolean;
  readonly default: unknown;
}

export interface Choice {
  readonly value: unknown;
  readonly label: string;
}

export type FieldType =
  | { readonly type: "text"; readonly input: "text" | "email" | "url" | "date" | "lines" }
  | { readonly type: "number"; readonly isInteger: boolean }
  | { readonly type: "boolean" }
  | { readonly type: "choice"; readonly choices: readonly Choice[] }
  | { readonly type: "choices"; readonly choices: readonly Choice[] }
  | { readonly type: "list"; readonly item: "text" | "number" }
  | { readonly type: "object"; readonly fields: readonly Field[] }
  | { readonly type: "json" };

export type Field = Common & FieldType & { readonly schema: Schema };

/** Deeper objects are written as JSON. */
const MAX_DEPTH = 4;
/** More fields make a page slow, and nobody fills them in. */
const MAX_FIELDS = 300;
const MAX_CHOICES = 500;
/** Strings that are longer than a line more often than not. */
const LONG =
  /^(?:body|text|content|contents|code|script|sql|description|message|markdown|html|prompt|instructions|input)$/i;

/** What the fields of one form have in common. */
interface Whole {
  readonly root: unknown;
  /** How many more fields it may have. */
  left: number;
  /** Objects whose fields it has no room for, so that many references to one do not count them again and again. */
  readonly tooLarge: Set<Schema>;
}

/**
 * The fields of a schema for an object. Undefined if it has no properties, so that its value is written as JSON. Of very
 * many properties some have no field (`restOf`); an object within, for whose fields there is no room, is one for JSON.
 */
export function fieldsOf(schema: unknown): readonly Field[] | undefined {
  const whole = { root: schema, left: MAX_FIELDS, tooLarge: new Set<Schema>() };
  return fieldsIn(resolve(schema, schema) ?? {}, whole, []);
}

/** How many properties of the schema are not among its fields. */
export function restOf(schema: unknown, fields: readonly Field[]): number {
  const properties = resolve(schema, schema)?.["properties"];
  return isObject(properties) ? Object.keys(properties).length - fields.length : 0;
}

/** `path`: the objects that this one is in. One that is in itself would have no end. */
function fieldsIn(schema: Schema, whole: Whole, path: readonly Schema[]): readonly Field[] | undefined {
  const { properties, required: names } = schema;
  if (!isObject(properties) || path.length > MAX_DEPTH) return undefined;
  if (path.includes(schema) || whole.tooLarge.has(schema)) return undefined;
  const required = new Set<unknown>(Array.isArray(names) ? names : []);
  let entries = Object.entries(properties);
  if (entries.length > whole.left) {
    if (path.length > 0) {
      whole.tooLarge.add(schema);
      return undefined;
    }
    const rank = ([name]: readonly [string, unknown]): number => (required.has(name) ? 0 : 1);
    entries = entries.toSorted((one, other) => rank(one) - rank(other)).slice(0, whole.left);
  }
  // Those of this object first, before the objects within it take theirs.
  whole.left -= entries.length;
  const inner = [...path, schema];
  return entries.map(([name, property]) => fieldOf(name, property, required.has(name), whole, inner));
}

function fieldOf(name: string, property: unknown, required: boolean, whole: Whole, path: readonly Schema[]): Field {
  const schema = resolve(property, whole.root) ?? {};
  const outer = isObject(property) ? property : {};
  const text = (key: string): string | undefined => {
    const value = outer[key] ?? schema[key];
    return typeof value === "string" && value !== "" ? value : undefined;
  };
  return {
    name,
    title: text("title"),
    description: text("description"),
    required,
    default: outer["default"] ?? schema["default"],
    schema,
    ...typeOf(name, schema, whole, path),
  };
}

function typeOf(name: string, schema: Schema, whole: Whole, path: readonly Schema[]): FieldType {
  const choices = choicesOf(schema);
  if (choices !== undefined) return { type: "choice", choices };
  const { format, maxLength, items } = schema;
  switch (plainType(schema)) {
    case "string": {
      if (format === "email") return { type: "text", input: "email" };
      if (format === "uri") return { type: "text", input: "url" };
      if (format === "date") return { type: "text", input: "date" };
      const isLong = LONG.test(name) || (typeof maxLength === "number" && maxLength > 200);
      const isBounded = typeof maxLength === "number" && maxLength <= 120;
      return { type: "text", input: isLong && !isBounded ? "lines" : "text" };
    }
    case "integer":
      return { type: "number", isInteger: true };
    case "number":
      return { type: "number", isInteger: false };
    case "boolean":
      return { type: "boolean" };
    case "array": {
      const item = resolve(items, whole.root) ?? {};
      const several = choicesOf(item);
      if (several !== undefined) return { type: "choices", choices: several };
      const of = plainType(item);
      if (of === "string") return { type: "list", item: "text" };
      if (of === "integer" || of === "number") return { type: "list", item: "number" };
      return { type: "json" };
    }
    case "object": {
      const fields = fieldsIn(schema, whole, path);
      return fields === undefined || fields.length === 0 ? { type: "json" } : { type: "object", fields };
    }
    default:
      return { type: "json" };
  }
}

/** The one type that a value may have besides null. */
function plainType({ type }: Schema): unknown {
  if (!Array.isArray(type)) return type;
  const types = type.filter((one) => one !== "null");
  return types.length === 1 ? types[0] : undefined;
}

/** The values of `enum`, or of constants with titles. */
function choicesOf(schema: Schema): readonly Choice[] | undefined {
  const { enum: values, enumNames, oneOf, anyOf } = schema;
  if (Array.isArray(values) && values.length > 0 && values.length <= MAX_CHOICES && values.every(isSimple)) {
    const names: readonly unknown[] = Array.isArray(enumNames) ? enumNames : [];
    return values.map((value: unknown, at) => ({
      value,
      label: typeof names[at] === "string" ? names[at] : String(value),
    }));
  }
  const options = oneOf ?? anyOf;
  if (!Array.isArray(options) || options.length === 0 || options.length > MAX_CHOICES) return undefined;
  const constants = options.filter((option) => isObject(option) && isSimple(option["const"]));
  if (constants.length !== options.length) return undefined;
  return constants.map((option: Schema) => ({
    value: option["const"],
    label: typeof option["title"] === "string" ? option["title"] : String(option["const"]),
  }));
}

/** The schema that a reference, a single part or a choice with null stands for. Undefined if that is not one object. */
function resolve(schema: unknown, root: unknown, steps = 0): Schema | undefined {
  if (!isObject(schema) || steps > 20) return undefined;
  const { $ref: reference, allOf, anyOf, oneOf } = schema;
  if (typeof reference === "string") return resolve(pointed(reference, root), root, steps + 1);
  if (Array.isArray(allOf) && allOf.length === 1 && schema["properties"] === undefined) {
    return resolve(allOf[0], root, steps + 1);
  }
  const options = anyOf ?? oneOf;
  if (Array.isArray(options) && choicesOf(schema) === undefined) {
    const others = options.filter((option) => !(isObject(option) && option["type"] === "null"));
    if (others.length === 1 && others.length < options.length) return resolve(others[0], root, steps + 1);
  }
  return schema;
}

function pointed(reference: string, root: unknown): unknown {
  if (!reference.startsWith("#")) return undefined;
  return reference
    .slice(1)
    .split("/")
    .slice(1)
    .reduce<unknown>((at, part) => {
      const key = part.replaceAll("~1", "/").replaceAll("~0", "~");
      return isObject(at) && Object.hasOwn(at, key) ? at[key] : undefined;
    }, root);
}

/** The defaults of the fields, for a form that nobody has filled in yet. */
export function defaultsOf(fields: readonly Field[]): Record<string, unknown> {
  const values: Record<string, unknown> = {};
  for (const field of fields) {
    if (field.default !== undefined) values[field.name] = field.default;
    else if (field.type === "object") {
      const inner = defaultsOf(field.fields);
      if (Object.keys(inner).length > 0) values[field.name] = inner;
    } else if (field.required && field.type === "boolean") values[field.name] = false;
  }
  return values;
}

/** What is wrong with the values, by the path of the field: `name`, `inner.name`, `list.0`. */
export function problemsIn(fields: readonly Field[], values: unknown, path = ""): Record<string, string> {
  const given = isObject(values) ? values : {};
  const problems: Record<string, string> = {};
  for (const field of fields) {
    const at = `${path}${field.name}`;
    const value = given[field.name];
    if (value === undefined) {
      if (field.required) problems[at] = "This is required.";
      continue;
    }
    const problem = problemOf(field, value);
    if (problem !== undefined) problems[at] = problem;
    else if (field.type === "object") {
      for (const [inner, text] of Object.entries(problemsIn(field.fields, value, `${at}.`))) problems[inner] = text;
    }
  }
  return problems;
}

function problemOf(field: Field, value: unknown): string | undefined {
  const { schema } = field;
  const types = [schema["type"]].flat().filter((type) => typeof type === "string");
  if (types.length > 0 && !types.some((type) => hasType(value, type))) {
    return `This must be ${types.map(named).join(" or ")}.`;
  }
  if (field.type === "choice" && !field.choices.some((choice) => choice.value === value) && value !== null) {
    return "Choose one of the values.";
  }
  const limit = (key: string): number | undefined => {
    const bound = schema[key];
    return typeof bound === "number" ? bound : undefined;
  };
  if (typeof value === "string") {
    // In code points, as JSON Schema counts.
    const length = [...value].length;
    const [min, max] = [limit("minLength"), limit("maxLength")];
    if (min === 1 && length === 0) return "This is required.";
    if (min !== undefined && length < min) return `This must have at least ${min} characters.`;
    if (max !== undefined && length > max) return `This must have at most ${max} characters.`;
    if (schema["format"] === "email" && !/^[^\s@]+@[^\s@]+$/.test(value)) return "This must be an email address.";
    if (schema["format"] === "uri" && !URL.canParse(value)) return "This must be a URL.";
  } else if (typeof value === "number") {
    const [min, max] = [limit("minimum"), limit("maximum")];
    const [over, under] = [limit("exclusiveMinimum"), limit("exclusiveMaximum")];
    if (min !== undefined && value < min) return `This must be at least ${min}.`;
    if (max !== undefined && value > max) return `This must be at most ${max}.`;
    if (over !== undefined && value <= over) return `This must be more than ${over}.`;
    if (under !== undefined && value >= under) return `This must be less than ${under}.`;
  } else if (Array.isArray(value)) {
    const [min, max] = [limit("minItems"), limit("maxItems")];
    if (min !== undefined && value.length < min) return `This must have at least ${min} values.`;
    if (max !== undefined && value.length > max) return `This must have at most ${max} values.`;
    if (field.type === "list" && field.item === "number" && !value.every((one) => typeof one === "number")) {
      return "These must be numbers.";
    }
  }
  return undefined;
}

function hasType(value: unknown, type: string): boolean {
  switch (type) {
    case "integer":
      return Number.isInteger(value);
    case "array":
      return Array.isArray(value);
    case "object":
      return isObject(value) && !Array.isArray(value);
    case "null":
      return value === null;
    default:
      return typeof value === type;
  }
}

function named(type: string): string {
  const names: Readonly<Record<string, string>> = {
    string: "text",
    number: "a number",
    integer: "a whole number",
    boolean: "true or false",
    array: "a list",
    object: "an object",
    null: "null",
  };
  return names[type] ?? type;
}

function isSimple(value: unknown): boolean {
  return ["string", "number", "boolean"].includes(typeof value);
}

export function isObject(value: unknown): value is Schema {
  return typeof value === "object" && value !== null;
}
