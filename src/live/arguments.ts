// Makes the JSON arguments of a tool from values of Lisp and Smalltalk, by the tool's schema. In these languages a list may
// be an array or an object, `nil` may be false, null or something empty, and a symbol may be the name `entityType`. So a
// guest sends values as its language has them, and the schema decides, at every depth. Both can be hostile: the work is
// bounded, and patterns are not run.

import { isObject } from "../core/values.ts";
import { allows, ANY, conjunction, type Shape, shapeOf } from "../tools/schema-shape.ts";

/** A value of a guest's language. Arrays are always arrays; objects have one of these members. */
type GuestValue = string | number | boolean | null | readonly GuestValue[] | MarkedValue;

interface MarkedValue {
  /** Lisp's NIL. */
  readonly nil?: true;
  /** A symbol of Lisp. Its letters are capital ones if it was written without bars. */
  readonly symbol?: string;
  readonly keyword?: string;
  /** A list of Lisp, which is an array, a property list or an association list. */
  readonly list?: readonly GuestValue[];
  /** What follows the dot at the end of the list. */
  readonly end?: GuestValue;
  /** A collection of Smalltalk, which is an object if all elements are associations. */
  readonly items?: readonly GuestValue[];
  /** An association of Smalltalk. */
  readonly pair?: readonly GuestValue[];
  /** A hash table or dictionary: keys and values in turn. */
  readonly table?: readonly GuestValue[];
}

/** The arguments cannot be sent. The message says why. */
export class ArgumentProblem extends Error {}

/** How much work trying alternatives may be. A step is about a scalar whose schema is known. */
const MAX_STEPS = 1_000_000;
/** The steps of a value with parts, and of each schema that holds where a shape is made. */
const LARGE_STEP = 30;
/** Characters of JSON that are one step to write and compare. */
const CHARS_PER_STEP = 50;
/** Choices within each other for one value. A schema may refer to itself without end. */
const MAX_CHOICES = 12;
/** What cannot be sent at all is worse than anything that a schema says. */
const UNSENDABLE = 1_000_000;
/** A property that no schema names counts less than one of a wrong type. */
const STRAY = 0.01;

const DOTTED = "A list that is circular or ends with a dot cannot be sent to a tool.";
const TOO_MANY =
  "The arguments match the choices of the tool's schema in too many ways; use arrays and tables instead of lists";

interface Fit {
  readonly json: unknown;
  /** How many places do not match the schema. */
  readonly misfits: number;
  readonly problem?: string;
}

interface Entry {
  readonly key: GuestValue;
  /** The ways to read the value, the usual first. */
  readonly values: readonly GuestValue[];
}

/** The values as JSON, where nothing says which kind of value is meant. Throws an ArgumentProblem. */
export function jsonOf(value: unknown): unknown {
  return sendable(new ArgumentMaker({}).plain(value as GuestValue));
}

/** The arguments of a call as an object; undefined if they are something else. Throws an ArgumentProblem. */
export function argumentsOf(value: unknown, schema: unknown): { readonly [name: string]: unknown } | undefined {
  const json = sendable(new ArgumentMaker(schema).arguments(value as GuestValue));
  return isObject(json) ? json : undefined;
}

function sendable({ json, problem }: Fit): unknown {
  if (problem !== undefined) throw new ArgumentProblem(problem);
  return json;
}

class ArgumentMaker {
  readonly #root: unknown;
  readonly #shapes = new Map<object, Shape>();
  readonly #fits = new Map<object, Map<object, Fit>>();
  /** The lists that begin at the second element of another one. */
  readonly #rests = new Map<object, GuestValue>();
  /** What `enum` and `const` allow: the values, those with parts as JSON, and the strings by the shape. */
  readonly #scalars = new Map<object, ReadonlySet<unknown>>();
  readonly #texts = new Map<object, ReadonlySet<string>>();
  readonly #names = new Map<Shape, ReadonlyMap<string, unknown>>();
  /** How many choices are being made now, within each other. */
  #trials = 0;
  #steps = 0;

  constructor(root: unknown) {
    this.#root = root;
  }

  arguments(value: GuestValue): Fit {
    const isNothing = value === null || (isMarked(value) && value.nil === true);
    return this.#fit(isNothing ? { table: [] } : value, { allOf: [this.#root, { type: "object" }] });
  }

  /** The value as it is without a schema. */
  plain(value: GuestValue): Fit {
    if (Array.isArray(value)) return this.#array(value, ANY);
    if (!isMarked(value)) return { json: value, misfits: 0 };
    if (value.nil === true) return { json: false, misfits: 0 };
    const symbol = symbolJson(value);
    if (symbol !== undefined) return { json: symbol, misfits: 0 };
    const entries = isUsualObject(value) ? this.#entries(value) : undefined;
    if (entries !== undefined) return this.#object(entries, ANY);
    const items = itemsOf(value);
    return items === undefined ? { json: null, misfits: UNSENDABLE, problem: DOTTED } : this.#array(items, ANY);
  }

  /** `choices`: how many alternatives were taken for this value. */
  #fit(value: GuestValue, schema: unknown, choices = 0): Fit {
    if (!isObject(schema)) {
      const { misfits, ...plain } = this.plain(value);
      return { ...plain, misfits: schema === false ? misfits + 1 : misfits };
    }
    const shape = this.#shapeOf(schema);
    const alternatives = choices < MAX_CHOICES ? shape.alternatives : [];
    const make = (): Fit =>
      this.#best(alternatives.map((alternative) => () => this.#fit(value, alternative, choices + 1))) ??
      this.#shaped(value, shape);
    const hasParts = typeof value === "object" && value !== null;
    this.#count(hasParts ? LARGE_STEP : 1);
    if (this.#trials === 0 || !hasParts) return make();
    const known = this.#fits.get(value) ?? new Map<object, Fit>();
    this.#fits.set(value, known);
    const fit = known.get(schema) ?? make();
    known.set(schema, fit);
    return fit;
  }

  /** A value is looked at again only if there are several ways to read what it is part of. */
  #count(steps: number): void {
    if (this.#trials === 0) return;
    this.#steps += steps;
    if (this.#steps > MAX_STEPS) throw new ArgumentProblem(TOO_MANY);
  }

  /** The first of the best fits. */
  #best(fits: readonly (() => Fit)[]): Fit | undefined {
    if (fits.length < 2) return fits[0]?.();
    let best: Fit | undefined;
    this.#trials += 1;
    for (const make of fits) {
      const fit = make();
      if (best === undefined || fit.misfits < best.misfits) best = fit;
      if (best.misfits === 0) break;
    }
    this.#trials -= 1;
    return best;
  }

  #shaped(value: GuestValue, shape: Shape): Fit {
    const isNil = isMarked(value) && value.nil === true;
    if (isNil || value === null) return this.#emptyFit(isNil, shape);
    if (!isMarked(value)) {
      if (Array.isArray(value) && allows(shape, "array")) return this.#checked(this.#array(value, shape), shape);
      return Array.isArray(value) ? worse(this.plain(value)) : this.#checked({ json: value, misfits: 0 }, shape);
    }
    if (symbolJson(value) !== undefined) return this.#symbolFit(value, shape);
    const readings = (["object", "array"] as const).filter((type) => allows(shape, type));
    if (!isUsualObject(value)) readings.reverse();
    const fits = readings.flatMap((type) => {
      const entries = type === "object" ? this.#entries(value) : undefined;
      if (entries !== undefined) return [() => this.#checked(this.#object(entries, shape), shape)];
      const items = type === "array" ? itemsOf(value) : undefined;
      return items === undefined ? [] : [() => this.#checked(this.#array(items, shape), shape)];
    });
    return this.#best(fits) ?? worse(this.plain(value));
  }

  #array(values: readonly GuestValue[], shape: Shape): Fit {
    const { prefix, items, minItems, maxItems } = shape;
    const fits = values.map((value, at) => this.#fit(value, at < prefix.length ? prefix[at] : items));
    const misfits = values.length < minItems || values.length > maxItems ? 1 : 0;
    return combined(
      fits.map(({ json }) => json),
      fits,
      misfits,
    );
  }

  #object(entries: readonly Entry[], shape: Shape): Fit {
    const { properties, others, required } = shape;
    const fits = new Map<string, Fit>();
    let misfits = 0;
    for (const { key, values } of entries) {
      const name = this.#nameOf(key, shape);
      // The first of equal keys counts, as in the languages themselves.
      if (fits.has(name)) continue;
      const isNamed = properties.has(name);
      if (!isNamed && properties.size > 0) misfits += STRAY;
      const schema = isNamed ? properties.get(name) : others;
      const fit = this.#best(values.map((value) => () => this.#fit(value, schema)));
      if (fit !== undefined) fits.set(name, fit);
    }
    for (const name of required) if (!fits.has(name)) misfits += 1;
    const json = Object.fromEntries([...fits].map(([name, fit]) => [name, fit.json]));
    return combined(json, [...fits.values()], misfits);
  }

  #nameOf(key: GuestValue, { properties, others }: Shape): string {
    const symbol = isMarked(key) ? (key.keyword ?? key.symbol) : undefined;
    if (symbol === undefined) return typeof key === "string" ? key : JSON.stringify(this.plain(key).json);
    if (properties.size > 0 || others !== undefined) return nameIn(symbol, properties);
    // Nothing is known of this object, so it may have names like those of the tool's parameters.
    return nameIn(symbol, isObject(this.#root) ? this.#shapeOf(this.#root).properties : properties);
  }

  /** The keys and values of a value that can be an object. */
  #entries(value: MarkedValue): readonly Entry[] | undefined {
    const { table, pair, items, list, end } = value;
    if (value.nil === true) return [];
    if (table !== undefined) return inTurn(table);
    if (pair !== undefined) return inTurn(pair);
    if (items !== undefined) {
      const pairs = items.flatMap((item) => (isMarked(item) && item.pair !== undefined ? [item.pair] : []));
      return pairs.length === items.length ? pairs.flatMap(inTurn) : undefined;
    }
    if (list === undefined || end !== undefined) return undefined;
    if (list.length % 2 === 0 && list.every((key, at) => at % 2 === 1 || isName(key))) return inTurn(list);
    const entries = list.map((element): Entry | undefined => {
      if (!isMarked(element) || element.list === undefined) return undefined;
      const [key, second] = element.list;
      if (key === undefined || !(isName(key) || typeof key === "number")) return undefined;
      const rest = this.#restOf(element);
      // Many write (:a 1) for (:a . 1).
      const isTwo = element.list.length === 2 && element.end === undefined;
      return { key, values: isTwo && second !== undefined ? [rest, second] : [rest] };
    });
    return entries.includes(undefined) ? undefined : (entries as readonly Entry[]);
  }

  #restOf(element: MarkedValue): GuestValue {
    const { list = [], end } = element;
    const known = this.#rests.get(element);
    if (known !== undefined) return known;
    const dotted = end === undefined ? {} : { end };
    const rest: GuestValue = list.length > 1 ? { list: list.slice(1), ...dotted } : (end ?? { nil: true });
    this.#rests.set(element, rest);
    return rest;
  }

  /** Counts a wrong type, and a value that is not among those that are allowed. */
  #checked(fit: Fit, shape: Shape): Fit {
    const { json } = fit;
    const isType = shape.isGuess || allows(shape, typeOf(json));
    const isAllowed = shape.allowed.length === 0 || this.#isAllowed(json, shape.allowed);
    return isType && isAllowed ? fit : { ...fit, misfits: fit.misfits + (isType ? 0 : 1) + (isAllowed ? 0 : 1) };
  }

  #isAllowed(json: unknown, allowed: Shape["allowed"]): boolean {
    this.#count(allowed.length);
    if (typeof json !== "object" || json === null) return allowed.every((values) => this.#scalarsOf(values).has(json));
    const text = this.#textOf(json);
    return allowed.every((values) => this.#textsOf(values).has(text));
  }

  #textOf(json: unknown): string {
    const text = JSON.stringify(json);
    this.#count(text.length / CHARS_PER_STEP);
    return text;
  }

  #scalarsOf(values: readonly unknown[]): ReadonlySet<unknown> {
    const known = this.#scalars.get(values) ?? new Set(values);
    this.#scalars.set(values, known);
    return known;
  }

  /** The arrays and objects among the values, as JSON. */
  #textsOf(values: readonly unknown[]): ReadonlySet<string> {
    const known = this.#texts.get(values);
    if (known !== undefined) return known;
    const texts = values
      .filter((value) => typeof value === "object" && value !== null)
      .map((value) => this.#textOf(value));
    const made = new Set(texts);
    this.#texts.set(values, made);
    return made;
  }

  /** `nil` is what the schema has of these. In Lisp it is false first; in Smalltalk, null. */
  #emptyFit(isLisp: boolean, shape: Shape): Fit {
    const usual = isLisp ? false : null;
    const empty = isLisp ? [false, [], {}, null] : [null, [], {}, false];
    if (shape.types === undefined && shape.allowed.length === 0) return { json: usual, misfits: 0 };
    const strict = { ...shape, isGuess: false };
    const fitting = empty.find((json) => this.#checked({ json, misfits: 0 }, strict).misfits === 0);
    return fitting === undefined ? this.#checked({ json: usual, misfits: 0 }, shape) : { json: fitting, misfits: 0 };
  }

  /** A symbol is the string of the schema's `enum` that has its name, or else its name in small letters. */
  #symbolFit(value: MarkedValue, shape: Shape): Fit {
    const usual = this.#checked({ json: symbolJson(value), misfits: 0 }, shape);
    if (usual.misfits === 0 || shape.allowed.length === 0) return usual;
    const names = this.#names.get(shape) ?? stringsIn(shape.allowed);
    this.#names.set(shape, names);
    if (names.size === 0) return usual;
    const json = nameIn(value.keyword ?? value.symbol ?? "", names);
    const listed = this.#checked({ json, misfits: 0 }, shape);
    return listed.misfits < usual.misfits ? listed : usual;
  }

  #shapeOf(schema: object): Shape {
    const known = this.#shapes.get(schema);
    if (known !== undefined) return known;
    const schemas = conjunction(schema, this.#root);
    const shape = shapeOf(schemas);
    const { properties, required, alternatives } = shape;
    this.#count(schemas.length * (LARGE_STEP + properties.size + required.length + alternatives.length));
    this.#shapes.set(schema, shape);
    return shape;
  }
}

function worse({ misfits, ...fit }: Fit): Fit {
  return { ...fit, misfits: misfits + 1 };
}

function combined(json: unknown, parts: readonly Fit[], misfits: number): Fit {
  let sum = misfits;
  let problem: string | undefined;
  for (const part of parts) {
    sum += part.misfits;
    problem ??= part.problem;
  }
  return { json, misfits: sum, ...(problem !== undefined && { problem }) };
}

function typeOf(json: unknown): string {
  if (json === null) return "null";
  if (Array.isArray(json)) return "array";
  return Number.isInteger(json) ? "integer" : typeof json;
}

function stringsIn(allowed: Shape["allowed"]): ReadonlyMap<string, unknown> {
  return new Map(allowed.flat().flatMap((value) => (typeof value === "string" ? [[value, true]] : [])));
}

/** These keywords are the values of JSON. */
const LITERALS: ReadonlyMap<string | undefined, unknown> = new Map<string, unknown>([
  ["TRUE", true],
  ["FALSE", false],
  ["NULL", null],
]);

/** A symbol without a schema; undefined if the value is not a symbol. */
function symbolJson({ keyword, symbol }: MarkedValue): unknown {
  if (LITERALS.has(keyword)) return LITERALS.get(keyword);
  const name = keyword ?? symbol;
  return name === undefined ? undefined : nameIn(name, NO_NAMES);
}

const NO_NAMES: ReadonlyMap<string, unknown> = new Map();
/** Names by their letters and digits in small letters; null if there are several. */
const ALIKE = new WeakMap<object, ReadonlyMap<string, string | null>>();

/** :ENTITY-TYPE is entity-type, entityType, entity_type or EntityType if there is such a name. */
function nameIn(symbol: string, names: ReadonlyMap<string, unknown>): string {
  if (/\p{Ll}/u.test(symbol)) return symbol;
  const small = symbol.toLowerCase();
  const camel = small.replaceAll(/-+(.?)/gu, (_dashes, letter: string) => letter.toUpperCase());
  const exact = [small, camel, small.replaceAll("-", "_")].find((name) => names.has(name));
  return exact ?? alikeIn(names).get(lettersOf(symbol)) ?? small;
}

function alikeIn(names: ReadonlyMap<string, unknown>): ReadonlyMap<string, string | null> {
  const known = ALIKE.get(names);
  if (known !== undefined) return known;
  const alike = new Map<string, string | null>();
  for (const name of names.keys()) alike.set(lettersOf(name), alike.has(lettersOf(name)) ? null : name);
  ALIKE.set(names, alike);
  return alike;
}

function lettersOf(name: string): string {
  return name.toLowerCase().replaceAll(/[-_]/g, "");
}

function isMarked(value: GuestValue | undefined): value is MarkedValue {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isName(value: GuestValue): boolean {
  return typeof value === "string" || (isMarked(value) && (value.keyword ?? value.symbol) !== undefined);
}

function itemsOf({ nil, list, items, end }: MarkedValue): readonly GuestValue[] | undefined {
  return nil === true ? [] : end === undefined ? (list ?? items) : undefined;
}

function inTurn(values: readonly GuestValue[]): readonly Entry[] {
  return values.flatMap((key, at) => (at % 2 === 1 ? [] : [{ key, values: [values[at + 1] ?? null] }]));
}

/** Whether a value is an object if no schema says otherwise. */
function isUsualObject({ table, pair, items, list = [], end }: MarkedValue): boolean {
  if (table !== undefined || pair !== undefined) return true;
  if (items !== undefined) return items.length > 0 && items.every((item) => isMarked(item) && item.pair !== undefined);
  if (end !== undefined || list.length === 0) return false;
  return isPropertyList(list) || (isAssociationList(list) && !list.every(isObjectItself));
}

function isKeyword(value: GuestValue | undefined): boolean {
  return isMarked(value) && value.keyword !== undefined;
}

function isPropertyList(list: readonly GuestValue[]): boolean {
  return list.length % 2 === 0 && list.every((key, at) => at % 2 === 1 || isKeyword(key));
}

/** ((:name "a") (:name "b")) is an array of objects. */
function isObjectItself(value: GuestValue): boolean {
  return isMarked(value) && value.end === undefined && isPropertyList(value.list ?? []);
}

/** Its keys are keywords, or strings in pairs with an atom. */
function isAssociationList(list: readonly GuestValue[]): boolean {
  const isPair = (value: GuestValue, isKey: (key: GuestValue | undefined) => boolean): boolean =>
    isMarked(value) && value.list !== undefined && isKey(value.list[0]);
  const isAtomPair = (value: GuestValue): boolean =>
    isPair(value, (key) => typeof key === "string") &&
    (value as MarkedValue).end !== undefined &&
    (value as MarkedValue).list?.length === 1;
  return list.every((value) => isPair(value, isKeyword)) || list.every(isAtomPair);
}
