// URI templates (RFC 6570, all four levels): parses a template, and matches a URI against it to get the values. URIs and
// templates may be hostile, so no part of a template is tried twice where it is known to fail, and matching takes time
// linear in the length of the URI.

/** The values of the variables of a URI template, by name. */
export type TemplateMatch = Record<string, string | string[]>;

/** Throws a TypeError for an invalid template. */
export function parseTemplate(text: string): UriTemplate {
  return new UriTemplate(text, parseTemplateParts(text));
}

/** Undefined if the template is not valid. */
export function tryParseTemplate(text: string): UriTemplate | undefined {
  try {
    return parseTemplate(text);
  } catch {
    return undefined;
  }
}

export class UriTemplate {
  readonly text: string;
  /** The names of the variables without duplicates, in order. */
  readonly names: readonly string[];
  readonly #parts: readonly Part[];

  constructor(text: string, parts: readonly Part[]) {
    this.text = text;
    this.#parts = parts;
    this.names = [...new Set(variablesOf(parts).map(({ name }) => name))];
  }

  /**
   * Returns undefined if the URI does not match, or is longer than 65,536 characters. The RFC does not define matching. These are our rules:
   * - `{a}` and `{+a}` are required and not empty. `{#a}`, `{.a}`, `{/a}`, `{;a}`, `{?a}` and `{&a}` are optional.
   * - Named values (`;`, `?`, `&`) may come in any order and may be empty. Only those with `*` may be repeated.
   * - A value of `{a}` ends before "/", "?" or "#". Every value is as short as the rest of the template allows.
   * - Values are percent-decoded, so they may contain any character. A URI with a value that cannot be decoded
   *   does not match.
   * - `{a*}` gives an array, everything else a string, so the types depend only on the template.
   */
  match(uri: string): TemplateMatch | undefined {
    // Fast path: most URIs that do not match differ at the start.
    const [first] = this.#parts;
    if (isLiteral(first) && !first.some((text) => uri.startsWith(text))) return undefined;
    if (uri.length > MAX_URI_LENGTH) return undefined;
    const matcher = new Matcher(this.#parts, uri);
    return matcher.matches(0, 0) ? collect(matcher.values, uri) : undefined;
  }
}

/** Counts code points, so that no surrogate pair is split. */
function firstOf(text: string, count: number): string {
  return Array.from(text).slice(0, count).join("");
}

type FoundValue = readonly [variable: Variable, start: number, end: number];

/**
 * Finds the values of one URI. Where a part can end is a sequence of positions; the rest is tried from each of them.
 * Where a part was tried and the rest did not match, the part is dead. So are most positions within its values, since
 * from there the part can only end where it was already tried to end.
 */
class Matcher {
  readonly values: FoundValue[] = [];
  readonly #parts: readonly Part[];
  readonly #uri: string;
  /** By part: 1 for each position where it is dead. */
  readonly #dead: Uint8Array[] = [];

  constructor(parts: readonly Part[], uri: string) {
    this.#parts = parts;
    this.#uri = uri;
  }

  /** Whether the parts from `index` on match the URI from `position` on. */
  matches(index: number, position: number): boolean {
    const part = this.#parts[index];
    if (part === undefined) return position === this.#uri.length;
    if (isLiteral(part)) {
      return part.some(
        (text) => this.#uri.startsWith(text, position) && this.matches(index + 1, position + text.length),
      );
    }
    const dead = (this.#dead[index] ??= new Uint8Array(this.#uri.length + 1));
    if (dead[position] === 1) return false;
    const ends = part.operator.named ? this.#named(part, position, dead) : this.#unnamed(part, 0, position, dead);
    for (const end of ends) if (this.matches(index + 1, end)) return true;
    dead[position] = 1;
    return false;
  }

  /** The ends of the values from the variable `index` on, the shortest values first. */
  *#unnamed(part: Expression, index: number, position: number, dead: Uint8Array): Generator<number, void, undefined> {
    const { operator, variables } = part;
    const { first, between } = operator;
    const variable = variables[index] as Variable;
    const isLast = index === variables.length - 1;
    const last = this.#parts.at(-1);
    const isList = variables.length > 1 || variable.explode;
    const lead = index === 0 ? first : between;
    const count = this.values.length;
    let start = this.#uri.startsWith(lead, position) ? position + lead.length : Infinity;
    while (start < this.#uri.length) {
      const stop = this.#stop(isList ? operator.itemChars : operator.chars, start);
      // The last value of the template can only end where the URI does, so shorter ones are not tried.
      for (let end = isLast && part === last ? Math.max(stop, start + 1) : start + 1; end <= stop; end++) {
        this.values.push([variable, start, end]);
        if (isLast) yield end;
        else yield* this.#unnamed(part, index + 1, end, dead);
        this.values.pop();
      }
      const hasMore = variable.explode && stop > start && this.#uri.startsWith(between, stop);
      // Where the value begins, an expression with a leading character may also be absent, which was not tried.
      if (index === 0 || variable.explode) dead.fill(1, start + (first === "" ? 0 : 1), hasMore ? stop + 1 : stop);
      if (!hasMore) break;
      this.values.push([variable, start, stop]);
      start = stop + between.length;
    }
    this.values.length = count;
    // Without a leading character, a missing value would be ambiguous, so all values are required.
    if (first !== "") yield position;
  }

  /** The ends of pairs of names and values, in any order. */
  *#named(part: Expression, position: number, dead: Uint8Array): Generator<number, void, undefined> {
    const { operator, variables } = part;
    const { first, between, empty, chars } = operator;
    const last = this.#parts.at(-1);
    const uri = this.#uri;
    const count = this.values.length;
    let start = uri.startsWith(first, position) ? position + first.length : undefined;
    while (start !== undefined) {
      let next: FoundValue | undefined;
      for (const variable of variables) {
        const after = start + variable.name.length;
        if (!uri.startsWith(variable.name, start)) continue;
        const isValued = uri.startsWith("=", after);
        if (!isValued && empty !== "") continue;
        const from = isValued ? after + 1 : after;
        const to = isValued ? this.#stop(chars, from) : after;
        for (let end = part === last ? to : from; end <= to; end++) {
          this.values.push([variable, from, end]);
          yield end;
          this.values.pop();
        }
        const hasMore = uri.startsWith(between, to);
        dead.fill(1, from, hasMore ? to + 1 : to);
        if (hasMore) next = [variable, from, to];
      }
      if (next !== undefined) this.values.push(next);
      start = next && next[2] + between.length;
    }
    this.values.length = count;
    yield position;
  }

  /** Where a value that starts at `start` ends at the latest. `chars` is sticky. */
  #stop(chars: RegExp, start: number): number {
    chars.lastIndex = start;
    chars.test(this.#uri);
    return chars.lastIndex;
  }
}

function collect(matches: readonly FoundValue[], uri: string): TemplateMatch | undefined {
  const values = new Map<Variable, string | string[]>();
  for (const [variable, start, end] of matches) {
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
  /** The characters of a value in a URI, and those of one of several values. */
  readonly chars: RegExp;
  readonly itemChars: RegExp;
  /** The separator between a name and an empty value. */
  readonly empty: string;
}

interface Expression {
  readonly operator: Operator;
  readonly variables: readonly Variable[];
}

/** A literal as a URI has it, percent-encoded, and as the template has it if that differs. */
type Literal = readonly [string] | readonly [string, string];
type Part = Literal | Expression;

function isLiteral(part: Part | undefined): part is Literal {
  return Array.isArray(part);
}

/** `stops` are the characters that end a value in a URI. */
function operator(first: string, between: string, stops: string, more: Partial<Operator> = {}): Operator {
  const chars = new RegExp(`[^${stops}]*`, "y");
  const itemChars = new RegExp(`[^${stops}${between}]*`, "y");
  return { first, between, chars, itemChars, named: false, empty: "", ...more };
}

const SIMPLE = operator("", ",", "/?#");
const OPERATORS: Readonly<Record<string, Operator>> = {
  "+": operator("", ",", ""),
  "#": operator("#", ",", ""),
  ".": operator(".", ".", "/?#"),
  "/": operator("/", "/", "/?#"),
  ";": operator(";", ";", ";/?#", { named: true }),
  "?": operator("?", "&", "&#", { named: true, empty: "=" }),
  "&": operator("&", "&", "&#", { named: true, empty: "=" }),
};

const NAME = /^(?:[A-Za-z0-9_]|%[0-9A-Fa-f]{2})(?:\.?(?:[A-Za-z0-9_]|%[0-9A-Fa-f]{2}))*$/;
const MAX_TEMPLATE_LENGTH = 4096;
/** A longer URI matches no template. */
export const MAX_URI_LENGTH = 65_536;
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
    const encoded = encode(literal);
    if (literal !== "") parts.push(encoded === literal ? [literal] : [encoded, literal]);
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
  return parts.flatMap((part) => (isLiteral(part) ? [] : part.variables));
}

function parseExpression(text: string, body: string): Expression {
  const first = body.charAt(0);
  if ("=,!@|".includes(first)) {
    throw invalidTemplate(text, first === "" ? "an expression is empty" : `the operator "${first}" is reserved`);
  }
  const operator = OPERATORS[first];
  const specs = (operator === undefined ? body : body.slice(1)).split(",");
  return { operator: operator ?? SIMPLE, variables: specs.map((spec) => parseVariable(text, spec)) };
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
  const shortened = text.length > 100 ? text.slice(0, 100) + "..." : text;
  return new TypeError(`Invalid URI template "${shortened}": ${problem}`);
}

/** Percent-encodes what a URI cannot have. Reserved characters and existing escapes stay as they are. */
function encode(literal: string): string {
  // A lone surrogate cannot be encoded as UTF-8. It becomes U+FFFD, as in TextEncoder.
  const whole = literal.replace(/\p{Cs}/gu, "\ufffd");
  return whole.replace(/%(?![0-9A-Fa-f]{2})|[^A-Za-z0-9\-._~:/?#[\]@!$&'()*+,;=%]+/g, encodeURIComponent);
}
