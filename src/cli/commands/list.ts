// `catenary tools|prompts TARGET [NAME]` and `catenary resources TARGET`: list what a server offers, or show one tool or
// prompt. The other commands find a tool or a prompt here.

import type { CallOptions } from "../../client/calls.ts";
import type { Client } from "../../client/client.ts";
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
import { EXIT, type Command } from "../command.ts";
import {
  findMissingUpstreams,
  formatCodeTools,
  listStyle,
  missingUpstreamsMeta,
  noteMissingUpstreams,
  promptDetail,
  promptList,
  reportCodeTools,
  resourceList,
  toolDetail,
  toolList,
  type ListResult,
  type ListStyle,
} from "../show/lists.ts";
import { defineCommand } from "../show/problems.ts";
import { notFound, withKey } from "../target/arguments.ts";
import { EXIT_HELP, parseTargetLine, TARGET_HELP, unexpectedArguments } from "../target/target.ts";
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
  const found = valid.find((one) => one.name === name);
  if (found !== undefined) return found;
  const [only, ...others] = valid.filter((one) => isFullName(name, one));
  if (only !== undefined && others.length === 0) return only;
  noteMissingUpstreams(findMissingUpstreams(listed), note);
  throw notFound(
    noun,
    name,
    valid.map((one) => one.name),
  );
}

/** Whether it is the name of the upstream with the item's own name, although the gateway shows the item without it. */
function isFullName(
  name: string,
  { name: shown, _meta: meta }: { readonly name: string; readonly _meta?: unknown },
): boolean {
  const { [UPSTREAM]: upstream, [OWN_NAMES]: names } = isObject(meta) ? meta : {};
  if (typeof upstream !== "string" || !name.startsWith(upstream)) return false;
  const own: unknown = Array.isArray(names) ? names[0] : shown;
  return ["_", ".", "/"].some((separator) => name === `${upstream}${separator}${String(own)}`);
}

function namedCommand<Item extends { readonly name: string }>(
  kind: NamedKind<Item>,
  about: string,
  runOther?: (args: readonly string[], usage: string) => Promise<number> | undefined,
): Command {
  const command = `${kind.noun}s`;
  const usage = `Usage: catenary ${command} TARGET [NAME] [OPTIONS]
       catenary ${command} [NAME] [OPTIONS] -- COMMAND ARGS...
`;
  return defineCommand(`${usage}\n${about}\n${TARGET_HELP}\n${EXIT_HELP}`, (args) => {
    const other = runOther?.(args, usage);
    if (other !== undefined) return other;
    const line = parseTargetLine(command, args, {}, usage);
    const [name, ...more] = line.words;
    if (more.length > 0) throw unexpectedArguments(command, more, usage);
    const isJson = line.values.json === true;
    return withClient(line, async (context) => {
      if (name === undefined) {
        context.busy(`Listing ${command}`);
        const listed = await kind.list(context.client, context.callOptions);
        const text = kind.format(withKey<Item>(listed[command], "name"), listStyle());
        return printList(command, text, isJson ? { [command]: listed[command] } : undefined, [listed], context);
      }
      const item = await findNamed(kind, name, context);
      context.done();
      if (isJson) printJson(item);
      else printTrusted(kind.detail(item, listStyle()));
      return EXIT.ok;
    });
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
function codeTools(args: readonly string[], usage: string): Promise<number> | undefined {
  const end = args.indexOf("--");
  if (!(end === -1 ? args : args.slice(0, end)).includes("--code")) return undefined;
  const { target, words, values } = parseTargetLine("tools", args, { code: { type: "boolean" } }, usage);
  if (words.length > 0) throw unexpectedArguments("tools", words, usage);
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

export const toolsCommand: Command = namedCommand(
  TOOLS,
  `Lists the tools of a server with their descriptions and arguments, as \`catenary call\` takes them;
arguments in brackets are optional. With NAME: shows that tool and its schemas. With --json:
{"tools": [...]}, or the tool.

  --code                 what a model would see in code mode, and what its definitions cost in
                         tokens beside the full list; gpt-tokenizer counts them if it is installed
`,
  codeTools,
);

export const promptsCommand: Command = namedCommand(
  PROMPTS,
  `Lists the prompts of a server with their descriptions and arguments, as \`catenary prompt\` takes
them; arguments in brackets are optional. With NAME: shows that prompt. With --json:
{"prompts": [...]}, or the prompt.
`,
);

const RESOURCES_USAGE = `Usage: catenary resources TARGET [OPTIONS]
       catenary resources [OPTIONS] -- COMMAND ARGS...
`;

const RESOURCES_HELP = `${RESOURCES_USAGE}
Lists the resources and resource templates of a server with their descriptions. \`catenary read\`
reads one. With --json: {"resources": [...], "resourceTemplates": [...]}.

${TARGET_HELP}
${EXIT_HELP}`;

async function listResources(args: readonly string[]): Promise<number> {
  const line = parseTargetLine("resources", args, {}, RESOURCES_USAGE);
  if (line.words.length > 0) throw unexpectedArguments("resources", line.words, RESOURCES_USAGE);
  return withClient(line, async (context) => {
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
  });
}

/** A server with resources need not support templates. */
function noTemplates(error: unknown): Pick<ListResourceTemplatesResult, "resourceTemplates" | "_meta"> {
  if (error instanceof McpError && error.code === METHOD_NOT_FOUND) return { resourceTemplates: [] };
  throw error;
}

export const resourcesCommand: Command = defineCommand(RESOURCES_HELP, listResources);
