// Finds tools by words, and writes their signatures in one line, for callers that cannot load hundreds of definitions. It
// depends only on the list of tools, so it is here for all who show tools in this way. The search library loads on first
// use.

import type MiniSearch from "minisearch";
import { BoundedMap } from "../core/collections.ts";
import { digest } from "../core/seal.ts";
import { isObject } from "../core/values.ts";

/** A tool as it is listed. Its fields are those of an upstream, so they may have any type. */
export type ListedTool = { readonly name: string; readonly [field: string]: unknown };

/** A tool that was found. */
export interface FoundTool {
  readonly tool: ListedTool;
  /** Such as `search(query: string, limit?: integer)`. */
  readonly signature: string;
  /** The first sentence of the description, or an empty string. */
  readonly summary: string;
}

interface Document {
  readonly id: number;
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly parameters: string;
}

const FIELDS = ["name", "title", "description", "parameters"] as const;
/** A description is indexed up to here: words that matter come first, and some descriptions are manuals. */
const MAX_INDEXED = 4_000;
/** A query is read up to here: each word is compared with the whole index, a long one for long. */
const MAX_QUERY = 500;
const MAX_SUMMARY = 200;
const MAX_SIGNATURE = 300;
/** Lists for which an index is kept. Callers with equal lists share one. */
const MAX_INDEXES = 20;

/** Words of a query that are in nearly every description, and would find nearly every tool. */
const FILLERS: ReadonlySet<string> = new Set(
  `a an and are as at be by can for from how i in is it me my of on or please some that the this to want what which with
   you`.split(/\s+/),
);

export class ToolIndex {
  static readonly #known = new BoundedMap<string, Promise<ToolIndex>>(MAX_INDEXES);
  readonly #tools: readonly ListedTool[];
  readonly #search: MiniSearch<Document>;

  private constructor(tools: readonly ListedTool[], search: MiniSearch<Document>) {
    this.#tools = tools;
    this.#search = search;
  }

  /** The index of a list. An index that was made from an equal list is used again. */
  static of(tools: readonly ListedTool[]): Promise<ToolIndex> {
    const key = digest(tools);
    let found = ToolIndex.#known.get(key);
    if (found === undefined) {
      found = ToolIndex.#create(tools);
      ToolIndex.#known.set(key, found);
    }
    return found;
  }

  static async #create(tools: readonly ListedTool[]): Promise<ToolIndex> {
    const { default: Search } = await import("minisearch");
    const search = new Search<Document>({
      fields: [...FIELDS],
      tokenize: wordsOf,
      searchOptions: {
        boost: { name: 4, title: 3, parameters: 0.5 },
        prefix: (word) => word.length > 2,
        fuzzy: (word) => (word.length > 4 ? 0.2 : false),
      },
    });
    search.addAll(tools.map(documentOf));
    return new ToolIndex(tools, search);
  }

  /** The best matches first. Without a word to search for, the first tools of the list. */
  search(query: string, limit: number): { readonly found: readonly FoundTool[]; readonly total: number } {
    const words = wordsOf(query.slice(0, MAX_QUERY));
    const telling = words.filter((word) => !FILLERS.has(word.toLowerCase()));
    const text = (telling.length === 0 ? words : telling).join(" ");
    const ids = text === "" ? [...this.#tools.keys()] : this.#search.search(text).map(({ id }) => id as number);
    const found = ids.slice(0, limit).flatMap((id) => {
      const tool = this.#tools[id];
      return tool === undefined ? [] : [{ tool, signature: signatureOf(tool), summary: summaryOf(tool) }];
    });
    return { found, total: ids.length };
  }
}

/** The words of a text, also those of names such as `read_fileByPath`. */
function wordsOf(text: string): string[] {
  const apart = text.replaceAll(/(\p{Ll}|\p{N})(\p{Lu})/gu, "$1 $2");
  return apart.split(/[^\p{L}\p{N}]+/u).filter((word) => word !== "");
}

function documentOf(tool: ListedTool, id: number): Document {
  const { name, title, description, annotations } = tool;
  const shown = title ?? (isObject(annotations) ? annotations["title"] : undefined);
  const parameters = parametersOf(tool).map((one) => `${one.name} ${stringOf(one.schema["description"])}`);
  return {
    id,
    name,
    title: stringOf(shown),
    description: stringOf(description).slice(0, MAX_INDEXED),
    parameters: parameters.join(" ").slice(0, MAX_INDEXED),
  };
}

interface Parameter {
  readonly name: string;
  readonly schema: { readonly [keyword: string]: unknown };
  readonly isRequired: boolean;
}

function parametersOf({ inputSchema }: ListedTool): Parameter[] {
  if (!isObject(inputSchema) || !isObject(inputSchema["properties"])) return [];
  const required: readonly unknown[] = Array.isArray(inputSchema["required"]) ? inputSchema["required"] : [];
  return Object.entries(inputSchema["properties"]).map(([name, schema]) => ({
    name,
    schema: isObject(schema) ? schema : {},
    isRequired: required.includes(name),
  }));
}

/** How a language writes a call. */
export interface CallSyntax {
  parameter(name: string, type: string, isRequired: boolean): string;
  /** `parameters` are written by `parameter`; the last may say how many there are more. */
  call(name: string, parameters: readonly string[]): string;
}

const PLAIN: CallSyntax = {
  parameter: (name, type, isRequired) => `${name}${isRequired ? "" : "?"}: ${type}`,
  call: (name, parameters) => `${name}(${parameters.join(", ")})`,
};

/** As JavaScript calls a tool: `search({ query: string, limit?: integer })`. */
export const OBJECT_SYNTAX: CallSyntax = {
  ...PLAIN,
  call: (name, parameters) => `${name}(${parameters.length === 0 ? "" : `{ ${parameters.join(", ")} }`})`,
};

/** One line, such as `search(query: string, limit?: integer)`. Required parameters come first. */
export function signatureOf(tool: ListedTool, syntax: CallSyntax = PLAIN): string {
  const all = parametersOf(tool).toSorted((a, b) => Number(b.isRequired) - Number(a.isRequired));
  const parameters: string[] = [];
  let length = tool.name.length;
  for (const [at, { name, schema, isRequired }] of all.entries()) {
    const text = syntax.parameter(name, typeOf(schema), isRequired).slice(0, MAX_SIGNATURE);
    length += text.length + 2;
    if (length > MAX_SIGNATURE && at > 0) {
      parameters.push(`… ${all.length - at} more`);
      break;
    }
    parameters.push(text);
  }
  return oneLine(syntax.call(tool.name, parameters));
}

const MAX_CHOICES = 6;

function typeOf({ type, enum: choices, const: only, items, anyOf, oneOf }: Parameter["schema"]): string {
  if (Array.isArray(choices) && choices.length <= MAX_CHOICES)
    return choices.map((one) => JSON.stringify(one)).join(" | ");
  if (only !== undefined) return JSON.stringify(only);
  if (type === "array") return `${isObject(items) ? elementType(typeOf(items)) : "any"}[]`;
  if (typeof type === "string") return type;
  if (Array.isArray(type)) return type.join(" | ");
  const either = anyOf ?? oneOf;
  if (Array.isArray(either) && either.length <= MAX_CHOICES) {
    return [...new Set(either.map((one) => (isObject(one) ? typeOf(one) : "any")))].join(" | ");
  }
  return "any";
}

function elementType(text: string): string {
  return text.includes(" ") ? `(${text})` : text;
}

/** The first sentence of the description, or an empty string. */
export function summaryOf({ description, title }: ListedTool): string {
  const text = oneLine(stringOf(description) || stringOf(title));
  const [, sentence = text] = /^(.+?[.!?])(?:\s|$)/.exec(text) ?? [];
  return sentence.length > MAX_SUMMARY ? `${sentence.slice(0, MAX_SUMMARY)}…` : sentence;
}

function oneLine(text: string): string {
  return text.replaceAll(/\s+/g, " ").trim();
}

function stringOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}
