// Changes what lists say about tools, prompts and resources: titles, descriptions, schemas, annotations and icons. Names
// stay as they are, and so do requests and results: an upstream gets the arguments as the caller has written them.

import type { Context, Handler, Middleware, Request, Result } from "../../core/handler.ts";
import { OPTION_SCHEMAS, OptionReader, type OptionsHelp } from "../../core/options.ts";
import { defined, isObject } from "../../core/values.ts";
import { LIST_CAPABILITIES, type ListCapability } from "../../protocol/lists.ts";
import { LISTS_BY_METHOD, mapItems } from "../result-items.ts";
import { matchesGlob } from "./filter.ts";

type Fields = { readonly [key: string]: unknown };

/** What to say about an item. What is not set stays as it is. */
interface ItemDescription {
  /** A name for people. */
  readonly title?: string | undefined;
  /** What the item is, for models and people. */
  readonly description?: string | undefined;
  /** Pictures for people: `[{ src, mimeType, sizes }]`. */
  readonly icons?: readonly Fields[] | undefined;
}

/** What to say about a tool. */
export interface ToolDescription extends ItemDescription {
  /** Descriptions of single parameters, by their names. */
  readonly parameters?: Readonly<Record<string, string>> | undefined;
  /** The JSON Schema of the arguments, in place of the upstream's. */
  readonly inputSchema?: Fields | undefined;
  /** The JSON Schema of the structured content, in place of the upstream's. */
  readonly outputSchema?: Fields | undefined;
  /** Added to the annotations of the upstream, or in place of those with the same names. */
  readonly annotations?:
    | {
        readonly title?: string | undefined;
        readonly readOnlyHint?: boolean | undefined;
        readonly destructiveHint?: boolean | undefined;
        readonly idempotentHint?: boolean | undefined;
        readonly openWorldHint?: boolean | undefined;
      }
    | undefined;
}

/** What to say about a prompt. */
export interface PromptDescription extends ItemDescription {
  /** Descriptions of single arguments, by their names. */
  readonly arguments?: Readonly<Record<string, string>> | undefined;
}

/** What to say about a resource or a template. */
export interface ResourceDescription extends ItemDescription {
  /** The type of its contents. */
  readonly mimeType?: string | undefined;
  /** Added to the annotations of the upstream: `audience`, `priority`, `lastModified`. */
  readonly annotations?: Fields | undefined;
}

/** Options of `describe()`. In the names, `*` matches any characters. If several match, the later ones win. */
export interface DescribeOptions {
  /** Tools by their names. */
  readonly tools?: Readonly<Record<string, ToolDescription>> | undefined;
  /** Prompts by their names. */
  readonly prompts?: Readonly<Record<string, PromptDescription>> | undefined;
  /** Resources by their URI, templates by their URI template. */
  readonly resources?: Readonly<Record<string, ResourceDescription>> | undefined;
}

const TEXT = { type: "string", minLength: 1 } as const;
const OBJECT = { type: "object" } as const;
const HINTS = ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"] as const;

const ITEM = {
  title: { ...TEXT, description: "A name for people." },
  description: { ...TEXT, description: "What it is, for models and people." },
  icons: { type: "array", items: { type: "object", required: ["src"] }, description: "Pictures: [{ src, mimeType }]." },
} as const;

/** The fields of an entry, by kind of item. */
const FIELDS: Readonly<Record<ListCapability, Readonly<Record<string, Readonly<Record<string, unknown>>>>>> = {
  tools: {
    ...ITEM,
    parameters: { ...OPTION_SCHEMAS.stringMap, description: "Descriptions of single parameters." },
    inputSchema: { ...OBJECT, description: "The JSON Schema of the arguments." },
    outputSchema: { ...OBJECT, description: "The JSON Schema of the structured content." },
    annotations: {
      type: "object",
      properties: { title: TEXT, ...Object.fromEntries(HINTS.map((hint) => [hint, OPTION_SCHEMAS.boolean])) },
      additionalProperties: false,
      description: "Added to the annotations of the upstream.",
    },
  },
  prompts: {
    ...ITEM,
    arguments: { ...OPTION_SCHEMAS.stringMap, description: "Descriptions of single arguments." },
  },
  resources: {
    ...ITEM,
    mimeType: { ...TEXT, description: "The type of its contents." },
    annotations: { ...OBJECT, description: "Added to the annotations of the upstream." },
  },
};

const entries = (capability: ListCapability): Readonly<Record<string, unknown>> => ({
  type: "object",
  additionalProperties: { type: "object", properties: FIELDS[capability], additionalProperties: false },
});

export const DESCRIBE: OptionsHelp<DescribeOptions> = {
  summary: "Changes titles, descriptions, schemas, annotations and icons in lists.",
  options: {
    tools: { ...entries("tools"), description: "Tools by their names; `*` matches any characters." },
    prompts: { ...entries("prompts"), description: "Prompts by their names." },
    resources: { ...entries("resources"), description: "Resources by their URI, templates by their URI template." },
  },
};

/** One entry of the options. */
interface Rule {
  readonly glob: string;
  readonly description: string | undefined;
  readonly change: (item: Fields) => Fields;
}

/**
 * Changes what lists say about tools, prompts and resources.
 *
 * @example
 * describe({ tools: { search: { description: "Searches the notes", annotations: { readOnlyHint: true } } } })
 */
export function describe(options: DescribeOptions): Middleware {
  const read = new OptionReader("describe", options, LIST_CAPABILITIES);
  if (LIST_CAPABILITIES.every((capability) => read.any(capability) === undefined)) {
    throw read.error("", "must have entries for `tools`, `prompts` or `resources`");
  }
  const rules: Readonly<Record<ListCapability, readonly Rule[]>> = {
    tools: readRules(read, "tools"),
    prompts: readRules(read, "prompts"),
    resources: readRules(read, "resources"),
  };
  const getPrompt = async (request: Request, context: Context, next: Handler): Promise<Result> => {
    const result = await next(request, context);
    const matching = rules.prompts.filter(({ glob }) => matchesGlob(glob, request.params["name"] as string));
    const description = matching.findLast((rule) => rule.description !== undefined)?.description;
    return description === undefined || result["description"] === undefined ? result : { ...result, description };
  };
  return function describe(request, context, next) {
    const { method } = request;
    if (method === "prompts/get" && rules.prompts.length > 0) return getPrompt(request, context, next);
    const list = LISTS_BY_METHOD.get(method);
    if (list === undefined || rules[list.capability].length === 0) return next(request, context);
    const matching = rules[list.capability];
    const change = (item: Fields, name: string): Fields =>
      matching.reduce((changed, rule) => (matchesGlob(rule.glob, name) ? rule.change(changed) : changed), item);
    return next(request, context).then((result) => mapItems(result, list, change));
  };
}

function readRules(read: OptionReader, capability: ListCapability): readonly Rule[] {
  return read.entries(capability, Object.keys(FIELDS[capability])).map(([glob, entry]) => {
    const plain = defined({
      title: entry.string("title"),
      description: entry.string("description"),
      icons: readIcons(entry),
      mimeType: entry.string("mimeType"),
      inputSchema: entry.object("inputSchema"),
      outputSchema: entry.object("outputSchema"),
    });
    if (plain.inputSchema !== undefined && plain.inputSchema["type"] !== "object") {
      throw entry.error("inputSchema", 'must have the type "object"');
    }
    const annotations = capability === "tools" ? readHints(entry) : entry.object("annotations");
    const parameters = entry.stringMap(capability === "prompts" ? "arguments" : "parameters");
    const describeParameters = capability === "prompts" ? withArgumentDescriptions : withParameterDescriptions;
    const change = (item: Fields): Fields => {
      const changed = { ...item, ...plain, ...(annotations && { annotations: merged(item, annotations) }) };
      return parameters.size === 0 ? changed : describeParameters(changed, parameters);
    };
    return { glob, description: plain.description, change };
  });
}

function readIcons(entry: OptionReader): readonly Fields[] | undefined {
  const icons = entry.any("icons");
  const isIcon = (icon: unknown): icon is Fields => isObject(icon) && typeof icon["src"] === "string";
  if (icons === undefined || (Array.isArray(icons) && icons.every(isIcon))) return icons;
  throw entry.error("icons", "must be an array of icons, such as [{ src: ... }]");
}

function readHints(entry: OptionReader): Fields | undefined {
  if (entry.any("annotations") === undefined) return undefined;
  const given = entry.inner("annotations", ["title", ...HINTS]);
  return defined({
    title: given.string("title"),
    ...Object.fromEntries(HINTS.map((hint) => [hint, given.boolean(hint)])),
  });
}

function merged({ annotations }: Fields, added: Fields): Fields {
  return isObject(annotations) ? { ...annotations, ...added } : added;
}

/** Parameters that the schema does not have are ignored. */
function withParameterDescriptions(item: Fields, descriptions: ReadonlyMap<string, string>): Fields {
  const { inputSchema } = item;
  const properties = isObject(inputSchema) ? inputSchema["properties"] : undefined;
  if (!isObject(inputSchema) || !isObject(properties)) return item;
  const described = Object.entries(properties).map(([name, schema]) => {
    const description = descriptions.get(name);
    // A schema may be `true`, for any value.
    return [name, description === undefined ? schema : { ...(isObject(schema) && schema), description }] as const;
  });
  return { ...item, inputSchema: { ...inputSchema, properties: Object.fromEntries(described) } };
}

function withArgumentDescriptions(item: Fields, descriptions: ReadonlyMap<string, string>): Fields {
  const { arguments: all } = item;
  if (!Array.isArray(all)) return item;
  const described = (all as readonly unknown[]).map((one) => {
    const description = isObject(one) ? descriptions.get(one["name"] as string) : undefined;
    return isObject(one) && description !== undefined ? { ...one, description } : one;
  });
  return { ...item, arguments: described };
}
