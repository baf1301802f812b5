// URI templates (RFC 6570, all four levels), read once and used both ways: expanded with values, and
// matched against a URI to find the values. Matching the RFC leaves open; here these rules hold:
// - `{a}` and `{+a}` must be there and not be empty; `{#a}`, `{.a}`, `{/a}`, `{;a}`, `{?a}`, `{&a}` may
//   be left out; the named ones (`;`, `?`, `&`) may come in any order, each once, and may be empty;
// - `{a}` stops at "/", "?" and "#"; a value takes as little as lets the rest match;
// - values are percent-decoded (so they may hold any character) and one that cannot be is no match;
// - `{a*}` gives a list, all others one string, so what a handler gets depends on the template alone.
// The work of a match is linear in the URI (uri-machine.ts).

import { Assembler, END, type Op, type Program, run, stopsAt } from "./uri-machine.ts";
import { encode, type Expression, parseParts, type Part, type Variable, variablesOf } from "./uri-parts.ts";

export type TemplateValue = string | number | boolean | null | undefined;
export type TemplateInput = Readonly<
  Record<string, TemplateValue | readonly TemplateValue[] | Readonly<Record<string, TemplateValue>>>
>;
export type TemplateMatch = Record<string, string | string[]>;

export interface UriTemplate {
  readonly text: string;
  /** Each variable once, in the order of the template. */
  readonly names: readonly string[];
  expand(values: TemplateInput): string;
  match(uri: string): TemplateMatch | undefined;
}

/** Throws a TypeError that says what is wrong with the template. */
export function parseTemplate(text: string): UriTemplate {
  return new Template(text, parseParts(text));
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
  const said = (name: string, text: string): string =>
    !operator.named ? text : name + (text === "" ? operator.empty : "=" + text);
  for (const { name, explode, prefix } of variables) {
    const value = Object.hasOwn(values, name) ? values[name] : undefined;
    if (value === undefined || value === null) continue;
    const write = (plain: TemplateValue): string => encode(String(plain), operator.reserved);
    if (typeof value !== "object") {
      const plain = String(value);
      pieces.push(said(name, write(prefix === undefined ? plain : firstOf(plain, prefix))));
    } else if (Array.isArray(value)) {
      const items = (value as readonly TemplateValue[]).filter(isThere).map(write);
      if (explode) pieces.push(...items.map((item) => said(name, item)));
      else if (items.length > 0) pieces.push(said(name, items.join(",")));
    } else {
      const pairs = Object.entries(value).filter(([, item]) => isThere(item));
      if (explode) pieces.push(...pairs.map(([key, item]) => `${write(key)}=${write(item)}`));
      else if (pairs.length > 0) pieces.push(said(name, pairs.map((pair) => pair.map(write).join(",")).join(",")));
    }
  }
  return pieces.length === 0 ? "" : operator.first + pieces.join(operator.between);
}

/** By characters, so that none is cut in two. */
function firstOf(text: string, count: number): string {
  return Array.from(text).slice(0, count).join("");
}

function isThere(value: TemplateValue): boolean {
  return value !== undefined && value !== null;
}

/** Slots of the machine are places in the list of all variables. */
function compile(parts: readonly Part[], variables: readonly Variable[]): Program {
  const lay = new Assembler();
  let slot = variables.length;
  let next = END;
  for (const part of parts.toReversed()) {
    if (typeof part === "string") {
      const encoded = encode(part, true);
      next = encoded === part ? lay.text(part, next) : lay.either(lay.text(encoded, next), lay.text(part, next));
    } else {
      slot -= part.variables.length;
      next = part.operator.named ? layNamed(lay, part, slot, next) : layBare(lay, part, slot, next);
    }
  }
  return lay.program(next);
}

function layBare(lay: Assembler, { operator, variables }: Expression, slot: number, next: Op): Op {
  const { first, between } = operator;
  const divided = variables.length > 1 || variables.some(({ explode }) => explode);
  const stops = stopsAt(operator.stops + (divided ? between : ""));
  let place = next;
  for (const [index, { explode }] of [...variables.entries()].toReversed()) {
    const after = explode
      ? lay.loop(place, (again) => lay.text(between, lay.value(slot + index, stops, 1, again)))
      : place;
    place = lay.text(index === 0 ? first : between, lay.value(slot + index, stops, 1, after));
    // Without a mark at its front nothing tells which value was left out, so none may be.
    if (first !== "") place = lay.either(place, next);
  }
  return place;
}

function layNamed(lay: Assembler, { operator, variables }: Expression, slot: number, next: Op): Op {
  const { first, between, empty } = operator;
  const stops = stopsAt(operator.stops);
  const pairs = (after: Op): Op => {
    const ways = variables.map(({ name }, index) => {
      const valued = lay.text(name + "=", lay.value(slot + index, stops, 0, after));
      return empty === "=" ? valued : lay.either(valued, lay.text(name, lay.nothing(slot + index, after)));
    });
    return ways.reduceRight((rest, way) => lay.either(way, rest));
  };
  const more = lay.loop(next, (again) => lay.text(between, pairs(again)));
  return lay.either(lay.text(first, pairs(more)), next);
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
    // A name that comes twice where one value is meant: which of them counted would depend on the reader.
    else if (known !== undefined) return undefined;
    else values.set(variable, variable.explode ? [value] : value);
  }
  const match: TemplateMatch = {};
  // Whole values first, so that `{id:2}/{id}` can be held against them.
  for (const whole of [true, false]) {
    for (const [{ name, prefix }, value] of values) {
      if ((prefix === undefined) !== whole) continue;
      if (!agrees(match, name, value, prefix)) return undefined;
      if (!Object.hasOwn(match, name)) match[name] = value;
    }
  }
  return match;
}

/** A variable that stands in two places has one value. */
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
