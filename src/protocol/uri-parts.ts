// What a URI template is made of (RFC 6570): literals, and expressions with one of eight operators. The
// text is read here, once, for both directions; expanding and matching are in uri-template.ts. Each
// operator declares its own answers in one table, so that nothing later asks which operator it is.

export interface Variable {
  readonly name: string;
  readonly explode: boolean;
  readonly prefix: number | undefined;
}

export interface Operator {
  readonly first: string;
  readonly between: string;
  readonly named: boolean;
  /** Whether reserved characters stand for themselves. */
  readonly reserved: boolean;
  /** What ends a value of this operator in a URI. */
  readonly stops: string;
  /** What stands between a name and an empty value. */
  readonly empty: string;
}

export interface Expression {
  readonly operator: Operator;
  readonly variables: readonly Variable[];
}

/** A literal, or what stood in braces. */
export type Part = string | Expression;

function operator(first: string, between: string, stops: string, more: Partial<Operator> = {}): Operator {
  return { first, between, stops, named: false, reserved: false, empty: "", ...more };
}

const SIMPLE = operator("", ",", "/?#");
const OPERATORS: Readonly<Record<string, Operator>> = {
  "+": operator("", ",", "", { reserved: true }),
  "#": operator("#", ",", "", { reserved: true }),
  ".": operator(".", ".", "/?#"),
  "/": operator("/", "/", "/?#"),
  ";": operator(";", ";", ";/?#", { named: true }),
  "?": operator("?", "&", "&#", { named: true, empty: "=" }),
  "&": operator("&", "&", "&#", { named: true, empty: "=" }),
};

const NAME = /^(?:[A-Za-z0-9_]|%[0-9A-Fa-f]{2})(?:\.?(?:[A-Za-z0-9_]|%[0-9A-Fa-f]{2}))*$/;
const MOST_TEXT = 4096;
const MOST_VARIABLES = 64;

/** Throws a TypeError that says what is wrong and where. */
export function parseParts(text: string): readonly Part[] {
  if (text.length > MOST_TEXT) throw fault(text, `it is longer than ${MOST_TEXT} characters`);
  const parts: Part[] = [];
  let place = 0;
  while (place < text.length) {
    const open = text.indexOf("{", place);
    const literal = text.slice(place, open === -1 ? undefined : open);
    if (literal.includes("}")) throw fault(text, `"}" without "{" at ${place + literal.indexOf("}")}`);
    if (literal !== "") parts.push(literal);
    if (open === -1) break;
    const close = text.indexOf("}", open);
    if (close === -1) throw fault(text, `"{" at ${open} is never closed`);
    parts.push(parseExpression(text, text.slice(open + 1, close)));
    place = close + 1;
  }
  if (variablesOf(parts).length > MOST_VARIABLES) throw fault(text, `it has more than ${MOST_VARIABLES} variables`);
  return parts;
}

export function variablesOf(parts: readonly Part[]): readonly Variable[] {
  return parts.flatMap((part) => (typeof part === "string" ? [] : part.variables));
}

function parseExpression(text: string, body: string): Expression {
  const first = body.charAt(0);
  if ("=,!@|".includes(first)) {
    throw fault(text, first === "" ? "an expression is empty" : `the operator "${first}" is not in use`);
  }
  const found = OPERATORS[first];
  const specs = (found === undefined ? body : body.slice(1)).split(",");
  return { operator: found ?? SIMPLE, variables: specs.map((spec) => parseVariable(text, spec)) };
}

function parseVariable(text: string, spec: string): Variable {
  const explode = spec.endsWith("*");
  const [name = "", length, ...rest] = (explode ? spec.slice(0, -1) : spec).split(":");
  // An object that is made with this name would lose its prototype instead of getting a value.
  if (!NAME.test(name) || name === "__proto__") throw fault(text, `"${name}" is no variable name`);
  if (length === undefined) return { name, explode, prefix: undefined };
  if (explode) throw fault(text, `"${spec}" has both a prefix and "*"`);
  if (rest.length > 0 || !/^[1-9][0-9]{0,3}$/.test(length)) throw fault(text, `"${spec}" has no prefix of 1 to 9999`);
  return { name, explode, prefix: Number(length) };
}

function fault(text: string, what: string): TypeError {
  const shown = text.length > 100 ? text.slice(0, 100) + "..." : text;
  return new TypeError(`Bad URI template "${shown}": ${what}`);
}

/** Percent-encodes what may not stand in a URI; `reserved` characters and escapes are left where asked. */
export function encode(text: string, reserved: boolean): string {
  // A lone surrogate has no UTF-8; U+FFFD is what the wire would make of it.
  const whole = text.replace(/\p{Cs}/gu, "\ufffd");
  if (!reserved) return encodeURIComponent(whole).replace(/[!'()*]/g, escape);
  return whole.replace(/%(?![0-9A-Fa-f]{2})|[^A-Za-z0-9\-._~:/?#[\]@!$&'()*+,;=%]+/g, encodeURIComponent);
}

function escape(letter: string): string {
  return "%" + letter.charCodeAt(0).toString(16).toUpperCase();
}
