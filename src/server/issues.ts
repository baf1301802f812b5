// What comes of checking a value against a schema, whichever kind of schema it was: the value, or lines of
// text that name each fault, for a model to read and mend.

/** A value as the schema leaves it (defaults filled in, unknown fields dropped), or what is wrong with it. */
export type Checked = { readonly value: unknown; readonly issues?: undefined } | { readonly issues: readonly string[] };
export type Check = (value: unknown) => Checked | Promise<Checked>;

/** A place as a person would write it; "" is the whole. */
export function placeText(path: readonly PropertyKey[]): string {
  return path
    .map((part, index) => (typeof part === "number" ? `[${part}]` : (index === 0 ? "" : ".") + String(part)))
    .join("");
}

/** One line for one fault: where it is, and what it is. */
export function issueText(path: readonly PropertyKey[], message: string): string {
  const place = placeText(path);
  // Some libraries name the place themselves.
  return place === "" || message.startsWith(`${place} must`) ? message : `${place}: ${message}`;
}
