// Random schemas of tools with values that match them, and these values as code in each language that can call tools, in
// the different ways in which people write them there. For tests of what arrives at a tool.

type Json = null | boolean | number | string | readonly Json[] | { readonly [name: string]: Json };

/** A value, and what the schema at its place says, which decides how it may be written. */
interface Sample {
  readonly json: Json;
  /** The types that its place allows; undefined if it is one of several choices, or anything. */
  readonly types?: readonly string[];
  /** The parts of an array or object. */
  readonly parts?: readonly Sample[];
  /** The names of the parts. */
  readonly names?: readonly string[];
  /** Whether the schema names the properties. */
  readonly isNamed?: boolean;
  /** Whether the schema lists the strings that are allowed. */
  readonly isEnum?: boolean;
}

interface RandomType {
  readonly schema: object;
  value(): Sample;
}

export interface RandomCase {
  readonly schema: object;
  readonly args: Json;
  /** The call of a tool with these arguments. */
  code(language: "js" | "lisp" | "smalltalk", tool: string): string;
}

const STEMS = [
  "entity type",
  "page size",
  "name",
  "URL",
  "is open",
  "row ids",
  "max depth",
  "kind of",
  "tags",
  "due date",
];
const STATES = ["open", "in_progress", "IN_REVIEW", "doneNow", "won't-fix", "A"];
const WORDS = ["", "x", "two words", "naïve", 'say "hi"', "it's", "back\\slash", "true", "nil", "a-b", "5"];

export class RandomArguments {
  #state: number;
  #definitions: Record<string, object> = {};

  constructor(seed: number) {
    this.#state = seed;
  }

  next(): RandomCase {
    this.#definitions = {};
    const { schema, value } = this.#object(3, 1);
    const sample = value();
    const code = (language: string, tool: string): string => {
      if (language === "lisp") return `(call-tool ${lispString(tool)} ${this.#lisp(sample)})`;
      if (language === "smalltalk") return `Tools call: '${tool}' with: ${this.#smalltalk(sample)}.`;
      return `await tools.call(${JSON.stringify(tool)}, ${JSON.stringify(sample.json)});`;
    };
    return { schema: { ...schema, $defs: this.#definitions }, args: sample.json, code };
  }

  /** From 0 to 1, without 1. */
  #random(): number {
    this.#state = (Math.imul(this.#state, 1_664_525) + 1_013_904_223) >>> 0;
    return this.#state / 2 ** 32;
  }

  #below(count: number): number {
    return Math.floor(this.#random() * count);
  }

  #pick<T>(from: readonly T[]): T {
    return from[this.#below(from.length)] as T;
  }

  #isChosen(): boolean {
    return this.#random() < 0.5;
  }

  /** So many different ones, in random order. */
  #some<T>(from: readonly T[], count: number): T[] {
    const left = [...from];
    return Array.from({ length: count }, () => left.splice(this.#below(left.length), 1)).flat();
  }

  #type(depth: number): RandomType {
    const scalars = ["string", "enum", "integer", "number", "boolean", "null", "const"];
    const nested = [
      "array",
      "array",
      "tuple",
      "object",
      "object",
      "map",
      "nullable",
      "anyOf",
      "oneOf",
      "ref",
      "tree",
      "allOf",
      "any",
    ];
    const kind = this.#pick(depth === 0 ? scalars : [...scalars, ...nested, ...nested]);
    switch (kind) {
      case "string":
      case "integer":
      case "number":
      case "boolean":
      case "null":
        return this.#scalar(kind);
      case "enum":
        return {
          schema: { enum: STATES },
          value: () => ({ json: this.#pick(STATES), types: ["string"], isEnum: true }),
        };
      case "const":
        return { schema: { const: "fixed" }, value: () => ({ json: "fixed", types: ["string"], isEnum: true }) };
      case "array":
        return this.#array(depth);
      case "tuple": {
        const elements = [this.#type(depth - 1), this.#type(depth - 1)];
        const schema = { type: "array", prefixItems: elements.map((one) => one.schema), items: false };
        return { schema, value: () => arrayOf(elements.map((one) => one.value())) };
      }
      case "map":
        return this.#map(depth);
      case "nullable":
        return this.#nullable(depth);
      case "anyOf":
        return this.#choice("anyOf", [
          this.#scalar(this.#pick(["integer", "boolean"])),
          this.#array(depth),
          this.#object(depth),
        ]);
      case "oneOf":
        return this.#variants(depth);
      case "ref": {
        const inner = this.#type(depth - 1);
        return { schema: this.#define(inner.schema), value: inner.value };
      }
      case "tree":
        return this.#tree(depth);
      case "allOf":
        return this.#merged(depth);
      case "any":
        return { schema: {}, value: () => exact(this.#type(depth - 1).value()) };
      default:
        return this.#object(depth);
    }
  }

  #scalar(type: string): RandomType {
    const json = (): Json => {
      if (type === "string") return this.#pick(WORDS);
      if (type === "integer") return this.#below(2_000_000) - 1_000_000;
      if (type === "number") return (this.#below(4_000) - 2_000) / 8;
      return type === "boolean" ? this.#isChosen() : null;
    };
    return { schema: { type }, value: () => ({ json: json(), types: [type] }) };
  }

  #array(depth: number): RandomType {
    const items = this.#type(depth - 1);
    return {
      schema: { type: "array", items: items.schema },
      value: () => arrayOf(Array.from({ length: this.#below(4) }, () => items.value())),
    };
  }

  #object(depth: number, fewest = 0): RandomType {
    const fields = this.#some(STEMS, fewest + this.#below(4)).map((stem) => ({
      name: this.#nameOf(stem),
      type: this.#type(depth - 1),
      isRequired: this.#isChosen(),
    }));
    const required = fields.flatMap(({ name, isRequired }) => (isRequired ? [name] : []));
    const schema = {
      type: "object",
      properties: Object.fromEntries(fields.map(({ name, type }) => [name, type.schema])),
      ...(required.length > 0 && { required }),
      ...(this.#isChosen() && { additionalProperties: false }),
    };
    const value = (): Sample => {
      const present = fields.filter(({ isRequired }) => isRequired || this.#isChosen());
      return objectOf(
        present.map(({ name, type }) => [name, type.value()]),
        true,
      );
    };
    return { schema, value };
  }

  #map(depth: number): RandomType {
    const member = this.#type(depth - 1);
    const names = ["a key", "x-y", "A", "é"];
    return {
      schema: { type: "object", additionalProperties: member.schema },
      value: () =>
        objectOf(
          this.#some(names, this.#below(4)).map((name) => [name, member.value()]),
          false,
        ),
    };
  }

  #nullable(depth: number): RandomType {
    const { schema, value } = this.#pick([
      this.#array(depth),
      this.#object(depth),
      this.#scalar("string"),
      this.#scalar("boolean"),
    ]);
    const { type } = schema as { readonly type: string };
    const types = [type, "null"];
    return {
      schema: { ...schema, type: types },
      value: () => ({ ...(this.#random() < 0.3 ? { json: null } : value()), types }),
    };
  }

  #choice(keyword: string, types: readonly RandomType[]): RandomType {
    const schema = { [keyword]: types.map((one) => one.schema) };
    return { schema, value: () => exactTop(this.#pick(types).value()) };
  }

  /** Objects that a property tells apart, with properties that others lack. */
  #variants(depth: number): RandomType {
    const types = ["first", "second"].map((kind, at): RandomType => {
      const member = this.#type(depth - 1);
      const name = this.#nameOf(STEMS[at] ?? "");
      const properties = { sort: { const: kind }, [name]: member.schema };
      const sort: Sample = { json: kind, types: ["string"], isEnum: true };
      return {
        schema: { type: "object", properties, required: ["sort"] },
        value: () =>
          objectOf(
            [
              ["sort", sort],
              [name, member.value()],
            ],
            true,
          ),
      };
    });
    return { schema: { oneOf: types.map(({ schema }) => schema) }, value: () => this.#pick(types).value() };
  }

  #tree(depth: number): RandomType {
    const at = `Tree${Object.keys(this.#definitions).length}`;
    const $ref = `#/$defs/${at}`;
    const label = this.#scalar("string");
    const properties = { nodeLabel: label.schema, childNodes: { type: "array", items: { $ref } } };
    this.#definitions[at] = { type: "object", properties, required: ["nodeLabel"], additionalProperties: false };
    const value = (levels: number): Sample => {
      const children = levels === 0 ? 0 : this.#below(3);
      const childNodes = arrayOf(Array.from({ length: children }, () => value(levels - 1)));
      const optional: [string, Sample][] = children > 0 || this.#isChosen() ? [["childNodes", childNodes]] : [];
      return objectOf([["nodeLabel", label.value()], ...optional], true);
    };
    return { schema: { $ref }, value: () => value(depth) };
  }

  #merged(depth: number): RandomType {
    const [first, second] = [this.#type(depth - 1), this.#type(depth - 1)];
    const part = (name: string, schema: object): object => ({
      type: "object",
      properties: { [name]: schema },
      required: [name],
    });
    return {
      schema: { allOf: [this.#define(part("leftSide", first.schema)), part("right_side", second.schema)] },
      value: () =>
        objectOf(
          [
            ["leftSide", first.value()],
            ["right_side", second.value()],
          ],
          true,
        ),
    };
  }

  #define(schema: object): object {
    const name = `Type${Object.keys(this.#definitions).length}`;
    this.#definitions[name] = schema;
    return { $ref: `#/$defs/${name}` };
  }

  #nameOf(stem: string): string {
    const words = stem.split(" ");
    const camel = words.map((word, at) => (at === 0 ? word : word.charAt(0).toUpperCase() + word.slice(1))).join("");
    return this.#pick([camel, words.join("_"), words.join("-")]);
  }

  #lisp(sample: Sample): string {
    const { json, types, parts = [], names, isEnum } = sample;
    const mayBeNil = types !== undefined && this.#isChosen();
    if (json === null) return mayBeNil && types.every((one) => one === "null" || one === "string") ? "nil" : ":null";
    if (json === false) return mayBeNil ? "nil" : ":false";
    if (json === true) return this.#pick(["t", ":true"]);
    if (typeof json === "number") {
      if (Number.isInteger(json)) return this.#pick([`${json}`, `${json}d0`]);
      return this.#pick([`${json}d0`, `(/ ${json * 8} 8)`]);
    }
    if (typeof json === "string") {
      const isSymbol = isEnum === true && /^[\w-]+$/.test(json);
      return isSymbol && this.#isChosen() ? lispKeyword(json) : lispString(json);
    }
    const isExact = types === undefined;
    if (names === undefined) {
      if (parts.length === 0) return mayBeNil ? "nil" : "(vector)";
      return `(${isExact ? "vector" : this.#pick(["list", "vector"])} ${parts.map((part) => this.#lisp(part)).join(" ")})`;
    }
    if (names.length === 0) return mayBeNil ? "nil" : "(table)";
    const form = isExact ? "table" : this.#pick(["table", "list", "alist"]);
    const pairs = names.map((name, at) => {
      const key =
        sample.isNamed === true && form !== "table" && this.#isChosen() ? lispKeyword(name) : lispString(name);
      return { key, value: this.#lisp(parts[at] as Sample) };
    });
    if (form === "alist") return `(list ${pairs.map(({ key, value }) => `(cons ${key} ${value})`).join(" ")})`;
    return `(${form} ${pairs.map(({ key, value }) => `${key} ${value}`).join(" ")})`;
  }

  #smalltalk(sample: Sample): string {
    const { json, types, parts = [], names } = sample;
    // Nothing else could be meant.
    const mayBeNil = types?.length === 1 && this.#isChosen();
    if (json === null) return "nil";
    if (json === false && mayBeNil) return "nil";
    if (typeof json === "boolean") return String(json);
    if (typeof json === "number") {
      if (Number.isInteger(json) || this.#isChosen()) return json < 0 ? `(0 - ${-json})` : `${json}`;
      return json < 0 ? `((0 - ${-json * 8}) / 8)` : `(${json * 8} / 8)`;
    }
    if (typeof json === "string") return smalltalkString(json);
    const isExact = types === undefined;
    if (names === undefined) {
      if (parts.length === 0 && mayBeNil) return "nil";
      const items = `{${parts.map((part) => this.#smalltalk(part)).join(". ")}}`;
      return this.#pick([items, `(OrderedCollection new addAll: ${items}; yourself)`]);
    }
    if (names.length === 0 && mayBeNil) return "nil";
    const pairs = names.map((name, at) => [smalltalkString(name), this.#smalltalk(parts[at] as Sample)] as const);
    if (!isExact && this.#isChosen()) return `{${pairs.map(([key, value]) => `${key} -> ${value}`).join(". ")}}`;
    return `(Dictionary new ${pairs.map(([key, value]) => `at: ${key} put: ${value}; `).join("")}yourself)`;
  }
}

/** A value that is written so that it can be nothing else. */
function exact(sample: Sample): Sample {
  return {
    ...exactTop(sample),
    ...(sample.parts && { parts: sample.parts.map(exact) }),
    isNamed: false,
    isEnum: false,
  };
}

function exactTop({ types: _types, ...sample }: Sample): Sample {
  return sample;
}

function arrayOf(parts: readonly Sample[]): Sample {
  return { json: parts.map(({ json }) => json), types: ["array"], parts };
}

function objectOf(members: readonly (readonly [string, Sample])[], isNamed: boolean): Sample {
  return {
    json: Object.fromEntries(members.map(([name, { json }]) => [name, json])),
    types: ["object"],
    parts: members.map(([, part]) => part),
    names: members.map(([name]) => name),
    isNamed,
  };
}

function lispString(text: string): string {
  return `"${text.replaceAll(/["\\]/g, "\\$&")}"`;
}

/** `entityType`, `entity_type` and `entity-type` are all :entity-type. */
function lispKeyword(name: string): string {
  return `:${name
    .replaceAll(/(?<=[a-z])[A-Z]/g, "-$&")
    .replaceAll("_", "-")
    .toLowerCase()}`;
}

function smalltalkString(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}
