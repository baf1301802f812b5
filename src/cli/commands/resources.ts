// `catenary resources TARGET` lists resources and templates; `catenary read TARGET URI` reads one. A resource with one
// part is printed byte for byte, so that it can be piped. Binary data never goes to a terminal.

import { ConnectionError } from "../../core/errors.ts";
import { McpError } from "../../protocol/errors.ts";
import type {
  ListResourceTemplatesResult,
  ReadResourceResult,
  Resource,
  ResourceContents,
  ResourceTemplate,
} from "../../protocol/model/index.ts";
import { EXIT, NotFoundError, UsageError, type Command } from "../command.ts";
import { checkDestination, decodePart, printResource, SAVE_FLAGS, Saver, type ContentOutput } from "../show/content.ts";
import { defineCommand } from "../show/problems.ts";
import {
  findMissingUpstreams,
  listStyle,
  missingUpstreamsMeta,
  noteMissingUpstreams,
  resourceList,
} from "../show/lists.ts";
import { withKey } from "../target/arguments.ts";
import { unexpectedArguments } from "../target/flags.ts";
import { EXIT_HELP, parseTargetLine, TARGET_HELP } from "../target/target.ts";
import { withClient } from "../target/with-client.ts";
import { printBytes, printJson, printRaw, printTrusted } from "../terminal/output.ts";
import { isTerminal } from "../terminal/text.ts";

const METHOD_NOT_FOUND = -32601;
const INVALID_PARAMS = -32602;

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
  return withClient(line, async ({ client, callOptions, busy, note, done }) => {
    busy("Listing resources");
    const listed = await client.listResources(callOptions);
    const listedTemplates = await client.listResourceTemplates(callOptions).catch(noTemplates);
    done();
    const { resources } = listed;
    const { resourceTemplates } = listedTemplates;
    const missing = findMissingUpstreams(listed, listedTemplates);
    const valid = withKey<Resource>(resources, "uri");
    const templates = withKey<ResourceTemplate>(resourceTemplates, "uriTemplate");
    if (line.values.json === true) printJson({ resources, resourceTemplates, ...missingUpstreamsMeta(missing) });
    else if (valid.length + templates.length === 0) note("The server has no resources");
    else printTrusted(resourceList(valid, templates, listStyle()));
    noteMissingUpstreams(missing, note);
    return EXIT.ok;
  });
}

/** A server with resources need not support templates. */
function noTemplates(error: unknown): Pick<ListResourceTemplatesResult, "resourceTemplates" | "_meta"> {
  if (error instanceof McpError && error.code === METHOD_NOT_FOUND) return { resourceTemplates: [] };
  throw error;
}

export const resourcesCommand: Command = defineCommand(RESOURCES_HELP, listResources);

const READ_USAGE = `Usage: catenary read TARGET URI [OPTIONS]
       catenary read URI [OPTIONS] -- COMMAND ARGS...
`;

const READ_HELP = `${READ_USAGE}
Reads a resource and prints its text on stdout, or its bytes if stdout is not a terminal. If it has
several parts, text goes to stdout; use --save or --output for the others. With --json: the result.

Files:
  --output FILE          write the resource to this file
  --save DIR             write each part to a file of its own in this folder
  --force                replace existing files

${TARGET_HELP}
${EXIT_HELP}`;

async function readResource(args: readonly string[]): Promise<number> {
  const line = parseTargetLine("read", args, SAVE_FLAGS, READ_USAGE);
  const { values, words } = line;
  const [uri, ...more] = words;
  if (uri === undefined) throw new UsageError(`read needs a URI\n\n${READ_USAGE}`);
  if (more.length > 0) throw unexpectedArguments("read", more, READ_USAGE);
  const saver = new Saver(await checkDestination(values));
  return withClient(line, async ({ client, callOptions, busy, note, done }) => {
    if (client.capabilities["resources"] === undefined) throw new NotFoundError("The server has no resources");
    busy(`Reading ${uri}`);
    const result = await client.readResource(uri, callOptions).catch((error: unknown) => {
      throw asNotFound(uri, error);
    });
    done();
    if (values.json === true) printJson(result);
    else await printParts(uri, result, { saver, note });
    return EXIT.ok;
  });
}

/** The URI is the only param of resources/read, so invalid params mean that there is no such resource. */
function asNotFound(uri: string, error: unknown): unknown {
  if (!(error instanceof McpError) || error.code !== INVALID_PARAMS) return error;
  return new NotFoundError(`There is no resource ${uri}: ${error.message}`, { cause: error });
}

async function printParts(uri: string, { contents }: ReadResourceResult, output: ContentOutput): Promise<void> {
  const parts = withKey<ResourceContents>(contents, "uri");
  const { saver, note } = output;
  const [only] = parts;
  if (only === undefined) throw new NotFoundError(`${uri} exists, but is empty`);
  // Without this check, an empty file would be written.
  if (parts.every((part) => decodePart(part) === undefined)) {
    throw new ConnectionError("protocol", `The content of ${uri} is neither text nor base64`);
  }
  if (saver.isEnabled) {
    for (const part of parts) {
      const bytes = decodePart(part);
      if (bytes === undefined) note(`${part.uri}: skipped, its data is not base64`);
      else note(`${part.uri}: written to ${await saver.save(bytes, part.uri, part.mimeType)}`);
    }
  } else if (parts.length > 1) for (const part of parts) await printResource(part, output);
  else if ("text" in only && typeof only.text === "string") printRaw(only.text);
  else if (isTerminal(process.stdout)) await printResource(only, output);
  else printBytes(decodePart(only) ?? Buffer.alloc(0));
}

export const readCommand: Command = defineCommand(READ_HELP, readResource);
