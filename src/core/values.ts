// Small helpers for plain objects and error messages.

export function isObject(value: unknown): value is { readonly [key: string]: unknown } {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The fields of a value that may be anything; none if it is not an object. */
export function fieldsOf(value: unknown): { readonly [key: string]: unknown } {
  return isObject(value) ? value : {};
}

export function isStrings(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((item) => typeof item === "string");
}

/** Options: each field may be absent, or undefined. */
export type Optional<Fields> = { readonly [Key in keyof Fields]?: Fields[Key] | undefined };

type Defined<Fields> = { [Key in keyof Fields]: Exclude<Fields[Key], undefined> };

/** A copy without the fields that are undefined. */
export function defined<Fields extends object>(fields: Fields): Defined<Fields> {
  const copy: Partial<Fields> = {};
  // A loop, since this is called for every call of a client.
  for (const key in fields) {
    if (fields[key] !== undefined) copy[key] = fields[key];
  }
  return copy as Defined<Fields>;
}

/** Freezes JSON that several requests share, so that code that changes it fails and does not affect the others. */
export function deepFreeze<Value>(value: Value): Value {
  if (typeof value !== "object" || value === null || Object.isFrozen(value)) return value;
  for (const inner of Object.values(Object.freeze(value))) deepFreeze(inner);
  return value;
}

/** JSON.stringify, with a type that says that some values have no JSON form. */
export const jsonOf: (value: unknown) => string | undefined = JSON.stringify;

/** The message of a thrown value. Never throws, even if the value's getters do. */
export function errorMessage(error: unknown): string {
  try {
    const text: unknown = error instanceof Error ? error.message : error;
    if (typeof text === "symbol") return text.toString();
    const converted = String(text);
    // A thrown object: its message, as an Error has one, or what it contains.
    if (converted !== "[object Object]") return converted;
    const { message } = fieldsOf(text);
    return typeof message === "string" && message !== "" ? message : JSON.stringify(text).slice(0, 500);
  } catch {
    return "a value that cannot be converted to a string";
  }
}

/** The code of an error of the system or of Node, such as ENOENT. */
export function systemErrorCode(error: unknown): string | undefined {
  const { code } = fieldsOf(error);
  return typeof code === "string" ? code : undefined;
}

/** A thrown value as an Error that can be read. Never throws, even if the value is a Proxy whose traps throw. */
export function asError(thrown: unknown): Error {
  try {
    const isReadable = thrown instanceof Error && typeof thrown.message === "string" && typeof thrown.name === "string";
    if (isReadable) return thrown;
  } catch {
    // As for any other value.
  }
  const text = errorMessage(thrown);
  return new Error(thrown === undefined || thrown === null ? `${text} was thrown instead of an error` : text);
}

/** The end of a program's output, at most `length` characters: whole lines, unless the last line is longer. */
export function lastLines(text: string, length: number): string {
  const trimmed = text.trim();
  if (trimmed.length <= length) return trimmed;
  const last = trimmed.slice(-length);
  const start = trimmed.at(-length - 1) === "\n" ? 0 : last.indexOf("\n") + 1;
  return last.slice(start).trim();
}

/**
 * A copy that may be changed: the same as a spread. Where V8 has seen objects of many shapes, it makes a new hidden class
 * for each spread, which takes longer, and stays in memory until the next full collection.
 */
export function copyFields<Value>(value: { readonly [key: string]: Value }): { [key: string]: Value } {
  return addFields({}, value);
}

/** Adds the fields to the object, and returns the object. */
export function addFields<Value>(
  object: { [key: string]: Value },
  fields: { readonly [key: string]: Value } | undefined,
): { [key: string]: Value } {
  if (fields !== undefined) for (const name of Object.keys(fields)) putField(object, name, fields[name] as Value);
  return object;
}

/** Sets a field whose name may be that of any JSON: the key `__proto__` becomes an own property too. */
export function putField<Value>(object: { [key: string]: Value }, name: string, value: Value): void {
  if (name !== "__proto__") object[name] = value;
  else Object.defineProperty(object, name, { value, enumerable: true, configurable: true, writable: true });
}
