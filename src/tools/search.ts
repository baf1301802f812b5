// Finds tools by words, and writes their signatures in one line, for callers that cannot load hundreds of definitions.
// The search library loads on first use.

import type MiniSearch from "minisearch";
import type { SearchOptions } from "minisearch";
import { ExpiringMap } from "../core/expiring-map.ts";
import { digest } from "../core/seal.ts";
import { isObject } from "../core/values.ts";
import { stemOf, synonymsOf, wordsOf } from "./search-words.ts";

/** A tool as it is listed. Its fields are those of an upstream, so they may have any type. */
export type ListedTool = { readonly name: string; readonly [field: string]: unknown };

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
  readonly summary: string;
  readonly description: string;
  readonly parameters: string;
}

const FIELDS = ["name", "title", "summary", "description", "parameters"] as const;
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

/** How much a word that means the same counts, and a tool that says that it is deprecated. */
const SYNONYM_WEIGHT = 0.7;
const FORM_WEIGHT = 0.3;
const DEPRECATED_WEIGHT = 0.3;
/** Where a description says so; later, it may speak of something else. */
const DEPRECATED = /^[^]{0,200}\bdeprecated\b/i;

export class ToolIndex {
  static readonly #known = new ExpiringMap<string, Promise<ToolIndex>>({ maxEntries: MAX_INDEXES });
  readonly #tools: readonly ListedTool[];
  readonly #search: MiniSearch<Document>;
  /** The stems of all words in the index. */
  readonly #stems: ReadonlySet<string>;

  private constructor(tools: readonly ListedTool[], search: MiniSearch<Document>, stems: ReadonlySet<string>) {
    this.#tools = tools;
    this.#search = search;
    this.#stems = stems;
  }

  /** The index of a list. An index that was made from an equal list is used again. */
  static of(tools: readonly ListedTool[]): Promise<ToolIndex> {
    const key = digest(tools);
    let index = ToolIndex.#known.get(key);
    if (index === undefined) {
      index = ToolIndex.#create(tools);
      ToolIndex.#known.set(key, index);
    }
    return index;
  }

  static async #create(tools: readonly ListedTool[]): Promise<ToolIndex> {
    const { default: Search } = await import("minisearch");
    const stems = new Set<string>();
    const search = new Search<Document>({
      fields: [...FIELDS],
      tokenize: wordsOf,
      processTerm: (word) => {
        const stem = stemOf(word);
        stems.add(stem);
        return [stem, asWritten(word)];
      },
      searchOptions: {
        boost: { name: 4, title: 3, summary: 2, parameters: 0.5 },
        tokenize: (stem) => [stem],
        processTerm: (stem) => stem,
      },
    });
    search.addAll(tools.map(documentOf));
    return new ToolIndex(tools, search, stems);
  }

  /** The best matches first. Without a word to search for, the first tools of the list. */
  search(query: string, limit: number, offset = 0): { readonly found: readonly FoundTool[]; readonly total: number } {
    const words = wordsOf(query.slice(0, MAX_QUERY));
    const telling = words.filter((word) => !FILLERS.has(word.toLowerCase()));
    const ids = words.length === 0 ? [...this.#tools.keys()] : this.#rank(telling.length === 0 ? words : telling);
    const matches = ids.slice(offset, offset + limit).flatMap((id) => {
      const tool = this.#tools[id];
      return tool === undefined ? [] : [{ tool, signature: signatureOf(tool), summary: summaryOf(tool) }];
    });
    return { found: matches, total: ids.length };
  }

  /** Of a word and those that mean the same, the best match counts. Tools that match more of the words come first. */
  #rank(words: readonly string[]): number[] {
    const sums = new Map<number, { score: number; matched: number }>();
    for (const [stem, word] of new Map(words.map((word) => [stemOf(word), word]))) {
      const best = this.#scores(stem);
      for (const [id, score] of this.#scores(asWritten(word))) best.set(id, (best.get(id) ?? 0) + score * FORM_WEIGHT);
      for (const synonym of synonymsOf(stem)) {
        for (const [id, score] of this.#scores(synonym)) {
          best.set(id, Math.max(best.get(id) ?? 0, score * SYNONYM_WEIGHT));
        }
      }
      for (const [id, score] of best) {
        const sum = sums.get(id) ?? { score: 0, matched: 0 };
        sums.set(id, { score: sum.score + score, matched: sum.matched + 1 });
      }
    }
    const weight = (id: number): number => (isDeprecated(this.#tools[id]) ? DEPRECATED_WEIGHT : 1);
    const ranked = [...sums].map(([id, { score, matched }]) => ({ id, score: score * matched ** 2 * weight(id) }));
    return ranked.toSorted((a, b) => b.score - a.score).map(({ id }) => id);
  }

  /** A word that no tool has may be the beginning of one, or be written with a mistake. */
  #scores(stem: string): Map<number, number> {
    const isUnknown = !stem.startsWith("=") && !this.#stems.has(stem);
    const options: SearchOptions = {
      prefix: isUnknown && stem.length > 2,
      fuzzy: isUnknown && stem.length > 4 ? 0.2 : false,
    };
    return new Map(this.#search.search(stem, options).map(({ id, score }) => [Number(id), score]));
  }
}

/** The term of the word with its ending, which stems cannot be. */
function asWritten(word: string): string {
  return `=${word.toLowerCase()}`;
}

function isDeprecated(tool: ListedTool | undefined): boolean {
  return [tool?.["title"], tool?.["description"]].some((text) => DEPRECATED.test(stringOf(text)));
}

function documentOf(tool: ListedTool, id: number): Document {
  const { name, title, description, annotations } = tool;
  const shownTitle = title ?? (isObject(annotations) ? annotations["title"] : undefined);
  const parameters = parametersOf(tool).map(
    (parameter) => `${parameter.name} ${stringOf(parameter.schema["description"])}`,
  );
  return {
    id,
    name: name.slice(0, MAX_INDEXED),
    title: stringOf(shownTitle).slice(0, MAX_INDEXED),
    summary: summaryOf(tool),
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
    return choices.map((choice) => JSON.stringify(choice)).join(" | ");
  if (only !== undefined) return JSON.stringify(only);
  if (type === "array") return `${isObject(items) ? elementType(typeOf(items)) : "any"}[]`;
  if (typeof type === "string") return type;
  if (Array.isArray(type)) return type.join(" | ");
  const either = anyOf ?? oneOf;
  if (Array.isArray(either) && either.length <= MAX_CHOICES) {
    return [...new Set(either.map((schema) => (isObject(schema) ? typeOf(schema) : "any")))].join(" | ");
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

export function oneLine(text: string): string {
  return text.replaceAll(/\s+/g, " ").trim();
}

function stringOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}
