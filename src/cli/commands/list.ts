// `catenary tools|prompts TARGET [NAME]` and `catenary resources TARGET`: list what a server offers, or show one tool or
// prompt. The other commands find a tool or a prompt here.

import type { CallOptions } from "../../client/calls.ts";
import type { Client } from "../../client/client.ts";
import { boolean } from "../../core/fields.ts";
import { isObject } from "../../core/values.ts";
import { McpError, METHOD_NOT_FOUND } from "../../protocol/errors.ts";
import { OWN_NAMES, UPSTREAM } from "../../protocol/lists.ts";
import type {
  ListResourceTemplatesResult,
  Prompt,
  Resource,
  ResourceTemplate,
  Tool,
} from "../../protocol/model/index.ts";
import { EXIT, withKey } from "../command.ts";
import { type Command, unexpectedArguments } from "../define.ts";
import {
  findMissingUpstreams,
  listStyle,
  missingUpstreamsMeta,
  noteMissingUpstreams,
  promptDetail,
  promptList,
  resourceList,
  toolDetail,
  toolList,
  type ListResult,
  type ListStyle,
} from "../show/lists.ts";
import { formatCodeTools, reportCodeTools } from "../show/code-cost.ts";
import { notFound } from "../target/arguments.ts";
import { targetCommand, type TargetLine } from "../target/target.ts";
import { withClient, type CommandContext } from "../target/with-client.ts";
import { printJson, printTrusted } from "../terminal/output.ts";

/** Tools and prompts have names, so one of them can be shown alone. */
export interface NamedKind<Item> {
  readonly noun: "tool" | "prompt";
  /** The items are under the plural of the noun. */
  list(client: Client, options: CallOptions): Promise<ListResult>;
  format(items: readonly Item[], style: ListStyle): string;
  detail(item: Item, style: ListStyle): string;
}

export const TOOLS: NamedKind<Tool> = {
  noun: "tool",
  list: (client, options) => client.listTools(options),
  format: toolList,
  detail: toolDetail,
};

export const PROMPTS: NamedKind<Prompt> = {
  noun: "prompt",
  list: (client, options) => client.listPrompts(options),
  format: promptList,
  detail: promptDetail,
};

/** Throws a NotFoundError if there is none. First notes missing upstreams, since one of them may have it. */
export async function findNamed<Item extends { readonly name: string }>(
  kind: NamedKind<Item>,
  name: string,
  { client, callOptions, busy, note }: CommandContext,
): Promise<Item> {
  const { noun } = kind;
  busy(`Listing ${noun}s`);
  const listed = await kind.list(client, callOptions);
  const valid = withKey<Item>(listed[`${noun}s`], "name");
  const item = valid.find((candidate) => candidate.name === name);
  if (item !== undefined) return item;
  const [only, ...others] = valid.filter((candidate) => isFullName(name, candidate));
  if (only !== undefined && others.length === 0) return only;
  noteMissingUpstreams(findMissingUpstreams(listed), note);
  throw notFound(
    noun,
    name,
    valid.map((item) => item.name),
  );
}

/** Whether it is the name of the upstream with the item's own name, although the gateway shows the item without it. */
function isFullName(
  name: string,
  { name: shownName, _meta: meta }: { readonly name: string; readonly _meta?: unknown },
): boolean {
  const { [UPSTREAM]: upstream, [OWN_NAMES]: names } = isObject(meta) ? meta : {};
  if (typeof upstream !== "string" || !name.startsWith(upstream)) return false;
  const ownName: unknown = Array.isArray(names) ? names[0] : shownName;
  return ["_", ".", "/"].some((separator) => name === `${upstream}${separator}${String(ownName)}`);
}

/** Lists the items, or shows the one that the line names. */
function listNamed<Item extends { readonly name: string }>(kind: NamedKind<Item>, line: TargetLine): Promise<number> {
  const nouns = `${kind.noun}s`;
  const [name] = line.words;
  const isJson = line.values.json === true;
  return withClient(line, async (context) => {
    if (name === undefined) {
      context.busy(`Listing ${nouns}`);
      const listed = await kind.list(context.client, context.callOptions);
      const text = kind.format(withKey<Item>(listed[nouns], "name"), listStyle());
      return printList(nouns, text, isJson ? { [nouns]: listed[nouns] } : undefined, [listed], context);
    }
    const item = await findNamed(kind, name, context);
    context.done();
    if (isJson) printJson(item);
    else printTrusted(kind.detail(item, listStyle()));
    return EXIT.ok;
  });
}

/** Prints the document if there is one, else the text. */
function printList(
  noun: string,
  text: string,
  document: object | undefined,
  lists: readonly ListResult[],
  { note, done }: CommandContext,
): number {
  done();
  const missing = findMissingUpstreams(...lists);
  if (document !== undefined) printJson({ ...document, ...missingUpstreamsMeta(missing) });
  else if (text !== "") printTrusted(text);
  else note(`The server has no ${noun}`);
  noteMissingUpstreams(missing, note);
  return EXIT.ok;
}

/** `catenary tools TARGET --code`: what a model would see in code mode, and what it costs. */
async function codeTools({ target, words, values }: TargetLine): Promise<number> {
  if (words.length > 0) throw unexpectedArguments("tools", words, toolsCommand.usage);
  // The full list is what a config has without code mode.
  const plain = "config" in target ? { ...target, withoutCode: true as const } : target;
  return withClient({ target: plain, values }, async ({ client, callOptions, busy, done, code = {} }) => {
    busy("Listing tools");
    const { tools } = await client.listTools(callOptions);
    const report = await reportCodeTools(withKey<Tool>(tools, "name"), code);
    done();
    if (values.json === true) printJson(report);
    else printTrusted(formatCodeTools(report));
    return EXIT.ok;
  });
}

export const toolsCommand: Command = targetCommand({
  name: "tools",
  usage: "[NAME]",
  about: `Lists the tools of a server with their descriptions and arguments, as \`catenary call\` takes them; arguments in
brackets are optional. With NAME: shows that tool and its schemas. With --json: {"tools": [...]}, or the tool.`,
  flags: {
    code: boolean(
      "Shows what a model would see in [code mode](../how-to/code-mode.md), and what its definitions cost in tokens beside the full list; `gpt-tokenizer` counts them if it is installed.",
    ),
  },
  words: 1,
  run: (line) => (line.values.code === true ? codeTools(line) : listNamed(TOOLS, line)),
});

export const promptsCommand: Command = targetCommand({
  name: "prompts",
  usage: "[NAME]",
  about: `Lists the prompts of a server with their descriptions and arguments, as \`catenary prompt\` takes them; arguments in
brackets are optional. With NAME: shows that prompt. With --json: {"prompts": [...]}, or the prompt.`,
  flags: {},
  words: 1,
  run: (line) => listNamed(PROMPTS, line),
});

export const resourcesCommand: Command = targetCommand({
  name: "resources",
  about: `Lists the resources and resource templates of a server with their descriptions. \`catenary read\` reads one. With
--json: {"resources": [...], "resourceTemplates": [...]}.`,
  flags: {},
  run: (line) =>
    withClient(line, async (context) => {
      const { client, callOptions, busy } = context;
      busy("Listing resources");
      const listed = await client.listResources(callOptions);
      const listedTemplates = await client.listResourceTemplates(callOptions).catch(noTemplates);
      const { resources } = listed;
      const { resourceTemplates } = listedTemplates;
      const templates = withKey<ResourceTemplate>(resourceTemplates, "uriTemplate");
      const text = resourceList(withKey<Resource>(resources, "uri"), templates, listStyle());
      const document = line.values.json === true ? { resources, resourceTemplates } : undefined;
      return printList("resources", text, document, [listed, listedTemplates], context);
    }),
});

/** A server with resources need not support templates. */
function noTemplates(error: unknown): Pick<ListResourceTemplatesResult, "resourceTemplates" | "_meta"> {
  if (error instanceof McpError && error.code === METHOD_NOT_FOUND) return { resourceTemplates: [] };
  throw error;
}
