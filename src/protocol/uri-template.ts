// URI templates (RFC 6570, all four levels): parses a template, expands it with values, and matches a URI against it to
// get the values back. Matching takes time linear in the length of the URI; see uri-matcher.ts.

import { ProgramBuilder, END, type Op, type Program, run, stopsAt } from "./uri-matcher.ts";

export type TemplateValue = string | number | boolean | null | undefined;
export type TemplateInput = Readonly<
  Record<string, TemplateValue | readonly TemplateValue[] | Readonly<Record<string, TemplateValue>>>
>;
export type TemplateMatch = Record<string, string | string[]>;

export interface UriTemplate {
  readonly text: string;
  /** The names of the variables without duplicates, in order. */
  readonly names: readonly string[];
  expand(values: TemplateInput): string;
  /**
   * Returns undefined if the URI does not match. The RFC does not define matching. These are our rules:
   * - `{a}` and `{+a}` are required and not empty. `{#a}`, `{.a}`, `{/a}`, `{;a}`, `{?a}` and `{&a}` are optional.
   * - Named values (`;`, `?`, `&`) may come in any order and may be empty. Only those with `*` may be repeated.
   * - A value of `{a}` ends before "/", "?" or "#". Every value is as short as the rest of the template allows.
   * - Values are percent-decoded, so they may contain any character. A URI with a value that cannot be decoded
   *   does not match.
   * - `{a*}` gives an array, everything else a string, so the types depend only on the template.
   */
  match(uri: string): TemplateMatch | undefined;
}

/** Throws a TypeError for an invalid template. */
export function parseTemplate(text: string): UriTemplate {
  return new Template(text, parseTemplateParts(text));
}

/** Undefined if the template is not valid. */
export function tryParseTemplate(text: string): UriTemplate | undefined {
  try {
    return parseTemplate(text);
  } catch {
    return undefined;
  }
}

class Template implements UriTemplate {
  readonly text: string;
  readonly names: readonly string[];
  readonly #parts: readonly Part[];
  readonly #variables: readonly Variable[];
  #program: Program | undefined;

  constructor(text: string, parts: readonly Part[]) {
    this.text = text;
    this.#parts = parts;
    this.#variables = variablesOf(parts);
    this.names = [...new Set(this.#variables.map(({ name }) => name))];
  }

  expand(values: TemplateInput): string {
    return this.#parts.map((part) => (typeof part === "string" ? encode(part, true) : expand(part, values))).join("");
  }

  match(uri: string): TemplateMatch | undefined {
    const { found } = run((this.#program ??= compile(this.#parts, this.#variables)), uri);
    return found && collect(found, uri, this.#variables);
  }
}

function expand({ operator, variables }: Expression, values: TemplateInput): string {
  const pieces: string[] = [];
  const withName = (name: string, text: string): string =>
    !operator.named ? text : name + (text === "" ? operator.empty : "=" + text);
  for (const { name, explode, prefix } of variables) {
    const value = Object.hasOwn(values, name) ? values[name] : undefined;
    if (value === undefined || value === null) continue;
    const write = (plain: TemplateValue): string => encode(String(plain), operator.reserved);
    if (typeof value !== "object") {
      const plain = String(value);
      pieces.push(withName(name, write(prefix === undefined ? plain : firstOf(plain, prefix))));
    } else if (Array.isArray(value)) {
      const items = (value as readonly TemplateValue[]).filter(isDefined).map(write);
      if (explode) pieces.push(...items.map((item) => withName(name, item)));
      else if (items.length > 0) pieces.push(withName(name, items.join(",")));
    } else {
      const pairs = Object.entries(value).filter(([, item]) => isDefined(item));
      if (explode) pieces.push(...pairs.map(([key, item]) => `${write(key)}=${write(item)}`));
      else if (pairs.length > 0) pieces.push(withName(name, pairs.map((pair) => pair.map(write).join(",")).join(",")));
    }
  }
  return pieces.length === 0 ? "" : operator.first + pieces.join(operator.between);
}

/** Counts code points, so that no surrogate pair is split. */
function firstOf(text: string, count: number): string {
  return Array.from(text).slice(0, count).join("");
}

function isDefined(value: TemplateValue): boolean {
  return value !== undefined && value !== null;
}

/** Compiles the parts for the matcher, last part first. A slot is an index into `variables`. */
function compile(parts: readonly Part[], variables: readonly Variable[]): Program {
  const build = new ProgramBuilder();
  let slot = variables.length;
  let next = END;
  for (const part of parts.toReversed()) {
    if (typeof part === "string") {
      const encoded = encode(part, true);
      next =
        encoded === part ? build.text(part, next) : build.either(build.text(encoded, next), build.text(part, next));
    } else {
      slot -= part.variables.length;
      next = part.operator.named ? addNamed(build, part, slot, next) : addUnnamed(build, part, slot, next);
    }
  }
  return build.program(next);
}

function addUnnamed(build: ProgramBuilder, { operator, variables }: Expression, slot: number, next: Op): Op {
  const { first, between } = operator;
  const hasSeparators = variables.length > 1 || variables.some(({ explode }) => explode);
  const stops = stopsAt(operator.stops + (hasSeparators ? between : ""));
  let op = next;
  for (const [index, { explode }] of [...variables.entries()].toReversed()) {
    const after = explode
      ? build.loop(op, (again) => build.text(between, build.value(slot + index, stops, 1, again)))
      : op;
    op = build.text(index === 0 ? first : between, build.value(slot + index, stops, 1, after));
    // Without a leading character, a missing value would be ambiguous, so all values are required.
    if (first !== "") op = build.either(op, next);
  }
  return op;
}

function addNamed(build: ProgramBuilder, { operator, variables }: Expression, slot: number, next: Op): Op {
  const { first, between, empty } = operator;
  const stops = stopsAt(operator.stops);
  const pairs = (after: Op): Op => {
    const ways = variables.map(({ name }, index) => {
      const valued = build.text(name + "=", build.value(slot + index, stops, 0, after));
      return empty === "=" ? valued : build.either(valued, build.text(name, build.emptyValue(slot + index, after)));
    });
    return ways.reduceRight((rest, way) => build.either(way, rest));
  };
  const more = build.loop(next, (again) => build.text(between, pairs(again)));
  return build.either(build.text(first, pairs(more)), next);
}

function collect(found: readonly number[], uri: string, variables: readonly Variable[]): TemplateMatch | undefined {
  const values = new Map<Variable, string | string[]>();
  for (let index = 0; index < found.length; index += 3) {
    const [slot, start, end] = found.slice(index, index + 3) as [number, number, number];
    const variable = variables[slot] as Variable;
    const value = decode(uri.slice(start, end));
    const known = values.get(variable);
    if (value === undefined) return undefined;
    if (Array.isArray(known)) known.push(value);
    // A name that occurs twice is ambiguous, because URI parsers disagree on which value counts.
    else if (known !== undefined) return undefined;
    else values.set(variable, variable.explode ? [value] : value);
  }
  const match: TemplateMatch = {};
  // Whole values first, so that the prefix in `{id:2}/{id}` can be compared with them.
  for (const whole of [true, false]) {
    for (const [{ name, prefix }, value] of values) {
      if ((prefix === undefined) !== whole) continue;
      if (!agrees(match, name, value, prefix)) return undefined;
      if (!Object.hasOwn(match, name)) match[name] = value;
    }
  }
  return match;
}

/** Whether the value is no longer than its prefix allows, and agrees with an earlier value of the same variable. */
function agrees(match: TemplateMatch, name: string, value: string | string[], prefix: number | undefined): boolean {
  if (typeof value === "string" && prefix !== undefined && firstOf(value, prefix) !== value) return false;
  const known = Object.hasOwn(match, name) ? match[name] : undefined;
  if (known === undefined) return true;
  if (typeof known === "string" && prefix !== undefined) return value === firstOf(known, prefix);
  if (typeof known === "string" || typeof value === "string") return known === value;
  return known.length === value.length && known.every((item, index) => item === value[index]);
}

function decode(text: string): string | undefined {
  if (!text.includes("%")) return text;
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

interface Variable {
  readonly name: string;
  readonly explode: boolean;
  readonly prefix: number | undefined;
}

interface Operator {
  readonly first: string;
  readonly between: string;
  readonly named: boolean;
  /** Whether reserved characters stay unencoded. */
  readonly reserved: boolean;
  /** The characters that end a value in a URI. */
  readonly stops: string;
  /** The separator between a name and an empty value. */
  readonly empty: string;
}

interface Expression {
  readonly operator: Operator;
  readonly variables: readonly Variable[];
}

/** A literal, or an expression in braces. */
type Part = string | Expression;

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
const MAX_TEMPLATE_LENGTH = 4096;
const MAX_VARIABLES = 64;

function parseTemplateParts(text: string): readonly Part[] {
  if (text.length > MAX_TEMPLATE_LENGTH)
    throw invalidTemplate(text, `it is longer than ${MAX_TEMPLATE_LENGTH} characters`);
  const parts: Part[] = [];
  let from = 0;
  while (from < text.length) {
    const open = text.indexOf("{", from);
    const literal = text.slice(from, open === -1 ? undefined : open);
    if (literal.includes("}")) throw invalidTemplate(text, `"}" without "{" at ${from + literal.indexOf("}")}`);
    if (literal !== "") parts.push(literal);
    if (open === -1) break;
    const close = text.indexOf("}", open);
    if (close === -1) throw invalidTemplate(text, `"{" at ${open} is never closed`);
    parts.push(parseExpression(text, text.slice(open + 1, close)));
    from = close + 1;
  }
  if (variablesOf(parts).length > MAX_VARIABLES)
    throw invalidTemplate(text, `it has more than ${MAX_VARIABLES} variables`);
  return parts;
}

function variablesOf(parts: readonly Part[]): readonly Variable[] {
  return parts.flatMap((part) => (typeof part === "string" ? [] : part.variables));
}

function parseExpression(text: string, body: string): Expression {
  const first = body.charAt(0);
  if ("=,!@|".includes(first)) {
    throw invalidTemplate(text, first === "" ? "an expression is empty" : `the operator "${first}" is reserved`);
  }
  const found = OPERATORS[first];
  const specs = (found === undefined ? body : body.slice(1)).split(",");
  return { operator: found ?? SIMPLE, variables: specs.map((spec) => parseVariable(text, spec)) };
}

function parseVariable(text: string, spec: string): Variable {
  const explode = spec.endsWith("*");
  const [name = "", length, ...rest] = (explode ? spec.slice(0, -1) : spec).split(":");
  // Setting the key `__proto__` would replace the prototype of the result.
  if (!NAME.test(name) || name === "__proto__") throw invalidTemplate(text, `"${name}" is not a valid variable name`);
  if (length === undefined) return { name, explode, prefix: undefined };
  if (explode) throw invalidTemplate(text, `"${spec}" has both a prefix and "*"`);
  if (rest.length > 0 || !/^[1-9][0-9]{0,3}$/.test(length))
    throw invalidTemplate(text, `the prefix of "${spec}" must be from 1 to 9999`);
  return { name, explode, prefix: Number(length) };
}

function invalidTemplate(text: string, problem: string): TypeError {
  const shown = text.length > 100 ? text.slice(0, 100) + "..." : text;
  return new TypeError(`Invalid URI template "${shown}": ${problem}`);
}

/** Percent-encodes a string. With `reserved`, reserved characters and existing escapes stay as they are. */
function encode(text: string, reserved: boolean): string {
  // A lone surrogate cannot be encoded as UTF-8. It becomes U+FFFD, as in TextEncoder.
  const whole = text.replace(/\p{Cs}/gu, "\ufffd");
  if (!reserved) return encodeURIComponent(whole).replace(/[!'()*]/g, escape);
  return whole.replace(/%(?![0-9A-Fa-f]{2})|[^A-Za-z0-9\-._~:/?#[\]@!$&'()*+,;=%]+/g, encodeURIComponent);
}

function escape(char: string): string {
  return "%" + char.charCodeAt(0).toString(16).toUpperCase();
}
