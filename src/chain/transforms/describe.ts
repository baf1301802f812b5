// Changes what lists say about tools, prompts and resources: titles, descriptions, schemas, annotations and icons. Names
// stay as they are, and so do requests: an upstream gets the arguments as the caller has written them.

import {
  boolean,
  field,
  mapOf,
  object,
  ofTools,
  record,
  refine,
  string,
  stringMap,
  type OptionsOf,
} from "../../core/fields.ts";
import { defined, isObject } from "../../core/values.ts";
import type { Middleware } from "../../core/handler.ts";
import { matchesGlob } from "../../core/text.ts";
import { LIST_CAPABILITIES, type ListCapability } from "../../protocol/lists.ts";
import { define, type DefinedMiddleware, type DefinitionPlace } from "../define.ts";
import { kindsOf, type Layer } from "../layer.ts";
import { capabilityOf } from "../named-items.ts";

type Fields = { readonly [key: string]: unknown };

const ITEM = {
  title: string("A name for people."),
  description: string("What it is, for models and people."),
  icons: field(
    "Pictures: [{ src, mimeType }].",
    { type: "array", items: { type: "object", required: ["src"] } },
    "an array of icons, such as [{ src: ... }]",
    (value): value is readonly Fields[] =>
      Array.isArray(value) && value.every((icon) => isObject(icon) && typeof icon["src"] === "string"),
  ),
};

const TOOL = {
  ...ITEM,
  parameters: stringMap("Descriptions of single parameters."),
  inputSchema: refine(record("The JSON Schema of the arguments."), (schema, place) => {
    if (schema["type"] !== "object") throw place.error('must have the type "object"');
  }),
  outputSchema: record("The JSON Schema of the structured content."),
  annotations: object("Added to the annotations of the upstream.", {
    title: string(""),
    readOnlyHint: boolean(""),
    destructiveHint: boolean(""),
    idempotentHint: boolean(""),
    openWorldHint: boolean(""),
  }),
};

const PROMPT = {
  ...ITEM,
  arguments: stringMap("Descriptions of single arguments."),
};

const RESOURCE = {
  ...ITEM,
  mimeType: string("The type of its contents."),
  annotations: record("Added to the annotations of the upstream."),
};

const OPTIONS = {
  tools: ofTools(mapOf("Tools by their names; `*` matches any characters.", TOOL)),
  prompts: mapOf("Prompts by their names.", PROMPT),
  resources: mapOf("Resources by their URI, templates by their URI template.", RESOURCE),
};

/** What to say about a tool. What is not set stays as it is. */
export type ToolDescription = OptionsOf<typeof TOOL>;
/** What to say about a prompt. What is not set stays as it is. */
export type PromptDescription = OptionsOf<typeof PROMPT>;
/** What to say about a resource or a template. What is not set stays as it is. */
export type ResourceDescription = OptionsOf<typeof RESOURCE>;
/** Options of `describe()`. In the names, `*` matches any characters. If several match, the later ones win. */
export type DescribeOptions = OptionsOf<typeof OPTIONS>;

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
export const describe: DefinedMiddleware<[options: DescribeOptions]> = define({
  name: "describe",
  summary: "Changes titles, descriptions, schemas, annotations and icons in lists.",
  options: OPTIONS,
  layer: createDescribe,
});

function createDescribe(options: DescribeOptions, { error }: DefinitionPlace): Layer {
  const concerned = LIST_CAPABILITIES.filter((capability) => options[capability] !== undefined);
  if (concerned.length === 0) throw error("", "must have entries for `tools`, `prompts` or `resources`");
  const rules: Readonly<Record<ListCapability, readonly Rule[]>> = {
    tools: readRules(options.tools, ({ parameters, ...rest }) => [rest, parameters]),
    prompts: readRules(options.prompts, ({ arguments: parameters, ...rest }) => [rest, parameters]),
    resources: readRules(options.resources, (rest) => [rest]),
  };
  return {
    transform: {
      kinds: kindsOf(concerned),
      item: (item) => {
        const { definition, kind, name } = item;
        const matching = rules[capabilityOf(kind)].filter(({ glob }) => matchesGlob(glob, name));
        if (definition === undefined || matching.length === 0) return item;
        return item.change({
          definition: matching.reduce<Fields>((changed, rule) => rule.change(changed), definition),
        });
      },
    },
    ...(rules.prompts.length > 0 && { middleware: describingPrompts(rules.prompts) }),
  };
}

/** A prompt says its description also when it is used. */
function describingPrompts(rules: readonly Rule[]): Middleware {
  return (request, context, next) => {
    const outcome = next(request, context);
    if (request.method !== "prompts/get") return outcome;
    const matching = rules.filter(({ glob }) => matchesGlob(glob, request.params["name"] as string));
    const description = matching.findLast((rule) => rule.description !== undefined)?.description;
    if (description === undefined) return outcome;
    return outcome.then((result) => (result["description"] === undefined ? result : { ...result, description }));
  };
}

type Description = ToolDescription | PromptDescription | ResourceDescription;

/** `split` separates the descriptions of parameters or arguments from what replaces fields of an item. */
function readRules<Of extends Description>(
  entries: Readonly<Record<string, Of>> = {},
  split: (entry: Of) => [rest: Description, parameters?: Readonly<Record<string, string>> | undefined],
): readonly Rule[] {
  return Object.entries(entries).map(([glob, entry]) => {
    const [rest, parameters = {}] = split(entry);
    const { annotations, ...plain } = defined(rest as Fields);
    const descriptions = new Map(Object.entries(parameters));
    const change = (item: Fields): Fields => {
      const added = isObject(annotations) && { annotations: merged(item, defined(annotations)) };
      const changed = { ...item, ...plain, ...added };
      return descriptions.size === 0 ? changed : withDescriptions(changed, descriptions);
    };
    return { glob, description: entry.description, change };
  });
}

function withDescriptions(item: Fields, descriptions: ReadonlyMap<string, string>): Fields {
  return withArgumentDescriptions(withParameterDescriptions(item, descriptions), descriptions);
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
  const described = (all as readonly unknown[]).map((parameter) => {
    const description = isObject(parameter) ? descriptions.get(parameter["name"] as string) : undefined;
    return isObject(parameter) && description !== undefined ? { ...parameter, description } : parameter;
  });
  return { ...item, arguments: described };
}
